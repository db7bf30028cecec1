"""Model: a learner and its state. Learns, scores, saves, loads, is cut to size."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native, modelfile
from rarestream._version import __version__
from rarestream.blocks import (
    LARGEST_IMPORTANCE,
    LARGEST_INDEX,
    SMALLEST_IMPORTANCE,
    Block,
    canonical,
    importance_rule,
    numeric,
)
from rarestream.errors import DataError, ModelBusyError, ModelFileError, RowError, SortedRowsWarning, advice, plain
from rarestream.learners import TALLY, Learner, State, Weights, make_learner
from rarestream.learners.base import SPARE, padded, placed, zeros
from rarestream.metrics import SortedCheck, StreamingAuc
from rarestream.metrics.rows import Rows

SCALES = ("none", "unit", "max")  # in the order of native/kernels.hpp
DTYPES = ("float32", "float64")
KINDS = ("resumable", "scoring")

Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # of a model file: its header and arrays


class ChosenBy(NamedTuple):
    """What chose a model's learner, and how many rows the model had learned then."""

    name: str
    rows: int


class Model:
    """A learner and what it has learned.

    `dtype` is that of the state: float32, or float64 on request. `scale` says how rows are scaled before they are
    learned or scored: "unit" to Euclidean norm 1; "max" divides each feature by its largest absolute value so far,
    then to norm 1 (for raw numeric columns); "none" takes them as they are. The state grows when a larger index
    arrives, so d need not be known; `n_features` reserves room for it.

    Any number of threads may score while nobody learns. `learn` beside another `learn` or `score` of the same model
    raises ModelBusyError.
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
        n_features = max(n_features, learner.features)
        self.learner = learner
        self.dtype = dtype
        self.scale = scale
        self.rows = 0  # learned so far
        self.positives = 0
        self.progress = StreamingAuc()  # of the scores rows had before they were learned
        self.order = SortedCheck()  # whether rows look sorted by label, those learned again left out
        self.source: dict[str, Any] = {}  # where the rows came from and how far it was read: for resuming
        self.pruned_from: int | None = None  # how many weights it had before any were cut
        self._n_features = n_features
        self._state: State | Weights = learner.start(n_features + SPARE, dtype, largest=scale == "max")
        self._kernel = learner.kernel()
        self._gate = _native.Gate()
        self._scale = SCALES.index(scale)
        self._coef: NDArray[Any] | None = None
        self._metrics: dict[str, float] = {}
        self._doubt: str | None = None  # to be told when the rows at hand are learned
        self.chosen_by: ChosenBy | None = None  # what settled the learner, if nobody named it

    @classmethod
    def from_state(cls, learner: Learner, state: State, *, scale: str, n_features: int) -> Model:
        """A model that goes on from a state of its learner, which from now on is its own."""
        model = cls(learner, dtype=str(state.table.dtype), scale=scale)
        model._state, model._n_features = state, n_features
        model._room(n_features)
        return model

    # -- learning and scoring

    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]:
        """Learns the rows in order. Returns the score each row had before it was learned.

        `again`: the model has learned these rows before, so their scores say nothing about new ones, and are left
        out of `progress`.

        A row whose step would leave the range of the state raises RowError: it was not learned, nor were those after
        it; those before it were. Every other error is raised before anything is learned.
        """
        _check("Model.learn", block)
        if block.labels is None:
            raise DataError("Model.learn: the block has no labels. Use score() for unlabelled rows.")
        scores = np.empty(len(block))
        self._begin_learning()
        try:
            if again:
                self._turn(None)
            learned = self._learn(block, scores, again)
        finally:
            self._gate.end_learning()
        if self._doubt is not None:
            doubt, self._doubt = self._doubt, None
            warnings.warn(doubt, SortedRowsWarning, stacklevel=2)
        if learned < len(block):
            raise RowError("Model.learn", learned, _changed(block) or self._overflow(learned))
        return scores

    def settle(self) -> None:
        """Ends a race of settings before its time: the model goes on with those in the lead. Else changes nothing."""
        self._begin_learning()
        try:
            if self.kind == "resumable":
                self._turn(None)
        finally:
            self._gate.end_learning()

    def learn_one(self, indices: ArrayLike, values: ArrayLike, label: int, importance: float | None = None) -> float:
        """Learns one row; the same as `learn` on a block of it. Returns its score before."""
        return float(self.learn(_one(indices, values, label, importance))[0])

    def score(self, block: Block) -> NDArray[np.float64]:
        """The rows' scores: larger means more likely positive. Changes nothing."""
        _check("Model.score", block)
        scores = np.empty(len(block))
        self._begin_scoring()
        try:
            wrong = self._score(block, scores)
        finally:
            self._gate.end_scoring()
        if wrong >= 0:
            scale = advice(f"scale={self.scale!r}", f"--scale {self.scale}")
            says = f"has values so large that its score is {scores[wrong]} with {scale}. Scale the values down."
            raise RowError("Model.score", wrong, _changed(block) or says)
        return scores

    def score_one(self, indices: ArrayLike, values: ArrayLike) -> float:
        return float(self.score(_one(indices, values))[0])

    # -- what was learned

    @property
    def leader(self) -> Learner:
        """The learner that scores are made with: that of the settings in the lead while some are raced."""
        found = None if isinstance(self._state, Weights) else self.learner.leader(self._state)
        return found or self.learner

    @property
    def n_features(self) -> int:
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
        """What scoring needs: every feature's weight as scaled rows meet it, class counts, largest values."""
        with self._reading("weights"):
            weight = zeros((self._n_features,), self._weight_dtype)
            for start, part in self._weights():
                if part.any():  # pages of zeros stay untouched
                    weight[start : start + len(part)] = part
            largest = self._state.largest
            if largest is not None:
                largest = padded(largest[: self._n_features], self._n_features)  # a state may have less room: `widest`
            return Weights(weight, self._state.tally[: len(TALLY)], largest)

    @property
    def nonzeros(self) -> int:
        """How many weights are not zero: the size of the model."""
        with self._reading("nonzeros"):
            return sum(int(np.count_nonzero(part)) for _, part in self._weights())

    @property
    def state_bytes(self) -> int:
        """What it keeps in memory, room for more features included."""
        arrays = [part for part in self._state[:3] if part is not None]
        more = () if isinstance(self._state, Weights) else self._state.more.values()
        return sum(part.nbytes for part in (*arrays, *more))

    @property
    def intercept(self) -> float:
        """What a logistic learner adds to a score to make it log odds; 0 for AUC losses."""
        return float(self._state.tally[4])

    @property
    def class_means(self) -> tuple[float, float]:
        """The mean score of negatives and of positives, each row scored before it was learned."""
        return float(self._state.tally[3]), float(self._state.tally[2])

    @property
    def threshold(self) -> float:
        """Scores above it are called positive: zero log odds, or for AUC losses halfway between the class means."""
        return self.learner.threshold(self._state.tally)

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
        return "scoring" if isinstance(self._state, Weights) else "resumable"

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
        header, arrays = self._parts("scoring")
        size = nonzeros
        if on is not None and auc_loss is not None:
            from rarestream.pruning import Ranked

            size = Ranked(self.weights(), self._scale).path(on, auc_loss=auc_loss).smallest(auc_loss)
        elif bytes is not None:
            size = _largest_size(header, arrays, bytes)
        order = _native.ranked(arrays["weight"])
        return Model._of(*_cut(header, arrays, np.sort(order[:size])), "model")

    # -- files

    def save(self, path: str | os.PathLike[str], kind: str = "resumable") -> None:
        """Writes a `.rare` file, whole or not at all: "resumable" with all state, or "scoring" with weights only."""
        modelfile.write(path, *self._parts(kind))

    def to_bytes(self, kind: str = "resumable") -> bytes:
        return modelfile.to_bytes(*self._parts(kind))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model of a `.rare` file. Continuing with it equals never having stopped."""
        return cls._of(*modelfile.read(path), plain(path))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "model") -> Model:
        return cls._of(*modelfile.from_bytes(data, name), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model.from_bytes, (self.to_bytes(self.kind),))

    def _parts(self, kind: str) -> Parts:
        """Header and arrays of a file, all of one moment; ModelFileError if no file could be read back from them."""
        with self._reading("save"):
            header, arrays = self._parts_now(kind)
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelFileError(
                    f"Model.save: {name!r} of {self.learner!r} holds NaN or infinity: such a model could never be "
                    "loaded again. Nothing was written. Learn with a smaller learning rate or more regularisation."
                )
        return header, arrays

    def _parts_now(self, kind: str) -> Parts:
        if kind not in KINDS:
            raise ValueError(f"Model.save: kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        if kind == "resumable" and self.kind == "scoring":
            way_on = advice("pass kind='scoring'", "use --scoring-only")
            raise ModelFileError(f"Model.save: a scoring-only model has no state to save; {way_on}.")
        learner, chosen_by = self.learner, self.chosen_by
        if kind == "scoring" and self.leader is not learner:  # a race ends where nothing more is learned
            learner, chosen_by = self.leader, ChosenBy(learner.name, self.rows)
        header: dict[str, Any] = {
            "kind": kind,
            "rarestream": __version__,
            "learner": {"name": learner.name, "settings": learner.settings},
            "dtype": self.dtype,
            "scale": self.scale,
            "features": {"space": "columns", "count": self._n_features},
            "rows": self.rows,
            "positives": self.positives,
            "source": self.source,
            "metrics": self.metrics,
        }
        if chosen_by is not None:
            header["chosen_by"] = chosen_by._asdict()
        if self.pruned_from is not None:
            header["pruned_from"] = self.pruned_from
        if self.order.runs:
            header["label_order"] = self.order.state()
        arrays: dict[str, NDArray[Any]] = {}
        if kind == "resumable":
            assert isinstance(self._state, State)
            index, numbers = _native.touched(self._state.table[: self._n_features])
            arrays |= {"tally": self._state.tally, "index": index}
            arrays |= self.learner.layout.split(numbers.reshape(self._state.table.shape[1], len(index)))
            arrays |= {f"more.{name}": part for name, part in self.learner.kept(self._state, self._n_features).items()}
            arrays |= {f"progress.{name}": part for name, part in self.progress.state().items()}
        else:
            living = [(start + at, part[at]) for start, part in self._weights() for at in [np.flatnonzero(part)]]
            empty = (np.zeros(0, np.int64), np.zeros(0, self._weight_dtype))
            index, weight = (np.concatenate(parts) for parts in zip(empty, *living, strict=True))
            arrays |= {"tally": self._state.tally[: len(TALLY)], "index": index.astype(np.int32), "weight": weight}
            header["dtype"] = str(weight.dtype)
        if self._state.largest is not None:
            known = np.flatnonzero(self._state.largest)
            arrays |= {"largest_index": known.astype(np.int32), "largest": self._state.largest[known]}
        return header, arrays

    @classmethod
    def _of(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str) -> Model:
        try:
            count = header["features"]["count"]
            if type(count) is not int or header["features"]["space"] != "columns":
                raise ValueError("its feature space is unknown")
            made = make_learner(header["learner"]["name"], **header["learner"]["settings"])
            model = cls(made, dtype=header["dtype"], scale=header["scale"], n_features=count)
            model.rows, model.positives = _count(header["rows"]), _count(header["positives"])
            if model.positives > model.rows:
                raise ValueError(f"{model.positives} of its {model.rows} rows are positive")
            model.source = dict(header["source"])
            model.pruned_from = _count(header["pruned_from"]) if "pruned_from" in header else None
            model._metrics = {name: _finite(value) for name, value in header["metrics"].items()}
            if "label_order" in header:
                model.order = SortedCheck.from_state(list(header["label_order"]))
            if "chosen_by" in header:
                told = header["chosen_by"]
                model.chosen_by = ChosenBy(str(told["name"]), _count(told["rows"]))
            model._take(str(header["kind"]), arrays)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, MemoryError) as error:
            raise ModelFileError(f"{name}: not a model this version can read ({_said(error)}).") from None
        return model

    def _take(self, kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Puts a file's arrays in place; ValueError or KeyError if they break a rule."""
        d, state = self._n_features, self._state
        assert isinstance(state, State)
        numbers = len(state.tally) if kind == "resumable" else len(TALLY)
        state.tally[:numbers] = _checked(arrays, "tally", np.dtype(np.float64), numbers)
        if (state.tally[[0, 1, 5]] < 0).any():
            raise ValueError("its counts are negative")
        if kind == "resumable":
            d = min(d, state.slots)
        index = _index(arrays, "index", d)
        if kind == "resumable":
            first = 0
            for name, width in self.learner.layout.columns.items():
                shape = (len(index),) if width == 1 else (len(index), width)
                part = _checked(arrays, name, state.table.dtype, *shape)
                state.table[index, first : first + width] = part.reshape(len(index), width)
                first += width
            kept = {key[5:]: part for key, part in arrays.items() if key.startswith("more.")}
            for name in kept:
                _checked(arrays, f"more.{name}", kept[name].dtype, *kept[name].shape)
            self._state = state = self.learner.taken(state, kept)
            self.learner.check(state)
            progress = {key[9:]: part for key, part in arrays.items() if key.startswith("progress.")}
            if not all(np.isfinite(part).all() for part in progress.values()):
                raise ValueError("its progress holds NaN or infinity")
            self.progress = StreamingAuc.from_state(progress)
        elif kind == "scoring":
            if self.leader is not self.learner:
                raise ValueError(f"{self.learner.name} scores as others do")
            weight = placed(index, _checked(arrays, "weight", np.dtype(self.dtype), len(index)), d + SPARE)
            self._state = Weights(weight, state.tally[:numbers].copy(), state.largest)
        else:
            raise ValueError(f"its kind is {kind!r}")
        if state.largest is not None:
            known = _index(arrays, "largest_index", d)
            largest = _checked(arrays, "largest", np.dtype(np.float32), len(known))
            if (largest <= 0).any():
                raise ValueError("array 'largest' has entries <= 0")
            state.largest[known] = largest

    # -- inside

    def _resumable(self) -> State:
        if isinstance(self._state, Weights):
            one = advice("Load one saved with kind='resumable'", "Use one trained without --scoring-only")
            raise ModelFileError(f"Model.learn: this model was saved for scoring only. {one} to go on.")
        return self._state

    def _learn(self, block: Block, scores: NDArray[np.float64], again: bool) -> int:
        """Learns rows, up to one that cannot be learned, taking stock where the learner wants to; returns how many."""
        learned, rest = 0, block
        while (stop := self.learner.pause(self._resumable(), rest)) is not None:
            done = self._learn_part(rest[:stop], scores[:stop], again)
            learned += done
            if done < stop:
                break
            rest, scores = rest[stop:], scores[stop:]
            self._turn(rest)
        else:
            learned += self._learn_part(rest, scores, again)
        width = block.width if learned == len(block) else int(block[:learned].indices.max(initial=-1)) + 1
        if width > self._n_features:
            self._n_features = width
        return learned

    def _score(self, block: Block, scores: NDArray[np.float64]) -> int:
        """Scores rows; the first whose score is not finite, or -1."""
        state = self._state
        block = block.within(state.slots)
        if isinstance(state, Weights):
            return _native.score_weights(state.weight, state.largest, *block.rows, self._scale, scores)
        return self._kernel.score(state, block, self._scale, scores)

    def _learn_part(self, block: Block, scores: NDArray[np.float64], again: bool) -> int:
        """Learns rows, up to one that cannot be learned; returns how many."""
        if block.width > self.learner.widest:  # that of a block it was cut from
            block = dataclasses.replace(block, width=int(block.indices.max(initial=-1)) + 1)
        self._room(block.width)
        self._state = state = self.learner.ready(self._resumable(), block)
        learned = self._kernel.learn(state, block, self._scale, scores)
        self._coef = None
        done = block
        if learned < len(block):
            done, scores = block[:learned], scores[:learned]
        assert done.labels is not None
        positives = done.labels.tobytes().count(1)  # of one row, a fifth of what np.count_nonzero takes
        self.rows += learned
        self.positives += positives
        if not again:
            self.progress.count(Rows(done.labels, scores, done.importances))
            doubt = self.order.add(done.labels, positives)
            if doubt is not None:
                self._doubt = doubt
        return learned

    def _turn(self, rest: Block | None) -> None:
        """Has the learner take stock: it may go on as another."""
        turn = self.learner.turn(self._resumable(), rest, self.dtype)
        if turn is None:
            return
        if turn.learner is not self.learner:
            self.chosen_by = ChosenBy(self.learner.name, self.rows)
            self.learner, self._kernel = turn.learner, turn.learner.kernel()
        self._state, self._coef = turn.state, None
        self._room(self._n_features)
        self.progress = StreamingAuc()
        self.progress.count(turn.rows)

    def _room(self, width: int) -> State | Weights:
        """The state with slots for `width` features and one to spare, or all it can have. That changes nothing else."""
        state, most = self._state, self.learner.widest
        width += SPARE
        if min(width, most) > state.slots:
            # Room to spare, so that indices a little larger do not move the state again; untouched, it costs nothing.
            slots = min(max(width + width // 4, state.slots + state.slots // 2), most)
            try:
                self._state = state = self.learner.grown(self._resumable(), slots)
            except MemoryError:
                raise DataError(
                    f"Model: feature index {width - SPARE - 1} needs a state of {self._bytes(slots) / 1e9:.1f} GB or "
                    "more, which this machine does not have. Hash or renumber the features into a smaller range."
                ) from None
        return state

    @property
    def _weight_dtype(self) -> np.dtype[Any]:
        """That of the state: a race is float32 even where the model is to go on in float64."""
        return (self._state.weight if isinstance(self._state, Weights) else self._state.table).dtype

    def _weights(self, run: int = 1 << 20) -> Iterator[tuple[int, NDArray[Any]]]:
        """The weights as scaled rows meet them, a run of coordinates at a time: (first coordinate, weights)."""
        state = self._state
        for start in range(0, self._n_features, run):
            stop = min(start + run, self._n_features)
            if isinstance(state, Weights):
                yield start, state.weight[start:stop]
            else:
                yield start, self._kernel.weights(state, start, stop)

    def _bytes(self, slots: int) -> int:
        return slots * sum(self.learner.layout.columns.values()) * np.dtype(self.dtype).itemsize

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


def _changed(block: Block) -> str | None:
    """What to say of a row that breaks a rule by now."""
    broken = block.broken()
    return broken and f"or one after it breaks a rule: its arrays have changed since it was made. {broken}"


def _check(where: str, block: Block) -> None:
    if not isinstance(block, Block):
        raise TypeError(
            f"{where}: takes a Block, got {type(block).__name__}. Block.of(X, labels) makes one of a matrix, an array "
            "or a frame of numbers."
        )


def _cut(header: dict[str, Any], arrays: dict[str, NDArray[Any]], kept: NDArray[Any]) -> Parts:
    """The parts of a model made for scoring, cut to the weights at some places, which ascend."""
    had = len(arrays["weight"])
    if len(kept) == had:
        return header, arrays
    cut = {name: arrays[name][kept] for name in ("index", "weight")}
    return {"pruned_from": had, **header}, {**arrays, **cut}


def _largest_size(header: dict[str, Any], arrays: dict[str, NDArray[Any]], room: int) -> int:
    """How many weights a file made for scoring can hold without being larger than `room` bytes."""
    had = len(arrays["weight"])

    def length(size: int) -> int:  # whichever weights they are
        return len(modelfile.to_bytes(*_cut(header, arrays, np.arange(size))))

    if length(had) <= room:
        return had
    least = length(0)
    if least > room:
        raise ValueError(f"Model.prune: bytes must be at least {least}, what a file without weights takes, got {room}.")
    size = min(had - 1, (room - least) // sum(arrays[name].itemsize for name in ("index", "weight")))
    while length(size) > room:  # the file's header has grown by a few digits
        size -= 1
    return size


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


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:  # True is an int, but no count
        raise ValueError(f"a count is {value!r}")
    return value


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"a metric is {value!r}")
    return float(value)


def _checked(arrays: Mapping[str, NDArray[Any]], name: str, dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"array {name!r} is {array.dtype}{list(array.shape)}, not {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity")
    return array


def _index(arrays: Mapping[str, NDArray[Any]], name: str, d: int) -> NDArray[Any]:
    index = _checked(arrays, name, np.dtype(np.int32), arrays[name].size)
    if len(index) and (index[0] < 0 or index[-1] >= d or (index[1:] <= index[:-1]).any()):
        raise ValueError(f"array {name!r} must ascend within 0 .. {d - 1}")
    return index


def _said(error: BaseException) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
