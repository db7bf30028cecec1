"""What is public, listed."""

from __future__ import annotations

import sys

import rarestream
import rarestream.sklearn
from rarestream.learners import learner_classes
from tests import children


def test_the_public_names():
    learners = [cls.__name__ for cls in learner_classes()]
    assert {"DualAveraging", "FtrlAuc", "FtrlProximal"} <= set(learners)
    assert sorted(set(rarestream.__all__) - set(learners)) == [
        "Block",
        "Columns",
        "DataError",
        "Estimate",
        "Hashed",
        "Learner",
        "MissingExtraError",
        "Model",
        "ModelBusyError",
        "ModelFileError",
        "OutputError",
        "RarestreamError",
        "RowError",
        "SettingsDroppedWarning",
        "SortedRowsWarning",
        "StreamingAuc",
        "WindowedAuc",
        "__version__",
        "auc",
        "auc_interval",
        "learner_names",
        "make_learner",
        "read",
    ]
    assert all(hasattr(rarestream, name) for name in rarestream.__all__)


def test_the_public_names_for_scikit_learn():
    classifiers = [f"{cls.__name__}Classifier" for cls in learner_classes()]
    assert rarestream.sklearn.__all__ == sorted([*classifiers, "FeatureSpace", "RaceSearchCV"])
    assert all(hasattr(rarestream.sklearn, name) for name in rarestream.sklearn.__all__)


def test_importing_brings_in_numpy_and_nothing_heavy():
    code = "import sys; from rarestream import Model, read, auc; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(children.run([sys.executable, "-c", code]).stdout.split())
    assert "numpy" in loaded
    assert not loaded & {
        "scipy",
        "sklearn",
        "pandas",
        "polars",
        "typer",
        "click",
        "rich",
        "safetensors",
        "zstandard",
    }


def test_every_name_is_found_in_its_package():
    code = "import rarestream; print(*(getattr(rarestream, name) is not None for name in rarestream.__all__))"
    done = children.run([sys.executable, "-c", code])
    assert set(done.stdout.split()) == {"True"}, done.stderr
