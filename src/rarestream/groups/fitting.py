"""The rounds of learning in groups: train all groups, merge, measure on rows held out; again, until all is learned.

If the AUC on the rows held out falls clearly in a round, the round is learned again with half of the strength
(`train_group`), which later rounds keep. If that does not help three times, the model of the round before is the
result, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError, RoundsStoppedWarning
from rarestream.groups.division import Division, auto_rounds, divide
from rarestream.groups.merging import Part, adopt, merge, train_group
from rarestream.groups.receipt import KEY, Price, Receipt, RoundReceipt
from rarestream.learners import Learner
from rarestream.metrics import auc_interval
from rarestream.metrics.paired import Standings
from rarestream.model import Model

LEAST_FALL = 0.01  # of the AUC that counts as a collapse, if it is also beyond chance:
FALL_ERRORS = 4.0  # standard errors
ATTEMPTS = 3  # to learn a round with half of the strength
SAMPLE_ROWS = 1 << 16  # rows that the price is measured on, at most
MORE_GROUPS = (2, 4)  # times as many, whose price is measured too
BLOCK_ROWS = 1024  # rows that go to a group together


@dataclass
class Trained:
    """What all groups have learned in a round."""

    parts: Sequence[Part]  # of the groups, in order; or, if merged, of ranges of features
    received: int  # bytes
    merged: bool = False


# Called with the state that all groups start from, the number of the round, the strength, and whether its rows were
# learned before.
Train = Callable[[bytes, int, float, bool], Trained]


class RoundsFit:
    """A fit in rounds, which can be saved after each.

    Parameters
    ----------
    model : Model
        The model to start from; it is changed.
    division : Division
    held_out : Block or None
        The rows that are held out; None with one group.
    passes : int
    """

    def __init__(self, model: Model, division: Division, held_out: Block | None, passes: int = 1) -> None:
        self.model, self.division, self.held_out, self.passes = model, division, held_out, passes
        self.done = 0
        self.strength = 1.0
        self.rounds: list[RoundReceipt] = []
        self.stopped: str | None = None
        self._scores: NDArray[np.float64] | None = None  # of the rows held out, after the last round

    def run(self, train: Train, after_round: Callable[[RoundsFit], None] | None = None) -> Model:
        """Learn the rounds that are not done yet, then the rows held out; return the model."""
        while self.done < self.passes * self.division.rounds and self.stopped is None:
            self._round(train)
            if after_round is not None:
                after_round(self)
        if self.held_out is not None:
            for number in range(self.passes):
                self.model.learn(self.held_out, again=number > 0)
        return self.model

    def resume(self, model: Model, done: int, strength: float, rounds: Sequence[RoundReceipt]) -> None:
        """Continue after some rounds that were learned before."""
        self.model, self.done, self.strength, self.rounds = model, done, strength, list(rounds)
        if self.held_out is not None and done:
            self._scores = model.score(self.held_out)

    def _round(self, train: Train) -> None:
        number, again = self.done % self.division.rounds, self.done >= self.division.rounds
        if again:
            self.model.finish_race()
        settings = len(self.model._engine.candidates)
        state = self.model.to_bytes()
        started = perf_counter()
        for attempt in range(ATTEMPTS + 1):
            trained = train(state, number, self.strength, again)
            refused = next((part.refused for part in trained.parts if part.refused is not None), None)
            auc, fallen = None, refused is not None
            if not fallen:
                self.model = (adopt if trained.merged else merge)(self.model, trained.parts)
                auc, fallen = self._measured()
            if not fallen:
                break
            if refused is None:
                self.model = Model.from_bytes(state)
            if attempt == ATTEMPTS:
                if refused is not None and not self.done:
                    raise DataError(f"a group could not learn its rows, also with shorter steps: {refused}")
                self.stopped = self._reason(number, auc)
                warnings.warn(RoundsStoppedWarning(self.stopped), stacklevel=2)
                break
            self.strength /= 2
        rows = int(self.division.group_rows(number).sum())
        seconds, received = perf_counter() - started, trained.received
        self.rounds.append(RoundReceipt(rows, seconds, len(state), received, settings, auc, self.strength))
        self.done += 1

    def _measured(self) -> tuple[float | None, bool]:
        """Return the AUC on the rows held out, and whether it has fallen clearly since the round before."""
        if self.held_out is None:
            return None, False
        labels, importances = self.held_out.labels, self.held_out.importances
        assert labels is not None
        scores = self.model._compare(self.held_out, self.division.groups)
        if not np.isfinite(scores).all():
            return 0.0, True
        if not _both_classes(self.held_out):
            return None, False
        both = np.stack([scores, scores if self._scores is None else self._scores], axis=1)
        standings = Standings(labels, both, importances)
        auc, before = standings.aucs.tolist()
        fall = before - auc
        fallen = self._scores is not None and fall > LEAST_FALL and fall > FALL_ERRORS * float(standings.errors(1)[0])
        if not fallen:  # after settings were dropped, as `resume` has them
            self._scores = self.model.score(self.held_out)
        return auc, fallen

    def _reason(self, number: int, auc: float | None) -> str:
        what = "steps overflowed" if auc is None else f"the AUC on the rows held out fell to {auc:.4f}"
        return (
            f"in round {number + 1} of {self.division.rounds} {what}, also "
            f"with shorter steps: {self.division.groups} groups do not merge well here. The model is that of the round "
            "before. Use fewer groups or more rounds, and put the rows into random order if groups differ much."
        )


def fit_groups(
    blocks: Sequence[Block],
    learner: Learner | str = "auto",
    *,
    groups: int,
    rounds: int | None = None,
    passes: int = 1,
    scale: str = "unit",
    dtype: str = "float32",
    block_rows: int | None = None,
) -> Model:
    """Learn rows in groups in this process, one group after the other: what a cluster would give, bit for bit.

    Parameters
    ----------
    blocks : sequence of Block
        The rows, with labels.
    learner : Learner or str, default "auto"
        As for `Model`.
    groups : int
        The number of groups.
    rounds : int, optional
        The number of rounds of a pass. By default 1 with one group, else a quarter of the groups, and 4 at least.
    passes : int, default 1
        How often all rows are learned.
    scale, dtype : str
        As for `Model`.
    block_rows : int, optional
        Rows that go to a group together. By default 1024, or fewer if there are few rows.

    Returns
    -------
    Model
        An ordinary model; `Receipt.from_record(model.source["groups"])` tells what it has cost.

    Raises
    ------
    DataError
        If rows have no labels, or other features than those before, or a group has rows of one class only.
    ValueError
        If the learner cannot be learned in groups, or another argument is out of range.
    """
    rounds = auto_rounds(groups) if rounds is None else rounds
    numbers = {"groups": groups, "rounds": rounds, "passes": passes}
    for name, number in (numbers if block_rows is None else {**numbers, "block_rows": block_rows}).items():
        if number < 1:
            raise ValueError(f"fit_groups: {name} must be at least 1, got {number}.")
    if any(block.labels is None for block in blocks):
        raise DataError("fit_groups: a block has no labels.")
    block_rows = piece_rows(sum(map(len, blocks)), groups, rounds) if block_rows is None else block_rows
    pieces = cut(blocks, block_rows)
    sizes = np.array([len(piece) for piece in pieces])
    positives = np.array([0 if piece.labels is None else int(np.count_nonzero(piece.labels > 0)) for piece in pieces])
    model = Model(learner, scale=scale, dtype=dtype)
    for block in blocks:
        model._join_space(block.space)
    division = divide(sizes, positives, groups, rounds, race=len(model._engine.candidates) > 1)
    held_out = concatenate([pieces[at] for at in division.held_out]) if groups > 1 else None
    if groups > 1:
        model._engine.in_groups()  # raises if its learner cannot be merged
    fit = RoundsFit(model, division, held_out, passes)

    def train(state: bytes, number: int, strength: float, again: bool) -> Trained:
        rows, copies, parts = division.group_rows(number), Copies(state), []
        for group in range(groups):
            blocks = [pieces[at] for at in division.blocks(number, group)]
            of = int(rows.sum())
            part = train_group(copies.next(), blocks, rows=int(rows[group]), of=of, strength=strength, again=again)
            copies.take_back(part)
            parts.append(part)
        return Trained(parts, 0)

    model = fit.run(train)
    model.source[KEY] = receipt_of(fit, int(sizes.sum()), int(positives.sum())).record()
    return model


def _both_classes(block: Block) -> bool:
    """Return whether rows of both classes have an importance, so that they have an AUC."""
    assert block.labels is not None
    labels = block.labels if block.importances is None else block.labels[block.importances > 0]
    return bool((labels > 0).any() and (labels < 0).any())


class Copies:
    """Copies of a model for groups that learn one after the other.

    What a group has changed is taken back, which is much cheaper than decoding the model for each group.
    """

    def __init__(self, state: bytes) -> None:
        self._state, self._base = state, Model.from_bytes(state)
        self._copy: Model | None = None

    def next(self) -> Model:
        """Return a copy, which nobody else uses until `take_back`."""
        if self._copy is None:
            self._copy = Model.from_bytes(self._state)
        return self._copy

    def take_back(self, part: Part) -> None:
        """Bring the copy back to the model, given what a group has changed."""
        copy, base, change = self._copy, self._base, part.change
        if copy is None or change is None or len(change.settings) < len(base._engine.candidates):
            self._copy = None
        else:
            before = base._change(change.features, base.rows - copy.rows)
            copy._adopt(before, base.positives - copy.positives)


def piece_rows(rows: int, groups: int, rounds: int) -> int:
    """Return how many rows go to a group together: several times in a round, if there are enough rows."""
    return max(1, min(BLOCK_ROWS, rows // (groups * rounds * 4)))


def cut(blocks: Sequence[Block], rows: int) -> list[Block]:
    """Return blocks of at most so many rows."""
    return [block[at : at + rows] for block in blocks for at in range(0, len(block), rows)]


def receipt_of(fit: RoundsFit, rows: int, positives: int) -> Receipt:
    """Return the receipt of a fit that is finished."""
    receipt = Receipt(fit.division.groups, rows, positives, rounds=fit.rounds, stopped=fit.stopped)
    if fit.held_out is not None and fit._scores is not None and fit.held_out.labels is not None:
        receipt.held_out = len(fit.held_out)
        interval = auc_interval(fit.held_out.labels, fit._scores, fit.held_out.importances)
        receipt.auc, receipt.auc_low, receipt.auc_high = float(interval), interval.low, interval.high
    return receipt


def prices(
    learner: Learner, scale: str, dtype: str, sample: Sequence[Block], groups: int, rounds: int | None
) -> tuple[int, list[Price]]:
    """Return the rows of a sample, and the AUC that groups lose on it against learning it in sequence.

    Every fifth block is not learned: the AUC is measured on these.
    """
    pieces = cut(sample, 256)
    learned = [piece for at, piece in enumerate(pieces) if at % 5 != 4]
    test = concatenate(pieces[4::5]) if len(pieces) > 4 else None
    if test is None or not _both_classes(test):
        return sum(len(piece) for piece in learned), []
    assert test.labels is not None
    alone = Model(learner, scale=scale, dtype=dtype)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has said what there is to say
        for piece in learned:
            alone.learn(piece)
        for number in (groups, *(groups * more for more in MORE_GROUPS)):
            used = auto_rounds(number) if rounds is None else rounds
            try:
                model = fit_groups(learned, learner, groups=number, rounds=used, scale=scale, dtype=dtype)
            except ValueError:  # the sample has too few rows for so many groups
                break
            both = np.stack([alone.score(test), model.score(test)], axis=1)
            standings = Standings(test.labels, both, test.importances)
            before, after = standings.aucs.tolist()
            found.append(Price(number, used, before - after, float(standings.errors(0)[1])))
    return sum(len(piece) for piece in learned), found
