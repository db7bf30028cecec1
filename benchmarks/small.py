"""What is measured once: rows that come alone, metrics, the path of sizes, starting up, size, memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import machine
import peers
from rarestream import Block, Model, StreamingAuc, auc, read
from rarestream.evaluate import path as path_of
from shapes import SHAPES, make
from timing import CORES, command, interleaved, one_core, peak_memory, rarestream_command, timed

WIDTHS = (10**4, 10**6, 10**7)
PATH_SHAPES = ("news20b", "rcv1b", "avazu")
NONZEROS = 50  # of a row that comes alone
TIES, STREAMING = "auc, many equal scores", "StreamingAuc.add"
TIED = 500_000  # scores, of 1,000 values
COLD = "Model.learn_one, features all over"
IMPORT_NUMPY, TRAIN_TINY = "python -c 'import numpy'", "rarestream train, 100 short rows"
IMPORTS = {
    "import rarestream": "import rarestream",
    "from rarestream import DualAveraging, Model, read": "from rarestream import DualAveraging, Model, read",
}


def one_row(rounds: int, chosen: set[str]) -> dict[str, dict[int, float]]:
    """Microseconds to learn one row of 50 non-zeros that comes alone, by number of features."""
    found: dict[str, dict[int, float]] = {}
    contestants = {}
    for d in WIDTHS:
        rows = lonely_rows(d, 4000, pool=2000)
        contestants["Model.learn_one", d] = _learn_one(rows, d)
        contestants[COLD, d] = _learn_one(lonely_rows(d, 4000, pool=d), d)
        try:
            from rarestream.sklearn import DualAveragingClassifier
        except ImportError:
            pass
        else:
            contestants["DualAveragingClassifier.partial_fit", d] = _partial_fit(DualAveragingClassifier, rows, d)
        if "sklearn" in chosen:
            few = rows[: {10**4: 500, 10**6: 60}.get(d, 12)]
            contestants["SGDClassifier.partial_fit", d] = _partial_fit(lambda: peers.sgd("l1", shuffle=True), few, d)
    for turn in range(4 * rounds):  # short, so many: rounds differ more than widths
        for (name, d), contest in contestants.items():
            if turn >= 2 and name.startswith("SGD"):
                continue
            with one_core():
                spent = contest()
            widths = found.setdefault(name, {})
            widths[d] = min(spent, widths.get(d, spent))
    return found


Lonely = list[tuple[Any, Any, int]]


def lonely_rows(d: int, count: int, pool: int) -> Lonely:
    """Rows whose features are drawn from so many, spread over all d: what the processor's caches hold is the same."""
    generator = np.random.default_rng(d)
    rows = []
    for _ in range(count):
        columns = np.unique(generator.integers(0, pool, NONZEROS) * (d // pool)).astype(np.int32)
        rows.append((columns, generator.random(len(columns), np.float32), int(generator.choice([-1, 1]))))
    return rows


def _learn_one(rows: Lonely, d: int) -> Callable[[], float]:
    model = Model("dual-auc", n_features=d)
    return lambda: microseconds(lambda: [model.learn_one(*row) for row in rows], len(rows))


def _partial_fit(make_model: Callable[[], Any], rows: Lonely, d: int) -> Callable[[], float]:
    from scipy.sparse import csr_matrix

    given = []
    for columns, values, label in rows:
        X = csr_matrix((values.astype(np.float64), columns, np.array([0, len(columns)], np.int32)), shape=(1, d))
        given.append((X, np.array([label])))
    model = make_model()
    model.partial_fit(*given[0], classes=np.array([-1, 1]))
    return lambda: microseconds(lambda: [model.partial_fit(X, y) for X, y in given], len(given))


def microseconds(action: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    action()
    return (time.process_time() - start) / count * 1e6


def metrics(rounds: int, chosen: set[str], count: int = 10**7) -> dict[str, float]:
    """Nanoseconds per score: exact AUC of many scores, and the streaming AUC that runs while learning."""
    generator = np.random.default_rng(3)
    labels = np.where(generator.random(count) < 0.1, 1, -1).astype(np.int8)
    scores = generator.normal(size=count) + (labels > 0)
    cut = range(0, count // 10, 8192)

    def stream() -> None:
        running = StreamingAuc()
        for start in cut:
            running.add(labels[start : start + 8192], scores[start : start + 8192])

    tied = np.round(scores[:TIED] * 125) / 125
    contestants = {
        "auc": timed(lambda: lambda: auc(labels, scores)),
        TIES: timed(lambda: lambda: auc(labels[:TIED], tied)),
        STREAMING: timed(lambda: stream),
    }
    if "sklearn" in chosen:
        from sklearn.metrics import roc_auc_score

        contestants["sklearn roc_auc_score"] = timed(lambda: lambda: roc_auc_score(labels, scores))
    best = interleaved(contestants, rounds, seldom=["sklearn roc_auc_score"])
    seen = {STREAMING: cut[-1] + 8192, TIES: TIED}
    return {name: cost.cpu / seen.get(name, count) * 1e9 for name, cost in best.items()}


def path(rounds: int) -> dict[str, dict[str, float]]:
    """Seconds for the AUC at 50 sizes of a model, by shape: in one pass, and size by size on the same rows.

    Size by size is: cut the model, score every row, exact AUC. From a file, every size reads it, as `evaluate` does.
    """
    found = {}
    for name in PATH_SHAPES:
        data = make(SHAPES[name], 0.2)
        rows, file = data.train, data.svmlight
        model = Model("dual-auc")
        model.learn(rows)
        sizes = path_of(model, rows).sizes

        def alone(on: Callable[[], Iterable[Block]], model: Model = model, sizes: Sequence[int] = sizes) -> None:
            for size in sizes:
                small = model.prune(nonzeros=size)
                labels, scores = zip(*((block.labels, small.score(block)) for block in on()), strict=True)
                auc(np.concatenate(labels), np.concatenate(scores))

        contestants = {
            "path": timed(lambda model=model, rows=rows: lambda: path_of(model, rows)),
            "size by size": timed(lambda alone=alone, rows=rows: lambda: alone(lambda: [rows])),
            "path, from a file": timed(lambda model=model, file=file: lambda: path_of(model, read(file, threads=0))),
            "size by size, from a file": timed(
                lambda alone=alone, file=file: lambda: alone(lambda: read(file, threads=0))
            ),
        }
        best = interleaved(contestants, rounds, seldom=[name for name in contestants if "by size" in name])
        found[name] = {name: cost.cpu for name, cost in best.items()}
    return found


def starting(rounds: int) -> dict[str, float]:
    """Seconds to import the package beyond NumPy and SciPy, and for short runs of the command line."""
    found = {}
    for name, line in IMPORTS.items():
        code = f"import numpy, scipy, time; t = time.perf_counter(); {line}; print(time.perf_counter() - t)"
        words = [sys.executable, "-c", code]
        found[name] = min(float(subprocess.check_output(words)) for _ in range(max(rounds, 7)))
    cli = rarestream_command()
    if not cli:
        return found
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder) / "tiny.svm", Path(folder) / "tiny.rare"
        rows.write_text("+1 3:0.5 17:1\n-1 4:1 9:0.5\n" * 50)
        contestants = {
            "python -c pass": command(sys.executable, "-c", "pass", cores=2),
            IMPORT_NUMPY: command(sys.executable, "-c", "import numpy", cores=2),
            "rarestream --help": command(cli, "--help", cores=2),
            TRAIN_TINY: command(cli, "train", "-q", rows, "-o", model, cores=2),
        }
        best = interleaved(contestants, 5 * max(rounds, 5))
    found |= {name: cost.wall for name, cost in best.items()}
    return found


def installed_size() -> dict[str, int]:
    """Bytes of the package's own files, compiled core included, byte code aside."""
    home = Path(sys.modules["rarestream"].__file__ or "").parent
    files = {path for path in home.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    compiled = {Path(module.__file__) for name, module in sys.modules.items() if name == "rarestream._native"}
    return {
        "python": sum(path.stat().st_size for path in files - compiled if path.suffix != ".so"),
        "compiled": sum(path.stat().st_size for path in compiled),
    }


def memory(megabytes: int, chosen: set[str]) -> dict[str, float]:
    """Peak resident megabytes of `rarestream train` on a large file; its state is 8 bytes per feature."""
    cli = rarestream_command()
    if not cli:
        return {}
    data = make(SHAPES["rcv1b"], 0.2)
    found: dict[str, float] = {"file": megabytes, "state": data.train.width * 8 / 1e6}
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        scratch = Path(folder)
        sources = {"rarestream train": data.svmlight}
        if "vw" in chosen:
            sources["VW text"] = data.vw
        for name, part in sources.items():
            large = scratch / f"large{part.suffix}"
            _repeat(part, large, megabytes * 10**6)
            if name == "VW text":
                words = peers.vw_words(data.shape.d, "-d", large, "-f", scratch / "m")
            else:
                words = [cli, "train", "--quiet", str(large), "-o", str(scratch / "m.rare")]
            start = time.perf_counter()
            found[name] = peak_memory(*words) / 1e6
            found[f"{name}, seconds on {len(CORES)} cores"] = time.perf_counter() - start
            large.unlink()
    return found


def _repeat(part: Path, large: Path, size: int) -> None:
    with large.open("wb") as out:
        while out.tell() < size:
            with part.open("rb") as rows:
                shutil.copyfileobj(rows, out, 1 << 20)
