"""The AUC that learning in groups loses against learning in sequence, on one machine: what a cluster would give.

    python benchmarks/groups.py [--data-dir DIR] [--sets imdb,news20b] [--streams demo-2M] [--trials 2] [--seed 0]
        [--scale 1] [--groups 4,16,64] [--rounds auto,16] [--learners dual-logistic,evidence,power,auto] [--json FILE]
    python benchmarks/groups.py --show FILE ...

Every file DIR/<set>.svm.bz2 is split by the protocol of the FTRL-AUC paper (seed 17, one permutation a trial: the first
4/6 are learned, the last 1/6 tested). Streams are those of streams.py, one trial each, with --scale shorter. The same
rows are learned in sequence, and by `rarestream.groups.fit_groups`, bit for bit as rarestream.spark learns them.
Printed are the test AUC in sequence, and for each number of groups and rounds the difference to it, both means over
the trials; "-" where there are too few rows for so many groups. Written: the same as JSON. --show prints files that
were written before, without measuring.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import bench
import machine
import streams
from rarestream import Block, Model, auc, read
from rarestream.blocks import concatenate
from rarestream.errors import DataError
from rarestream.groups import auto_rounds, fit_groups
from rarestream.learners import DualAveraging, Learner, make_learner
from rarestream.reproduce.protocol import splits

SETTINGS: dict[str, Learner] = {
    "power": DualAveraging(loss="logistic", power=0.5, proximal=0.5),
    "evidence": DualAveraging(loss="logistic", evidence=0.5, proximal=0.5),
}
TOGETHER = 8192  # rows of a block that is learned in sequence
MEAN_BAR, WORST_BAR, BAR_GROUPS = 0.002, 0.004, 16  # AUC that may be lost with so many groups and the default rounds

Result = dict[str, Any]  # set, learner, rows, sequence: AUC of each trial; cells: groups, rounds, added


def problems(args: argparse.Namespace) -> Iterator[tuple[str, list[Block], Block]]:
    """The name, the rows to learn and the rows to test of each trial."""
    for name in args.sets:
        rows = concatenate(read(args.data_dir / f"{name}.svm.bz2"))
        for split in splits(len(rows))[: args.trials]:
            train = rows.take(split.train)
            yield name, _blocks(train), rows.take(split.test)
    for name in args.streams:
        stream = streams.make(name, args.scale, args.seed)
        rows = concatenate(stream.blocks)
        test = rows[len(rows) - stream.test :]
        shown = name if args.scale == 1 else f"{name} x {args.scale:g}"
        yield shown, _blocks(rows[: stream.learned]), test


def _blocks(rows: Block) -> list[Block]:
    return [rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER)]


def sequential(learner: Learner, blocks: list[Block]) -> Model:
    model = Model(learner)
    for block in blocks:
        model.learn(block)
    return model


def measure(args: argparse.Namespace, save: Any) -> list[Result]:
    """Measure, and save what was measured after each line that is printed."""
    wanted = [
        (int(groups), auto_rounds(int(groups)) if r == "auto" else int(r))
        for groups in args.groups
        for r in args.rounds
    ]
    columns = list(dict.fromkeys(wanted))
    found: dict[tuple[str, str], Result] = {}
    for name, blocks, test in problems(args):
        for word in args.learners:
            learner = SETTINGS.get(word) or make_learner(word)
            started = perf_counter()
            alone = auc(test.labels, sequential(learner, blocks).score(test))
            empty: Result = {"set": name, "learner": word, "rows": sum(map(len, blocks)), "sequence": [], "cells": []}
            result = found.setdefault((name, word), empty)
            if not result["cells"]:
                result["cells"] = [{"groups": groups, "rounds": rounds, "added": []} for groups, rounds in columns]
            result["sequence"].append(alone)
            for cell in result["cells"]:
                cell["added"].append(_added(name, word, learner, cell["groups"], cell["rounds"], blocks, test, alone))
            shown = "  ".join(
                f"{cell['groups']} x {cell['rounds']} {_shown(cell['added'][-1])}" for cell in result["cells"]
            )
            print(f"{name:12} {word:14} sequence {alone:.4f}  {shown}  ({perf_counter() - started:.0f} s)", flush=True)
            save(list(found.values()))
    return list(found.values())


def _added(
    name: str, word: str, learner: Learner, groups: int, rounds: int, blocks: list[Block], test: Block, alone: float
) -> float | None:
    """The AUC that groups add; None if there are too few rows for so many."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = fit_groups(blocks, learner, groups=groups, rounds=rounds)
        except DataError:
            return None
    for warning in said:
        print(f"  {name}, {word}, {groups} groups, {rounds} rounds: {warning.message}", flush=True)
    return float(auc(test.labels, model.score(test)) - alone)


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:+.4f}"


