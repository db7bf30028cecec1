"""What a type checker sees: every public name has its real type, though it is brought in when first used."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import rarestream
import rarestream.river
import rarestream.sklearn
from tests import children, generated

SNIPPET = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from rarestream import Block, Estimate, FtrlAuc, Model, auc, read
from rarestream import river
from rarestream.sklearn import DualAveragingClassifier, FtrlAucClassifier, RaceSearchCV

X, y = np.eye(2), np.array([0, 1])

model = Model(FtrlAuc(learning_rate=0.5, l1=1e-3))
for block in read("clicks.svm"):
    assert_type(block, Block)
    assert_type(model.learn(block), NDArray[np.float64])
assert_type(model.progress.auc, Estimate)
assert_type(auc(y, model.score(Block.of(X))), float)

classifier = FtrlAucClassifier(learning_rate=0.5, means="exact", scale="max")
assert_type(classifier, FtrlAucClassifier)
assert_type(classifier.fit(X, y), FtrlAucClassifier)
assert_type(classifier.learning_rate, float)
assert_type(classifier.model_, Any)  # a Model, or a OneVsRest
assert_type(classifier.learner, type[FtrlAuc])
assert_type(classifier.decision_function(X), NDArray[np.float64])
DualAveragingClassifier(learning_rate=None, budget=100, random_state=1)
RaceSearchCV(classifier, {"l1": [0.0, 1e-3]})

stream = river.FtrlAuc(learning_rate=0.5, bits=18, positive="spam")
stream.learn_one({"a": 1.0}, "spam", w=2.0)
assert_type(stream.learning_rate, float)
assert_type(stream.score_one({"a": 1.0}), float)
assert_type(stream.predict_proba_one({"a": 1.0}), dict[Any, float])
assert_type(stream.model, Model)
assert_type(river.RollingAuc(window_size=100).auc, Estimate)

river.FtrlAuc(learning_rate="fast")  # type: ignore[arg-type]
FtrlAucClassifier(learning_rate="fast")  # type: ignore[arg-type]
FtrlAucClassifier(learning_rat=0.5)  # type: ignore[call-arg]
FtrlAuc(learning_rate="fast")  # type: ignore[arg-type]
from rarestream import Modle  # type: ignore[attr-defined]
from rarestream.sklearn import FtrlAucClasifier  # type: ignore[attr-defined]
"""


def checked(folder: Path, text: str) -> tuple[int, str]:
    """The exit code of mypy on a program, and what it says."""
    pytest.importorskip("mypy")
    path = folder / "program.py"
    path.write_text(text)
    home = Path(__file__).parent.parent
    done = children.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={folder}", str(path)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(home / "src")},
    )
    return done.returncode, done.stdout + done.stderr


def test_a_program_is_checked_against_the_real_types(tmp_path):
    code, says = checked(tmp_path, SNIPPET)
    assert code == 0, says


def test_no_public_name_is_of_an_unknown_type(tmp_path):
    names = [f"rarestream.{name}" for name in rarestream.__all__]
    names += [f"rarestream.sklearn.{name}" for name in rarestream.sklearn.__all__]
    names += [f"rarestream.river.{name}" for name in rarestream.river.__all__]
    imports = [f"import {module}" for module in ("rarestream", "rarestream.sklearn", "rarestream.river")]
    lines = [*imports, *(f"reveal_type({name})" for name in names), ""]
    code, says = checked(tmp_path, "\n".join(lines))
    assert code == 0, says
    revealed = re.findall(r'Revealed type is "(.*)"$', says, re.MULTILINE)
    assert len(revealed) == len(names)
    assert "Any" not in revealed


def test_stubs_and_readme_have_every_public_name_learner_and_setting():
    assert not generated.outdated(), "run `make lint`, or `python -m tests.generated`, which writes them"
