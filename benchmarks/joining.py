"""How many events per second `rarestream join` labels, on one core: CSV and JSON lines, in memory and from disk.

python benchmarks/joining.py [--rows 1000000]
"""

from __future__ import annotations

import argparse
import csv
import heapq
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = 18  # beside key and time
RATE = 100.0  # events per second of log time
LABELLED, DELAY = 0.05, 600.0  # share of events, and mean seconds until their label
RUNS = 3


def write(folder: Path, rows: int) -> None:
    """Write events.csv, the same as events.jsonl, and labels.csv."""
    random.seed(1)
    waiting: list[tuple[float, str]] = []
    names = ["id", "ts", *(f"c{number}" for number in range(COLUMNS))]
    with (
        open(folder / "events.csv", "w", newline="") as table,
        open(folder / "events.jsonl", "w") as objects,
        open(folder / "labels.csv", "w") as labels,
    ):
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(names)
        print("id,ts", file=labels)
        time = 1.7e9
        for number in range(rows + 1):
            time += random.expovariate(RATE)
            while waiting and (waiting[0][0] < time or number == rows):
                at, known = heapq.heappop(waiting)
                print(f"{known},{at:.3f}", file=labels)
            if number == rows:
                break
            key = f"{random.getrandbits(64):016x}"
            cells = [random.randrange(1000) if c % 3 else f"site{random.randrange(500)}" for c in range(COLUMNS)]
            row = [key, round(time, 3), *cells]
            writer.writerow(row)
            objects.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
            if random.random() < LABELLED:
                heapq.heappush(waiting, (time + random.expovariate(1 / DELAY), key))


def seconds(folder: Path, events: str, memory: str) -> float:
    """Return the processor time of a join: the least of a few runs."""
    words = ["join", events, "labels.csv", "--key", "id", "--time", "ts", "--within", "30m", "--memory", memory, "-q"]
    found = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(os.devnull, "wb") as out:
            subprocess.run([sys.executable, "-m", "rarestream", *words], cwd=folder, stdout=out, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        for events in ("events.csv", "events.jsonl"):
            size = f"{(folder / events).stat().st_size / 1e6:6.0f} MB"
            for memory in ("500M", "20M"):
                took = seconds(folder, events, memory)
                print(f"{events:<13} {size}  --memory {memory:<5} {took:6.2f} s {rows / took:10,.0f} events/s")


if __name__ == "__main__":
    main()
