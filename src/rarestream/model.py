"""Model: learns, scores, is saved and loaded, and is cut to size."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native, modelfile
from rarestream.blocks import (
    LARGEST_IMPORTANCE,
    LARGEST_INDEX,
    SMALLEST_IMPORTANCE,
    Block,
    canonical,
    importance_rule,
    numeric,
)
from rarestream.engines import SCALES, Engine, Weights, start_engine
from rarestream.errors import DataError, ModelBusyError, RowError, SortedRowsWarning, advice, plain
from rarestream.learners import Learner, make_learner
from rarestream.learners.state import padded, tally_of, zeros
from rarestream.metrics import StreamingAuc
from rarestream.metrics.rows import ScoredRows
from rarestream.modelfile.codec import ChosenBy, FileParts, Saved, decode, encode

DTYPES = ("float32", "float64")


class Model:
    """A learner and what it has learned.

    Any number of threads may score while nobody learns. `learn` beside another `learn` or `score` of the same model
    raises ModelBusyError.

    Parameters
    ----------
    learner : Learner or str
        A learner such as `DualAveraging()`, or the name of one; `learner_names()` lists them.
    dtype : {"float32", "float64"}
        Precision of the model state.
    scale : {"unit", "max", "none"}
        How rows are scaled before they are learned or scored: "unit" to Euclidean norm 1; "max" divides each feature by
        its largest absolute value so far, then to norm 1 (for raw numeric columns); "none" takes them as they are.
    n_features : int
        The number of features to reserve room for. The state grows when a larger index arrives, so it need not be
        known.
    """

    def __init__(
        self,
        learner: Learner | str = "auto",
        *,
        dtype: str = "float32",
        scale: str = "unit",
        n_features: int = 0,
    ) -> None:
        if isinstance(learner, str):
            learner = make_learner(learner)
        if not isinstance(learner, Learner):
            raise TypeError(
                f"Model: a learner is needed, such as DualAveraging(), or the name of one, got {learner!r}."
            )
        if dtype not in DTYPES:
            raise ValueError(f"Model: dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
        if scale not in SCALES:
            raise ValueError(f"Model: scale must be one of {', '.join(SCALES)}, got {scale!r}.")
        if not 0 <= n_features <= LARGEST_INDEX + 1:
            raise ValueError(f"Model: n_features must be between 0 and {LARGEST_INDEX + 1}, got {n_features}.")
        n_features = max(n_features, learner.initial_features)
        self._take_over(Saved(start_engine(learner, scale, n_features, dtype), dtype, n_features))

    @classmethod
    def from_engine(cls, engine: Engine, n_features: int) -> Model:
        """Return a model that goes on from an engine, which from now on is its own."""
        engine.reserve(n_features)
        return cls._of(Saved(engine, str(engine.weight_dtype), n_features))

    @classmethod
    def _of(cls, saved: Saved) -> Model:
        model = cls.__new__(cls)
        model._take_over(saved)
        return model

    def _take_over(self, saved: Saved) -> None:
        self._engine = saved.engine
        self._n_features = saved.n_features
        self.dtype = saved.dtype
        self.rows = saved.rows  # learned so far
        self.positives = saved.positives
        self.progress = saved.progress  # of the scores rows had before they were learned
        self.order = saved.order  # whether rows look sorted by label, those learned again left out
        self.source = saved.source  # where the rows came from and how far it was read: for resuming
        self.pruned_from = saved.pruned_from  # how many weights it had before any were cut
        self.chosen_by = saved.chosen_by  # what chose the learner, if nobody named it
        self._metrics = saved.metrics
        self._gate = _native.Gate()
        self._coef: NDArray[Any] | None = None

    # -- learning and scoring

    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]:
        """Learn the rows in order.

        Parameters
        ----------
        block : Block
            Rows with labels.
        again : bool
            Whether the model has learned these rows before: their scores then say nothing about new ones, and are left
            out of `progress`.

        Returns
        -------
        array of float64
            The score that each row had before it was learned.

        Raises
        ------
        RowError
            If the step of a row would leave the range of the state: that row was not learned, nor were those after it;
            those before it were. Every other error is raised before anything is learned.
        """
        _check("Model.learn", block)
        if block.labels is None:
            raise DataError("Model.learn: the block has no labels. Use score() for unlabelled rows.")
        scores = np.empty(len(block))
        self._begin_learning()
        try:
            if again:
                self._finish_race()
            learned, doubt = self._learn(block, scores, again)
        finally:
            self._gate.end_learning()
        if doubt is not None:
            warnings.warn(doubt, SortedRowsWarning, stacklevel=2)
        if learned < len(block):
            raise RowError("Model.learn", learned, block.changed() or self._overflow(learned))
        return scores

    def _learn(self, block: Block, scores: NDArray[np.float64], again: bool) -> tuple[int, str | None]:
        """Learn rows up to one that cannot be; return how many, and what to warn of."""
        before = self.rows
        learned, engine, history, since = self._engine.learn(block, scores)
        self._coef = None
        done, width = block, block.width
        if learned < len(block):
            done, scores = block[:learned], scores[:learned]
            width = int(done.indices.max(initial=-1)) + 1
        assert done.labels is not None
        positives = done.labels.tobytes().count(1)  # of one row, a fifth of what np.count_nonzero takes
        self.rows += learned
        self.positives += positives
        if width > self._n_features:
            self._n_features = width
        if history is not None:
            self._go_on(engine, history, before + since)
        if again:
            return learned, None
        new, new_scores = (done[since:], scores[since:]) if since else (done, scores)
        assert new.labels is not None
        self.progress.count(ScoredRows(new.labels, new_scores, new.importances))
        return learned, self.order.add(done.labels, positives)

    def finish_race(self) -> None:
        """End a race of settings before its time: the model goes on with those in the lead. Else change nothing."""
        self._begin_learning()
        try:
            self._finish_race()
        finally:
            self._gate.end_learning()

    def _finish_race(self) -> None:
        _, engine, history, _ = self._engine.finish_race()
        if history is not None:
            self._go_on(engine, history, self.rows)

    def _go_on(self, engine: Engine, history: ScoredRows, rows: int) -> None:
        """Go on as an engine says that has looked at its settings after so many rows."""
        if engine is not self._engine:
            self.chosen_by = ChosenBy(self.learner.name, rows)
            self._engine = engine
            engine.reserve(self._n_features)
        self._coef = None
        self.progress = StreamingAuc()
        self.progress.count(history)

    def learn_one(self, indices: ArrayLike, values: ArrayLike, label: int, importance: float | None = None) -> float:
        """Learn one row, as `learn` on a block of it does. Return the score it had before."""
        return float(self.learn(_one(indices, values, label, importance))[0])

    def score(self, block: Block) -> NDArray[np.float64]:
        """Return the scores of the rows: larger means more likely positive. Changes nothing."""
        _check("Model.score", block)
        scores = np.empty(len(block))
        self._begin_scoring()
        try:
            wrong = self._engine.score(block, scores)
        finally:
            self._gate.end_scoring()
        if wrong >= 0:
            scale = advice(f"scale={self.scale!r}", f"--scale {self.scale}")
            says = f"has values so large that its score is {scores[wrong]} with {scale}. Scale the values down."
            raise RowError("Model.score", wrong, block.changed() or says)
        return scores

    def score_one(self, indices: ArrayLike, values: ArrayLike) -> float:
        """Return the score of one row."""
        return float(self.score(_one(indices, values))[0])

    # -- what was learned

    @property
    def learner(self) -> Learner:
        """The learner as it was named; once a race is over, the one that won it."""
        return self._engine.learner

    @property
    def leader(self) -> Learner:
        """The learner that scores are made with: that of the settings in the lead while some are raced."""
        return self._engine.leader

    @property
    def scale(self) -> str:
        """How rows are scaled."""
        return self._engine.scale

    @property
    def n_features(self) -> int:
        """The largest feature index seen or reserved, plus one."""
        return self._n_features

    @property
    def coef(self) -> NDArray[Any]:
        """The weight of every feature; read-only. Exact zeros where l1 says so. For scaled rows: see `scale`.

        With scale="max" these are the weights of the values as they come, in float64: those of very small values may
        be very large.
        """
        if self._coef is None:
            weights, _, known = self.weights()
            if known is not None:
                weights = np.divide(weights, known, out=np.zeros(len(weights)), where=known > 0, dtype=np.float64)
            weights.flags.writeable = False
            self._coef = weights
        return self._coef

    def weights(self) -> Weights:
        """Return what scoring needs: the weight of every feature in scaled rows, class counts, largest values."""
        with self._reading("weights"):
            weight = zeros((self._n_features,), self._engine.weight_dtype)
            for start, part in self._engine.weight_chunks(self._n_features):
                if part.any():  # pages of zeros stay untouched
                    weight[start : start + len(part)] = part
            largest = self._engine.largest
            if largest is not None:
                largest = padded(largest[: self._n_features], self._n_features)  # an engine may have less room
            return Weights(weight, self._engine.tally, largest)

    @property
    def nonzeros(self) -> int:
        """The number of weights that are not zero: the size of the model."""
        with self._reading("nonzeros"):
            return sum(int(np.count_nonzero(part)) for _, part in self._engine.weight_chunks(self._n_features))

    @property
    def state_bytes(self) -> int:
        """The memory that the state takes, room for more features included."""
        return self._engine.nbytes

    @property
    def intercept(self) -> float:
        """What a logistic learner adds to a score to make it log odds; 0 for AUC losses."""
        return float(self._tally["w0"])

    @property
    def class_means(self) -> tuple[float, float]:
        """The mean score of negatives and of positives, each row scored before it was learned."""
        return float(self._tally["b"]), float(self._tally["a"])

    @property
    def threshold(self) -> float:
        """The score above which a row is called positive: zero log odds, or halfway between the class means."""
        return self.leader.threshold(self._tally)

    @property
    def _tally(self) -> Any:
        return tally_of(self._engine.tally)

    @property
    def metrics(self) -> dict[str, float]:
        """The progressive AUC as a file keeps it; empty before both classes were seen."""
        auc = self.progress.auc
        if self.kind == "scoring" or auc != auc:  # scoring only: what the file said when it was made
            return self._metrics
        return {"progressive_auc": float(auc), "auc_low": auc.low, "auc_high": auc.high, "auc_bound": auc.bound}

    @property
    def kind(self) -> str:
        """ "resumable", or "scoring" for a model that was saved without its state."""
        return "resumable" if self._engine.resumable else "scoring"

    def __repr__(self) -> str:
        return (
            f"Model({self.learner!r}, dtype={self.dtype!r}, scale={self.scale!r}): {self.rows:,} rows, "
            f"{self._n_features:,} features"
        )

    # -- cutting to size

    def prune(
        self,
        *,
        nonzeros: int | None = None,
        bytes: int | None = None,
        auc_loss: float | None = None,
        on: Block | Iterable[Block] | None = None,
    ) -> Model:
        """A model made for scoring only that keeps the largest weights, as they are; all others are exactly zero.

        nonzeros  so many weights; all of them if there are not more
        bytes     as many as a file made for scoring can hold without being larger than that
        auc_loss  as few as lose no more than that AUC on the labelled rows `on`: the smallest size, within 1 %, from
                  which on no larger size that was looked at loses more. Takes two or three passes over the rows;
                  those of an iterator are kept meanwhile.

        Weights are compared as scaled rows meet them. This model does not change. See `rarestream.pruning`.
        """
        if sum(given is not None for given in (nonzeros, bytes, auc_loss)) != 1:
            raise ValueError("Model.prune: one of nonzeros, bytes and auc_loss says where to cut.")
        if (on is None) != (auc_loss is None):
            raise ValueError("Model.prune: auc_loss and on go together: what may be lost, and on which rows.")
        for word, value in (("nonzeros", nonzeros), ("bytes", bytes), ("auc_loss", auc_loss)):
            if value is not None and not value >= 0:
                raise ValueError(f"Model.prune: {word} must be >= 0, got {value}.")
        from rarestream import pruning

        header, arrays = self._file_parts("scoring")
        size = nonzeros
        if on is not None and auc_loss is not None:
            ranked = pruning.Ranked(self.weights(), self._engine.scale_code)
            size = ranked.path(on, auc_loss=auc_loss).smallest(auc_loss)
        elif bytes is not None:
            size = pruning.largest_size(header, arrays, bytes)
        order = _native.ranked(arrays["weight"])
        return Model._of(decode(*pruning.cut(header, arrays, np.sort(order[:size])), "model"))

    # -- files

    def save(self, path: str | os.PathLike[str], kind: str = "resumable") -> None:
        """Write a `.rare` file, whole or not at all: "resumable" with all state, or "scoring" with weights only."""
        modelfile.write(path, *self._file_parts(kind))

    def to_bytes(self, kind: str = "resumable") -> bytes:
        """Return what `save` would write."""
        return modelfile.to_bytes(*self._file_parts(kind))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Return the model of a `.rare` file. Continuing with it equals never having stopped."""
        return cls._of(decode(*modelfile.read(path), plain(path)))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "model") -> Model:
        """Return the model of the bytes of a file; error messages start with `name`."""
        return cls._of(decode(*modelfile.from_bytes(data, name), name))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model.from_bytes, (self.to_bytes(self.kind),))

    def _file_parts(self, kind: str) -> FileParts:
        """The header and arrays of a file, all of one moment."""
        with self._reading("save"):
            saved = Saved(
                self._engine,
                self.dtype,
                self._n_features,
                self.rows,
                self.positives,
                self.progress,
                self.order,
                self.source,
                self.metrics,
                self.chosen_by,
                self.pruned_from,
            )
            return encode(saved, kind)

    # -- inside

    def _overflow(self, row: int) -> str:
        """Why a row could not be learned, and the way on. On the command line nothing is saved."""
        before = f"The {row} rows before it were learned, it was not." if row else "Nothing was learned."
        told = advice(f" {before}", "")
        if self.scale == "none":
            scale = advice("scale='none'", "--scale none")
            way_on = advice("scale='unit' or 'max'", "--scale unit or max")
            return f"has values so large that its step overflows {self.dtype} with {scale}.{told} Use {way_on}."
        return (
            f"cannot be learned: the weights of {self.learner!r} have grown beyond {self.dtype}, its steps are too "
            f"long for these rows.{told} Use a smaller learning rate or more regularisation."
        )

    def _begin_learning(self) -> None:
        if not self._gate.begin_learning():
            raise ModelBusyError(
                "Model.learn: another thread is learning, scoring or saving with this model. Learn from one thread, "
                "and score with a copy (Model.from_bytes(model.to_bytes())) meanwhile."
            )

    def _begin_scoring(self, what: str = "score") -> None:
        if not self._gate.begin_scoring():
            raise ModelBusyError(
                f"Model.{what}: another thread is learning with this model. Do it between two calls of learn, or with "
                "a copy made then (Model.from_bytes(model.to_bytes()))."
            )

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """While nobody learns: what is read of the state is all of one moment."""
        self._begin_scoring(what)
        try:
            yield
        finally:
            self._gate.end_scoring()


