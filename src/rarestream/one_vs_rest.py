"""OneVsRest: many classes, each told from all others by a learner of its own, in one pass over the rows.

Class c learns the labels (class of the row = c). Where the learner allows it (engines/classes.py: the FTRL and dual
averaging learners, without evidence, a budget and a half-life, in float32), all classes learn side by side; elsewhere
each has a Model of its own, which gives the same up to rounding, and is slower.

With classes="all" a class is known from its first row on. Before that it would have learned that each row is negative.
One spare class learns just that, so a new class starts as a copy of it: it learns the same, bit for bit, as if it had
been named at the start.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native, modelfile
from rarestream.blocks import Block, Labels, signs
from rarestream.engines import check_arguments, overflow
from rarestream.engines.classes import ClassLanes, Codes, can_share
from rarestream.engines.single import Single
from rarestream.errors import DataError, ModelBusyError, ModelFileError, RowError, SortedRowsWarning, advice, plain
from rarestream.features import COLUMNS, Columns, Hashed, Space
from rarestream.learners import Learner, make_learner
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.state import tally_of
from rarestream.metrics import Calibration, SortedCheck, StreamingAuc
from rarestream.metrics.rows import ScoredRows
from rarestream.model import Model, check_space
from rarestream.modelfile.codec import FileParts, Saved
from rarestream.modelfile.joined import join, split

ClassLabel = str | int | float
ALL = "all"
DEFAULT = DualAveraging(loss="logistic", rate_power=0.0)


class OneVsRest:
    """Many classes: for each, a learner that tells its rows from all others.

    Any number of threads may score with a model at once. `learn` at the same time as another `learn` or `score` of the
    same model raises ModelBusyError.

    Parameters
    ----------
    learner : Learner or str, optional
        The learner of every class, or its name; by default `DualAveraging(loss="logistic", rate_power=0.0)`, whose
        classes share their learning rates. DualAveraging, FtrlProximal and FtrlAuc learn all classes in one pass; with
        evidence, a budget, a half-life or dtype="float64", and all other learners, each class has a Model.
    classes : "all" or sequence of str or numbers, default "all"
        The classes. "all": those that come; a new one may come at any time, and learns as if it had been known from the
        start. Otherwise a row of another class is an error.
    dtype : {"float32", "float64"}, default "float32"
        Precision of the state.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled, as in `Model`.
    n_features : int, >= 0, default 0
        Number of features to reserve memory for; it need not be known.
    features : Columns or Hashed, optional
        What the features of rows are. By default that of the first rows learned.
    threads : int, >= 1, default 1
        Maximum number of threads that learn and score. Results do not depend on it.
    calibrate : bool, default True
        Whether each class also learns to turn its scores into log odds, as `Model` does. Otherwise a score is taken for
        log odds, but for an intercept.

    Attributes
    ----------
    rows : int
        Number of rows learned; a row of several passes counts once in each.
    source : dict
        Where the rows came from and how far they were learned.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an argument is out of range, or a class is named twice.
    """

    def __init__(
        self,
        learner: Learner | str | None = None,
        *,
        classes: str | Sequence[ClassLabel] = ALL,
        dtype: str = "float32",
        scale: str = "unit",
        n_features: int = 0,
        features: Space | None = None,
        threads: int = 1,
        calibrate: bool = True,
    ) -> None:
        if learner is None:
            learner = DEFAULT
        elif isinstance(learner, str):
            learner = make_learner(learner)
        if not isinstance(learner, Learner):
            raise TypeError(
                f"OneVsRest: learner must be a learner such as DualAveraging(), or the name of one, got {learner!r}."
            )
        check_arguments(dtype, scale, n_features, "OneVsRest: ")
        if features is not None and not isinstance(features, Columns | Hashed):
            raise TypeError(f"OneVsRest: features must be Columns() or Hashed(), got {features!r}.")
        if isinstance(features, Hashed):
            if n_features > features.slots:
                raise ValueError(
                    f"OneVsRest: n_features is {n_features}, but {features.describe()} have {features.slots:,} slots."
                )
            n_features = features.slots
        if isinstance(classes, str) and classes != ALL:
            raise ValueError(f"OneVsRest: classes must be 'all' or a sequence of classes, got {classes!r}.")
        named = [] if isinstance(classes, str) else _given_classes(classes)
        spare = isinstance(classes, str)
        self._take_over(learner, dtype, scale, named, spare, threads)
        self._calibrate = bool(calibrate)
        self._n_features, self._features = max(n_features, learner.initial_features), features
        self._parts: _Parts = self._started(len(named) + spare)

    def _take_over(
        self, learner: Learner, dtype: str, scale: str, classes: list[ClassLabel], spare: bool, threads: int
    ) -> None:
        if type(threads) is not int or threads < 1:
            raise ValueError(f"OneVsRest: threads must be a whole number >= 1, got {threads!r}.")
        self._learner, self._dtype, self._scale = learner, dtype, scale
        self._classes, self._spare, self._threads = classes, spare, threads
        self._code_of = {label: code for code, label in enumerate(classes)}
        self._gate = _native.Gate()
        self._broken: str | None = None  # why the classes are out of step
        self._warned = False
        self.rows = 0
        self.source: dict[str, Any] = {}

    def _started(self, count: int) -> _Parts:
        """Return classes that have learned nothing yet."""
        if self._dtype == "float32" and can_share(self._learner):
            return _InLanes(self._learner, self._scale, count, self._n_features, self._threads, self._calibrate)
        return _InModels(
            [
                Model(
                    self._learner,
                    dtype=self._dtype,
                    scale=self._scale,
                    n_features=self._n_features,
                    features=self._features,
                    calibrate=self._calibrate,
                )
                for _ in range(count)
            ]
        )

    # -- learning and scoring

    def learn(self, block: Block, labels: ArrayLike | None = None, *, again: bool = False) -> NDArray[np.float64]:
        """Learn the rows in order.

        Parameters
        ----------
        block : Block
            The rows; their labels -1 and +1 are ignored.
        labels : array-like of shape (rows,), optional
            The class of each row: text or numbers. By default `block.classes`.
        again : bool, default False
            Whether the rows were learned before. Their scores are then not counted in `progress`.

        Returns
        -------
        array of shape (rows, classes)
            The scores that the rows had before they were learned, for the classes of `classes`, in that order.

        Raises
        ------
        RowError
            If the step of a row would overflow the state. The rows before it were learned; it was not, nor were those
            after it. All other errors are raised before anything is learned.
        DataError
            If a row has no class or one that is not known, or the block has other features than the model.
        ModelBusyError
            If another thread uses the model.
        """
        where = "OneVsRest.learn"
        _check(where, block)
        wanted = _labels_of(where, block, labels)
        if not self._gate.begin_learning():
            raise ModelBusyError(
                f"{where}: another thread is learning, scoring or saving with this model. Learn from one thread, "
                "and score with a copy (OneVsRest.from_bytes(model.to_bytes())) meanwhile."
            )
        try:
            if self._broken:
                raise DataError(f"{where}: {self._broken}")
            if not self._parts.resumable:
                raise ModelFileError(f"{where}: the model was saved for scoring only, so it cannot learn.")
            self._join_space(where, block)
            codes = self._numbers(wanted)
            if codes is None:
                codes = self._codes(where, wanted.tolist())
            learned, scores, sorted_rows = self._parts.learn(block, codes, again)
            self.rows += learned
            width = block.width if learned == len(block) else int(block[:learned].indices.max(initial=-1)) + 1
            self._n_features = max(self._n_features, width)
            if learned < len(block):
                self._refuse(block, learned)
        finally:
            self._gate.end_learning()
        if sorted_rows is not None and not self._warned:
            self._warned = True
            code, message = sorted_rows
            label = repr(self._classes[code]) if code < len(self._classes) else "none"
            warnings.warn(SortedRowsWarning(f"class {label}: {message}"), stacklevel=2)
        return scores[:, : len(self._classes)]

    def _refuse(self, block: Block, learned: int) -> None:
        if self._parts.out_of_step:
            self._broken = (
                f"a row could not be learned by every class, so the classes are out of step. "
                f"{advice('Load the last saved model', 'Continue from the last saved model')}, or start anew."
            )
        before = f"The {learned} rows before it were learned, it was not." if learned else "Nothing was learned."
        reason = overflow(self._learner, self._scale, self._dtype, advice(self._broken or before, ""))
        raise RowError("OneVsRest.learn", learned, block.changed() or reason)

    def _numbers(self, labels: NDArray[Any]) -> Codes | None:
        """Return the classes of rows if they are numbers of known classes already; else None."""
        if labels.dtype.kind not in "iu" or not len(labels) or self._classes != list(range(len(self._classes))):
            return None
        known = labels.min() >= 0 and labels.max() < len(self._classes)
        return labels.astype(np.int32) if known else None

    def _codes(self, where: str, labels: list[Any]) -> Codes:
        """Return the number of each row's class; new ones join if they may."""
        found = list(map(self._code_of.get, labels))
        if None in found:
            new = list(dict.fromkeys(label for label in labels if label not in self._code_of))
            for label in new:
                self._check_new(where, label, labels)
            self._parts.add(len(new))
            self._code_of |= {label: len(self._classes) + number for number, label in enumerate(new)}
            self._classes += new
            found = list(map(self._code_of.get, labels))
        return np.array(found, np.int32)

    def _check_new(self, where: str, label: Any, labels: list[Any]) -> None:
        row = labels.index(label) if label == label else next(i for i, one in enumerate(labels) if one != one)
        reason = _not_a_class(label)
        if reason:
            raise DataError(f"{where}: row {row} {reason}")
        if not self._spare:
            names = ", ".join(map(repr, self._classes[:8])) + (", ..." if len(self._classes) > 8 else "")
            way = "Leave such rows out, or make the model with classes='all', which takes every class that comes."
            raise DataError(
                f"{where}: row {row} has the class {label!r}, but the model has the classes {names}. "
                f"{advice(way, 'Leave such rows out, or train a new model with --classes all.')}"
            )

    def finish_race(self) -> None:
        """End the race of settings of each class now, as `Model.finish_race` does; nothing changes without a race.

        Raises
        ------
        ModelBusyError
            If another thread uses the model.
        """
        self._parts.finish_race()

    def score(self, block: Block) -> NDArray[np.float64]:
        """Score rows: larger means more likely of the class. The model does not change.

        Scores of different classes have different scales; `log_odds` and `probability` can be compared.

        Parameters
        ----------
        block : Block
            Rows; labels and classes are ignored.

        Returns
        -------
        array of shape (rows, classes)
            The score of each row for each class.

        Raises
        ------
        RowError
            If a score is not finite.
        DataError
            If the block has other features than the model.
        ModelBusyError
            If another thread is learning with the model.
        """
        _check("OneVsRest.score", block)
        with self._reading("score"):
            check_space("OneVsRest.score", self.features, block.space)
            scores = self._parts.score(block)[:, : len(self._classes)]
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            scale = advice(f"scale={self._scale!r}", f"--scale {self._scale}")
            reason = f"has values so large that a score is not finite with {scale}. Scale the values down."
            raise RowError("OneVsRest.score", row, block.changed() or reason)
        return scores

    def log_odds(self, block: Block) -> NDArray[np.float64]:
        """Return how likely each class is, such that classes can be compared: the largest one is predicted.

        Parameters
        ----------
        block : Block
            Rows; labels and classes are ignored.

        Returns
        -------
        array of shape (rows, classes)
            `slope` times the score, plus `intercept`: of each class as its calibration says. Without one, or while a
            class has fewer than ten rows, the score minus the score where a learner of two classes decides.

        Raises
        ------
        RowError, DataError, ModelBusyError
            As for `score`.
        """
        scores = self.score(block)
        slope, intercept = self._lines("log_odds")
        return np.asarray(slope * scores + intercept)

    def predict(self, block: Block) -> NDArray[Any]:
        """Return the most likely class of each row.

        Parameters
        ----------
        block : Block
            Rows; labels and classes are ignored.

        Returns
        -------
        array of shape (rows,)
            The classes: of dtype object if they are text and numbers mixed.

        Raises
        ------
        DataError
            If no class is known yet, or for the reasons of `score`.
        """
        self._need_classes("predict")
        predicted: NDArray[Any] = self.label_array()[self.log_odds(block).argmax(axis=1)]
        return predicted

    def probability(self, block: Block) -> NDArray[np.float64]:
        """Return the probability of each class; those of a row sum to 1.

        Parameters
        ----------
        block : Block
            Rows; labels and classes are ignored.

        Returns
        -------
        array of shape (rows, classes)

        Raises
        ------
        DataError
            If no class is known yet, or for the reasons of `score`.
        """
        self._need_classes("probability")
        return probabilities(self.log_odds(block))

    def _need_classes(self, what: str) -> None:
        if not self._classes:
            raise DataError(f"OneVsRest.{what}: the model knows no class yet. Learn some rows first.")

    # -- what was learned

    @property
    def classes(self) -> tuple[ClassLabel, ...]:
        """The classes, in the order of the columns of `score`: as given, or as they first came."""
        return tuple(self._classes)

    def label_array(self) -> NDArray[Any]:
        """Return the classes as an array."""
        kinds = {str if isinstance(label, str) else float for label in self._classes}
        return np.array(self._classes, object if len(kinds) > 1 else None)

    @property
    def learner(self) -> Learner:
        """The learner that every class started with."""
        return self._learner

    @property
    def scale(self) -> str:
        """How rows are scaled: "unit", "max" or "none"."""
        return self._scale

    @property
    def dtype(self) -> str:
        """Precision of the state."""
        return self._dtype

    @property
    def n_features(self) -> int:
        """The largest feature index seen or reserved, plus one."""
        return self._n_features

    @property
    def features(self) -> Space | None:
        """What the features of rows are: Columns or Hashed; None before the first row, unless it was given."""
        return COLUMNS if self._features is None and self.rows else self._features

    @property
    def one_pass(self) -> bool:
        """Whether all classes learn side by side; otherwise each has a Model of its own."""
        return isinstance(self._parts, _InLanes)

    @property
    def kind(self) -> str:
        """ "resumable", or "scoring" for a model that was saved without its state."""
        return "resumable" if self._parts.resumable else "scoring"

    @property
    def progress(self) -> dict[ClassLabel, StreamingAuc]:
        """Progressive AUC of each class against all others: of the scores that rows had before they were learned."""
        return {label: self._parts.progress(code) for code, label in enumerate(self._classes)}

    @property
    def macro_auc(self) -> float:
        """Mean of the progressive AUCs of the classes that have rows, each class counting the same; nan without any."""
        found = [float(one.auc) for one in self.progress.values()]
        known = [auc for auc in found if not math.isnan(auc)]
        return sum(known) / len(known) if known else math.nan

    @property
    def coef(self) -> NDArray[Any]:
        """Weights of shape (classes, features): they multiply the values of scaled rows, as `Model.coef`."""
        with self._reading("coef"):
            wide = self._scale == "max" or self._dtype == "float64"
            weights = np.zeros((len(self._classes), self._n_features), np.float64 if wide else np.float32)
            for code in range(len(self._classes)):
                found = self._parts.coef(code, self._n_features)
                weights[code, : len(found)] = found
            return weights

    @property
    def slope(self) -> NDArray[np.float64]:
        """By what `log_odds` multiplies the score of each class."""
        return self._lines("slope")[0]

    @property
    def intercept(self) -> NDArray[np.float64]:
        """What `log_odds` adds, for each class."""
        return self._lines("intercept")[1]

    def _lines(self, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with self._reading(what):
            lines = [self._parts.line(code) for code in range(len(self._classes))]
        return np.array([slope for slope, _ in lines]), np.array([intercept for _, intercept in lines])

    @property
    def calibration(self) -> dict[ClassLabel, Calibration | None]:
        """What turns the scores of each class into log odds; None with calibrate=False."""
        return {label: self._parts.calibration(code) for code, label in enumerate(self._classes)}

    def model(self, label: ClassLabel) -> Model:
        """Return the learner of one class as an ordinary model, whose positives are the rows of the class.

        Parameters
        ----------
        label : str or number
            The class.

        Returns
        -------
        Model
            A copy.

        Raises
        ------
        KeyError
            If there is no such class.
        """
        if label not in self._code_of:
            raise KeyError(f"OneVsRest.model: there is no class {label!r}.")
        with self._reading("model"):
            return Model._of(self._saved(self._code_of[label], copy=True))

    @property
    def nonzeros(self) -> int:
        """Number of weights that are not zero, of all classes together."""
        with self._reading("nonzeros"):
            return sum(self._parts.nonzeros(code, self._n_features) for code in range(len(self._classes)))

    @property
    def state_bytes(self) -> int:
        """Memory of the state in bytes, room for more features included."""
        return self._parts.nbytes

    def __repr__(self) -> str:
        return (
            f"OneVsRest({self._learner!r}, dtype={self._dtype!r}, scale={self._scale!r}): {len(self._classes):,} "
            f"classes, {self.rows:,} rows, {self._n_features:,} features"
        )

    # -- files

    def save(self, path: str | os.PathLike[str], kind: str = "resumable") -> None:
        """Save all classes to one `.rare` file, which is written completely or not at all.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced.
        kind : {"resumable", "scoring"}, default "resumable"
            Whether the file has the whole state, or only the weights.

        Raises
        ------
        ModelFileError
            If the file cannot be written, or a scoring-only model is to be resumable.
        """
        modelfile.write(path, *self._file_parts(kind))

    def to_bytes(self, kind: str = "resumable") -> bytes:
        """Return the bytes that `save` would write.

        Parameters
        ----------
        kind : {"resumable", "scoring"}, default "resumable"
            As for `save`.

        Returns
        -------
        bytes
            The contents of the file.
        """
        return modelfile.to_bytes(*self._file_parts(kind))

    @classmethod
    def load(cls, path: str | os.PathLike[str], threads: int = 1) -> OneVsRest:
        """Load a model from a `.rare` file. Learning on gives the same bits as never having stopped.

        Parameters
        ----------
        path : str or path
            A file that `save` has written.
        threads : int, >= 1, default 1
            Maximum number of threads that learn and score.

        Returns
        -------
        OneVsRest
            The model.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is damaged, or has a model of two classes.
        """
        return cls._of(*modelfile.read(path), plain(path), threads)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "model", threads: int = 1) -> OneVsRest:
        """Load a model from the bytes of a file.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        name : str, default "model"
            Name of the file in error messages.
        threads : int, >= 1, default 1
            As for `load`.

        Returns
        -------
        OneVsRest
            A model equal to the saved one.

        Raises
        ------
        ModelFileError
            As for `load`.
        """
        return cls._of(*modelfile.from_bytes(data, name), name, threads)

    def __reduce__(self) -> tuple[Any, ...]:
        return (OneVsRest.from_bytes, (self.to_bytes(self.kind), "model", self._threads))

    def _file_parts(self, kind: str) -> FileParts:
        """Return the header and the arrays of a file, all of one moment."""
        with self._reading("save"):
            if self._broken:
                raise ModelFileError(f"OneVsRest.save: {self._broken}")
            count = len(self._classes) + (self._spare and kind == "resumable")
            if not count:
                raise ModelFileError("OneVsRest.save: the model knows no class yet. Learn some rows first.")
            entries = {
                "classes": self._classes,
                "spare": count > len(self._classes),
                "rows": self.rows,
                "source": self.source,
                "learner": {"name": self._learner.name, "settings": self._learner.settings},
                "dtype": self._dtype,
                "scale": self._scale,
            }
            return join([self._saved(code) for code in range(count)], kind, entries)

    def _saved(self, code: int, copy: bool = False) -> Saved:
        """Return everything of a class that a file of its own would store; `copy`: shares nothing with it."""
        saved = self._parts.saved(code, self._n_features, self.rows, copy)
        return replace(saved, features=self.features, n_features=self._n_features)

    @classmethod
    def _of(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], name: str, threads: int) -> OneVsRest:
        if "models" not in header:
            raise ModelFileError(f"{name}: a model of two classes. Load it with Model.load.")
        models = split(header, arrays, name)
        try:
            learner = make_learner(header["learner"]["name"], **header["learner"]["settings"])
            classes, spare = _given_classes(header["classes"]), header["spare"]
            check_arguments(header["dtype"], header["scale"], 0)
            if type(spare) is not bool or len(classes) + spare != len(models):
                raise ValueError(f"it has {len(classes)} classes and {len(models)} models")
            self = cls.__new__(cls)
            self._take_over(learner, header["dtype"], header["scale"], classes, spare, threads)
            self._calibrate = models[0].calibrate
            self.rows, self.source = models[0].rows, dict(header["source"])
            if header["rows"] != self.rows:
                raise ValueError(f"its rows are {header['rows']!r}")
            self._n_features, self._features = models[0].n_features, models[0].features
            self._warned = any(model.order.suspicious for model in models)
            in_lanes = header["dtype"] == models[0].dtype == "float32" and can_share(learner)
            if in_lanes and all(model.engine.resumable and model.engine.learner == learner for model in models):
                self._parts = _InLanes.of(learner, self._scale, models, self._n_features, threads)
            else:
                self._parts = _InModels([Model._of(model) for model in models])
        except (KeyError, TypeError, ValueError, AttributeError, MemoryError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(f"{name}: not a model this version can read ({error}).") from None
        return self

    # -- implementation

    def _join_space(self, where: str, block: Block) -> None:
        """Take over the space of a block to learn, or its names; DataError if the model has another space."""
        mine, space = self.features, block.space
        check_space(where, mine, space)
        if space is not None and not isinstance(mine, Hashed):
            if self._n_features > space.slots:
                raise DataError(
                    f"{where}: the model has {self._n_features} features, but {space.describe()} have "
                    f"{space.slots:,} slots. Make it with a smaller n_features."
                )
            self._features, self._n_features = space, space.slots
            self._parts.reserve(space.slots, exactly=True)
        elif isinstance(mine, Hashed) and space is not None and space is not mine:
            mine.take_names(space)
        if isinstance(self._features, Hashed) and block.width > self._n_features:
            raise DataError(
                f"{where}: a row has slot {block.width - 1}, but {self._features.describe()} have "
                f"{self._n_features:,} slots."
            )

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Context in which no thread can learn."""
        if not self._gate.begin_scoring():
            raise ModelBusyError(
                f"OneVsRest.{what}: another thread is learning with this model. Do it between two calls of learn, or "
                "with a copy made then (OneVsRest.from_bytes(model.to_bytes()))."
            )
        try:
            yield
        finally:
            self._gate.end_scoring()


class _Parts(Protocol):
    """The classes of a model, by number, and all that they have learned. The last one may be the spare."""

    out_of_step: bool  # whether a row was learned by some classes only

    @property
    def resumable(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def reserve(self, n_features: int, exactly: bool = False) -> None: ...
    def add(self, classes: int) -> None: ...
    def learn(
        self, block: Block, codes: Codes, again: bool
    ) -> tuple[int, NDArray[np.float64], tuple[int, str] | None]: ...
    def score(self, block: Block) -> NDArray[np.float64]: ...
    def finish_race(self) -> None: ...
    def line(self, code: int) -> tuple[float, float]: ...
    def calibration(self, code: int) -> Calibration | None: ...
    def coef(self, code: int, n_features: int) -> NDArray[Any]: ...
    def nonzeros(self, code: int, n_features: int) -> int: ...
    def progress(self, code: int) -> StreamingAuc: ...
    def saved(self, code: int, n_features: int, rows: int, copy: bool) -> Saved: ...


class _Record:
    """What is known of the scores of a class, as a Model knows it of its own."""

    def __init__(self, calibrate: bool) -> None:
        self.positives = 0
        self.progress = StreamingAuc()
        self.order = SortedCheck()
        self.calibration = Calibration() if calibrate else None

    def add(
        self, labels: Labels, positives: int, scores: NDArray[np.float64], importances: NDArray[np.float64] | None
    ) -> str | None:
        """Count rows that are new, and return the warning that they look sorted."""
        rows = ScoredRows(labels, scores, importances)
        self.progress.count(rows)
        if self.calibration is not None:
            self.calibration.count(rows)
        return self.order.add(labels, positives)

    def copy(self) -> _Record:
        other = _Record(False)
        other.calibration = None if self.calibration is None else self.calibration.copy()
        other.positives = self.positives
        other.progress = StreamingAuc.from_state(self.progress.state())
        other.order = SortedCheck.from_state(self.order.state())
        return other


class _InLanes:
    """Classes that learn side by side."""

    out_of_step = False
    resumable = True

    def __init__(
        self, learner: Learner, scale: str, count: int, n_features: int, threads: int, calibrate: bool
    ) -> None:
        self._lanes = ClassLanes(learner, scale, count, n_features + 1, threads)
        self._records = [_Record(calibrate) for _ in range(count)]
        self._calibrate = calibrate

    @classmethod
    def of(cls, learner: Learner, scale: str, models: Sequence[Saved], n_features: int, threads: int) -> _InLanes:
        self = cls(learner, scale, len(models), n_features, threads, models[0].calibrate)
        for code, model in enumerate(models):
            assert isinstance(model.engine, Single)
            self._lanes.load(code, model.engine)
            record = self._records[code]
            record.positives, record.progress, record.order = model.positives, model.progress, model.order
            if model.calibration is not None:
                record.calibration = model.calibration
        return self

    @property
    def nbytes(self) -> int:
        return self._lanes.nbytes

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        self._lanes.reserve(n_features, exactly)

    def add(self, classes: int) -> None:
        self._lanes.add(classes)
        self._records += [self._records[-1].copy() for _ in range(classes)]

    def learn(self, block: Block, codes: Codes, again: bool) -> tuple[int, NDArray[np.float64], tuple[int, str] | None]:
        learned, scores = self._lanes.learn(block, codes)
        codes = codes[:learned]
        importances = None if block.importances is None else block.importances[:learned]
        counts = np.bincount(codes, minlength=len(self._records)).tolist()
        for record, count in zip(self._records, counts, strict=True):
            record.positives += count
        said = None
        if not again:
            by_class = np.ascontiguousarray(scores.T)
            for code, record in enumerate(self._records):
                warning = record.add(signs(codes == code), counts[code], by_class[code], importances)
                said = (code, warning) if said is None and warning is not None else said
        return learned, scores, said

    def score(self, block: Block) -> NDArray[np.float64]:
        return self._lanes.score(block)

    def finish_race(self) -> None:
        """A learner with lanes has no race."""

    def line(self, code: int) -> tuple[float, float]:
        known = self._records[code].calibration
        return _line(known, self._lanes.learner, self._lanes.tally(code))

    def calibration(self, code: int) -> Calibration | None:
        return self._records[code].calibration

    def coef(self, code: int, n_features: int) -> NDArray[Any]:
        stop = min(n_features, self._lanes.slots)
        weights: NDArray[Any] = self._lanes.weights(code, 0, stop)
        largest = self._lanes.largest
        if largest is None:
            return weights
        known = largest[:stop]
        divided: NDArray[Any] = np.divide(weights, known, out=np.zeros(stop), where=known > 0, dtype=np.float64)
        return divided

    def nonzeros(self, code: int, n_features: int) -> int:
        return self._lanes.nonzeros(code, n_features)

    def progress(self, code: int) -> StreamingAuc:
        return self._records[code].progress

    def saved(self, code: int, n_features: int, rows: int, copy: bool) -> Saved:
        engine, record = self._lanes.single(code), self._records[code]
        engine.reserve(n_features)
        record = record.copy() if copy else record
        saved = Saved(engine, "float32", n_features, rows, record.positives, record.progress, record.order)
        return replace(saved, calibration=record.calibration, calibrate=self._calibrate)


class _InModels:
    """Classes of which each has a Model."""

    def __init__(self, models: list[Model]) -> None:
        self._models = models
        self.out_of_step = False

    @property
    def resumable(self) -> bool:
        return self._models[0].kind == "resumable"

    @property
    def nbytes(self) -> int:
        return sum(model.state_bytes for model in self._models)

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """A Model makes room by itself."""

    def add(self, classes: int) -> None:
        last = self._models[-1].to_bytes()
        self._models += [Model.from_bytes(last) for _ in range(classes)]

    def learn(self, block: Block, codes: Codes, again: bool) -> tuple[int, NDArray[np.float64], tuple[int, str] | None]:
        scores = np.empty((len(block), len(self._models)))
        said = None
        for code, model in enumerate(self._models):
            mine = replace(block, labels=signs(codes == code))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    scores[:, code] = model.learn(mine, again=again)
                except RowError as error:
                    self.out_of_step = len(self._models) > 1
                    return error.row, scores[: error.row], None
            for warning in caught:
                if not isinstance(warning.message, SortedRowsWarning):
                    warnings.warn(warning.message, stacklevel=4)
                elif said is None:
                    said = (code, str(warning.message))
        return len(block), scores, said

    def score(self, block: Block) -> NDArray[np.float64]:
        return np.stack([model.score(block) for model in self._models], axis=1)

    def finish_race(self) -> None:
        for model in self._models:
            model.finish_race()

    def line(self, code: int) -> tuple[float, float]:
        model = self._models[code]
        return _line(model.calibration, model.leader, model._engine.tally)

    def calibration(self, code: int) -> Calibration | None:
        return self._models[code].calibration

    def coef(self, code: int, n_features: int) -> NDArray[Any]:
        return self._models[code].coef

    def nonzeros(self, code: int, n_features: int) -> int:
        return self._models[code].nonzeros

    def progress(self, code: int) -> StreamingAuc:
        return self._models[code].progress

    def saved(self, code: int, n_features: int, rows: int, copy: bool) -> Saved:
        model = self._models[code]
        if copy:
            model = Model.from_bytes(model.to_bytes(model.kind))
        return model._saved()


def probabilities(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of classes, whose sum is 1 in each row, from the log odds of each against all others."""
    each = np.exp(-np.logaddexp(0.0, -log_odds))
    # Where every class is all but impossible, their ratios are those of their odds.
    small = each.sum(axis=1, keepdims=True) < 1e-200
    each = np.where(small, np.exp(log_odds - log_odds.max(axis=1, keepdims=True)), each)
    return np.asarray(each / each.sum(axis=1, keepdims=True))


def _line(known: Calibration | None, learner: Learner, tally: NDArray[np.float64]) -> tuple[float, float]:
    """Return the slope and the intercept of the log odds of a class."""
    if known is None or not known.enough:
        return 1.0, -learner.threshold(tally_of(tally))
    return known.slope, known.intercept


def _check(where: str, block: Block) -> None:
    if not isinstance(block, Block):
        raise TypeError(f"{where}: takes a Block, got {type(block).__name__}. Block.of(X) makes one of a matrix.")


def _labels_of(where: str, block: Block, labels: ArrayLike | None) -> NDArray[Any]:
    """Return the class of each row."""
    found = block.classes if labels is None else labels
    if found is None:
        raise DataError(f"{where}: the rows have no classes. Pass them: learn(block, labels).")
    array = found if isinstance(found, np.ndarray) else np.asarray(found, None if _alike(found) else object)
    if array.shape != (len(block),):
        raise DataError(f"{where}: {len(block)} rows need classes of shape ({len(block)},), got {array.shape}.")
    return array


def _alike(labels: Any) -> bool:
    """Whether NumPy keeps the labels as they are: a list of text and numbers it would make all text."""
    return not isinstance(labels, list | tuple) or len({isinstance(label, str) for label in labels}) < 2


def _given_classes(classes: Any) -> list[ClassLabel]:
    """Return the classes that a model is made for, as values of Python; ValueError if they are none."""
    if isinstance(classes, np.ndarray):
        classes = classes.tolist()
    found = [label.item() if isinstance(label, np.generic) else label for label in classes]
    for label in found:
        reason = _not_a_class(label)
        if reason:
            raise ValueError(f"OneVsRest: one of the classes {reason}")
    if len(set(found)) < len(found):
        twice = next(label for label in found if found.count(label) > 1)
        raise ValueError(f"OneVsRest: the class {twice!r} is named twice.")
    if not found:
        raise ValueError("OneVsRest: there are no classes. Name them, or pass classes='all'.")
    return found


def _not_a_class(label: Any) -> str | None:
    """Return what is wrong with a class."""
    if label is None or label != label:
        return f"has no class: {label!r}. Leave such rows out."
    if not isinstance(label, str | int | float) or (isinstance(label, float) and math.isinf(label)):
        return f"has the class {label!r}; classes are text or finite numbers."
    return None
