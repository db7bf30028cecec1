"""A model that learns and scores the same rows beside the one that answers, and the gate that lets it replace that one.

Both score every row before they learn it, so the comparison is paired and progressive. The gate opens if the AUC of the
shadow, minus that of the model that answers, is with 95 % confidence above -margin. It is looked at when there are as
many positives as were asked for, then at twice as many, and so on: looking after every row would find a lucky moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError, RowError
from rarestream.metrics import auc_difference, auc_interval
from rarestream.model import Model
from rarestream.serve.errors import RequestError
from rarestream.serve.messages import AucOut, ShadowOut
from rarestream.serve.rows import DecodedRows, Limits, RowDecoder, RowText

KEPT = 200_000  # rows whose scores are compared: the last ones


class Compared(NamedTuple):
    """Labels, and the scores of the shadow and of the model that answers."""

    labels: NDArray[np.int8]
    mine: NDArray[np.float64]
    theirs: NDArray[np.float64]


class Shadow:
    """A model beside the one that answers.

    Parameters
    ----------
    model : Model
        It learns and scores; nobody gets its scores.
    promote : {"auto", "manual"}
        Whether it replaces the other as soon as the gate opens, or when somebody asks for it.
    needed_positives : int
        Positives before the gate is looked at.
    margin : float
        By how much its AUC may be lower.
    """

    def __init__(self, model: Model, promote: str, needed_positives: int, margin: float) -> None:
        self.model, self.promote, self.needed_positives, self.margin = model, promote, needed_positives, margin
        self.decoder = RowDecoder.of_model(model, Limits.none())
        self.rows = self.positives = 0  # compared, of all time
        self.failed = 0  # rows that it could not decode or learn
        self._labels = np.zeros(KEPT, np.int8)
        self._mine, self._theirs = np.zeros(KEPT), np.zeros(KEPT)
        self.next_look = needed_positives

    def decoded(self, rows: RowText) -> DecodedRows | None:
        """Return rows as this model reads them; None if it cannot, which is counted."""
        try:
            found = self.decoder.decode(rows, names=True)
        except RequestError:
            self.failed += rows.rows
            return None
        space = found.block.space
        if found.names is not None and space is not None and space.names is not None:
            space.names.add(found.names)
        return found

    def learn(
        self,
        decoded: DecodedRows,
        begin: int,
        stop: int,
        labels: NDArray[np.int8],
        importances: NDArray[np.float64] | None,
        theirs: NDArray[np.float64],
    ) -> None:
        """Learn some of the rows; `theirs` are the scores of the other model, nan for a row that it refused."""
        rows = replace(decoded.block, labels=labels, importances=importances)
        mine = np.full(stop - begin, np.nan)
        at, end = begin, stop
        while at < stop:
            try:
                mine[at - begin : end - begin] = self.model.learn(rows[at:end])
                at = end
            except RowError as error:
                mine[at - begin : at - begin + error.row] = error.scores
                at += error.row + 1
                self.failed += 1
            except DataError:
                if end - at > 1:
                    end = at + 1  # each row for itself
                    continue
                self.failed += 1
                at = end
            if end < stop:
                end = at + 1
        both = ~(np.isnan(mine) | np.isnan(theirs[begin:stop]))
        if importances is not None:
            both &= importances[begin:stop] > 0
        self._keep(labels[begin:stop][both], mine[both], theirs[begin:stop][both])

    def _keep(self, labels: NDArray[np.int8], mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
        places = (self.rows + np.arange(len(labels))) % KEPT
        self._labels[places], self._mine[places], self._theirs[places] = labels, mine, theirs
        self.rows += len(labels)
        self.positives += int(np.count_nonzero(labels > 0))

    # -- the gate

    def due(self) -> bool:
        """Return whether the gate is to be looked at now. It says so once."""
        if self.positives < self.next_look:
            return False
        while self.next_look <= self.positives:
            self.next_look *= 2
        return True

    def compared(self) -> Compared:
        """Return the last rows, in order, for `judged`: a copy, which another thread may use."""
        count = min(self.rows, KEPT)
        order = (self.rows - count + np.arange(count)) % KEPT
        return Compared(self._labels[order], self._mine[order], self._theirs[order])

    def judged(self, rows: Compared) -> ShadowOut:
        """Return how the shadow compares on some rows."""
        value = AucOut(None, 0.0, 1.0)
        difference = AucOut(None, -1.0, 1.0)
        if (rows.labels > 0).any() and (rows.labels <= 0).any():
            mine = auc_interval(rows.labels, rows.mine)
            value = AucOut(float(mine), mine.low, mine.high)
            gap = auc_difference(rows.labels, rows.mine, rows.theirs)
            difference = AucOut(float(gap), gap.low, gap.high)
        enough = self.positives >= self.needed_positives
        return ShadowOut(
            learner=self.model.learner.name,
            rows=self.rows,
            positives=self.positives,
            failed=self.failed,
            auc=value,
            difference=difference,
            needed_positives=self.needed_positives,
            margin=self.margin,
            passes=enough and difference.value is not None and difference.low >= -self.margin,
            promote="auto" if self.promote == "auto" else "manual",
        )

    # -- snapshots

    def settings(self) -> dict[str, Any]:
        """Return what `restored` needs beside the model and `arrays`, ready for JSON."""
        return {
            "promote": self.promote,
            "needed_positives": self.needed_positives,
            "margin": self.margin,
            "rows": self.rows,
            "positives": self.positives,
            "failed": self.failed,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the rows compared."""
        return self.compared()._asdict()

    @classmethod
    def restored(cls, model: Model, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Shadow:
        """Return the shadow that had these settings and rows."""
        self = cls(model, settings["promote"], settings["needed_positives"], settings["margin"])
        self.rows = settings["rows"] - len(arrays["labels"])
        self._keep(arrays["labels"], arrays["mine"], arrays["theirs"])
        self.positives, self.failed = settings["positives"], settings["failed"]
        if self.positives >= self.next_look:
            self.next_look *= 2 ** (1 + math.floor(math.log2(self.positives / self.next_look)))
        return self
