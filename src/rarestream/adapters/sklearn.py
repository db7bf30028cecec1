"""The scikit-learn classifiers: a common base class, and a class for each registered learner.

A classifier is a dataclass of settings, whose constructor only stores them, as scikit-learn requires. What was learned
is in `model_`, a rarestream Model. All other fitted attributes are computed from it when they are read, so that the
time to learn a row does not depend on the number of features.
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
    """Base class of the classifiers, one of which exists for each learner.

    The parameters of a classifier are those below and the settings of its learner. They are checked when `fit`, or the
    first `partial_fit`, makes a model.

    Parameters
    ----------
    dtype : {"float32", "float64"}, default "float32"
        Precision of the model state.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled, as for a Model.
    max_passes : int, >= 1, default 1
        Number of passes of `fit` over the rows.
    shuffle : bool, default False
        Whether each pass of `fit` has a new random order of the rows.
    threshold : float, optional
        Value of `decision_function` above which `classes_[1]` is predicted. By default 0.
    random_state : int, RandomState or None, default None
        Source of the random orders of `shuffle`.
    """

    learner: ClassVar[type[Learner]]

    dtype: str = "float32"
    scale: str = "unit"
    max_passes: int = 1
    shuffle: bool = False
    threshold: float | None = None
    random_state: Any = None

    # -- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows with a new model, in their order, `max_passes` times.

        Parameters
        ----------
        X : sparse matrix or array, dense array, or frame of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Labels of two classes; the larger is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row. A row of weight 0 is ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a setting, a row or a label is invalid, or there are not two classes.
        """
        block, classes = self._training_rows(X, y, sample_weight)
        model = self._new_model(self.n_features_in_)
        for number, rows in enumerate(self._passes(block)):
            model.learn(rows, again=number > 0)
        model.finish_race()  # a race of settings ends with the rows
        self._start(model, classes, self.max_passes)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order, in addition to those learned before.

        Rows of a CSR matrix or array skip the checks of scikit-learn, which would take many times as long as learning
        a row.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (2,), optional
            The two classes. Needed in the first call if `y` has only one of them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a setting, a row or a label is invalid, or the classes differ from those of the first call.
        """
        if classes is None and sample_weight is None and self._quick_to_check(X):
            labels = self._quick_labels(y, X.shape[0])
            if labels is not None:
                self.model_.learn(self._checked(canonical(X.indptr, X.indices, X.data, copy=False), labels))
                return self
        first = not hasattr(self, "model_")
        X, y = self._validated(X, y, reset=first)
        X, y, importances = _present(X, y, sample_weight)
        known = self._classes(classes, y, first)
        block = Block.of(X, labels_of(y, known), importances)
        if first:
            self._start(self._new_model(X.shape[1]), known, 1)
        self.model_.learn(block)
        return self

    # -- scoring

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: higher values mean `classes_[1]`.

        It is the score of the model minus `model_.threshold`, so that zero separates the classes.

        Parameters
        ----------
        X : sparse matrix or array, dense array, or frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        if self._quick_to_check(X):
            block = self._checked(canonical(X.indptr, X.indices, X.data, copy=False))
        else:
            check_is_fitted(self)
            block = self._rows_to_score(X)
        model = self.model_
        return model.score(block) - model.threshold

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict `classes_[1]` where `decision_function` exceeds `threshold_`, and `classes_[0]` elsewhere.

        Parameters
        ----------
        X
            As for `fit`.

        Returns
        -------
        array of shape (n_samples,)
        """
        positive = self.decision_function(X) > (self.threshold or 0.0)
        return self.classes_[positive.astype(np.intp)]

    # -- what was learned

    @property
    def threshold_(self) -> float:
        """The value of `decision_function` above which `classes_[1]` is predicted: `threshold`, by default 0."""
        check_is_fitted(self)
        return float(self.threshold or 0.0)

    @property
    def coef_(self) -> Any:
        """Weights of shape (1, n_features): a read-only array, or a CSR matrix after `sparsify`."""
        coef = self.model_.coef[np.newaxis]
        return csr_matrix(coef) if getattr(self, "_sparse_coef", False) else coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercept of `decision_function`, of shape (1,): minus `model_.threshold`."""
        return np.array([-self.model_.threshold])

    @property
    def progress_auc_(self) -> Estimate:
        """Progressive AUC: that of the scores that rows had before they were first learned, with its interval."""
        return self.model_.progress.auc

    @property
    def t_(self) -> int:
        """Number of rows learned; a row of several passes counts once in each."""
        return self.model_.rows

    def sparsify(self) -> Self:
        """Make `coef_` a CSR matrix. Scoring and learning do not change. Returns self."""
        check_is_fitted(self)
        self._sparse_coef = True
        return self

    def densify(self) -> Self:
        """Make `coef_` an array again. Returns self."""
        check_is_fitted(self)
        self._sparse_coef = False
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    # -- implementation

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _training_rows(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Block, NDArray[Any]]:
        """Return the rows that `fit` learns, and their two classes."""
        X, y = self._validated(X, y)
        X, y, importances = _present(X, y, sample_weight)
        if not len(y):
            raise ValueError(f"{self._name}: all sample weights are zero; there is no row to learn.")
        classes = self._two_classes(y, "" if importances is None else " where sample_weight is not 0")
        return Block.of(X, labels_of(y, classes), importances), classes

    def _passes(self, block: Block) -> Iterator[Block]:
        """Yield the rows of each pass of `fit`, in its order."""
        random = check_random_state(self.random_state) if self.shuffle else None
        for _ in range(self.max_passes):
            yield block if random is None else block.take(random.permutation(len(block)))

    def _rows_to_score(self, X: Any) -> Block:
        """Return rows to score, which must have the columns of the training rows."""
        return Block.of(self._validated(X, reset=False))

    def _validated(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """Check rows and labels as scikit-learn does; text and times, which it would convert to numbers, are errors."""
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

    def _classes(self, classes: Any, y: NDArray[Any], first: bool) -> NDArray[Any]:
        """Return the two classes after this call of partial_fit."""
        if classes is None:
            return self._two_classes(y) if first else self.classes_
        given: NDArray[Any] = np.unique(classes)
        if len(given) != 2:
            raise ValueError(
                f"{self._name}: Only binary classification is supported; classes must be two, got {given.tolist()}."
            )
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"{self._name}: classes={given.tolist()} differs from the classes of the first call of partial_fit: "
                f"{self.classes_.tolist()}."
            )
        return given

    def _quick_to_check(self, X: Any) -> bool:
        """Return whether `canonical` is check enough: CSR, as wide as the first rows, no feature names to compare."""
        known = self.__dict__
        if not isinstance(X, CSR) or "model_" not in known or "feature_names_in_" in known:
            return False
        shape = X.shape
        return len(shape) == 2 and shape[0] > 0 and shape[1] == self.n_features_in_

    def _quick_labels(self, y: Any, n: int) -> Labels | None:
        """Return the labels of y if it is a plain column of the known classes; else None."""
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
    """Return rows, labels and importances without the rows of weight 0."""
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
    """Return +1 for classes[1] and -1 for classes[0]; ValueError for any other class."""
    positive = y == classes[1]
    strange = ~(positive | (y == classes[0]))
    if strange.any():
        raise ValueError(f"y holds the class {y[strange].tolist()[0]!r}; the classes are {classes.tolist()}.")
    return np.where(positive, POSITIVE, NEGATIVE)


# -- the classes

COMMON = {
    "dtype": ("{'float32', 'float64'}", "Precision of the model state."),
    "scale": (
        "{'unit', 'max', 'none'}",
        "How rows are scaled. 'unit': to Euclidean norm 1; 'max': each feature by its largest absolute value so far,\n"
        "        then to norm 1 (for raw numeric columns); 'none': not at all.",
    ),
    "max_passes": ("int, >= 1", "Number of passes of `fit` over the rows."),
    "shuffle": ("bool", "Whether each pass of `fit` has a new random order of the rows."),
    "threshold": ("float or None", "Value of `decision_function` above which `classes_[1]` is predicted. None: 0."),
    "random_state": ("int, RandomState or None", "Source of the random orders of `shuffle`."),
}

ATTRIBUTES = """
    Attributes
    ----------
    classes_ : array of shape (2,)
        The two class labels; classes_[1], the larger, is the positive one.
    coef_ : array of shape (1, n_features)
        The weights, for rows scaled according to `scale`. Computed when read.
    intercept_ : array of shape (1,)
        What `decision_function` adds: the intercept of a logistic loss. An AUC loss has none; then zero is halfway
        between the mean scores of the classes.
    threshold_ : float
        `predict` gives classes_[1] where `decision_function` exceeds it.
    progress_auc_ : Estimate
        AUC of the scores that rows had before they were first learned.
    model_ : Model
        The underlying model; `model_.save("m.rare")` saves it.
    n_features_in_, feature_names_in_, n_iter_, t_
        Number of columns, their names if the first frame had any, number of passes of `fit`, number of rows learned.
    """


@functools.cache  # so that each class exists only once
def classifiers() -> dict[str, type[StreamClassifier]]:
    """Return the classifier of every registered learner, by name."""
    return {f"{learner.__name__}Classifier": _classifier_of(learner) for learner in learner_classes()}


def _classifier_of(learner: type[Learner]) -> type[StreamClassifier]:
    settings = dataclasses.fields(learner)
    parameters = [(field.name, _kind(field), field.metadata["help"], field.default) for field in settings]
    common = {field.name: field.default for field in dataclasses.fields(StreamClassifier)}
    parameters += [(name, *COMMON[name], default) for name, default in common.items()]
    described = "".join(
        f"    {name} : {kind}, default={default!r}\n        {help}\n" for name, kind, help, default in parameters
    )
    made = dataclasses.make_dataclass(
        f"{learner.__name__}Classifier",
        [(field.name, Any, dataclasses.field(default=field.default)) for field in settings],
        bases=(StreamClassifier,),
        namespace={
            "learner": learner,
            "__module__": "rarestream.sklearn",  # its public address, where pickle finds it
            "__doc__": f"{learner.__doc__}\n\n    Parameters\n    ----------\n{described}{ATTRIBUTES}",
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
