from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.serve_kills.rounds import MODELS, run_model


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.serve_kills", description="Kill a service under load.")
    parser.add_argument("--kills", type=int, default=200, help="shared by the models; default: 200")
    parser.add_argument("--seed", type=int, help="default: 1 where CI is set, else drawn")
    parser.add_argument("--only", default=",".join(MODELS), help="comma-separated models; default: all")
    given = parser.parse_args(words)
    seed = given.seed
    if seed is None:
        seed = 1 if "CI" in os.environ else random.SystemRandom().getrandbits(32)
    names = given.only.split(",")
    print(f"{given.kills} kills of services with these models: {given.only}; seed {seed}", flush=True)
    failed = False
    for number, name in enumerate(names):
        began = time.monotonic()
        kills = given.kills * (number + 1) // len(names) - given.kills * number // len(names)
        with tempfile.TemporaryDirectory(prefix="rarestream-kills-") as folder:
            found = run_model(name, random.Random(f"{seed} {name}"), Path(folder), kills)
        failed |= bool(found.wrong)
        when = ", ".join(f"{count} {moment}" for moment, count in sorted(found.moments.items()))
        told = "\n  ".join(found.wrong) or "0 acknowledged events lost, 0 twice, 0 states that differ from replay"
        print(
            f"{name:8} {found.kills:4} kills ({when}), {found.acknowledged:,} requests acknowledged, {found.entries:,} "
            f"entries, {found.version - 1} swaps, {found.compared:,} answers compared, {found.snapshots:,} snapshots replayed:\n  {told} "
            f"({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
