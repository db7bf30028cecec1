"""Speed of rarestream beside its peers and the limits of the machine, all in one run.

    python benchmarks/bench.py            the shapes of Table I, some minutes
    python benchmarks/bench.py --full     all rows, also their uniform versions, a 2 GB file

Peers take turns with us, round by round, and the smallest time of each counts. Printed: tables with ratios, then every
bar with what was measured. Written: the same as JSON, with the machine, the versions and the commit.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import platform
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import cached
import calls
import contests
import learners
import live
import machine
import many_classes
import named
import peers
import racing
import serving
import small
import table
from shapes import SHAPES, make

PEERS = ("sklearn", "vw", "river")
PARTS = (
    "learn",
    "text",
    "cache",
    "calls",
    "classes",
    "accuracy",
    "one-row",
    "metrics",
    "path",
    "race",
    "starting",
    "memory",
    "learners",
    "named",
    "live",
    "serve",
)
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    given = arguments()
    peers.quiet()
    chosen = {peer for peer in given.peers.split(",") if peer}
    parts = set(given.parts.split(","))
    names = given.shapes.split(",") if given.shapes else [n for n in SHAPES if given.full or "uniform" not in n]
    for word, known in [
        *((peer, PEERS) for peer in chosen),
        *((n, SHAPES) for n in names),
        *((p, PARTS) for p in parts),
    ]:
        if word not in known:
            raise SystemExit(f"bench: {word!r} is not one of {', '.join(known)}.")
    rounds = given.rounds or 9
    start = time.perf_counter()
    about = {"machine": machine.description(), "versions": versions(), "commit": commit(), "rounds": rounds}
    print(f"{'full' if given.full else 'quick (--full for all of it)'}: smallest of {rounds} rounds")
    print(json.dumps(about["machine"]), json.dumps(about["versions"]), about["commit"], sep="\n", flush=True)
    results: dict[str, Any] = {}
    for name in names if parts & {"learn", "accuracy", "text"} else []:
        shape = SHAPES[name]
        data = make(shape, 1.0 if given.full else 0.5)
        train = data.train
        k = train.nonzeros / len(train)
        say(
            start,
            f"{name}: {len(train):,} rows, {shape.d:,} features, {train.nonzeros:,} non-zeros, {k:.0f} per row",
        )
        if "learn" in parts:
            results.setdefault("learn", {})[name] = contests.in_memory(data, rounds, chosen)
        if "accuracy" in parts:
            results.setdefault("accuracy", {})[name] = contests.accuracy(data, chosen)
        if "text" in parts and not shape.uniform:
            results.setdefault("text", {})[name] = contests.from_text(
                data, rounds if given.full else min(rounds, 5), chosen
            )
    if "cache" in parts:
        say(start, "a second pass, from a cache")
        results["cache"] = cached.measure(1.0 if given.full else 0.5, min(rounds, 5), chosen)
    if "calls" in parts:
        say(start, "whole calls: fit, train, learn_one, auto")
        results["calls"] = calls.measure(rounds, chosen)
    if "classes" in parts:
        say(start, "many classes")
        results["classes"] = many_classes.measure(rounds, chosen)
    if "one-row" in parts:
        say(start, "rows that come alone")
        results["one row"] = small.one_row(rounds, chosen)
    if "metrics" in parts:
        say(start, "AUC")
        results["metrics"] = small.metrics(rounds, chosen)
    if "path" in parts:
        say(start, "AUC at 50 sizes")
        results["path"] = small.path(rounds)
    if "race" in parts:
        say(start, "many settings in one pass")
        results["race"] = racing.measure(rounds)
    if "starting" in parts:
        say(start, "starting up, size")
        results["starting"], results["installed"] = small.starting(rounds), small.installed_size()
    if "memory" in parts:
        megabytes = given.megabytes or (2000 if given.full else 200)
        say(start, f"memory on a file of {megabytes} MB")
        results["memory"] = small.memory(megabytes, chosen)
    if "named" in parts:
        say(start, "named features: CSV, VW text, Parquet")
        results["named"] = named.measure(1_000_000 if given.full else 300_000, min(rounds, 5), chosen)
        megabytes = given.megabytes or (2000 if given.full else 200)
        say(start, f"memory on a CSV file of {megabytes} MB")
        results["named memory"] = named.memory(megabytes)
    if "live" in parts:
        say(start, "rows of 20 fields from Redis and Kafka")
        results["live"] = live.measure(300_000 if given.full else 100_000, min(rounds, 5))
    if "serve" in parts:
        say(start, "the service under load")
        results["serve"] = serving.measure(10 if given.full else 4, min(rounds, 5))
    if "learners" in parts:
        say(start, "every learner")
        results["learners"] = learners.measure(3)
    if "learn" in results:
        table.print_learn(results["learn"])
    if "text" in results:
        table.print_text(results["text"])
    if "cache" in results:
        table.print_cache(results["cache"])
    if "accuracy" in results:
        table.print_accuracy(results["accuracy"])
    table.print_small(results)
    if "learners" in results:
        learners.show(results["learners"])
    verdicts = table.print_bars(table.bars(results))
    now = datetime.now().astimezone()
    target = given.json or RESULTS / f"{now:%Y-%m-%d}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "date": now.isoformat(timespec="seconds"),
        **about,
        "full": given.full,
        "results": results,
        "bars": verdicts,
    }
    target.write_text(json.dumps(written, indent=1))
    print(f"\n{time.perf_counter() - start:.0f} s; written to {target}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="half the rows: the default")
    size.add_argument("--full", action="store_true", help="all rows, uniform shapes, a 2 GB file")
    parser.add_argument("--shapes", help=f"some of {','.join(SHAPES)}")
    parser.add_argument("--peers", default=",".join(PEERS), help="some of %(default)s")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of %(default)s")
    parser.add_argument("--rounds", type=int, help="of which the smallest time counts")
    parser.add_argument("--megabytes", type=int, help="size of the file that memory is measured on")
    parser.add_argument("--json", type=Path, help="where the results go; benchmarks/results/DATE.json by default")
    return parser.parse_args()


def say(start: float, what: str) -> None:
    print(f"[{time.perf_counter() - start:4.0f} s] {what}", flush=True)


def versions() -> dict[str, str]:
    names = ("rarestream", "numpy", "scipy", "scikit-learn", "vowpalwabbit", "river", "pandas", "pyarrow")
    found = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain") else "")


if __name__ == "__main__":
    main()
