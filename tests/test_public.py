"""What is public, listed."""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
import re
import sys

import rarestream
import rarestream.client
import rarestream.datasets
import rarestream.joining
import rarestream.river
import rarestream.sklearn
from rarestream.learners import learner_classes
from tests import children
from tests.test_docs import HOME, PAGES, blocks


def test_the_public_names():
    learners = [cls.__name__ for cls in learner_classes()]
    assert {"DualAveraging", "FtrlAuc", "FtrlProximal"} <= set(learners)
    assert sorted(set(rarestream.__all__) - set(learners)) == [
        "Block",
        "Columns",
        "DataError",
        "Estimate",
        "ExportError",
        "FewRowsWarning",
        "Hashed",
        "Learner",
        "MissingExtraError",
        "Model",
        "ModelBusyError",
        "ModelFileError",
        "NotCalibratedError",
        "OneVsRest",
        "OutputError",
        "RarestreamError",
        "RoundsStoppedWarning",
        "RowError",
        "SettingsDroppedWarning",
        "SortedRowsWarning",
        "StreamingAuc",
        "WindowedAuc",
        "__version__",
        "auc",
        "auc_interval",
        "convert",
        "follow",
        "learner_names",
        "make_learner",
        "read",
        "split",
    ]
    assert all(hasattr(rarestream, name) for name in rarestream.__all__)


