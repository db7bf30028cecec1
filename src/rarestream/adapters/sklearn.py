"""The scikit-learn classifiers: one body, and a class per registered learner.

A classifier is a dataclass of settings, as scikit-learn wants it: its constructor only stores. What was learned is
`model_`, a rarestream Model; every other fitted attribute is read off it when asked for, so that learning one row
costs what the row costs, whatever the number of features.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from rarestream.blocks import NEGATIVE, POSITIVE, Block, CanonicalRows, Labels, canonical, numeric, refuse_disguised
from rarestream.errors import DataError, MissingExtraError
from rarestream.learners import Learner, learner_classes
from rarestream.metrics import Estimate
from rarestream.model import Model

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError(
        'rarestream.sklearn: scikit-learn 1.6 or newer is needed. pip install "rarestream[sklearn]"'
    ) from None

CSR = (csr_array, csr_matrix)
REALS = (np.float64, np.float32)


@dataclass(kw_only=True, eq=False, repr=False)
class StreamClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all the classifiers do. Settings are checked when fitting starts, and used until it starts afresh."""

    learner: ClassVar[type[Learner]]

    dtype: str = "float32"
    scale: str = "unit"
    max_passes: int = 1
    shuffle: bool = False
    threshold: float | None = None
    random_state: Any = None

    # -- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Starts afresh and learns the rows in their order, `max_passes` times.

        `sample_weight` is the importance of each row: a row of weight 0 counts as absent.
        """
        block, classes = self._lesson(X, y, sample_weight)
        model = self._new_model(self.n_features_in_)
        for turn, rows in enumerate(self._passes(block)):
            model.learn(rows, again=turn > 0)
        model.settle()  # a race of settings ends with the rows
        self._start(model, classes, self.max_passes)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns the rows, once and in their order, on top of what is known.

        The first call settles the two classes: `classes`, or those in `y`. Rows in a CSR matrix or array take a way
        without scikit-learn's checks, which would cost many times what learning one row costs.
        """
        if classes is None and sample_weight is None and self._familiar(X):
            labels = self._familiar_labels(y, X.shape[0])
            if labels is not None:
                self.model_.learn(self._checked(canonical(X.indptr, X.indices, X.data, copy=False), labels))
                return self
        first = not hasattr(self, "model_")
        X, y = self._validated(X, y, reset=first)
        X, y, importances = _present(X, y, sample_weight)
        known = self._settled(classes, y, first)
        block = Block.of(X, labels_of(y, known), importances)
        if first:
            self._start(self._new_model(X.shape[1]), known, 1)
        self.model_.learn(block)
        return self

    # -- scoring

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far each row is towards `classes_[1]`: its score less `model_.threshold`, the middle of the classes."""
        if self._familiar(X):
            block = self._checked(canonical(X.indptr, X.indices, X.data, copy=False))
        else:
            check_is_fitted(self)
            block = self._known_rows(X)
        model = self.model_
        return model.score(block) - model.threshold

    def predict(self, X: Any) -> NDArray[Any]:
        """`classes_[1]` where `decision_function` exceeds `threshold_`, else `classes_[0]`."""
        positive = self.decision_function(X) > (self.threshold or 0.0)
        return self.classes_[positive.astype(np.intp)]

    # -- what was learned

    @property
    def threshold_(self) -> float:
        """What `decision_function` must exceed for `classes_[1]` to be predicted: `threshold`, or 0."""
        check_is_fitted(self)
        return float(self.threshold or 0.0)

    @property
    def coef_(self) -> Any:
        """The weights, of shape (1, d): read-only, or a CSR matrix after `sparsify`."""
        coef = self.model_.coef[np.newaxis]
        return csr_matrix(coef) if getattr(self, "_sparse_coef", False) else coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of shape (1,): puts the zero of `decision_function` at `model_.threshold`."""
        return np.array([-self.model_.threshold])

    @property
    def progress_auc_(self) -> Estimate:
        """The AUC of the scores the rows had before they were first learned, with its interval."""
        return self.model_.progress.auc

    @property
    def t_(self) -> int:
        """How many rows were learned, each as often as it was."""
        return self.model_.rows

    def sparsify(self) -> Self:
        """From now on `coef_` is a CSR matrix. Scoring and learning are as before."""
        check_is_fitted(self)
        self._sparse_coef = True
        return self

    def densify(self) -> Self:
        """From now on `coef_` is an array."""
        check_is_fitted(self)
        self._sparse_coef = False
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    # -- inside

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _lesson(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Block, NDArray[Any]]:
        """The rows that `fit` learns, and their two classes."""
        X, y = self._validated(X, y)
        X, y, importances = _present(X, y, sample_weight)
        if not len(y):
            raise ValueError(f"{self._name}: all sample weights are zero; there is no row to learn.")
        classes = self._two_classes(y, "" if importances is None else " where sample_weight is not 0")
        return Block.of(X, labels_of(y, classes), importances), classes

    def _passes(self, block: Block) -> Iterator[Block]:
        """The rows of each pass of `fit`, in its order."""
        random = check_random_state(self.random_state) if self.shuffle else None
        for _ in range(self.max_passes):
            yield block if random is None else block.take(random.permutation(len(block)))

    def _known_rows(self, X: Any) -> Block:
        """Rows to score, with the columns that `_lesson` had."""
        return Block.of(self._validated(X, reset=False))

    def _validated(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """Rows, and labels if there are any, as scikit-learn checks them; and what it takes for numbers is refused."""
        refuse_disguised(X, f"{self._name}: X")
        for labels in y:
            if np.ma.is_masked(labels):
                raise DataError(f"{self._name}: y is a masked array with masked entries. Fill or drop them first.")
        return validate_data(self, X, *y, accept_sparse="csr", dtype=REALS, reset=reset)

    def _new_model(self, d: int) -> Model:
        if not isinstance(self.max_passes, numbers.Integral) or self.max_passes < 1:
            raise ValueError(f"{self._name}: max_passes must be a whole number >= 1, got {self.max_passes!r}.")
        if self.threshold is not None and not (
            isinstance(self.threshold, numbers.Real) and math.isfinite(self.threshold)
        ):
            raise ValueError(f"{self._name}: threshold must be None or a number, got {self.threshold!r}.")
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self.learner)}
        return Model(self.learner(**settings), dtype=self.dtype, scale=self.scale, n_features=d)

    def _start(self, model: Model, classes: NDArray[Any], passes: int) -> None:
        self.classes_, self.model_, self.n_iter_ = classes, model, passes
        self._label_of = dict(zip(classes.tolist(), (NEGATIVE, POSITIVE), strict=True))

    def _two_classes(self, y: NDArray[Any], where: str = "") -> NDArray[Any]:
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        classes: NDArray[Any] = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{self._name}: two classes are needed to learn, y holds one class{where}: {classes.tolist()}."
            )
        return classes

    def _settled(self, classes: Any, y: NDArray[Any], first: bool) -> NDArray[Any]:
        """The two classes after this call of partial_fit."""
        if classes is None:
            return self._two_classes(y) if first else self.classes_
        given: NDArray[Any] = np.unique(classes)
        if len(given) != 2:
            raise ValueError(
                f"{self._name}: Only binary classification is supported; classes must be two, got {given.tolist()}."
            )
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"{self._name}: classes={given.tolist()} is not what the first call of partial_fit settled: "
                f"{self.classes_.tolist()}."
            )
        return given

    def _familiar(self, X: Any) -> bool:
        """Rows of which `canonical` checks all there is to check: CSR, as wide as the first, no names to compare."""
        known = self.__dict__
        if not isinstance(X, CSR) or "model_" not in known or "feature_names_in_" in known:
            return False
        shape = X.shape
        return len(shape) == 2 and shape[0] > 0 and shape[1] == self.n_features_in_

    def _familiar_labels(self, y: Any, n: int) -> Labels | None:
        """The labels of y, if it is a plain column of the known classes; what else it may be is not for here."""
        if isinstance(y, list):
            y = np.asarray(y)
        if not isinstance(y, np.ndarray) or y.shape != (n,):
            return None
        if n == 1:
            return self._label_of.get(y.item())
        above = y == self.classes_[1]
        return np.where(above, POSITIVE, NEGATIVE) if (above | (y == self.classes_[0])).all() else None

    def _checked(self, rows: CanonicalRows, labels: Labels | None = None) -> Block:
        starts, columns, entries, width, own = rows
        if width > self.n_features_in_:
            raise DataError(
                f"{self._name}: a row has feature index {width - 1}, but the matrix says it has "
                f"{self.n_features_in_} columns."
            )
        return Block(starts, columns, entries, width, labels, None, None, own)


