"""The results as a table with ratios, and each bar against what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import cached
import calls
import live
import many_classes
import racing
from contests import LIMIT, OURS, SKLEARN
from small import COLD, IMPORT_NUMPY, IMPORTS, PATH_SHAPES, STREAMING, TIES, TRAIN_TINY

Results = dict[str, Any]
METRICS = {TIES: "exact AUC of 500,000 scores, many equal", STREAMING: "StreamingAuc.add, a score"}
NANOSECONDS = {TIES: 13, STREAMING: 8}  # a score


@dataclass(frozen=True)
class Bar:
    what: str
    must: float
    aim: float
    measured: float | None  # None: not measured in this run
    unit: str
    more_is_better: bool

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        for goal, word in ((self.aim, "aim"), (self.must, "must")):
            if self.measured >= goal if self.more_is_better else self.measured <= goal:
                return word
        return "BELOW"


def bars(results: Results) -> list[Bar]:
    found = []
    for shape, must, aim in (("rcv1b", 5.5, 7), ("avazu", 10, 12)):
        for peer, said in (("SGD l1 float64", "as it comes"), ("SGD l1 float64, rows in order", "shuffle=False")):
            ratio = _ratio(results, "learn", shape, peer, OURS)
            found.append(Bar(f"learn vs SGD l1 fit ({said}), {shape}", must, aim, ratio, "x faster", True))
    for shape, must, aim in (("rcv1b", 3.2, 2.3), ("avazu", 3, 2)):
        ratio = _ratio(results, "learn", shape, OURS, LIMIT)
        found.append(Bar(f"learn vs read-modify-write limit, {shape}", must, aim, ratio, "x slower", False))
    for peer, said, bars_by_cores in (
        ("VW text, start-up deducted", "VW text", {", all cores": (6, 8), "": (4, 6)}),
        (SKLEARN, "sklearn load + fit", {", all cores": (35, 45), "": (35, 45)}),
    ):
        for shape in ("rcv1b", "avazu"):
            for cores, (must, aim) in bars_by_cores.items():
                ratio = _ratio(results, "text", shape, peer + cores, "ours" + cores)
                what = f"text to saved model vs {said}, {shape}{cores or ', one core'}"
                found.append(Bar(what, must, aim, ratio, "x faster", True))
    for cores in ("", ", all cores"):
        where = cores or ", one core"
        for shape, (must, aim) in cached.BARS.items():
            ratio = _ratio(results, "cache", shape, cached.VW, cached.BLOCKS + cores)
            found.append(Bar(f".blocks to saved model vs VW cache, {shape}{where}", must, aim, ratio, "x faster", True))
        for shape, (must, aim) in cached.SECOND_BARS.items():
            ratio = _ratio(results, "cache", shape, cached.FIRST + cores, cached.SECOND + cores)
            found.append(
                Bar(f"second pass, from the cache, vs CSV, {shape}{where}", must, aim, ratio, "x faster", True)
            )
            ratio = _ratio(results, "cache", shape, cached.MAKING + cores, cached.SECOND + cores)
            found.append(
                Bar(f"second pass with --cache vs the first, {shape}{where}", must, aim, ratio, "x faster", True)
            )
    memory = results.get("memory", {})
    peak = memory["rarestream train"] - memory["state"] if "rarestream train" in memory else None
    found.append(
        Bar(f"peak memory of train, {memory.get('file', '?')} MB file, state aside", 150, 80, peak, "MB", False)
    )
    found += _named_bars(results)
    for way, rows in results.get("live", {}).items():
        if way.endswith(live.TO_MODEL):
            found.append(Bar(way, 100, 200, rows / 1000, "k rows/s", True))
    for name, widths in results.get("one row", {}).items():
        if not name.startswith("SGD") and name != COLD:
            growth = widths[10**7] / widths[10**4]
            found.append(Bar(f"{name}, d = 10^7 vs 10^4", 1.5, 1.05, growth, "x slower", False))
    for line in results.get("learners", []):
        if line["must"]:
            what = f"a pass of {line['learner']} vs the authors' C"
            found.append(Bar(what, line["must"], line["must"], line["published"] / line["seconds"], "x faster", True))
    for line in results.get("learners", []):
        if line["one row"]:
            near, far = line["one row"].values()
            what = f"one row, {line['learner']}, d = 10^6 vs 10^4"
            found.append(Bar(what, 2, 1.2, far / near, "x slower", False))
    starting = results.get("starting", {})
    for name in IMPORTS:
        spent = starting.get(name)
        found.append(Bar(f"{name} (SciPy in)", 30, 5, None if spent is None else spent * 1e3, "ms", False))
    found.append(
        Bar(
            "exact AUC of 10^7 scores vs sklearn",
            15,
            25,
            _ratio(results, "metrics", None, "sklearn roc_auc_score", "auc"),
            "x faster",
            True,
        )
    )
    for line, nanoseconds in NANOSECONDS.items():
        spent = results.get("metrics", {}).get(line)
        found.append(Bar(METRICS.get(line, line), nanoseconds, nanoseconds, spent, "ns", False))
    for line in calls.LINES:
        pair = (line.ours, line.other) if line.slower else (line.other, line.ours)
        ratio = _ratio(results, "calls", None, *pair)
        unit = "x slower" if line.slower else "x faster"
        found.append(Bar(line.what, line.must, line.aim, ratio, unit, not line.slower))
    found += _class_bars(results)
    for shape in PATH_SHAPES:
        for where in (", from a file", ""):
            ratio = _ratio(results, "path", shape, f"size by size{where}", f"path{where}")
            what = f"path of 50 sizes vs size by size, {shape}{where or ', in memory'}"
            found.append(Bar(what, 20, 20, ratio, "x faster", True))
    for shape, (must, aim) in racing.BARS.items():
        for what in (racing.IN_LANES, racing.RACED):
            ratio = _ratio(results, "race", shape, what, racing.SINGLE)
            found.append(Bar(f"{what} vs {racing.SINGLE}, {shape}", must, aim, ratio, "x slower", False))
    size = results.get("installed")
    found.append(Bar("installed size", 3, 1, sum(size.values()) / 1e6 if size else None, "MB", False))
    late = starting["rarestream --help"] - starting["python -c pass"] if "rarestream --help" in starting else None
    found.append(Bar("rarestream --help beyond python -c pass", 0.25, 0.1, late, "s", False))
    ratio = _ratio(results, "starting", None, TRAIN_TINY, IMPORT_NUMPY)
    found.append(Bar(f"{TRAIN_TINY} vs {IMPORT_NUMPY}", 2, 1.5, ratio, "x slower", False))
    return found


def _class_bars(results: Results) -> list[Bar]:
    found = []
    for peer, (must, aim) in many_classes.BARS.items():
        ratio = _ratio(results, "classes", "seconds", peer, many_classes.OURS)
        found.append(Bar(f"20 classes vs one-vs-rest of {peer}", must, aim, ratio, "x faster", True))
        aucs = results.get("classes", {}).get("macro AUC", {})
        missing = (1 - aucs[many_classes.OURS]) / (1 - aucs[peer]) if peer in aucs else None
        found.append(Bar(f"20 classes, 1 - macro AUC vs {peer}", 1, 0.75, missing, "x of it", False))
    return found


def _named_bars(results: Results) -> list[Bar]:
    def against(what: str, peer: str, ours: str, must: float, aim: float, slower: bool = False) -> Bar:
        ratio = _ratio(results, "named", None, *((ours, peer) if slower else (peer, ours)))
        return Bar(what, must, aim, ratio, "x slower" if slower else "x faster", not slower)

    found = [
        against("VW text to model vs vw --ftrl, all cores", "vw --ftrl, start-up deducted", "vw to model", 5, 8),
        against("CSV to model vs pandas + FeatureHasher + SGD", "pandas + FeatureHasher + SGD", "csv to model", 15, 30),
        against("CSV to model vs script | vw", "script | vw, start-up deducted", "csv to model", 10, 10),
        against("cells hashed vs FeatureHasher, all cores", "FeatureHasher, one core", "csv cells hashed", 15, 25),
        against(
            "cells hashed vs FeatureHasher, one core", "FeatureHasher, one core", "csv cells hashed, one core", 15, 25
        ),
        *(
            against(f"{name.capitalize()} to model vs pyarrow's read", f"pyarrow's {name}", f"{name} to model", *bar)
            for name, bar in {"parquet": (1.6, 1.3, True), "parquet, half numbers": (1.6, 1.3, True)}.items()
        ),
    ]
    memory = results.get("named memory", {})
    peak = memory["rarestream train"] - memory["state"] - memory["names"] if "names" in memory else None
    what = f"peak memory of train, {memory.get('file', '?')} MB CSV, state and names aside"
    return [*found, Bar(what, 200, 120, peak, "MB", False)]


def _ratio(results: Results, part: str, shape: str | None, above: str, below: str) -> float | None:
    numbers = results.get(part, {})
    if shape is not None:
        numbers = numbers.get(shape, {})
    return numbers[above] / numbers[below] if above in numbers and below in numbers else None


def print_bars(found: Iterable[Bar]) -> list[dict[str, Any]]:
    print(f"\n{'bar':64}{'must':>8}{'aim':>8}{'measured':>11}  unit")
    for bar in found:
        measured = "-" if bar.measured is None else f"{bar.measured:.3g}"
        print(f"{bar.what:64}{bar.must:>8g}{bar.aim:>8g}{measured:>11}  {bar.unit:10}{bar.verdict}")
    return [asdict(bar) | {"verdict": bar.verdict} for bar in found]


def print_learn(learn: Mapping[str, Mapping[str, float]]) -> None:
    print("\nOne pass over rows in memory, one core: ns per non-zero, in brackets times the cost of", OURS)
    _print_columns(learn, OURS, "{:.2f}")


def print_text(text: Mapping[str, Mapping[str, float]]) -> None:
    print("\nText file to saved model: seconds, in brackets times the cost of ours on as many cores")
    _print_columns(text, "ours", "{:.3f}", everywhere="ours, all cores")


def print_cache(cache: Mapping[str, Mapping[str, float]]) -> None:
    print("\nA second pass, from a cache: seconds, in brackets times the cost of .blocks on as many cores")
    _print_columns(cache, cached.BLOCKS, "{:.3f}", everywhere=f"{cached.BLOCKS}, all cores")


def print_accuracy(accuracy: Mapping[str, Mapping[str, float]]) -> None:
    print("\nTest AUC after that pass, everyone's defaults: a check that all learn, not a ranking")
    _print_columns(accuracy, None, "{:.4f}")


def _print_columns(
    columns: Mapping[str, Mapping[str, float]], base: str | None, form: str, everywhere: str | None = None
) -> None:
    names = list(dict.fromkeys(name for found in columns.values() for name in found))
    print(f"{'':40}" + "".join(f"{shape:>19}" for shape in columns))
    for name in names:
        cells = []
        for found in columns.values():
            if name not in found:
                cells.append("-")
                continue
            cell = form.format(found[name])
            against = everywhere if everywhere and "all cores" in name else base
            if against and against in found:
                cell += f" ({found[name] / found[against]:.2f})"
            cells.append(cell)
        print(f"{name:40}" + "".join(f"{cell:>19}" for cell in cells))


def print_small(results: Results) -> None:
    if "one row" in results:
        print("\nOne row of 50 non-zeros that comes alone, one core: microseconds")
        columns = {f"d = {d:,}": {} for d in next(iter(results["one row"].values()))}
        for name, widths in results["one row"].items():
            for d, spent in widths.items():
                columns[f"d = {d:,}"][name] = spent
        _print_columns(columns, None, "{:.1f}")
    if "metrics" in results:
        print("\nAUC of 10^7 scores, one core: ns per score")
        for name, spent in results["metrics"].items():
            print(f"{name:40}{spent:>19.1f}")
    if "calls" in results:
        print("\nWhole calls: milliseconds; learn_one and what it is held against: microseconds a row")
        for name, spent in results["calls"].items():
            print(f"{name:56}{spent if name in calls.SINGLE else spent * 1e3:>12.3f}")
    if "classes" in results:
        print("\nText of 20 classes, conversions included, one core: milliseconds, macro AUC of rows held out")
        for name, spent in results["classes"]["seconds"].items():
            print(f"{name:40}{spent * 1e3:>19.1f}{results['classes']['macro AUC'][name]:>12.4f}")
    if "path" in results:
        print("\nAUC at 50 sizes of a model, one core: seconds")
        _print_columns(results["path"], None, "{:.3f}")
    if "race" in results:
        print("\nMany settings in one pass, one core: ns per non-zero")
        _print_columns(results["race"], racing.SINGLE, "{:.2f}")
    if "live" in results:
        print("\nRows of 20 fields from brokers on this machine, by the clock: rows per second")
        for name, speed in results["live"].items():
            print(f"{name:40}{speed:>19,.0f}")
    if "starting" in results:
        print("\nStarting up: milliseconds")
        for name, spent in results["starting"].items():
            print(f"{name:40}{spent * 1e3:>19.1f}")
    if "named" in results:
        print("\nNamed features to a saved model: seconds; all cores by the clock, one core in CPU time")
        for name, number in results["named"].items():
            print(f"{name:40}{number:>19.3f}")
    if results.get("named memory"):
        print("\nPeak resident memory on a CSV file: MB")
        for name, number in results["named memory"].items():
            print(f"{name:40}{number:>19.1f}")
    if "installed" in results:
        print("\nInstalled: kilobytes")
        for name, size in results["installed"].items():
            print(f"{name:40}{size / 1e3:>19.0f}")
    if results.get("memory"):
        print("\nPeak resident memory: MB")
        for name, number in results["memory"].items():
            print(f"{name:40}{number:>19.1f}")