def used_names(codes: list[str]) -> set[str]:
    """The full names of this package, such as `rarestream.race.grid`, that the blocks of a page read.

    Imports alone do not count. A program that reads `__all__` of a module goes over all of its names.
    """
    full: dict[str, str] = {}  # of the names that were imported so far
    found: set[str] = set()
    for code in codes:
        nodes = list(ast.walk(ast.parse(code)))
        for node in nodes:
            if isinstance(node, ast.Import):
                full |= {one.asname or one.name.partition(".")[0]: one.name if one.asname else "" for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                full |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        found |= {dotted(node, full) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}
    found = {name for name in found if name.startswith("rarestream.")}
    for module in [name.removesuffix(".__all__") for name in found if name.endswith(".__all__")]:
        found |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    return found


def dotted(node: ast.expr, full: dict[str, str]) -> str:
    """The full name that an expression such as `race.grid` stands for; empty, if it is another expression."""
    if isinstance(node, ast.Attribute):
        of = dotted(node.value, full)
        return of and f"{of}.{node.attr}"
    return (full.get(node.id) or node.id) if isinstance(node, ast.Name) else ""


def found_at(name: str) -> object:
    """What a full name stands for: the same under each of its names; None, if it is no name of this package."""
    if name.startswith("rarestream.spark."):  # its functions need Spark to be imported, their names do not
        return f"spark, {name.rpartition('.')[2]}"
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        return pkgutil.resolve_name(name)
    return None


def documented_names() -> list[str]:
    """The names of the reference, but the types with empty brackets, which are only returned."""
    page = (HOME / "docs" / "reference.md").read_text("utf-8")
    return re.findall(r"^\.\. auto(?:function|class|exception):: ([\w.]+)$", page, re.MULTILINE)


def used_in_pages() -> list[object]:
    """What the examples of all pages use. Their code runs in tests/test_docs.py, or where that says."""
    pages = [[code for language, code in blocks(page) if language == "python"] for page in PAGES]
    return [found_at(name) for name in set().union(*map(used_names, pages))]


def test_every_public_name_has_an_example_that_runs():
    used = used_in_pages()
    assert [name for name in rarestream.__all__ if getattr(rarestream, name) not in used] == []


def test_every_documented_name_has_an_example_that_runs():
    used = used_in_pages()
    names = [*documented_names(), *map("rarestream.sklearn.{}".format, rarestream.sklearn.__all__)]
    names += map("rarestream.river.{}".format, rarestream.river.__all__)
    assert len(names) > 100
    assert [name for name in names if found_at(name) is None] == []
    assert [name for name in names if found_at(name) not in used] == []


def test_the_public_names_for_scikit_learn():
    classifiers = [f"{cls.__name__}Classifier" for cls in learner_classes()]
    assert rarestream.sklearn.__all__ == sorted([*classifiers, "FeatureSpace", "RaceSearchCV"])
    assert all(hasattr(rarestream.sklearn, name) for name in rarestream.sklearn.__all__)


def test_the_public_names_for_late_labels():
    assert rarestream.joining.__all__ == ["JoinCounts", "Joined", "LabelJoin", "Refused"]
    assert all(hasattr(rarestream.joining, name) for name in rarestream.joining.__all__)


def test_the_public_names_of_clients():
    assert rarestream.client.__all__ == [
        "AsyncBatch",
        "AsyncClient",
        "AucInterval",
        "Batch",
        "BatchError",
        "Client",
        "FailedRow",
        "Labelled",
        "Learned",
        "ModelInfo",
        "Prediction",
        "QueueFullError",
        "RefusedRow",
        "RowPrediction",
        "ServiceError",
        "ServiceUnavailableError",
        "ShadowInfo",
    ]
    assert all(hasattr(rarestream.client, name) for name in rarestream.client.__all__)


def test_the_public_names_for_river():
    classifiers = [cls.__name__ for cls in learner_classes()]
    assert rarestream.river.__all__ == sorted([*classifiers, "RollingAuc", "StreamingAuc"])
    assert all(hasattr(rarestream.river, name) for name in rarestream.river.__all__)


def test_the_public_names_of_data_sets():
    assert rarestream.datasets.__all__ == [
        "DataSet",
        "DownloadError",
        "Original",
        "RareStream",
        "info",
        "is_present",
        "load",
        "make_rare_stream",
        "names",
        "user_folder",
    ]
    assert all(hasattr(rarestream.datasets, name) for name in rarestream.datasets.__all__)


def loaded_by(*words: str) -> set[str]:
    """The modules that a program of these words has imported when it ends; of the first part only what numpy has not."""
    code = (
        "import sys, atexit, numpy; before = set(sys.modules); "
        "atexit.register(lambda: print('LOADED', *(set(sys.modules) - before))); " + words[0]
    )
    done = children.run([sys.executable, "-c", code, *words[1:]])
    assert done.returncode == 0, done.stderr
    return set(done.stdout.partition("LOADED")[2].split())


def test_importing_a_model_brings_in_little_beyond_numpy():
    loaded = loaded_by("from rarestream import Model")
    ours = {name for name in loaded if name.startswith("rarestream")}
    assert "rarestream.model" in ours
    assert {name for name in ours if name.startswith("rarestream.learners")} == {
        "rarestream.learners",
        "rarestream.learners.base",
        "rarestream.learners.index",
        "rarestream.learners.registry",
        "rarestream.learners.state",
    }
    assert not ours & {
        f"rarestream.{package}"
        for package in (
            "adapters",
            "cli",
            "compare",
            "doctor",
            "evaluate",
            "export",
            "race",
            "readers",
            "reproduce",
            "study",
        )
    }
    allowed = {"__future__", "_native", "atexit", "copy", "dataclasses", "fcntl", "importlib", "mmap", "numpy", "org"}
    assert {name.partition(".")[0] for name in loaded - ours} <= allowed


def test_reading_brings_in_the_format_that_is_read_and_no_other(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1\n-1 4:1\n")
    loaded = loaded_by(
        "from rarestream import Model, read; Model('dual-auc').learn(next(iter(read(sys.argv[1]))))",
        str(tmp_path / "a.svm"),
    )
    assert {name for name in loaded if name.startswith("rarestream.readers.formats.")} == {
        "rarestream.readers.formats.svmlight"
    }
    heavy = {"bz2", "lzma", "gzip", "json", "pathlib", "tempfile", "concurrent", "email", "hashlib", "safetensors"}
    assert not {name.partition(".")[0] for name in loaded} & (heavy | HEAVY)


def test_training_brings_in_what_it_uses(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1\n-1 4:1\n" * 20)
    words = ["train", "-q", str(tmp_path / "a.svm"), "-o", str(tmp_path / "m.rare")]
    loaded = loaded_by("from rarestream.cli import main; main()", *words)
    ours = {name.removeprefix("rarestream.") for name in loaded if name.startswith("rarestream.")}
    assert {name for name in ours if name.startswith("readers.formats.")} == {"readers.formats.svmlight"}
    assert {name for name in ours if name.startswith("learners.")} - {"learners.index", "learners.pairs"} == {
        f"learners.{name}"
        for name in ("auto", "base", "dual_averaging", "ftrl_proximal", "registry", "settings", "state")
    }
    assert {name for name in ours if name.startswith("evaluate.")} == {
        f"evaluate.{name}" for name in ("progress", "resume", "text", "training")
    }
    assert not ours & {"adapters", "compare", "datasets", "doctor", "race", "reproduce", "study", "pruning"}
    assert not {name.partition(".")[0] for name in loaded} & (
        HEAVY | {"bz2", "lzma", "gzip", "tempfile", "concurrent", "email", "asyncio", "tomllib", "subprocess"}
    )


HEAVY = {
    "scipy",
    "sklearn",
    "river",
    "pandas",
    "polars",
    "pyarrow",
    "typer",
    "click",
    "rich",
    "zstandard",
    "matplotlib",
}


def test_every_name_is_found_in_its_package():
    code = "import rarestream; print(*(getattr(rarestream, name) is not None for name in rarestream.__all__))"
    done = children.run([sys.executable, "-c", code])
    assert set(done.stdout.split()) == {"True"}, done.stderr
