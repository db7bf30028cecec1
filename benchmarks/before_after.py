"""The lines of bench.py before and after a change: this checkout beside another revision, in one run.

    make bench-against REV=REVISION [ARGS="--parts learn,text,one-row --rounds 3"]
    python benchmarks/before_after.py --base REVISION

The other revision is checked out and installed below build/before, in an environment that shares all other packages
with this one. Both run the bench.py of this checkout in turns, without peers (or each its own, if this one does not run
with the older package); the smallest number of each line counts. Lines that look slower are measured again, several
times, before that is believed. Printed: every line of both with the ratio, the slowest first. Exits with 1 if a line is
slower by more than --allow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).parent.parent
PARTS = "learn,text,calls,one-row,metrics,path,race,starting,learners"
LIMITS = ("limit:", "python -c", "numpy.asarray", "json.loads")  # what others take: no line of ours
SHAPED = ("learn", "text")  # parts that can be measured for some shapes only

Line = tuple[str, ...]  # part, shape, name
Lines = dict[Line, float]


class Side(NamedTuple):
    """One of the two versions: the interpreter that has it, and the bench.py that it runs."""

    name: str
    python: Path
    bench: Path


def main() -> None:
    options = arguments()
    other = checkout(options.base)
    here = HOME / "benchmarks" / "bench.py"
    before = Side("before", other / ".venv/bin/python", here)
    if not runs(before):
        print("the benchmarks of this checkout do not run with that revision: it runs its own", file=sys.stderr)
        before = before._replace(bench=other / "benchmarks" / "bench.py")
    sides = (before, Side("after", Path(sys.executable), here))

    def measure(side: Side, parts: str, shapes: str | None) -> Lines:
        return measured(side, parts, shapes, options.bench_rounds)

    best = compare(sides, measure, options.parts, options.rounds, options.again, options.allow)
    slower = show(*best, options.allow)
    raise SystemExit(1 if slower else 0)


def compare(
    sides: tuple[Side, Side],
    measure: Callable[[Side, str, str | None], Lines],
    parts: str,
    rounds: int,
    again: int,
    allow: float,
) -> tuple[Lines, Lines]:
    """The smallest number of each line before and after. What looks slower after `rounds` is measured up to `again`
    times more, as long as it does."""
    best: dict[str, Lines] = {side.name: {} for side in sides}

    def turn(number: int, parts: str, shapes: str | None) -> None:
        for side in sides if number % 2 == 0 else sides[::-1]:
            print(f"round {number + 1}, {side.name}: {parts}", file=sys.stderr, flush=True)
            for line, value in measure(side, parts, shapes).items():
                best[side.name][line] = min(value, best[side.name].get(line, value))

    before, after = (best[side.name] for side in sides)
    for number in range(rounds):
        turn(number, parts, None)
    for number in range(rounds, rounds + again):
        suspects = slower_lines(before, after, allow)
        if not suspects:
            break
        turn(number, *parts_of(suspects))
    return before, after


def slower_lines(before: Mapping[Line, float], after: Mapping[Line, float], allow: float) -> list[Line]:
    return [line for line in before.keys() & after.keys() if after[line] > before[line] * (1 + allow)]


def parts_of(lines: Iterable[Line]) -> tuple[str, str | None]:
    """The parts of bench.py that measure these lines, and the shapes, where it can be told which."""
    found = list(lines)
    parts = sorted({line[0].replace(" ", "-") for line in found})
    shapes = sorted({line[1] for line in found if line[0] in SHAPED})
    return ",".join(parts), ",".join(shapes) or None


def checkout(revision: str) -> Path:
    """The folder of another revision with an environment of its own, which shares the packages of this one."""
    commit = subprocess.check_output(["git", "rev-parse", "--short", revision], cwd=HOME, text=True).strip()
    home = HOME / "build" / "before" / commit
    if not home.exists():
        subprocess.run(["git", "worktree", "add", "--detach", home, commit], cwd=HOME, check=True, stdout=sys.stderr)
    environment = home / ".venv"
    done = environment / "installed-before"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", environment], check=True)
        packages = next(environment.glob("lib/python*/site-packages"))
        shared = [path for path in sys.path if path.endswith("site-packages")] or [sysconfig.get_path("purelib")]
        (packages / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
        words = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--ignore-installed"]
        subprocess.run(
            [environment / "bin/python", *words, "--prefix", environment, "-e", "."],
            cwd=home,
            check=True,
            stdout=sys.stderr,
        )
        done.touch()
    return home


def runs(side: Side) -> bool:
    """Whether the benchmarks can be imported with this version of the package."""
    ended = subprocess.run([side.python, side.bench, "--help"], capture_output=True, text=True)
    return ended.returncode == 0


def measured(side: Side, parts: str, shapes: str | None, rounds: int) -> Lines:
    """The lines that bench.py measures with one version."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.json"
        words: list[Any] = [side.python, side.bench, "--peers", "", "--parts", parts, "--rounds", str(rounds)]
        words += ["--json", target, *(["--shapes", shapes] if shapes else [])]
        subprocess.run(words, cwd=side.bench.parent.parent, check=True, stdout=subprocess.DEVNULL)
        results = json.loads(target.read_text())["results"]
    return {line: value for line, value in numbers(results) if not line[-1].startswith(LIMITS)}


def numbers(results: Any, path: Line = ()) -> Iterator[tuple[Line, float]]:
    """The times in the results of a run; smaller is better."""
    if path == ("installed",):
        return
    if path == ("learners",):
        for row in results:
            yield ("learners", row["learner"]), row["seconds"]
    elif isinstance(results, dict):
        for key, value in results.items():
            yield from numbers(value, (*path, str(key)))
    elif isinstance(results, int | float):
        yield path, float(results)


def show(before: Mapping[Line, float], after: Mapping[Line, float], allow: float) -> int:
    """Print every line, the slowest first. Return how many are slower by more than is allowed."""
    common = sorted(before.keys() & after.keys(), key=lambda line: -after[line] / before[line])
    slower = slower_lines(before, after, allow)
    print(f"{'line':72}{'before':>12}{'after':>12}{'ratio':>8}")
    for line in common:
        note = "  SLOWER" if line in slower else ""
        ratio = after[line] / before[line]
        print(f"{' / '.join(line):72}{before[line]:>12.4g}{after[line]:>12.4g}{ratio:>8.3f}{note}")
    for name, lines in (("before", before.keys() - after.keys()), ("after", after.keys() - before.keys())):
        for line in sorted(lines):
            print(f"{' / '.join(line):72}  only {name}")
    print(f"\n{len(slower)} of {len(common)} lines slower by more than {allow:.0%}")
    return len(slower)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="the revision to compare with")
    parser.add_argument("--parts", default=PARTS, help="parts of bench.py; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each; default: %(default)s")
    parser.add_argument("--again", type=int, default=4, help="more runs of what looks slower; default: %(default)s")
    parser.add_argument("--bench-rounds", type=int, default=7, help="rounds within a run; default: %(default)s")
    parser.add_argument("--allow", type=float, default=0.05, help="how much slower a line may be; default: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()
