"""The lines of bench.py before and after a change: this checkout beside another revision, in one run.

    python benchmarks/before_after.py --base REVISION [--parts learn,text,one-row] [--rounds 3]

The other revision is checked out and installed below build/before. Both run their own bench.py in turns, without peers;
the smallest number of each line counts. Printed: every line of both with the ratio, the slowest first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent.parent
PARTS = "learn,text,one-row,metrics,path,race,starting,learners"
LIMITS = ("limit:", "python -c")  # what the machine can do: no line of ours

Line = tuple[str, ...]  # part, shape, name


def main() -> None:
    options = arguments()
    base = checkout(options.base)
    best: dict[str, dict[Line, float]] = {"before": {}, "after": {}}
    for number in range(options.rounds):
        order = [("before", base), ("after", HOME)]
        for name, home in order if number % 2 == 0 else reversed(order):
            print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr, flush=True)
            for line, value in measured(home, options.parts, options.bench_rounds).items():
                best[name][line] = min(value, best[name].get(line, value))
    show(best["before"], best["after"], options.allow)


def checkout(revision: str) -> Path:
    """The folder of another revision with an environment of its own."""
    commit = subprocess.check_output(["git", "rev-parse", "--short", revision], cwd=HOME, text=True).strip()
    home = HOME / "build" / "before" / commit
    if not home.exists():
        subprocess.run(["git", "worktree", "add", "--detach", home, commit], cwd=HOME, check=True)
    subprocess.run(["make", ".venv/installed-bench"], cwd=home, check=True, stdout=sys.stderr)
    return home


def measured(home: Path, parts: str, rounds: int) -> dict[Line, float]:
    """The lines that bench.py of a checkout measures."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.json"
        words = [home / ".venv/bin/python", home / "benchmarks/bench.py", "--peers", "", "--parts", parts]
        subprocess.run(
            [*words, "--rounds", str(rounds), "--json", target], cwd=home, check=True, stdout=subprocess.DEVNULL
        )
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


def show(before: dict[Line, float], after: dict[Line, float], allow: float) -> None:
    common = sorted(before.keys() & after.keys(), key=lambda line: -after[line] / before[line])
    print(f"{'line':72}{'before':>12}{'after':>12}{'ratio':>8}")
    for line in common:
        ratio = after[line] / before[line]
        note = "  slower" if ratio > 1 + allow else ""
        print(f"{' / '.join(line):72}{before[line]:>12.4g}{after[line]:>12.4g}{ratio:>8.3f}{note}")
    for name, lines in (("before", before.keys() - after.keys()), ("after", after.keys() - before.keys())):
        for line in sorted(lines):
            print(f"{' / '.join(line):72}  only {name}")
    slower = sum(after[line] > before[line] * (1 + allow) for line in common)
    print(f"\n{slower} of {len(common)} lines slower by more than {allow:.0%}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="the revision to compare with")
    parser.add_argument("--parts", default=PARTS, help="parts of bench.py; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; default: %(default)s")
    parser.add_argument("--bench-rounds", type=int, default=7, help="rounds within a run; default: %(default)s")
    parser.add_argument("--allow", type=float, default=0.03, help="how much slower a line may be; default: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()
