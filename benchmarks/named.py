"""Rows with named features, as users have them: CSV, VW text and Parquet to a saved model, and peers.

The table is a click log with 20 columns of categories: ids, sites, devices; some have a handful of values, some 100
thousand, all by Zipf's law, and the label depends on some of them. CSV, VW text and Parquet hold the same rows. Another
Parquet file has numbers in every second column: a number becomes two features, and costs pyarrow next to nothing.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import machine
import peers
from rarestream import Hashed, Model, read
from timing import Contestant, Cost, command, interleaved, peak_memory, rarestream_command, timed

COLUMNS = 20
BITS = 22
SLICE = 20_000  # rows that pandas and scikit-learn are timed on
OURS = "dual-auc"

# What a user of VW writes to read a CSV file.
CSV_TO_VW = """
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    label = "1" if row.pop("clicked") == "1" else "-1"
    print(label, " ".join(f"|{name} {value}" for name, value in row.items()))
"""


def table(rows: int) -> dict[str, Any]:
    """The columns of the click log: label, and text for each."""
    generator = np.random.default_rng(7)
    sizes = np.geomspace(4, 100_000, COLUMNS).astype(int)
    columns: dict[str, Any] = {}
    chance = np.full(rows, -3.5)
    for number, size in enumerate(sizes):
        drawn = np.minimum((generator.pareto(0.7, rows) * 2).astype(np.int64), 10**9) % size
        chance += generator.normal(0, 0.4, size)[drawn]
        ids = generator.integers(16**5, 16**8, size)
        words = np.array([f"{value:x}" if number % 3 else f"site{value % 10**5}.com" for value in ids])
        columns[f"c{number}"] = words[drawn]
    label = (generator.random(rows) < 1 / (1 + np.exp(-chance))).astype(int)
    return {"clicked": label, **columns}


def write_files(folder: Path, rows: int) -> dict[str, Path]:
    """The table as CSV, VW text and, where pyarrow is, Parquet."""
    columns = table(rows)
    label = columns.pop("clicked")
    paths = {"csv": folder / "clicks.csv", "vw": folder / "clicks.vw", "slice": folder / "slice.csv"}
    lines = list(zip(*columns.values(), strict=True))
    with paths["csv"].open("w") as out:
        out.write(",".join(["clicked", *columns]) + "\n")
        out.writelines(f"{y},{','.join(cells)}\n" for y, cells in zip(label, lines, strict=True))
    with paths["csv"].open() as whole, paths["slice"].open("w") as out:
        out.writelines(line for line, _ in zip(whole, range(SLICE + 1), strict=False))
    with paths["vw"].open("w") as out:
        for y, cells in zip(label, lines, strict=True):
            features = " ".join(f"|{name} {cell}" for name, cell in zip(columns, cells, strict=True))
            out.write(f"{1 if y else -1} {features}\n")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return paths
    paths["parquet"] = folder / "clicks.parquet"
    whole_table = pyarrow.table({"clicked": label, **{name: cells.astype(object) for name, cells in columns.items()}})
    pyarrow.parquet.write_table(whole_table, paths["parquet"])
    paths["parquet, half numbers"] = folder / "numbers.parquet"
    generator = np.random.default_rng(8)
    for name in list(columns)[1::2]:
        numbers = pyarrow.array(np.exp(generator.normal(0, 2, rows)))
        whole_table = whole_table.set_column(whole_table.schema.get_field_index(name), name, numbers)
    pyarrow.parquet.write_table(whole_table, paths["parquet, half numbers"])
    return paths


def measure(rows: int, rounds: int, chosen: set[str]) -> dict[str, float]:
    """Seconds by the clock on all cores, and CPU seconds on one, for the same rows."""
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        scratch = Path(folder)
        paths = write_files(scratch, rows)
        saved = scratch / "ours.rare"
        contestants: dict[str, Contestant] = {}
        seldom = []
        label = {"label": "clicked"}
        inputs = {"csv": label, "vw": {}, "parquet": label, "parquet, half numbers": label}
        for name, options in inputs.items():
            if name in paths:
                contestants[f"{name} to model"] = timed(_to_model(paths[name], saved, None, options), cores=2)
                contestants[f"{name} to model, one core"] = timed(_to_model(paths[name], saved, 0, options))
        contestants["csv cells hashed"] = timed(_hash_cells(paths["csv"], None), cores=2)
        contestants["csv cells hashed, one core"] = timed(_hash_cells(paths["csv"], 0))
        contestants["csv cells hashed, names kept, one core"] = timed(_hash_cells(paths["csv"], 0, names=True))
        for name in [name for name in paths if name.startswith("parquet")]:
            contestants[f"pyarrow's {name}"] = timed(_read_parquet(paths[name]), cores=2)
            contestants[f"pyarrow's {name}, one core"] = timed(_read_parquet(paths[name], threads=False))
        if "vw" in chosen:
            contestants |= _vw(paths, scratch)
            seldom.append("script | vw")
        if "sklearn" in chosen:
            contestants["pandas + FeatureHasher + SGD"] = _scaled(timed(_pandas(paths["slice"])), rows / SLICE)
            contestants["FeatureHasher, one core"] = _scaled(timed(_feature_hasher(paths["slice"])), rows / SLICE)
            seldom += ["pandas + FeatureHasher + SGD", "FeatureHasher, one core"]
        best = interleaved(contestants, rounds, seldom=seldom)
        found = {name: cost.cpu if "one core" in name else cost.wall for name, cost in best.items()}
        found["rows"] = rows
        found["csv MB"] = paths["csv"].stat().st_size / 1e6
    for name in ("vw --ftrl", "script | vw"):
        if name in found:
            found[f"{name}, start-up deducted"] = found[name] - found["vw start-up"]
    return found


def _scaled(contest: Contestant, factor: float) -> Contestant:
    # It runs on one core whatever there is: CPU seconds are its time on an idle machine.
    def scaled() -> Cost:
        cost = contest()
        return Cost(cost.cpu, cost.cpu) * factor

    return scaled


def _to_model(source: Path, target: Path, threads: int | None, options: dict[str, Any]) -> Callable[[], Any]:
    def action() -> None:
        model = Model(OURS)
        for block in read(source, threads=threads, **options):
            model.learn(block)
        model.save(target)

    return lambda: action


def _hash_cells(source: Path, threads: int | None, names: bool = False) -> Callable[[], Any]:
    return lambda: lambda: [None for _ in read(source, label="clicked", threads=threads, names=names)]


def _read_parquet(source: Path, threads: bool = True) -> Callable[[], Any]:
    import pyarrow.parquet

    return lambda: lambda: pyarrow.parquet.read_table(source, use_threads=threads)


def _chunks(source: Path) -> Any:
    import pandas

    for frame in pandas.read_csv(source, dtype=str, chunksize=5000):
        label = (frame.pop("clicked") == "1").to_numpy().astype(int)
        for name in frame.columns:
            frame[name] = name + "=" + frame[name]
        yield frame.to_numpy().tolist(), label


def _pandas(source: Path) -> Callable[[], Any]:
    from sklearn.feature_extraction import FeatureHasher

    def action() -> None:
        hasher = FeatureHasher(1 << BITS, input_type="string", alternate_sign=False)
        model = peers.sgd("l2", shuffle=False)
        for words, label in _chunks(source):
            model.partial_fit(hasher.transform(words), label, classes=[0, 1])

    return lambda: action


def _feature_hasher(source: Path) -> Callable[[], Any]:
    from sklearn.feature_extraction import FeatureHasher

    words = [row for rows, _ in _chunks(source) for row in rows]
    hasher = FeatureHasher(1 << BITS, input_type="string", alternate_sign=False)
    return lambda: lambda: hasher.transform(words)


def _vw(paths: dict[str, Path], scratch: Path) -> dict[str, Contestant]:
    words = [sys.executable, "-m", "vowpalwabbit", "--ftrl", "--loss_function", "logistic", "-b", str(BITS)]
    words += ["--hash", "all", "--holdout_off", "--quiet", "-f", str(scratch / "vw.model")]
    empty, script = scratch / "empty.vw", scratch / "to_vw.py"
    empty.write_text("")
    script.write_text(CSV_TO_VW)
    shell = f"{sys.executable} {script} {paths['csv']} | {' '.join(words)} -d /dev/stdin"
    return {
        "vw start-up": command(*words, "-d", empty, cores=2),
        "vw --ftrl": command(*words, "-d", paths["vw"], cores=2),
        "script | vw": command("sh", "-c", shell, cores=2),
    }


def memory(megabytes: int) -> dict[str, float]:
    """Peak resident megabytes of `rarestream train` on a large CSV file, and what of it are the state and the names."""
    cli = rarestream_command()
    if not cli:
        return {}
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        scratch = Path(folder)
        part = write_files(scratch, 100_000)["csv"]
        large, saved = scratch / "large.csv", scratch / "m.rare"
        with part.open("rb") as rows, large.open("wb") as out:
            out.write(rows.readline())
            body = rows.read()
            while out.tell() < megabytes * 10**6:
                out.write(body)
        words = [cli, "train", "--quiet", str(large), "--label", "clicked", "--learner", OURS, "-o", str(saved)]
        peak = peak_memory(*words) / 1e6
        space = Model.load(saved).features
        assert isinstance(space, Hashed) and space.names is not None
        return {
            "file": megabytes,
            "rarestream train": peak,
            "state": space.slots * 8 / 1e6,
            "names": space.names.bytes / 1e6,
        }