def _present(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, NDArray[np.float64] | None]:
    """Rows, labels and importances without the rows of weight 0."""
    if sample_weight is None:
        return X, y, None
    weights = numeric(sample_weight, "sample_weight").astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(len(y), weights)
    if weights.shape != (len(y),):
        raise ValueError(f"sample_weight: {len(y)} rows need shape ({len(y)},), got {weights.shape}.")
    if (weights == 0).any():
        there = weights != 0
        X, y, weights = X[there], y[there], weights[there]
    return X, y, weights


def labels_of(y: NDArray[Any], classes: NDArray[Any]) -> Labels:
    positive = y == classes[1]
    strange = ~(positive | (y == classes[0]))
    if strange.any():
        raise ValueError(f"y holds the class {y[strange].tolist()[0]!r}; the classes are {classes.tolist()}.")
    return np.where(positive, POSITIVE, NEGATIVE)


# -- the classes

COMMON = {
    "dtype": ("{'float32', 'float64'}", "Of the state."),
    "scale": (
        "{'unit', 'max', 'none'}",
        "How rows are scaled: to norm 1; each feature by its largest absolute value so far, then to norm 1\n"
        "        (for raw numeric columns); or not at all.",
    ),
    "max_passes": ("int", "How often `fit` learns the rows."),
    "shuffle": ("bool", "Whether each pass of `fit` takes the rows in a new random order."),
    "threshold": ("float or None", "What `decision_function` must exceed for `classes_[1]`. None: 0."),
    "random_state": ("int, RandomState or None", "Where the random orders of `shuffle` come from."),
}

