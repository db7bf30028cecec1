"""Scorers: one interface for our models, races, and methods of scikit-learn."""

from __future__ import annotations

import importlib.util
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.learners import Learner
from rarestream.model import Model
from rarestream.race import Racing
from rarestream.study.tuning import Params

CLASSES = np.array([-1, 1], np.int8)


class Scorer(Protocol):
    """Something that learns rows, a block at a time, and scores rows."""

    whole: bool  # whether it learns all rows in a single call

    def learn(self, block: Block) -> object: ...
    def finish(self) -> None:
        """End learning, after the last row."""
        ...

    def score(self, block: Block) -> NDArray[np.float64]: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def state_bytes(self) -> int:
        """Memory of its state."""
        ...

    @property
    def model(self) -> Model | None:
        """What it has learned, as a Model; None for a method of scikit-learn."""
        ...


# ModelScorer and RaceScorer look alike, as each spells out the protocol: a common base would hold one line, `score`.


class ModelScorer:
    """A Model."""

    whole = False

    def __init__(self, learner: Learner, scale: str, n_features: int) -> None:
        self.model = Model(learner, scale=scale, n_features=n_features)

    def learn(self, block: Block) -> object:
        return self.model.learn(block)

    def finish(self) -> None:
        self.model.finish_race()

    def score(self, block: Block) -> NDArray[np.float64]:
        return self.model.score(block)

    @property
    def nonzeros(self) -> int:
        return self.model.nonzeros

    @property
    def state_bytes(self) -> int:
        return self.model.state_bytes


class RaceScorer:
    """A race over all rows; the leading setting scores."""

    whole = False

    def __init__(self, scale: str) -> None:
        self._racing = Racing("auto", scale=scale, threads=1)

    def learn(self, block: Block) -> object:
        return self._racing.learn(block)

    def finish(self) -> None:
        self._racing.finish()

    @property
    def model(self) -> Model:
        return self._racing.model

    def score(self, block: Block) -> NDArray[np.float64]:
        return self.model.score(block)

    @property
    def nonzeros(self) -> int:
        return self._racing.nonzeros

    @property
    def state_bytes(self) -> int:
        return self._racing.bytes * self._racing.n_features


class SgdScorer:
    """scikit-learn's SGDClassifier on the log loss: one pass, in the order of the rows."""

    whole = False
    model = None

    def __init__(self, params: Params, n_features: int) -> None:
        from sklearn.linear_model import SGDClassifier

        self._estimator = SGDClassifier(loss="log_loss", shuffle=False, **params)
        self._n_features = n_features

    def learn(self, block: Block) -> object:
        rows = block.to_csr(self._n_features)
        return self._estimator.partial_fit(rows, block.labels, CLASSES, sample_weight=block.importances)

    def finish(self) -> None:
        pass

    def score(self, block: Block) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._estimator.decision_function(block.to_csr(self._n_features))
        return scores

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self._estimator.coef_))

    @property
    def state_bytes(self) -> int:
        return int(self._estimator.coef_.nbytes + self._estimator.intercept_.nbytes)


class BatchScorer(SgdScorer):
    """scikit-learn's logistic regression on all rows, as many passes as liblinear needs, classes balanced."""

    whole = True

    def __init__(self, params: Params, n_features: int) -> None:
        from sklearn.linear_model import LogisticRegression

        self._estimator = LogisticRegression(solver="liblinear", class_weight="balanced", **params)
        self._n_features = n_features

    def learn(self, block: Block) -> object:
        return self._estimator.fit(block.to_csr(self._n_features), block.labels, sample_weight=block.importances)


def has_sklearn() -> bool:
    """Return whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None
