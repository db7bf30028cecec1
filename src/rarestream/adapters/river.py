"""The River classifiers, one for each registered learner, and two River metrics.

A classifier is a dataclass of settings, which River can read back, clone and show. What it has learned is in a Model
with hashed features, whose plan counts each value as what it is; so a dict has the same features, and gets the same
weights, as `Model.learn_one` gives it. A dict is learned in one call of the core; only what is unusual about a row, a
label or a weight takes a longer way.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarestream.adapters.made import class_of
from rarestream.adapters.tables import read_rows
from rarestream.blocks import Block, checked_importances, concatenate
from rarestream.engines import check_arguments
from rarestream.errors import DataError, MissingExtraError
from rarestream.explaining import Explanation
from rarestream.features import Hashed, TablePlan
from rarestream.features.plan import NUMBERS, ColumnPlan, Kind
from rarestream.features.space import DEFAULT_BITS
from rarestream.learners import Learner, learner_classes
from rarestream.metrics import Estimate, WindowedAuc
from rarestream.metrics import StreamingAuc as Streaming
from rarestream.metrics.calibration import MOST_ODDS
from rarestream.model import Model
from rarestream.readers.labels import NO, YES

try:
    from river import base, metrics
    from river.utils import pretty
except ImportError:
    raise MissingExtraError(
        'rarestream.river: River 0.22 or newer is needed. pip install "rarestream[river]"'
    ) from None
try:
    from river.utils import dataframe as frames
except ImportError:  # before River 0.26, whose frames are those of pandas
    frames = None  # type: ignore[assignment]

SMALL = 200  # rows that are encoded faster as dicts
BUFFERED = 1024  # rows that a metric adds at once: adding one takes as long as adding many


class TwoLabels:
    """Which of the two labels of a stream is positive.

    True, 1 and the texts "1", "true" and "yes" are positive; False, 0, -1, their texts and "no" are negative. Of two
    other labels, the one that comes first is negative. `positive`, if given, decides instead.

    Attributes
    ----------
    signs : dict
        1 or -1 of each label that has come.
    """

    __slots__ = ("_names", "_positive", "_where", "signs")

    def __init__(self, where: str, positive: Any = None) -> None:
        self._where = where
        self._positive = positive
        self._names: list[Any] = [None, positive]  # as they came; the second may be a guess
        self.signs: dict[Any, int] = {}

    @property
    def names(self) -> tuple[Any, Any]:
        """The negative and the positive label; None if it is not known."""
        negative, positive = self._names
        return (False, True) if negative is positive is None else (negative, positive)

    def sign(self, label: Any) -> int:
        """Return 1 or -1; DataError for a label that is missing, or a third one."""
        try:
            known = self.signs.get(label)
        except TypeError:
            raise DataError(f"{self._where}: a label must be a bool, a number or text, got {label!r}.") from None
        if known is not None:
            return known
        name = label.item() if isinstance(label, np.generic) else label
        if name is None or name != name:
            raise DataError(f"{self._where}: the label is missing, got {label!r}. Learn rows with labels only.")
        sign = self._decided(name)
        usual = [_is_number(each) and each in (-1, 0, 1) for each in (name, *self.signs)]
        if sign in self.signs.values() or (self._positive is None and any(usual) and not all(usual)):
            raise DataError(
                f"{self._where}: the label {name!r}, after {' and '.join(map(repr, self.signs))}. Two labels can be "
                "learned: pass positive= to say which is the positive one, and give all other rows one label."
            )
        self.signs[name] = sign
        self._names[sign == 1] = name
        other = self._opposite(name)
        if other is not None and self._names[sign == -1] is None:
            self._names[sign == -1] = other
        return sign

    def _decided(self, name: Any) -> int:
        if self._positive is not None:
            return 1 if name == self._positive else -1
        word = name.lower() if isinstance(name, str) else f"{float(name):g}" if _is_number(name) else None
        if word in YES:
            return 1
        if word in NO:
            return -1
        return 1 if -1 in self.signs.values() else -1

    @staticmethod
    def _opposite(name: Any) -> Any:
        """Return the other label of False and True, and of 0 and 1; None if it cannot be known."""
        if isinstance(name, bool):
            return not name
        if _is_number(name) and name in (0, 1):
            return type(name)(1 - name)
        return 1 if _is_number(name) and name == -1 else None

    def copy(self) -> TwoLabels:
        """Return labels that can be added to without changing these."""
        copied = TwoLabels(self._where, self._positive)
        copied._names, copied.signs = list(self._names), dict(self.signs)
        return copied


def _is_number(name: Any) -> bool:
    return isinstance(name, numbers.Real)


@dataclass(kw_only=True, eq=False, repr=False)
class StreamClassifier(base.MiniBatchClassifier):
    """Base class of the classifiers, one of which exists for each learner.

    The parameters of a classifier are those below and the settings of its learner.

    Parameters
    ----------
    dtype : {"float32", "float64"}, default "float32"
        Precision of the model state.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled. "unit": to Euclidean norm 1; "max": each feature by its largest absolute value so far, then
        to norm 1 (for raw numeric columns); "none": not at all.
    bits : int, 1 to 30, default 22
        Base-2 logarithm of the number of hashed features.
    numbers : {"soft", "raw"}, default "soft"
        Whether numbers become soft buckets, or features with the number as their value.
    positive : label, optional
        The label that is positive. By default True, 1, "true" or "yes"; of two other labels, the one that comes second.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """

    learner: ClassVar[type[Learner]]

    dtype: str = "float32"
    scale: str = "unit"
    bits: int = DEFAULT_BITS
    numbers: str = "soft"
    positive: Any = None

    def __post_init__(self) -> None:
        self._made_learner()
        check_arguments(self.dtype, self.scale, 0, f"{self._name}: ")
        Hashed(self.bits, names=False)
        if self.numbers not in NUMBERS:
            raise ValueError(f"{self._name}: numbers must be one of {', '.join(NUMBERS)}, got {self.numbers!r}.")
        self._labels = TwoLabels(self._name, self.positive)
        self._signs = self._labels.signs
        self._model: Model | None = None
        self._y_name: Any = None  # of the Series that `predict_many` returns

    # -- learning

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The row: names and values. Numbers are numbers, text and booleans are categories, None and nan are missing;
            lists and dicts are as in docs/formats/rows.md. Keys that are not text count as their `str`.
        y : bool, 0 or 1, or one of two labels
            The label.
        w : float, default 1.0
            Importance of the row; 0: it is ignored.

        Raises
        ------
        DataError
            If a value cannot be a feature, the weight is out of range, or the label is a third one. Nothing is learned.
        """
        model = self._model
        if model is not None:
            try:
                sign = self._signs.get(y)
            except TypeError:
                sign = None
            if (
                sign is not None
                and model.learn_usual(x, None, sign, None if w == 1.0 else w, True) is not None  # one call of the core
            ):
                return
        self._learn_unusual(x, y, w)

    def _learn_unusual(self, x: dict[Any, Any], y: Any, w: float) -> None:
        labels = self._labels.copy()
        sign = labels.sign(y)
        row = self._text_keys(x)
        if row is x or self.model.learn_usual(row, None, sign, None if w == 1.0 else w, True) is None:
            self.model.learn_one(row, sign, self._importance(w))
        self._keep(labels)

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` for each of them.

        Parameters
        ----------
        X : frame
            The rows, a frame of pandas, Polars or PyArrow. Its columns may change between calls. Entries that a sparse
            column of pandas does not store are missing.
        y : Series or other sequence
            The labels.
        w : float, Series or other sequence, optional
            Importance of each row.

        Raises
        ------
        DataError
            As for `learn_one`. Nothing is learned.
        """
        rows = self._rows(X, names=True)
        found = _plain_list(y)
        if len(found) != len(rows):
            raise DataError(f"{self._name}: X has {len(rows)} rows, but y has {len(found)} labels.")
        labels = self._labels.copy()
        signs = np.array([labels.sign(label) for label in found], np.int8)
        importances = None
        if w is not None and not (isinstance(w, numbers.Real) and w == 1):
            weights = [w] * len(rows) if isinstance(w, numbers.Real) else _plain_list(w)
            importances = checked_importances(np.asarray(weights, np.float64), len(rows))
        if len(rows):
            self.model.learn(replace(rows, labels=signs, importances=importances))
        self._y_name = getattr(y, "name", None)
        self._keep(labels)

    # -- predicting

    def score_one(self, x: dict[Any, Any]) -> float:
        """Score one row: larger means more likely positive. Scores rank rows; they are no probabilities.

        Parameters
        ----------
        x : dict
            The row.

        Returns
        -------
        float
            0 before anything was learned.
        """
        model = self._model
        if model is None:
            return 0.0
        score = model.score_usual(x, None, True)
        return model.score_one(self._text_keys(x)) if score is None else score

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the calibrated probability of each label.

        Parameters
        ----------
        x : dict
            The row.

        Returns
        -------
        dict
            The negative label first. The labels are False and True before the first one has come.
        """
        negative, positive = self._labels.names
        if negative is None or positive is None:
            return {positive if negative is None else negative: 1.0}
        p = self._probability(self.score_one(x))
        return {negative: 1.0 - p, positive: p}

    def predict_one(self, x: dict[Any, Any]) -> Any:  # type: ignore[override]
        """Return the label whose probability is larger. Of rare events that is seldom the positive one.

        Parameters
        ----------
        x : dict
            The row.
        """
        found = self.predict_proba_one(x)
        return max(found, key=found.__getitem__)

    def score_many(self, X: Any) -> Any:
        """Score the rows of a frame.

        Parameters
        ----------
        X : frame
            The rows.

        Returns
        -------
        Series of the same library
        """
        return _series(self._scores(X), "score", X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return the calibrated probabilities of the rows of a frame.

        Parameters
        ----------
        X : frame
            The rows.

        Returns
        -------
        frame of the same library
            A column for each label. pandas has the labels as names, others their `str`.
        """
        scores = self._scores(X)
        negative, positive = self._labels.names
        if negative is None or positive is None:
            return _frame({positive if negative is None else negative: np.ones(len(scores))}, X)
        p = self._probabilities(scores)
        return _frame({negative: 1.0 - p, positive: p}, X)

    def predict_many(self, X: Any) -> Any:
        """Return the label with the larger probability, of each row of a frame.

        Parameters
        ----------
        X : frame
            The rows.

        Returns
        -------
        Series of the same library
        """
        scores = self._scores(X)
        negative, positive = self._labels.names
        if negative is None or positive is None:
            return _series([positive if negative is None else negative] * len(scores), self._y_name, X)
        found = [positive if above else negative for above in (self._probabilities(scores) > 0.5).tolist()]
        return _series(found, self._y_name, X)

    def explain_one(self, x: dict[Any, Any]) -> Explanation:
        """Explain the score of one row: what each feature adds.

        Parameters
        ----------
        x : dict
            The row.

        Returns
        -------
        Explanation
            As `Model.explain_one` returns it.
        """
        return self.model.explain_one(self._text_keys(x))

    def debug_one(self, x: dict[Any, Any]) -> str:
        """Return a table of what each feature adds to the score of a row, for `debug_one` of pipelines.

        Parameters
        ----------
        x : dict
            The row.
        """
        score, terms = self.explain_one(x)
        shown = [(term.name, f"{term.value:.5f}", f"{term.weight:.5f}", f"{term.contribution:.5f}") for term in terms]
        columns = zip(*shown, ("Score", "", "", f"{score:.5f}"), strict=True)
        return str(pretty.print_table(["Name", "Value", "Weight", "Contribution"], list(map(list, columns))))

    # -- what was learned

    @property
    def model(self) -> Model:
        """The underlying Model: its `progress.auc` is the AUC of rows before they were learned, `save` saves it."""
        if self._model is None:
            space = Hashed(self.bits)
            space.plan = TablePlan(numbers=self.numbers, open=True)
            self._model = Model(self._made_learner(), dtype=self.dtype, scale=self.scale, features=space)
        return self._model

    @property
    def labels(self) -> tuple[Any, Any]:
        """The negative and the positive label; None for one that is not known yet."""
        return self._labels.names

    # -- implementation

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _made_learner(self) -> Learner:
        return self.learner(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self.learner)})

    def _keep(self, labels: TwoLabels) -> None:
        self._labels, self._signs = labels, labels.signs

    def _importance(self, w: Any) -> float | None:
        if not isinstance(w, numbers.Real):
            raise DataError(f"{self._name}: w must be a number, got {w!r}.")
        return None if w == 1 else float(w)

    def _text_keys(self, x: Any) -> Any:
        """Return the row with keys of text: itself, if they are."""
        if not isinstance(x, Mapping):
            raise DataError(f"{self._name}: a row must be a dict of names and values, got {type(x).__name__}.")
        if all(isinstance(key, str) for key in x):
            return x
        row = {str(key): value for key, value in x.items()}
        if len(row) < len(x):
            raise DataError(f"{self._name}: two keys of a row have the same text. Keys are {', '.join(map(repr, x))}.")
        return row

    def _rows(self, X: Any, names: bool) -> Block:
        """Return the rows of a frame, whose columns may be different each time; `names`: the model remembers them."""
        columns = list(_columns(X, self._name))
        if not all(isinstance(column, str) for column in columns):
            X = X.set_axis([str(column) for column in columns], axis="columns")
        space = Hashed(self.bits, names=False)
        planned = tuple(ColumnPlan(str(column), Kind.AUTO) for column in columns)
        space.plan = TablePlan(planned, numbers=self.numbers, open=True)
        known = self.model.features if names else None
        if isinstance(known, Hashed):
            space.names = known.names
        rows = _dicts(X)
        if rows is not None:
            try:
                block = Block.of_dicts(rows, features=space)
            except DataError as error:
                raise DataError(str(error).replace("Block.of_dicts", self._name, 1)) from None
        else:
            block = concatenate(read_rows(X, space, {}, self._name))
        return replace(block, space=known) if isinstance(known, Hashed) else block

    def _scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._rows(X, names=False)
        return np.zeros(len(rows)) if self._model is None else self._model.score(rows)

    def _probability(self, score: float) -> float:
        """Return the probability that a row of this score is positive."""
        found = None if self._model is None else self._model.calibration
        if found is None:
            return 0.5
        odds = found.slope * score + found.intercept  # as `probability` does, without the detour over arrays
        return 1.0 / (1.0 + math.exp(-max(-MOST_ODDS, min(odds, MOST_ODDS))))

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        found = None if self._model is None else self._model.calibration
        return np.full(len(scores), 0.5) if found is None else found.probability(scores)


# -- frames


def _columns(X: Any, where: str) -> Sequence[Any]:
    if frames is not None:
        try:
            return frames.into_frame(X).columns
        except TypeError:
            raise DataError(f"{where}: X must be a frame with named columns, got {type(X).__name__}.") from None
    if not hasattr(X, "iloc"):
        raise DataError(f"{where}: X must be a frame of pandas, got {type(X).__name__}. River 0.26 takes others too.")
    columns: Sequence[Any] = X.columns
    return columns


def _dicts(X: Any) -> list[dict[str, Any]] | None:
    """Return the rows of a frame if it is small or sparse; None: it is read faster as a whole."""
    if not hasattr(X, "iloc"):
        return frames.into_frame(X).rows(named=True) if len(X) < SMALL else None
    if not len(X.columns) or not all(hasattr(kind, "fill_value") for kind in X.dtypes):
        return X.to_dict("records") if len(X) < SMALL else None
    # Sparse columns, such as BagOfWords makes: what they do not store is missing.
    names = np.array([str(column) for column in X.columns], object)
    rows = X.sparse.to_coo().tocsr()
    ends = rows.indptr.tolist()
    keys, values = names[rows.indices].tolist(), rows.data.tolist()
    return [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(ends)]


def _series(values: Any, name: Any, like: Any) -> Any:
    if frames is None:
        import pandas as pd

        return pd.Series(values, index=like.index, name=name)
    return frames.to_native_series(values, name=name, like=frames.into_frame(like))


def _frame(columns: dict[Any, NDArray[np.float64]], like: Any) -> Any:
    if frames is None:
        import pandas as pd

        return pd.DataFrame(columns, index=like.index)
    return frames.to_native_frame(columns, like=frames.into_frame(like))


def _plain_list(values: Any) -> list[Any]:
    """Return the entries of a Series, an array or another sequence as Python objects."""
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(values, method):
            found: list[Any] = getattr(values, method)()
            return found
    return list(values)


# -- metrics


class _Auc(metrics.base.BinaryMetric):
    """What both metrics share: rows are collected, and added many at once."""

    _auc: Streaming | WindowedAuc

    def __init__(self, pos_val: Any = True) -> None:
        self.pos_val = pos_val
        self._clear()

    def _clear(self) -> None:
        self._rows: list[tuple[bool, float, float]] = []

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add a row.

        Parameters
        ----------
        y_true : label
            It is positive if it equals `pos_val`.
        y_pred : dict or float
            What `predict_proba_one` returned; or any score, of which larger means more likely positive.
        w : float, default 1.0
            Importance of the row.

        Raises
        ------
        DataError
            If the score is nan, the importance is out of range, or `pos_val` is none of the labels. Nothing is added.
        """
        row = self._row(y_true, y_pred, w)
        rows = self._rows
        rows.append(row)
        if len(rows) >= BUFFERED:
            self._flush()

    def _row(self, y_true: Any, y_pred: Any, w: float) -> tuple[bool, float, float]:
        if isinstance(y_pred, dict):
            if self.pos_val not in y_pred and len(y_pred) > 1:
                raise DataError(
                    f"{type(self).__name__}: pos_val is {self.pos_val!r}, but the labels are "
                    f"{' and '.join(map(repr, y_pred))}. Pass the positive one as pos_val."
                )
            y_pred = y_pred.get(self.pos_val, 0.0)
        score = float(y_pred)
        if score != score:
            raise DataError(f"{type(self).__name__}: a score is nan.")
        if w != 1.0:
            checked_importances(np.array([w], np.float64), 1)
        return bool(y_true == self.pos_val), score, w

    def _flush(self) -> None:
        if self._rows:
            labels, scores, weights = zip(*self._rows, strict=True)
            self._auc.add(labels, scores, weights if any(weight != 1 for weight in weights) else None)
            self._clear()

    @property
    def auc(self) -> Estimate:
        """The AUC with its 95 % interval, `low` to `high`; nan while a class is missing."""
        self._flush()
        return self._auc.auc

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval, which includes `bound`."""
        auc = self.auc
        return auc.low, auc.high

    @property
    def bound(self) -> float:
        """Certified maximum distance from the exact AUC; 0 if it is exact."""
        return self.auc.bound

    def get(self) -> float:
        """Return the AUC; nan while a class is missing."""
        return float(self.auc)

    @property
    def requires_labels(self) -> bool:
        return False

    def works_with(self, model: Any) -> bool:
        """Return whether a model gives scores: classifiers and anomaly detectors do."""
        return super().works_with(model) or isinstance(model, getattr(base, "AnomalyDetector", ()))


class StreamingAuc(_Auc):
    """AUC of all rows so far, in bounded memory, with a certified bound on its error.

    It is exact while each class has fewer than 32768 rows, and within `bound` afterwards. A tie counts one half. The
    scores may have any scale.

    Parameters
    ----------
    pos_val : label, default True
        The positive label.
    """

    def __init__(self, pos_val: Any = True) -> None:
        super().__init__(pos_val)
        self._auc = Streaming()

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Raise NotImplementedError: what bounded memory has forgotten cannot be removed."""
        raise NotImplementedError("StreamingAuc: a row cannot be removed. For a window of rows, use RollingAuc.")


class RollingAuc(_Auc):
    """Exact AUC of the last rows. A tie counts one half; the scores may have any scale.

    Parameters
    ----------
    window_size : int, >= 2, default 1000
        Number of rows in the window.
    pos_val : label, default True
        The positive label.
    """

    def __init__(self, window_size: int = 1000, pos_val: Any = True) -> None:
        super().__init__(pos_val)
        self.window_size = window_size
        self._auc = WindowedAuc(window_size)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Remove a row, the oldest one if there are several like it; nothing changes if it is not in the window.

        Parameters
        ----------
        y_true, y_pred, w
            As for `update`.
        """
        positive, score, weight = self._row(y_true, y_pred, w)
        self._flush()
        state = self._auc.state()
        found = (state["labels"] == (1 if positive else -1)) & (state["scores"] == score)
        at = np.flatnonzero(found & (state["importances"] == weight))
        if len(at):
            kept = {name: np.delete(state[name], at[0]) for name in ("labels", "scores", "importances")}
            self._auc = WindowedAuc.from_state({**state, **kept})


# -- the classes


@functools.cache  # so that each class exists only once
def classifiers() -> dict[str, type[StreamClassifier]]:
    """Return the classifier of every registered learner, by name."""
    names = {learner.__name__: learner for learner in learner_classes()}
    return {name: class_of(learner, StreamClassifier, name, "rarestream.river") for name, learner in names.items()}