ATTRIBUTES = """
    Attributes
    ----------
    classes_ : array of shape (2,)
        The two class labels; classes_[1], the larger, is the positive one.
    coef_ : array of shape (1, n_features)
        The weights, for rows scaled as `scale` says. Computed when asked for.
    intercept_ : array of shape (1,)
        What `decision_function` adds: the intercept of a logistic loss; for an AUC loss, which has none, what puts
        zero halfway between the mean scores of the classes.
    threshold_ : float
        `predict` gives classes_[1] where `decision_function` exceeds it.
    progress_auc_ : Estimate
        AUC of the scores the rows had before they were first learned.
    model_ : Model
        The model itself; `model_.save("m.rare")` keeps it.
    n_features_in_, feature_names_in_, n_iter_, t_
        Columns, their names if the first frame had any, passes of `fit`, rows learned.
    """


@functools.cache  # each class is one class, wherever it is asked for
def classifiers() -> dict[str, type[StreamClassifier]]:
    """The classifier of every registered learner, by name."""
    return {f"{learner.__name__}Classifier": _classifier_of(learner) for learner in learner_classes()}


def _classifier_of(learner: type[Learner]) -> type[StreamClassifier]:
    settings = dataclasses.fields(learner)
    parameters = [(field.name, _kind(field), field.metadata["says"], field.default) for field in settings]
    common = {field.name: field.default for field in dataclasses.fields(StreamClassifier)}
    parameters += [(name, *COMMON[name], default) for name, default in common.items()]
    told = "".join(
        f"    {name} : {kind}, default={default!r}\n        {says}\n" for name, kind, says, default in parameters
    )
    made = dataclasses.make_dataclass(
        f"{learner.__name__}Classifier",
        [(field.name, Any, dataclasses.field(default=field.default)) for field in settings],
        bases=(StreamClassifier,),
        namespace={
            "learner": learner,
            "__module__": "rarestream.sklearn",  # its public address, where pickle finds it
            "__doc__": f"{learner.__doc__}\n\n    Parameters\n    ----------\n{told}{ATTRIBUTES}",
        },
        kw_only=True,
        eq=False,
        repr=False,
    )
    made.__module__ = "rarestream.sklearn"
    return made


def _kind(field: dataclasses.Field[Any]) -> str:
    if "choices" in field.metadata:
        return "{" + ", ".join(repr(choice) for choice in field.metadata["choices"]) + "}"
    return "float or None" if field.default is None else type(field.default).__name__