def _check(where: str, block: Block) -> None:
    if not isinstance(block, Block):
        raise TypeError(
            f"{where}: takes a Block, got {type(block).__name__}. Block.of(X, labels) makes one of a matrix, an array "
            "or a frame of numbers."
        )


def _one(indices: ArrayLike, values: ArrayLike, label: int | None = None, importance: float | None = None) -> Block:
    columns, entries = np.asarray(indices), values if type(values) is np.ndarray else numeric(values, "Model: values")
    starts = np.array([0, len(columns)], np.int64)
    rows = canonical(starts, columns if len(columns) else columns.astype(np.int32), entries, copy=False)
    if label is None:
        return Block(*rows[:4], own=rows[4])
    if label not in (-1, 0, 1):
        raise DataError(f"Model.learn_one: labels are -1 and +1, or 0 and 1, got {label!r}.")
    weight = None
    if importance is not None:
        if not (importance == 0 or SMALLEST_IMPORTANCE <= importance <= LARGEST_IMPORTANCE):
            raise DataError(f"Model.learn_one: the row {importance_rule(importance)}")
        weight = np.array([importance], np.float64)
    starts, columns, entries, width, own = rows
    sign = np.array([1 if label == 1 else -1], np.int8)
    return Block(starts, columns, entries, width, sign, weight, None, own)
