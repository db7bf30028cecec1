"""Groups of rows, such as those of one user: where they come from, and the AUC within them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, no_tag
from rarestream.errors import DataError, advice
from rarestream.metrics.groups import GroupAuc, group_auc
from rarestream.readers import Stream, read
from rarestream.readers.formats import load_format
from rarestream.readers.options import OptionError, options_of

TAGS = {"svmlight": "qid", "vw": "tag"}  # what formats without columns call the tag of a row


class Groups:
    """The groups of rows, added a batch at a time and kept as numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._batches: list[NDArray[np.int64]] = []

    def add(self, tags: NDArray[Any] | None, rows: int) -> None:
        """Add a batch of rows with these tags; None: without any."""
        if tags is None:
            self._batches.append(np.full(rows, -1))
            return
        found, at = np.unique(tags, return_inverse=True)
        missing = no_tag(tags.dtype)
        numbers = [
            -1 if tag == missing else self._numbers.setdefault(tag, len(self._numbers)) for tag in found.tolist()
        ]
        self._batches.append(np.array(numbers, np.int64)[at.reshape(-1)])

    def auc(
        self, where: str, labels: NDArray[Any], scores: NDArray[Any], importances: NDArray[np.float64] | None
    ) -> GroupAuc:
        """Return the AUC within the groups of all rows. Rows without a group are left out, and counted."""
        numbers = np.concatenate(self._batches)
        known = numbers >= 0
        if not known.any():
            raise DataError(
                f"{where}: no row has a group. Check the name of the column, "
                f"{advice('tag=COLUMN of read', '--group COLUMN')}; rows of svmlight have a group if they have a qid."
            )
        weights = None if importances is None else importances[known]
        found = group_auc(labels[known], scores[known], numbers[known], weights)
        names = np.array(list(self._numbers))
        return replace(
            found,
            rows_left_out=found.rows_left_out + int(np.count_nonzero(~known)),
            table=found.table._replace(group=names[found.table.group]),
        )


def read_groups(data: Sequence[str], column: str, settings: Mapping[str, Any]) -> tuple[Stream, Iterable[Block]]:
    """Return a stream of files, and its Blocks, whose tags are the cells of a column.

    A model scores the rows as it would without tags: a column that is one of its features remains one. Its cells are
    then read in a second pass beside the first.

    Parameters
    ----------
    data : sequence of str
        The files, as for `read`.
    column : str
        The column of a table; "qid" for svmlight, "tag" for vw.
    settings : mapping
        The arguments of `read`, with the `features` of the model.

    Raises
    ------
    DataError
        If the column cannot be used.
    """
    stream = read(list(data), **settings)
    if "tag" not in options_of(load_format(stream.format).options):
        word = TAGS.get(stream.format, "tag")
        if column != word:
            reason = f"{stream.format} has no columns; the group of a row is its {word}: pass {word!r}, got {column!r}."
            raise OptionError(f"read_groups: column: {reason}", "tag", reason)
        return stream, stream
    plan = getattr(settings.get("features"), "plan", None)
    tagged = read(list(data), **{**settings, "tag": column})
    if plan is None or not _is_feature(plan, column):
        if plan is not None and column in (settings.get("label") or plan.label, plan.importance):
            reason = f"column {column!r} is that of the label or the importance. Name another."
            raise OptionError(f"read_groups: {reason}", "tag", reason)
        return tagged, tagged
    return stream, _with_tags(stream, tagged, column)


def _is_feature(plan: Any, column: str) -> bool:
    """Return whether the cells of a column are features of rows."""
    listed = {one.name: one.kinds for one in plan.columns}
    if any(column in cross.split("*") for cross in plan.crosses):
        return True
    if column in listed:
        return bool(listed[column])
    return bool(plan.open) and column not in (plan.label, plan.importance, plan.tag)


def _with_tags(stream: Stream, tagged: Stream, column: str) -> Iterator[Block]:
    """Yield the Blocks of a stream with the tags of another, which has the same rows."""
    if not all(entry["size"] for entry in stream.sources):
        raise DataError(
            f"evaluate: column {column!r} is also a feature of the model, so the data are read twice, which a pipe "
            "cannot be. Save it to a file first."
        )
    waiting: list[NDArray[Any]] = []
    others = iter(tagged)
    for block in stream:
        while sum(map(len, waiting)) < len(block):
            other = next(others, None)
            if other is None:
                break
            waiting.append(np.full(len(other), "") if other.tags is None else other.tags)
        tags = np.concatenate(waiting) if waiting else np.zeros(0, "U1")
        waiting = [tags[len(block) :]]
        if stream.refused or tagged.refused or len(tags) < len(block):
            raise DataError(
                f"evaluate: column {column!r} is also a feature of the model, so the data are read twice, and rows "
                f"must not be skipped. Correct the invalid rows, or drop {advice('max_bad_rows', '--max-bad-rows')}."
            )
        yield replace(block, tags=tags[: len(block)])
