"""train_group and merge: the two functions that learning in groups consists of.

In a round, all groups start from the same state. Group p learns n_p of the N rows of the round. Let m_p = N / n_p and
a_p = n_p / N; z, v = n^2, w as in the learners' modules, c the slope of a row's loss at its score, x the row.

    number                  step of a row in group p                                  merged, from the base z0, v0, ...
    z                       z += m_p c x + (the proximal pull, from v, as always)     z0 + sum a_p (z_p - z0)
    v                       v += m_p |c|^r x^2                                        v0 + sum a_p (v_p - v0)
    counts of rows,         += 1                                                      base + sum of increments
    and of features
    sums of scores          += s                                                      base + sum of increments
    intercept               as always                                                 w0 + sum a_p (w0_p - w0)
    its squared slopes      += c^2                                                    base + sum of increments

Each row counts as if the other groups delivered the same statistics, and the mean takes that back: as sum a_p m_p (sum
of c x in p) is the sum over all rows, the merged state has the exact sums of gradients and of their squares that the
groups saw, and l1 keeps its meaning. Adding up the changes of z instead would give the proximal term P times where the
step length has grown by sqrt(P), and would repair the same error once in each group; averaging them without m would
learn from one group's rows only. With one group nothing is multiplied and its state is taken as it is: bit for bit that
of the sequential learner. The merged state is an ordinary one: learning can go on anywhere.

Which rule a number has belongs to the layout of its learner (learners/state.py); a learner without rules is refused.
With scale="max", numbers are first brought to the largest value that any group has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.engines.merging import Change, joined, merged
from rarestream.errors import DataError, RowError
from rarestream.learners.state import padded, zeros
from rarestream.model import Model


@dataclass(frozen=True)
class Part:
    """What a group has learned in a round: the numbers of the features of its rows, or a whole model.

    Attributes
    ----------
    rows, positives : int
        Rows that the group has learned, and how many of them are positive.
    change : Change or None
        The numbers that its rows have changed.
    whole : bytes or None
        A model, where one group has all rows of the round.
    refused : str or None
        Why the group could not learn all its rows: steps of several groups' length can overflow where shorter ones do
        not. `RoundsFit` then tries shorter ones.
    """

    rows: int
    positives: int
    change: Change | None = None
    whole: bytes | None = None
    refused: str | None = None

    def to_bytes(self) -> bytes:
        """Return the part as bytes, to be sent to where it is merged.

        Returns
        -------
        bytes
            A safetensors file.
        """
        from safetensors.numpy import save

        arrays: dict[str, NDArray[Any]] = {"rows": np.array([self.rows, self.positives], np.int64)}
        if self.whole is not None:
            arrays["whole"] = np.frombuffer(self.whole, np.uint8)
        if self.refused is not None:
            arrays["refused"] = np.frombuffer(self.refused.encode(), np.uint8)
        if self.change is not None:
            change = self.change._asdict()
            del change["rows"]
            arrays |= {name: np.ascontiguousarray(array) for name, array in change.items() if array is not None}
        return bytes(save(arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """Return the part that `to_bytes` has written.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        Part
            An equal part.
        """
        from safetensors.numpy import load

        arrays = load(data)
        rows, positives = arrays.pop("rows").tolist()
        whole, refused = arrays.get("whole"), arrays.get("refused")
        if whole is not None:
            return cls(rows, positives, whole=whole.tobytes())
        if refused is not None:
            return cls(rows, positives, refused=refused.tobytes().decode())
        numbers = (arrays["features"], arrays["numbers"], arrays["tally"], arrays.get("largest"), arrays["settings"])
        return cls(rows, positives, Change(rows, *numbers))


def train_group(
    model: Model,
    blocks: Iterable[Block],
    *,
    rows: int,
    of: int,
    strength: float = 1.0,
    again: bool = False,
) -> Part:
    """Learn the rows of one group of a round. The mathematics is above, in rarestream/groups/merging.py.

    Parameters
    ----------
    model : Model
        A copy of the model that all groups of the round start from; it is changed.
    blocks : iterable of Block
        The rows of the group, in order.
    rows : int
        Their number: n.
    of : int
        The number of rows of all groups of the round: N. If the group has all of them, they are learned as
        `Model.learn` learns them.
    strength : float, above 0 and at most 1, default 1
        What N / n is multiplied by, not below 1 in total: less where merging has gone wrong.
    again : bool, default False
        Whether the model has learned these rows before.

    Returns
    -------
    Part
        What the group has learned, for `merge`.

    Raises
    ------
    DataError
        If there are other rows than `rows` says.
    ValueError
        If the model's learner cannot be learned in groups, or `rows`, `of` or `strength` is out of its range.
    """
    if not (0 < rows <= of or rows == of == 0):
        raise ValueError(f"train_group: a group has 1 to all rows of its round, got rows={rows} and of={of}.")
    if not 0 < strength <= 1:
        raise ValueError(f"train_group: strength must be above 0 and at most 1, got {strength}.")
    learned, positives = model.rows, model.positives
    if rows == of:
        for block in blocks:
            model.learn(block, again=again)
    else:
        model._engine.in_groups()  # raises if its learner cannot be merged
        repeats = max(1.0, strength * of / rows)
        marks = zeros((model.n_features,), np.uint8)
        for block in blocks:
            try:
                model._learn_in_group(block, repeats)
            except RowError as error:
                return Part(rows, 0, refused=str(error))
            if block.width > len(marks):
                marks = padded(marks, block.width + block.width // 4)
            _native.mark_features(block.indices, marks)
    learned, positives = model.rows - learned, model.positives - positives
    if learned != rows:
        raise DataError(f"train_group: the group has {learned} rows, but {rows} were expected.")
    if rows == of:
        return Part(rows, positives, whole=model.to_bytes())
    return Part(rows, positives, model._change(np.flatnonzero(marks.view(np.bool_)).astype(np.int32), rows))


def merge(model: Model, parts: Sequence[Part]) -> Model:
    """Merge what groups have learned in a round. The mathematics is above, in rarestream/groups/merging.py.

    Parameters
    ----------
    model : Model
        The model that all groups have started from; it is changed.
    parts : sequence of Part
        What each group has learned, in the order of the groups: another order gives other last bits.

    Returns
    -------
    Model
        The merged model: the given one, or with one group that of the group.

    Raises
    ------
    ValueError
        If there are no parts, or one of several has all rows of a round.
    """
    if not parts:
        raise ValueError("merge: there are no parts.")
    refused = next((part.refused for part in parts if part.refused is not None), None)
    if refused is not None:
        raise DataError(f"merge: a group could not learn its rows: {refused}")
    if len(parts) == 1 and parts[0].whole is not None:
        return Model.from_bytes(parts[0].whole)
    model._adopt(merged(model._engine.in_groups(), _changes(parts)), sum(part.positives for part in parts))
    return model


def merge_features(model: Model, parts: Sequence[Part], first: int, stop: int) -> Part:
    """Merge what groups have learned of the features from `first` to `stop`, on one of several machines.

    Parameters
    ----------
    model : Model
        The model that all groups have started from; it does not change.
    parts : sequence of Part
        As for `merge`; of these features they need to have all.
    first, stop : int
        Which features to merge.

    Returns
    -------
    Part
        One part for all groups. `adopt` of such parts, of all features, gives the same as `merge` of all groups.
    """
    change = merged(model._engine.in_groups(), [change.between(first, stop) for change in _changes(parts)])
    return Part(change.rows, sum(part.positives for part in parts), change)


def adopt(model: Model, parts: Sequence[Part]) -> Model:
    """Take over what `merge_features` has made of several ranges of features, given in ascending order."""
    if not parts:
        raise ValueError("adopt: there are no parts.")
    model._adopt(joined(_changes(parts)), parts[0].positives)
    return model


def _changes(parts: Sequence[Part]) -> list[Change]:
    if any(part.change is None for part in parts):
        raise ValueError("merge: a group that has learned all rows of a round is merged with others.")
    return [part.change for part in parts if part.change is not None]