def mean(added: Iterable[float | None]) -> float | None:
    """The mean over the trials; None if one of them could not be measured."""
    numbers = list(added)
    return None if None in numbers else float(np.mean([number for number in numbers if number is not None]))


def show(results: list[Result]) -> None:
    """Print the table, and the bars."""
    print("\nAUC in sequence, and what groups x rounds add to it: means over the trials; * the default rounds\n")
    print(auc_table(results))
    print(
        f"\n{BAR_GROUPS} groups, {auto_rounds(BAR_GROUPS)} rounds, over the sets: AUC added in the mean, and at worst\n"
    )
    print(bar_table(results))


def auc_table(results: list[Result]) -> str:
    """What groups add, for each set and learner, in Markdown."""
    columns = sorted({(cell["groups"], cell["rounds"]) for result in results for cell in result["cells"]})
    heading = [f"{groups} x {rounds}{'*' * (rounds == auto_rounds(groups))}" for groups, rounds in columns]
    rows = []
    for one in results:
        cells = {(cell["groups"], cell["rounds"]): _shown(mean(cell["added"])) for cell in one["cells"]}
        shown = [cells.get(column, "") for column in columns]
        rows.append([one["set"], one["learner"], f"{one['rows']:,}", f"{np.mean(one['sequence']):.4f}", *shown])
    return table(["set", "learner", "rows", "sequence", *heading], rows)


def bar_table(results: list[Result]) -> str:
    """The mean and the worst over all sets for each learner, beside what is required, in Markdown."""
    wanted, rows = (BAR_GROUPS, auto_rounds(BAR_GROUPS)), []
    for word in dict.fromkeys(one["learner"] for one in results):
        cells = [(one["set"], cell) for one in results if one["learner"] == word for cell in one["cells"]]
        added = {name: mean(cell["added"]) for name, cell in cells if (cell["groups"], cell["rounds"]) == wanted}
        known = {name: number for name, number in added.items() if number is not None}
        if known:
            worst = min(known, key=lambda name: known[name])
            average = float(np.mean(list(known.values())))
            kept = average >= -MEAN_BAR and known[worst] >= -WORST_BAR
            verdict = "kept" if kept else "BELOW"
            rows.append([word, str(len(known)), f"{average:+.4f}", f"{known[worst]:+.4f} ({worst})", verdict])
    required = f"required: {-MEAN_BAR:+.4f} in the mean, {-WORST_BAR:+.4f} at worst"
    return table(["learner", "sets", "mean", "worst", required], rows)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (heading, ["---"] * len(heading), *rows))


def load(files: Iterable[Path]) -> list[Result]:
    """The results of several files, those of one set and learner as one; a cell of a later file replaces another."""
    found: dict[tuple[str, str], Result] = {}
    cells: dict[tuple[str, str], dict[tuple[int, int], Any]] = {}
    for file in files:
        for one in json.loads(file.read_text("utf-8"))["groups"]:
            key = (one["set"], one["learner"])
            known = found.setdefault(key, one)
            if known["sequence"] != one["sequence"]:
                raise SystemExit(f"groups: {file} has other trials of {key[0]} with {key[1]} than a file before.")
            cells.setdefault(key, {}).update({(cell["groups"], cell["rounds"]): cell for cell in one["cells"]})
    sets, learners = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    return [
        {**found[name, word], "cells": [cell for _, cell in sorted(cells[name, word].items())]}
        for name in sets
        for word in learners
        if (name, word) in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [part for part in text.split(",") if part]  # noqa: E731
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", type=listed, default=[])
    parser.add_argument("--streams", type=listed, default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="of the streams: 0.1 for a tenth of the rows")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=listed, default=["4", "16", "64"])
    parser.add_argument("--rounds", type=listed, default=["auto"])
    parser.add_argument("--learners", type=listed, default=["dual-logistic", "evidence", "power", "auto"])
    parser.add_argument(
        "--json", type=Path, help="where the results go; benchmarks/results/groups-DATE.json by default"
    )
    parser.add_argument("--show", type=Path, nargs="+", help="files that were written before: print them")
    args = parser.parse_args()
    if args.show:
        show(load(args.show))
        return
    if args.sets and args.data_dir is None:
        parser.error("--sets needs --data-dir, the folder of the files")
    now = datetime.now()
    target = args.json or bench.RESULTS / f"groups-{now:%Y-%m-%d-%H%M%S}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    about = {"date": now.isoformat(timespec="seconds"), "machine": machine.description(), "versions": bench.versions()}
    about["commit"] = bench.commit()

    def save(results: list[Result]) -> None:
        target.write_text(json.dumps({**about, "groups": results}, indent=1) + "\n", "utf-8")

    show(measure(args, save))
    print(f"\nwritten to {target}")


if __name__ == "__main__":
    main()
