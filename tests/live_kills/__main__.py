from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.live_kills.rounds import SOURCES, run_source


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.live_kills", description="Kill training that follows.")
    parser.add_argument("--kills", type=int, default=100, help="for each source; default: 100")
    parser.add_argument("--seed", type=int, help="default: 1 where CI is set, else drawn")
    parser.add_argument("--only", default=",".join(SOURCES), help="comma-separated sources; default: all")
    given = parser.parse_args(words)
    seed = given.seed
    if seed is None:
        seed = 1 if "CI" in os.environ else random.SystemRandom().getrandbits(32)
    print(f"{given.kills} kills for each of {given.only}; seed {seed}", flush=True)
    failed = False
    for name in given.only.split(","):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="rarestream-kills-") as folder:
            found = run_source(name, random.Random(f"{seed} {name}"), Path(folder), given.kills)
        failed |= bool(found.wrong)
        told = "; ".join(found.wrong) or "0 rows twice, 0 rows never"
        print(
            f"{name:8} {found.kills:4} kills, {found.saved:4} of them after a save, {found.rows:7,} rows: {told} "
            f"({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
