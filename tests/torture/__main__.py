"""Runs the parts in turn, in small rounds, until the time is over.

A round is a process of its own, so that a crash or a wish for endless memory is seen and ends nothing else. Its seed
follows from the main seed, its part and its number; a failure prints the command that runs that round again. Nothing
depends on the clock but the number of rounds, and when exactly a program is killed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is there: rounds are forked, and memory is limited

import argparse
import contextlib
import faulthandler
import multiprocessing
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from tests.torture import auc, corruption, files, kills, learning

PARTS = {
    "kills": kills.run_round,
    "corruption": corruption.run_round,
    "files": files.run_round,
    "auc": auc.run_round,
    "learning": learning.run_round,
}
MEMORY = 6 << 30  # bytes of address space for a round: generous, but less than a hostile file may ask for
LIMIT = 300.0  # seconds for a round, which takes a few
SHOWN = 3  # failures of a part that are printed in full


def begin_round(part: str, seed: int, folder: Path) -> None:
    """The process of a round: what it has to say goes into its folder."""
    log = (folder / "log.txt").open("w")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    faulthandler.enable(log)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    work = folder / "work"
    work.mkdir()
    try:
        cases = PARTS[part](random.Random(seed), work)
    except BaseException:
        traceback.print_exc()
        log.flush()
        os._exit(1)
    (folder / "cases").write_text(str(cases))
    os._exit(0)  # without the farewells of the process it was forked from


def run_round(part: str, seed: int, folder: Path) -> tuple[int, str]:
    """The cases a round tried; and what went wrong, or nothing."""
    folder.mkdir()
    process = multiprocessing.get_context("fork").Process(target=begin_round, args=(part, seed, folder))
    process.start()
    try:
        process.join(LIMIT)
    except KeyboardInterrupt:  # which the round has met, too: it ends what it has started
        process.join(60)
        raise
    if process.is_alive():
        process.kill()
        process.join()
        return 0, f"still running after {LIMIT:.0f} seconds"
    if process.exitcode:
        log = (folder / "log.txt").read_text(errors="replace")
        return 0, log if process.exitcode == 1 else f"ended with {process.exitcode}: a crash\n{log}"
    cases = int((folder / "cases").read_text())
    shutil.rmtree(folder)
    return cases, ""


def round_seed(seed: int, part: str, number: int) -> int:
    return random.Random(f"{seed} {part} {number}").getrandbits(32)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=900.0, help="when to stop beginning rounds; default: 900")
    parser.add_argument("--seed", type=int, help="default: 1 where CI is set, else drawn")
    parser.add_argument("--only", default=",".join(PARTS), help="comma-separated parts; default: all")
    parser.add_argument("--round", type=int, metavar="SEED", help="run one round of the part named by --only")
    given = parser.parse_args(words)
    names = given.only.split(",")
    if unknown := sorted(set(names) - set(PARTS)):
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}.")
    seed = given.seed
    if seed is None:
        seed = 1 if "CI" in os.environ else random.SystemRandom().getrandbits(32)
    if given.round is None:
        print(f"torture: {given.seconds:.0f} seconds of {', '.join(names)}; seed {seed}", flush=True)
    root = Path(tempfile.mkdtemp(prefix="rarestream-torture-"))
    rounds, cases, failures = (dict.fromkeys(names, 0) for _ in range(3))
    spent = dict.fromkeys(names, 0.0)
    started = time.monotonic()
    interrupted = True
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            part = min(names, key=lambda name: spent[name])
            mine = round_seed(seed, part, rounds[part]) if given.round is None else given.round
            began = time.monotonic()
            tried, wrong = run_round(part, mine, root / f"{part}-{mine}")
            spent[part] += time.monotonic() - began
            rounds[part] += 1
            cases[part] += tried
            failures[part] += bool(wrong)
            if wrong:
                print(f"\n{part} failed. Again: {sys.executable} -m tests.torture --only {part} --round {mine}")
                if failures[part] <= SHOWN:
                    print(wrong[-3000:], flush=True)
            if given.round is not None or time.monotonic() - started > given.seconds:
                interrupted = False
                break
    print()
    for part in names:
        counts = f"{rounds[part]:6,} rounds {cases[part]:9,} cases {failures[part]:5,} failures"
        print(f"{part:10} {counts} {spent[part]:7.0f} s")
    if any(failures.values()):
        print(f"What the failed rounds left is in {root}.")
        return 1
    shutil.rmtree(root)
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
