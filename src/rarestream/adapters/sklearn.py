"""The scikit-learn classifiers: a common base class, and a class for each registered learner.

A classifier is a dataclass of settings, whose constructor only stores them, as scikit-learn requires. What was learned
is in `model_`: a rarestream Model, or a OneVsRest if there are more than two classes. All other fitted attributes are
computed from it when they are read, so that the time to learn a row does not depend on the number of features.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from rarestream.blocks import (
    NEGATIVE,
    POSITIVE,
    Block,
    CanonicalRows,
    Labels,
    canonical,
    checked_importances,
    concatenate,
    numeric,
    refuse_disguised,
    rows_of,
    signs,
)
from rarestream.errors import DataError, MissingExtraError
from rarestream.explaining import Explanation
from rarestream.features import Hashed
from rarestream.features.space import DEFAULT_BITS
from rarestream.learners import Learner, learner_classes
from rarestream.metrics import Estimate, auc
from rarestream.metrics.thresholds import Decision
from rarestream.model import Model
from rarestream.one_vs_rest import OneVsRest, probabilities

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_y, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError(
        'rarestream.sklearn: scikit-learn 1.6 or newer is needed. pip install "rarestream[sklearn]"'
    ) from None

# After the import above, whose error message says what to install.
from rarestream.adapters.callbacks import CallbackSupportMixin, Tasks, with_callbacks
from rarestream.adapters.frames import more_rows, must_be_hashed
from rarestream.adapters.made import class_of
from rarestream.adapters.space import FeatureSpace, TableTransformer

CSR = (csr_array, csr_matrix)
REALS = (np.float64, np.float32)
PLAIN_TYPES = "fd?bBhHiIlLqQ"  # of numbers that need no conversion by scikit-learn


def _calibrated(classifier: StreamClassifier) -> bool:
    if not classifier.calibrate:
        raise AttributeError(f"{type(classifier).__name__}: there are no probabilities with calibrate=False.")
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class StreamClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the classifiers, one of which exists for each learner.

    The parameters of a classifier are those below and the settings of its learner. They are checked when `fit`, or the
    first `partial_fit`, makes a model.

    Parameters
    ----------
    dtype : {"float32", "float64"}, default "float32"
        Precision of the model state.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled. "unit": to Euclidean norm 1; "max": each feature by its largest absolute value so far, then
        to norm 1 (for raw numeric columns); "none": not at all.
    max_passes : int, >= 1, default 1
        Number of passes of `fit` over the rows.
    shuffle : bool, default False
        Whether each pass of `fit` has a new random order of the rows.
    threshold : float, optional
        Value of `decision_function` above which `classes_[1]` is predicted. By default 0, where the probability is 1/2,
        or what `threshold_for` has chosen.
    random_state : int, RandomState or None, default None
        Source of the random orders of `shuffle`.
    features : FeatureSpace, optional
        How named columns become hashed features. By default `FeatureSpace()` for frames with a column that is not of
        numbers or booleans, and for lists of dicts; any other rows are matrices, whose columns are the features. If
        given, all rows are hashed.
    pos_label : label, optional
        The class that the model takes as positive, the rare one. By default the larger, `classes_[1]`.
    class_weight : dict, "balanced" or None, default None
        Importance of the rows of each class; "balanced": n_samples / (2 * rows of the class), in `partial_fit` by the
        rows so far.
    warm_start : bool, default False
        Whether `fit` continues with the model of the last `fit`.
    early_stopping : bool, default False
        Whether `fit` stops when a pass does not raise the AUC of rows that it holds out, and returns to the model
        before. It only matters with `max_passes` above 1.
    validation_fraction : float, between 0 and 1, default 0.1
        Share of the rows that `early_stopping` holds out.
    n_iter_no_change : int, >= 1, default 1
        Number of passes without a higher AUC after which `early_stopping` stops.
    tol : float, >= 0, default 0
        Rise of AUC that counts as higher.
    calibrate : bool, default True
        Whether the model learns to give probabilities: `predict_proba`.
    negatives_kept : float, above 0 and at most 1, default 1
        Share of the negatives that the rows have, if the others were left out at random. Probabilities are then those
        among all rows.
    verbose : int, default 0
        Whether `fit` prints a line after each pass.
    """

    learner: ClassVar[type[Learner]]

    dtype: str = "float32"
    scale: str = "unit"
    max_passes: int = 1
    shuffle: bool = False
    threshold: float | None = None
    random_state: Any = None
    features: Any = None
    pos_label: Any = None
    class_weight: Any = None
    warm_start: bool = False
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 1
    tol: float = 0.0
    calibrate: bool = True
    negatives_kept: float = 1.0
    verbose: int = 0

    # -- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows with a new model, in their order, `max_passes` times.

        Callbacks of scikit-learn (`set_callbacks`, from 1.9 on) are told of each pass and of every twentieth of its
        rows, and may end the fit.

        Parameters
        ----------
        X : sparse matrix or array, dense array, frame, or list of dicts, of shape (n_samples, n_features)
            The rows. A frame may have columns of text, categories, dates and lists, which are hashed (see `features`).
        y : array-like of shape (n_samples,)
            Labels of two classes, of which the larger is the positive one, or of more: then each is told from all
            others, in one pass where the learner allows it.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row. A row of weight 0 is ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a setting, a row or a label is invalid, or there is a single class.
        """
        before = vars(self).get("model_") if self.warm_start else None
        block, classes = self._training_rows(X, y, sample_weight, before)
        model = self._new_model(self.n_features_in_, block.space, classes)
        model = model if before is None else before
        block, held = self._held_out(block) if self.early_stopping else (block, None)
        best = _Best(self.tol)
        data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        tasks = Tasks(self, data, self.max_passes, lambda: self._fitted(model, classes, number))
        for number, rows in enumerate(self._passes(block), 1):
            stop = tasks.learn(model, rows, number > 1)
            model.finish_race()  # a race of settings ends with the rows
            if held is not None:
                best.compare(model, held)
            if self.verbose:
                self._print_pass(number, model, best.aucs)
            if stop or (held is not None and best.since >= self.n_iter_no_change):
                break
        if held is not None:
            model, self.validation_aucs_ = best.model(), best.aucs
        self._start(model, classes, number)
        tasks.end()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order, in addition to those learned before.

        Rows of a CSR matrix or array skip the checks of scikit-learn, which would take many times as long as learning
        a row.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,), optional
            All classes. Needed in the first call if `y` does not have all of them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a setting, a row or a label is invalid, or the classes differ from those of the first call.
        """
        plain = classes is None and sample_weight is None and self.class_weight is None
        if plain and self._quick_to_check(X):
            labels = self._quick_labels(y, X.shape[0])
            if labels is not None:
                model, alone = self.model_, _is_one_row(X) and not self._many
                if not alone or model.learn_usual(X.indices, X.data, labels[0]) is None:
                    model.learn(self._checked(canonical(X.indptr, X.indices, X.data, copy=False), labels))
                    if alone:
                        model.prepare_one()
                return self
        first = not hasattr(self, "model_")
        hashed = self._is_hashed(X) if first else self._hashed
        X, y = (X, self._validated_labels(X, y)) if hashed else self._validated(X, y, reset=first)
        X, y, importances = _present(X, y, sample_weight)
        known, labels = self._classes(classes, y, first)
        importances, counts = self._weighted(known, labels, importances, {} if first else self._counts_so_far())
        if hashed:
            block = self._hashed_rows(X, first, labels, importances)
        else:
            block = self._matrix_rows(X, labels, importances)
        if first:
            self._start(self._new_model(self.n_features_in_, block.space, known), known, 1)
        self.model_.learn(block)
        self._class_counts = counts
        return self

    # -- scoring

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: higher values mean `classes_[1]`.

        It is the score of the model minus `model_.threshold`, so that zero separates the classes: there the probability
        is 1/2. With `pos_label=classes_[0]` it is the negative of that. With more than two classes it has a column for
        each: log odds against all others.

        Parameters
        ----------
        X : sparse matrix or array, dense array, frame, or list of dicts, of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes)
        """
        scores = self._scores(X)
        if self._many:
            return np.asarray(self.model_.slope * scores + self.model_.intercept)
        scores -= self.model_.threshold
        return scores if self._sign > 0 else -scores

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model."""
        if not self._quick_to_check(X):
            check_is_fitted(self)
            found: NDArray[np.float64] = self.model_.score(self._rows_to_score(X, self._space))
            return found
        model, alone = self.model_, _is_one_row(X) and not self._many
        if alone and (score := model.score_usual(X.indices, X.data)) is not None:
            return np.array([score])
        block = self._checked(canonical(X.indptr, X.indices, X.data, copy=False))
        if alone:
            model.prepare_one()
        scores: NDArray[np.float64] = model.score(block)
        return scores

    @available_if(_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the classes. They are there unless `calibrate=False`.

        Parameters
        ----------
        X
            As for `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `classes_`.

        Warns
        -----
        FewRowsWarning
            If fewer than ten rows of a class were learned.
        """
        if vars(self).get("classes_") is not None and self._many:
            return probabilities(self.decision_function(X))
        scores = self._scores(X)
        calibration = self.model_.known_calibration(f"{self._name}.predict_proba")
        p = calibration.probability(scores, self.model_.negatives_kept)
        pair = (1 - p, p) if self._sign > 0 else (p, 1 - p)
        return np.stack(pair, axis=1)

    @available_if(_calibrated)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X
            As for `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes: the more probable one, or as `threshold` or `threshold_for` says.

        With more than two classes, that with the largest `decision_function`.

        Parameters
        ----------
        X
            As for `fit`.

        Returns
        -------
        array of shape (n_samples,)
            `classes_[1]` where `decision_function` exceeds `threshold_`, `classes_[0]` elsewhere. After `threshold_for`
            the positive class, where the score of the model is at least `model_.decision.threshold`.
        """
        if hasattr(self, "model_") and self._many:
            most: NDArray[Any] = self.classes_.take(self.decision_function(X).argmax(axis=1))
            return most
        if self.threshold is None and hasattr(self, "model_") and self.model_.decision is not None:
            called = self._scores(X) >= self.model_.decision.threshold
            upper = called if self._sign > 0 else ~called
        else:
            upper = self.decision_function(X) > (self.threshold or 0.0)
        predicted: NDArray[Any] = self.classes_.take(upper)
        return predicted

    def threshold_for(self, X: Any, y: Any, sample_weight: Any = None, *, save: bool = True, **rule: Any) -> Decision:
        """Choose what `predict` calls positive, by a rule, on rows that were not fitted.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; of both classes.
        save : bool, default True
            Whether `predict` follows it from now on, unless `threshold` is set.
        **rule
            Exactly one of `fpr`, `precision`, `recall`, `share`, `alerts_per_day` (with `rows_per_day` or `days`) and
            `costs`, as for `Model.threshold_for`.

        Returns
        -------
        Decision
            The threshold, a score of the model, and the rates that it has, with intervals.

        Raises
        ------
        DataError
            If the rule is invalid, a class is missing, or no threshold follows the rule.
        """
        check_is_fitted(self)
        if self._many:
            raise ValueError(f"{self._name}: threshold_for is for two classes, but there are {len(self.classes_)}.")
        y = self._validated_labels(X, y)
        X, y, importances = _present(X, y, sample_weight)
        weights = None if importances is None else checked_importances(importances, len(y))
        block = self._rows_to_score(X, self._space)
        block = replace(block, labels=self._signed(y, self.classes_), importances=weights)
        decision: Decision = self.model_.threshold_for(block, save=save, **rule)
        return decision

    def explain(self, X: Any) -> list[Explanation]:
        """Explain the scores of rows: what each feature adds.

        Parameters
        ----------
        X
            As for `fit`.

        Returns
        -------
        list of Explanation
            Of each row its score and its terms, the largest absolute contributions first. A term has the `name` of the
            feature, its `value`, its `weight` in this row, and its `contribution`, which is their product. The
            contributions sum to the score, which is `decision_function` plus `model_.threshold`.
        """
        check_is_fitted(self)
        if self._many:
            raise ValueError(
                f"{self._name}: explain is for two classes. For class number c: model_.model(c).explain(Block.of(X))."
            )
        rows = concatenate(more_rows(self, X, self.feature_space_, "the blocks")) if self._hashed else None
        found: list[Explanation] = self.model_.explain(self._rows_to_score(X, None) if rows is None else rows)
        names = getattr(self, "feature_names_in_", None)
        if names is None or rows is not None:
            return found
        return [
            Explanation(score, tuple(term._replace(name=names[int(term.name)]) for term in terms))
            for score, terms in found
        ]

    # -- what was learned

    @property
    def feature_space_(self) -> Hashed:
        """The space of hashed features. There is none if the rows were a matrix."""
        space = self.model_.features
        if not isinstance(space, Hashed):
            raise AttributeError(f"{self._name}: the rows were a matrix, whose columns are the features.")
        return space

    @property
    def threshold_(self) -> float:
        """The value of `decision_function` above which `classes_[1]` is predicted: `threshold`, by default 0.

        After `threshold_for`, where its threshold is.
        """
        check_is_fitted(self)
        decision = None if self._many else self.model_.decision
        if self.threshold is None and decision is not None:
            return float(self._sign * (decision.threshold - self.model_.threshold))
        return float(self.threshold or 0.0)

    @property
    def coef_(self) -> Any:
        """Weights of shape (1, n_features): a read-only array, or a CSR matrix after `sparsify`.

        With more than two classes (n_classes, n_features). Of hashed features there are 2**bits, and
        `model_.feature_names` says what they are called.
        """
        model = self.model_
        coef = model.slope[:, np.newaxis] * model.coef if self._many else model.coef[np.newaxis]
        if self._sign < 0:
            coef = -coef
        return csr_matrix(coef) if getattr(self, "_sparse_coef", False) else coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercept of `decision_function`, of shape (1,): minus `model_.threshold`; or (n_classes,)."""
        if self._many:
            found: NDArray[np.float64] = self.model_.intercept
            return found
        return np.array([-self._sign * self.model_.threshold])

    @property
    def progress_auc_(self) -> Estimate | float:
        """Progressive AUC: that of the scores that rows had before they were first learned, with its interval.

        With more than two classes, the mean of that of each against all others, a float.
        """
        return _progressive(self.model_)

    @property
    def t_(self) -> int:
        """Number of rows learned; a row of several passes counts once in each."""
        return int(self.model_.rows)

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
        tags.input_tags.sparse = self.features is None
        if self.features is not None:
            tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.dict = True
            tags.input_tags.allow_nan = True
        return tags

    # -- implementation

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any = None, before: Any = None
    ) -> tuple[Block, NDArray[Any]]:
        """Return the rows that `fit` learns, and their classes; `before` is the model that it continues with."""
        first = before is None
        hashed = self._is_hashed(X) if first else self._hashed
        X, y = (X, self._validated_labels(X, y)) if hashed else self._validated(X, y, reset=first)
        X, y, importances = _present(X, y, sample_weight)
        if not len(y):
            raise ValueError(f"{self._name}: all sample weights are zero; there is no row to learn.")
        if first:
            classes, labels = self._all_classes(y, "" if importances is None else " where sample_weight is not 0")
        else:
            classes, labels = self.classes_, self._labels(y, self.classes_)
        importances, self._class_counts = self._weighted(classes, labels, importances, None)
        if hashed:
            return self._hashed_rows(X, first, labels, importances), classes
        return self._matrix_rows(X, labels, importances), classes

    def _held_out(self, block: Block) -> tuple[Block, Block]:
        """Return the rows to learn and those that early stopping looks at, a share of each class at random."""
        share = self.validation_fraction
        if not (isinstance(share, numbers.Real) and 0 < float(share) < 1):
            raise ValueError(f"{self._name}: validation_fraction must be between 0 and 1, got {share!r}.")
        if not isinstance(self.n_iter_no_change, numbers.Integral) or self.n_iter_no_change < 1:
            raise ValueError(
                f"{self._name}: n_iter_no_change must be a whole number >= 1, got {self.n_iter_no_change!r}."
            )
        labels = block.classes if block.labels is None else block.labels
        assert labels is not None
        random = check_random_state(self.random_state)
        held = np.zeros(len(block), bool)
        for label in np.unique(labels):
            own = random.permutation(np.flatnonzero(labels == label))
            held[own[: min(max(1, round(share * len(own))), len(own) - 1)]] = True
        if len(np.unique(labels[held])) < len(np.unique(labels)):
            raise ValueError(
                f"{self._name}: early_stopping holds out rows of all classes, but one has a single row. Set it to "
                "False, or pass more rows."
            )
        return block.take(np.flatnonzero(~held)), block.take(np.flatnonzero(held))

    def _counts_so_far(self) -> dict[int, int]:
        """Return the rows of each class that `fit` and `partial_fit` have counted; none unless weights are wanted."""
        counts: dict[int, int] = vars(self).get("_class_counts", {})
        return counts

    def _weighted(
        self,
        classes: NDArray[Any],
        labels: NDArray[Any],
        importances: NDArray[np.float64] | None,
        counts: dict[int, int] | None,
    ) -> tuple[NDArray[np.float64] | None, dict[int, int]]:
        """Return importances times the weights of classes, and the numbers of rows of each class so far.

        `counts`: those before; None for all rows at once.
        """
        wanted = self.class_weight
        if wanted is None:
            return importances, {}
        many = len(classes)
        totals = {sign: int(np.count_nonzero(labels == sign)) for sign in ((-1, 1) if many == 2 else range(many))}
        if isinstance(wanted, str) and wanted == "balanced":
            weights = np.empty(len(labels))
            for sign, own in totals.items():
                here = labels == sign
                if counts is None:
                    weights[here] = len(labels) / (many * own) if own else 1.0
                else:  # by the rows up to each, so that it does not matter where the rows are divided
                    before = sum(counts.values())
                    rows_so_far = before + 1 + np.flatnonzero(here)
                    weights[here] = rows_so_far / (many * (counts.get(sign, 0) + 1 + np.arange(own)))
        elif isinstance(wanted, dict):
            weights = self._named_weights(wanted, classes, labels)
        else:
            raise ValueError(f"{self._name}: class_weight must be None, a dict or 'balanced', got {wanted!r}.")
        for sign, before in (counts or {}).items():
            totals[sign] += before
        return weights if importances is None else weights * importances, totals

    def _named_weights(
        self, wanted: dict[Any, Any], classes: NDArray[Any], labels: NDArray[Any]
    ) -> NDArray[np.float64]:
        of_class = dict.fromkeys(classes.tolist(), 1.0)
        for name, weight in wanted.items():
            if name not in of_class:
                raise ValueError(
                    f"{self._name}: class_weight has the class {name!r}; the classes are {list(of_class)}."
                )
            if not (isinstance(weight, numbers.Real) and 0 < float(weight) < math.inf):
                raise ValueError(f"{self._name}: class_weight of {name!r} must be above 0, got {weight!r}.")
            of_class[name] = float(weight)
        if len(classes) > 2:
            return np.asarray(np.array(list(of_class.values()))[labels])
        low, high = of_class.values()
        return np.where(self._signed(classes, classes)[1] == labels, high, low)

    def _print_pass(self, number: int, model: Any, aucs: list[float]) -> None:
        held = f", AUC of rows held out {aucs[-1]:.4f}" if aucs else ""
        print(
            f"[{self._name}] pass {number}: {model.rows:,} rows, progressive AUC {float(_progressive(model)):.4f}, "
            f"{model.nonzeros:,} weights{held}"
        )

    def _passes(self, block: Block) -> Iterator[Block]:
        """Yield the rows of each pass of `fit`, in its order."""
        random = check_random_state(self.random_state) if self.shuffle else None
        for _ in range(self.max_passes):
            yield block if random is None else block.take(random.permutation(len(block)))

    @property
    def _space(self) -> Hashed | None:
        """The space of hashed features; None if rows are matrices."""
        return self.feature_space_ if self._hashed else None

    def _rows_to_score(self, X: Any, space: Hashed | None) -> Block:
        """Return rows to score, which must have the columns of the training rows."""
        if space is not None:
            return concatenate(more_rows(self, X, space, "nobody"))
        return self._matrix_rows(self._validated(X, reset=False))

    def _is_hashed(self, X: Any) -> bool:
        """Return whether the features of rows to fit are hashed names; otherwise X is a matrix."""
        if self.features is None:
            return must_be_hashed(X)
        if not isinstance(self.features, TableTransformer):
            raise ValueError(f"{self._name}: features must be None or a FeatureSpace, got {self.features!r}.")
        return True

    def _width(self, X: Any) -> int:
        """Return the number of features that rows to fit have; 1 if it is not known."""
        if self._is_hashed(X):
            return 1 << (DEFAULT_BITS if self.features is None else self.features.checked_options().bits)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        return max([1, *shape[1:]])

    def _hashed_rows(self, X: Any, first: bool, labels: NDArray[Any], importances: NDArray[np.float64] | None) -> Block:
        """Return rows to learn, the first of which decide what the columns are."""
        if first:
            features = FeatureSpace() if self.features is None else clone(self.features)
            _, blocks = features.first_rows(self, X)
        else:
            blocks = more_rows(self, X, self.feature_space_, "the space")
        weights = None if importances is None else checked_importances(importances, len(labels))
        return replace(concatenate(blocks), importances=weights, **_labelling(labels))

    def _validated_labels(self, X: Any, y: Any) -> Any:
        """Check labels as scikit-learn does, and that there is one for each row."""
        self._check_masked(y)
        if y is None:
            raise ValueError(f"{self._name}: requires y to be passed, but the target y is None.")
        if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biu":
            y = _check_y(y, estimator=self)
        check_consistent_length(X, y)
        return y

    def _check_masked(self, y: Any) -> None:
        if np.ma.is_masked(y):
            raise DataError(f"{self._name}: y is a masked array with masked entries. Fill or drop them first.")

    def _validated(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """Check rows and labels as scikit-learn does; text and times, which it would convert to numbers, are errors.

        Whether all numbers are finite is left to `rows_of`, which looks at them anyway and says where one is not.
        """
        if self._plain(X, reset) and not any(labels is None for labels in y):
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            return (X, self._validated_labels(X, *y)) if y else X
        way = (
            "Pass a frame with named columns, or features=FeatureSpace(), and it is hashed."
            if reset
            else "The first rows were numbers, and a model has one kind of features: turn it into numbers, or fit anew."
        )
        refuse_disguised(X, f"{self._name}: X", way)
        for labels in y:
            self._check_masked(labels)
        return validate_data(self, X, *y, accept_sparse="csr", dtype=REALS, ensure_all_finite=False, reset=reset)

    def _plain(self, X: Any, reset: bool) -> bool:
        """Return whether scikit-learn would take X as it is: CSR or an array of numbers, of the right width."""
        if not (type(X) is np.ndarray or isinstance(X, CSR)) or X.ndim != 2 or X.dtype.char not in PLAIN_TYPES:
            return False
        rows, columns = X.shape
        if reset:
            return bool(rows > 0 and columns > 0)
        known = self.__dict__
        return rows > 0 and columns == known.get("n_features_in_") and "feature_names_in_" not in known

    def _matrix_rows(
        self, X: Any, labels: NDArray[Any] | None = None, importances: NDArray[np.float64] | None = None
    ) -> Block:
        """Return validated rows as a Block that is used at once and then dropped."""
        starts, columns, entries, width, own = rows_of(X, copy=False)
        weights = None if importances is None else checked_importances(importances, len(starts) - 1)
        return Block(starts, columns, entries, width, importances=weights, own=own, **_labelling(labels))

    def _new_model(self, d: int, space: Hashed | None = None, classes: Sized = (0, 1)) -> Any:
        if not isinstance(self.max_passes, numbers.Integral) or self.max_passes < 1:
            raise ValueError(f"{self._name}: max_passes must be a whole number >= 1, got {self.max_passes!r}.")
        if self.threshold is not None and not (
            isinstance(self.threshold, numbers.Real) and math.isfinite(self.threshold)
        ):
            raise ValueError(f"{self._name}: threshold must be None or a number, got {self.threshold!r}.")
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self.learner)}
        learner = self.learner(**settings)
        common: dict[str, Any] = {"dtype": self.dtype, "scale": self.scale, "calibrate": bool(self.calibrate)}
        common |= {"n_features": d} if space is None else {"features": space}
        if len(classes) == 2:
            return Model(learner, negatives_kept=self.negatives_kept, **common)
        for name, nothing in (("threshold", None), ("pos_label", None), ("negatives_kept", 1)):
            if getattr(self, name) != nothing:
                raise ValueError(
                    f"{self._name}: {name} is for two classes, but there are {len(classes)}. Leave it {nothing}."
                )
        return OneVsRest(learner, classes=range(len(classes)), **common)

    @property
    def _many(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.classes_) > 2

    def _start(self, model: Any, classes: NDArray[Any], passes: int) -> None:
        found = self._fitted(model, classes, passes)
        self.classes_: NDArray[Any] = found["classes_"]
        self.model_: Any = found["model_"]
        self.n_iter_: int = found["n_iter_"]
        self._hashed: bool = found["_hashed"]
        self._sign: int = found["_sign"]
        self._label_of: dict[Any, Labels] = found["_label_of"]

    def _fitted(self, model: Any, classes: NDArray[Any], passes: int) -> dict[str, Any]:
        """Return the attributes of a classifier that has learned these classes in so many passes."""
        two = len(classes) == 2
        sign = int(self._signed(classes, classes)[1]) if two else 1
        pair = (NEGATIVE, POSITIVE) if sign > 0 else (POSITIVE, NEGATIVE)
        return {
            "classes_": classes,
            "model_": model,
            "n_iter_": passes,
            "_hashed": isinstance(model.features, Hashed),
            "_sign": sign,
            "_label_of": dict(zip(classes.tolist(), pair, strict=True)) if two else {},
        }

    def _signed(self, y: NDArray[Any], classes: NDArray[Any]) -> Labels:
        """Return +1 for rows of the positive class and -1 for the other; ValueError for any other class."""
        return self._turned(labels_of(y, classes), classes)

    def _turned(self, labels: Labels, classes: NDArray[Any]) -> Labels:
        """Return labels that are +1 for classes[1] as those of the positive class."""
        if self.pos_label is None or self.pos_label == classes[1]:
            return labels
        if self.pos_label == classes[0]:
            return -labels
        raise ValueError(f"{self._name}: pos_label is {self.pos_label!r}, but the classes are {classes.tolist()}.")

    def _labels(self, y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of rows: signs if there are two classes, else the numbers of their classes."""
        return self._signed(y, classes) if len(classes) == 2 else codes_of(y, classes)

    def _all_classes(self, y: NDArray[Any], where: str = "") -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the classes of y, and the labels of its rows."""
        found = plainly_binary(y)
        if found is not None:
            return found[0], self._turned(found[1], found[0])
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"{self._name}: y must have one class for each row. The type of the target is {kind}.")
        classes: NDArray[Any] = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{self._name}: two classes are needed to learn, y holds one class{where}: {classes.tolist()}."
            )
        return classes, self._labels(y, classes)

    def _classes(self, classes: Any, y: NDArray[Any], first: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the classes after this call of partial_fit, and the labels of its rows."""
        if classes is None:
            return self._all_classes(y) if first else (self.classes_, self._labels(y, self.classes_))
        given: NDArray[Any] = np.unique(classes)
        if len(given) < 2:
            raise ValueError(f"{self._name}: classes must be two or more, got {given.tolist()}.")
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"{self._name}: classes={given.tolist()} differs from the classes of the first call of partial_fit: "
                f"{self.classes_.tolist()}."
            )
        return given, self._labels(y, given)

    def _quick_to_check(self, X: Any) -> bool:
        """Return whether `canonical` is check enough: CSR, as wide as the first rows, no feature names to compare."""
        known = self.__dict__
        if not isinstance(X, CSR) or "model_" not in known or "feature_names_in_" in known or known["_hashed"]:
            return False
        shape = X.shape
        return len(shape) == 2 and shape[0] > 0 and shape[1] == self.n_features_in_

    def _quick_labels(self, y: Any, n: int) -> NDArray[Any] | None:
        """Return the labels of y if it is a plain column of the known classes; else None."""
        if isinstance(y, list):
            y = np.asarray(y)
        if not isinstance(y, np.ndarray) or y.shape != (n,):
            return None
        if self._many:
            try:
                return codes_of(y, self.classes_)
            except (TypeError, ValueError):
                return None
        if n == 1:
            return self._label_of.get(y.item())
        above = y == self.classes_[1]
        if not (above | (y == self.classes_[0])).all():
            return None
        return signs(above) if self._sign > 0 else -signs(above)

    def _checked(self, rows: CanonicalRows, labels: NDArray[Any] | None = None) -> Block:
        starts, columns, entries, width, own = rows
        if width > self.n_features_in_:
            raise DataError(
                f"{self._name}: a row has feature index {width - 1}, but the matrix says it has "
                f"{self.n_features_in_} columns."
            )
        return Block(starts, columns, entries, width, own=own, **_labelling(labels))


class _Best:
    """The best model of several passes, by its AUC on rows that are held out."""

    def __init__(self, tol: float) -> None:
        self.aucs: list[float] = []
        self.since = 0  # passes since the best
        self._tol, self._highest, self._saved = tol, -math.inf, b""
        self._kind: Any = Model

    def compare(self, model: Any, held: Block) -> None:
        self._kind, scores = type(model), model.score(held)
        if held.labels is not None:
            self.aucs.append(float(auc(held.labels, scores, held.importances)))
        else:
            assert held.classes is not None
            there = np.unique(held.classes).tolist()
            each = [auc(held.classes == code, scores[:, code], held.importances) for code in there]
            self.aucs.append(float(np.mean(each)))
        if self.aucs[-1] > self._highest + (self._tol if self._saved else 0):
            self._highest, self._saved, self.since = self.aucs[-1], model.to_bytes(), 0
        else:
            self.since += 1

    def model(self) -> Any:
        return self._kind.from_bytes(self._saved)


def _is_one_row(X: Any) -> bool:
    """Return whether a CSR matrix has one row, which is all of its entries."""
    starts = X.indptr
    return len(starts) == 2 and starts[0] == 0 and starts[1] == len(X.indices)


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
        X, y, weights = _safe_indexing(X, np.flatnonzero(there)), y[there], weights[there]
    return X, y, weights


def _labelling(labels: NDArray[Any] | None) -> dict[str, Any]:
    """Return the field of a Block that labels are: signs, or numbers of classes."""
    return {"labels" if labels is None or labels.dtype == np.int8 else "classes": labels}


def _progressive(model: Any) -> Estimate | float:
    """Return the progressive AUC of a Model, or the macro AUC of a OneVsRest."""
    found: Estimate | float = model.macro_auc if isinstance(model, OneVsRest) else model.progress.auc
    return found


def codes_of(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each row's class; ValueError for any other class."""
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    known = classes[codes] == y
    if not np.all(known):
        raise ValueError(f"y holds the class {y[~known].tolist()[0]!r}; the classes are {classes.tolist()}.")
    return codes


def labels_of(y: NDArray[Any], classes: NDArray[Any]) -> Labels:
    """Return +1 for classes[1] and -1 for classes[0]; ValueError for any other class."""
    positive = y == classes[1]
    known = positive | (y == classes[0])
    if not known.all():
        raise ValueError(f"y holds the class {y[~known].tolist()[0]!r}; the classes are {classes.tolist()}.")
    return signs(positive)


def plainly_binary(y: NDArray[Any]) -> tuple[NDArray[Any], Labels] | None:
    """Return the two classes of y, as np.unique does, and its labels; None if scikit-learn must say what y is.

    Three comparisons instead of two sorts, which would take as long as learning the rows.
    """
    if type(y) is not np.ndarray or y.ndim != 1 or not len(y) or y.dtype.kind not in "biufUO":
        return None
    if y.dtype.kind == "O" and set(map(type, y)) != {str}:
        return None
    first = y == y[0]
    at = int(first.argmin())
    second = y == y[at]
    if first[at] or not (first | second).all():
        return None
    ends = y[[0, at]]
    if y.dtype.kind == "f" and (np.signbit(ends[ends == 0]).any() or not _exact_integers(ends)):
        return None
    return (ends, signs(second)) if ends[0] < ends[1] else (ends[::-1].copy(), signs(first))


def _exact_integers(values: NDArray[Any]) -> bool:
    """Return whether floats are whole numbers that also int64 holds; scikit-learn calls all others continuous."""
    wide = values.astype(np.longdouble)  # float16 has no 2**53 to compare with
    return bool((abs(wide) < 2**53).all() and (wide == wide.astype(np.int64)).all())


# -- the classes

ATTRIBUTES = """
    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels; of two, classes_[1], the larger, is the positive one.
    coef_ : array of shape (1, n_features), or (n_classes, n_features) with more than two classes
        The weights, for rows scaled according to `scale`. Computed when read.
    intercept_ : array of shape (1,), or (n_classes,)
        What `decision_function` adds, so that it is zero where the probability is 1/2.
    validation_aucs_ : list of float
        With `early_stopping`, the AUC of the rows held out after each pass.
    threshold_ : float
        `predict` gives classes_[1] where `decision_function` exceeds it.
    progress_auc_ : Estimate
        AUC of the scores that rows had before they were first learned.
    model_ : Model, or OneVsRest with more than two classes, which are numbered in the order of `classes_`
        The underlying model; `model_.save("m.rare")` saves it.
    feature_space_ : Hashed
        The space of hashed features, if the rows were hashed.
    n_features_in_, feature_names_in_, n_iter_, t_
        Number of columns, their names if the first frame had any, number of passes of `fit`, number of rows learned.
    """


@functools.cache  # so that each class exists only once
def classifiers() -> dict[str, type[StreamClassifier]]:
    """Return the classifier of every registered learner, by name."""
    names = {f"{learner.__name__}Classifier": learner for learner in learner_classes()}
    return {
        name: class_of(learner, StreamClassifier, name, "rarestream.sklearn", ATTRIBUTES)
        for name, learner in names.items()
    }
