"""What is public, listed."""

from __future__ import annotations

import ast
import sys

import rarestream
import rarestream.client
import rarestream.datasets
import rarestream.joining
import rarestream.river
import rarestream.sklearn
from rarestream.learners import learner_classes
from tests import children
from tests.test_docs import PAGES, blocks


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


def used_names(code: str) -> set[str]:
    """The names that a program reads, and the attributes of `rarestream`; imports alone do not count."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    return names | {node.attr for node in attributes if node.value.id == "rarestream"}


def test_every_public_name_has_an_example_that_runs():
    """The code of all pages runs in tests/test_docs.py, or where that says."""
    examples = [code for page in PAGES for language, code in blocks(page) if language == "python"]
    assert set(rarestream.__all__) - set().union(*map(used_names, examples)) == set()


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
