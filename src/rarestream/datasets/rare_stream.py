"""make_rare_stream: a generated log of rare events whose best possible AUC is known.

The rows are those of `rarestream.evaluate.synthetic.Planted`, whose docstring has the mathematics: fields with values
by a Zipf law, a few values with planted weights, labels drawn from the log odds, drift, noise. This module adds names,
times and late labels, and writes the rows as files:

    field      f01, f02, ...; its values are v0, the most frequent one, v1, ...
    event      id e0, e1, ...; `rate` events per second, from the start of 2026 on
    label      comes floor(-label_delay * log(1 - u)) seconds after its event, u uniform in [0, 1): an exponential
               distribution with a long tail

Everything follows from the seed. Delays are whole seconds, as the last digits of a logarithm may differ between
machines.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, plain
from rarestream.evaluate.synthetic import (
    BLOCK,
    FIELDS,
    HELD_OUT,
    Planted,
    write_svmlight,
)
from rarestream.metrics import Estimate, StreamingAuc

START = np.datetime64("2026-01-01T00:00:00", "s")
MOST_FIELDS = 1000  # where their sizes are not given
MOST_VALUES = 1 << 26  # of all fields together
OTHER_COMPRESSION = (".bz2", ".xz", ".zst")


@dataclass(frozen=True, eq=False)
class RareStream:
    """A generated stream of rare events, made by `make_rare_stream`.

    Iterating over it yields Blocks of 8,192 rows with column numbers, each time the same. Columns and not hashed
    names: a value has a column of its own, shared with no other, so that a learner can find the planted weights and
    come as close to `best_auc` as its rows allow. `dicts`, `to_csv` and the others give the same rows with the names
    of fields and values.

    Attributes
    ----------
    rows : int
        Number of rows.
    label_delay : float or None
        Mean seconds until the label of an event comes.
    rate : float
        Events per second.
    part : int
        Which rows of the same truth these are; `held_out` has others.
    """

    rows: int
    label_delay: float | None
    rate: float
    _planted: Planted
    part: int = 0

    def __repr__(self) -> str:
        return f"<RareStream: {self.rows:,} rows, {len(self.fields)} fields, {self._planted.positives:.3g} positive>"

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Block]:
        for part in self._planted.rows(self.rows, self.part):
            yield part.block

    @cached_property
    def fields(self) -> list[str]:
        """The names of the fields."""
        digits = max(2, len(str(len(self._planted.sizes))))
        return [f"f{number:0{digits}}" for number in range(1, len(self._planted.sizes) + 1)]

    @property
    def sizes(self) -> list[int]:
        """The number of values that each field can have."""
        return [int(size) for size in self._planted.sizes]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The true weight of every column at the first row, most of them zero; compare with `Model.coef`."""
        weights = self._planted.weights.view()
        weights.flags.writeable = False
        return weights

    def truth(self, row: int = 0) -> dict[tuple[str, str], float]:
        """Return the planted weights at a row, by field and value, the largest first; without drift always the same."""
        found = {(self.fields[place], f"v{value}"): weight for place, value, weight in self._planted.planted(row)}
        return dict(sorted(found.items(), key=lambda item: -abs(item[1])))

    def best_auc(self, rows: int | None = None) -> Estimate:
        """Return the AUC of the true log odds: the best that any ranking of these rows can be expected to have.

        Parameters
        ----------
        rows : int, >= 1, optional
            Of the first rows only. By default of all.

        Returns
        -------
        Estimate
            With its 95 % interval; exact up to 32,767 rows of a class, and certainly within `bound` beyond that.
        """
        auc = StreamingAuc()
        for part in self._planted.rows(self.rows if rows is None else min(rows, self.rows), self.part):
            assert part.block.labels is not None
            auc.add(part.block.labels, part.log_odds)
        return auc.auc

    def held_out(self, rows: int) -> RareStream:
        """Return a stream with the same truth and independent rows, to evaluate a model on.

        With drift its rows, too, begin with the truth of the first row.
        """
        _require(_whole(rows, "rows") >= 1, "rows", "at least 1", rows)
        part = HELD_OUT if self.part < HELD_OUT else self.part + 2  # those of part 2 determine the intercept
        return replace(self, rows=rows, part=part)

    def dicts(self) -> Iterator[tuple[dict[str, str], int]]:
        """Yield every row as a dict of fields and values, with its label, 1 or 0."""
        for values, labels in self._values_and_labels():
            for row, label in zip(values.tolist(), labels.tolist(), strict=True):
                yield {field: f"v{value}" for field, value in zip(self.fields, row, strict=True)}, label

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV with a header: `label`, 1 or 0, then the fields. A name that ends in .gz is gzipped."""
        self._write(path, ".csv", ["label"], lambda at, labels: [labels])

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as JSON lines with the keys `label`, 1 or 0, and the fields; gzipped if it ends in .gz."""
        self._write(path, ".jsonl", ["label"], lambda at, labels: [labels])

    def to_svmlight(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as svmlight text, with the columns of the Blocks counted from 1; gzipped if it ends in .gz."""
        write_svmlight(iter(self), _target(path))

    def events(self, path: str | os.PathLike[str]) -> None:
        """Write the events without their labels: `id`, `time`, then the fields.

        Parameters
        ----------
        path : path
            CSV if its name ends in .csv, JSON lines if in .jsonl; with .gz after it gzipped.
        """
        self._write(
            path,
            _table_suffix(path),
            ["id", "time"],
            lambda at, labels: [_ids(at, len(labels)), self._times(at, len(labels))],
        )

    def labels(
        self, path: str | os.PathLike[str], *, wait: float | None = 0.0, positives_only: bool = False
    ) -> tuple[int, int]:
        """Write the labels as they come, in order of their time: `id` of the event, `time`, `label`, 1 or 0.

        Parameters
        ----------
        path : path
            As for `events`.
        wait : float, >= 0, optional
            Seconds after the last event for which labels are still written; those that come later are missing. None:
            all are written.
        positives_only : bool, default False
            Whether only events with the label 1 have a line, as in a log of clicks or purchases.

        Returns
        -------
        tuple of int
            How many labels were written, and how many come too late.
        """
        target, suffix = _target(path), _table_suffix(path)
        written, late = [0], [0]

        def pieces() -> Iterator[bytes]:
            if suffix == ".csv":
                yield b"id,time,label\n"
            for events, seconds, labels in self._arrivals(wait, positives_only, late):
                written[0] += len(events)
                yield _text(suffix, [("id", _ids_of(events)), ("time", _shown(seconds)), ("label", labels)])

        _write(pieces(), target)
        return written[0], late[0]

    def delays(self) -> Iterator[NDArray[np.int64]]:
        """Yield the seconds until the label of each event comes, for the rows of each Block."""
        for at in range(0, self.rows, BLOCK):
            size = min(BLOCK, self.rows - at)
            if not self.label_delay:
                yield np.zeros(size, np.int64)
                continue
            generator = np.random.default_rng([self._planted.seed, self.part, at // BLOCK, 4])
            yield np.floor(-self.label_delay * np.log1p(-generator.random(BLOCK)[:size])).astype(np.int64)

    def _arrivals(
        self, wait: float | None, positives_only: bool, late: list[int]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield labels in the order in which they come: numbers of events, seconds, labels. `late` counts the rest.

        Only those that are still to come when an event does are held: as many as the delay is long, not the stream.
        """
        end = math.inf if wait is None else self._seconds(self.rows - 1, 1)[0] + wait
        waiting = np.zeros((3, 0), np.int64)
        rows = zip(self._planted.rows(self.rows, self.part), self.delays(), strict=True)
        for number, (part, delays) in enumerate(rows):
            at, size = number * BLOCK, len(delays)
            assert part.block.labels is not None
            labels = (part.block.labels > 0).astype(np.int64)
            events = np.arange(at, at + size)
            new = np.stack([events, self._seconds(at, size) + delays, labels])
            late[0] += int(np.count_nonzero((new[1] > end) & ((labels > 0) | (not positives_only))))
            new = new[:, (new[1] <= end) & ((labels > 0) | (not positives_only))]
            waiting = np.concatenate([waiting, new], axis=1)
            # A label of a later block may still come in this second: only those before it are sure to be next.
            due = (
                waiting[1] < self._seconds(at + size, 1)[0]
                if at + size < self.rows
                else np.ones(waiting.shape[1], bool)
            )
            come, waiting = waiting[:, due], waiting[:, ~due]
            if come.shape[1]:
                order = np.lexsort((come[0], come[1]))
                yield come[0][order], come[1][order], come[2][order]

    def _values_and_labels(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        rows = self._planted.rows(self.rows, self.part)
        for values, part in zip(self._planted.values(self.rows, self.part), rows, strict=True):
            assert part.block.labels is not None
            yield values, (part.block.labels > 0).astype(np.int64)

    def _seconds(self, at: int, size: int) -> NDArray[np.int64]:
        """Return when some events are, in seconds after the start."""
        return np.floor(np.arange(at, at + size) / self.rate).astype(np.int64)

    def _times(self, at: int, size: int) -> NDArray[np.bytes_]:
        return _shown(self._seconds(at, size))

    def _write(self, path: str | os.PathLike[str], suffix: str, first: list[str], head: Any) -> None:
        """Write a table whose first columns `head` returns for the number of a row and the labels from there on."""
        target = _target(path)
        words = [np.array([f"v{value}" for value in range(size)], "S") for size in self.sizes]

        def pieces() -> Iterator[bytes]:
            if suffix == ".csv":
                yield (",".join([*first, *self.fields]) + "\n").encode()
            at = 0
            for values, labels in self._values_and_labels():
                cells = [*zip(first, head(at, labels), strict=True)]
                cells += [(field, words[place][values[:, place]]) for place, field in enumerate(self.fields)]
                yield _text(suffix, cells)
                at += len(labels)

        _write(pieces(), target)


def make_rare_stream(
    rows: int = 100_000,
    *,
    fields: int | Sequence[int] = FIELDS,
    positives: float = 0.02,
    drift: int = 0,
    noise: float = 0.0,
    label_delay: float | None = None,
    rate: float = 1.0,
    planted: int = 300,
    strength: float = 1.3,
    seed: int = 0,
) -> RareStream:
    """Make a stream of rare events whose true weights, and so the best possible AUC, are known.

    A row has one value of every field, such as a log of clicks has. A few hundred of the values change the odds of a
    positive; all others say nothing.

    Parameters
    ----------
    rows : int, >= 1, default 100,000
        Number of rows. They are made when they are needed, and take no memory.
    fields : int or sequence of int, default 24
        Number of fields, with 2 to 60,000 values in geometric steps; or the number of values of each field.
    positives : float, between 0 and 1, default 0.02
        Expected share of positive rows.
    drift : int, >= 0, default 0
        Number of rows after which the weights have turned over: they are then independent of what they were. They turn
        steadily, and the share of positives stays. With 0 they never change.
    noise : float, between 0 and 1, default 0
        Share of the rows whose label says nothing of them: it is positive with the probability `positives`. The share
        of positives stays, and so does the best ranking; its AUC falls, to 0.5 with noise 1.
    label_delay : float, >= 0, optional
        Mean number of seconds until the label of an event comes, for `RareStream.labels`; Blocks and the files of all
        other methods have the labels at once. By default labels come in the second of their event.
    rate : float, > 0, default 1
        Events per second, for the times of `RareStream.events`.
    planted : int, >= 0, default 300
        Number of values with a weight, among those that occur in more than a thousandth of the rows.
    strength : float, >= 0, default 1.3
        Standard deviation of the weights, in log odds.
    seed : int, >= 0, default 0
        Determines the weights and the rows.

    Returns
    -------
    RareStream
        An iterable of Blocks, with methods that write files.

    Raises
    ------
    DataError
        If a parameter is out of range.

    Examples
    --------
    >>> from rarestream import Model, datasets
    >>> stream = datasets.make_rare_stream(20_000, positives=0.1)
    >>> model = Model("dual-auc")
    >>> for block in stream:
    ...     scores = model.learn(block)
    >>> model.progress.auc < stream.best_auc()
    True
    """
    rows, drift, planted, seed = (
        _whole(value, name) for name, value in (("rows", rows), ("drift", drift), ("planted", planted), ("seed", seed))
    )
    _require(rows >= 1, "rows", "at least 1", rows)
    _require(0 < positives < 1, "positives", "between 0 and 1", positives)
    _require(drift >= 0, "drift", ">= 0 rows", drift)
    _require(0 <= noise <= 1, "noise", "between 0 and 1", noise)
    _require(label_delay is None or 0 <= label_delay < 1e9, "label_delay", "between 0 and 1e9 seconds", label_delay)
    _require(0 < rate < math.inf, "rate", "above 0 and finite", rate)
    _require(planted >= 0, "planted", "at least 0", planted)
    _require(0 <= strength < 100, "strength", "between 0 and 100", strength)
    _require(seed >= 0, "seed", "at least 0", seed)
    if isinstance(fields, Iterable):
        fields = [_whole(size, "fields") for size in fields]
        _require(
            len(fields) > 0 and min(fields) >= 1, "fields", "at least one number of values, each at least 1", fields
        )
        total = f"{sum(fields):,} values"
        _require(sum(fields) <= MOST_VALUES, "fields", f"of at most {MOST_VALUES:,} values together", total)
    else:
        fields = _whole(fields, "fields")
        _require(1 <= fields <= MOST_FIELDS, "fields", f"between 1 and {MOST_FIELDS:,}", fields)
    truth = Planted.plant(seed, positives, planted, strength, drift=drift, fields=fields, noise=noise)
    return RareStream(rows, label_delay, rate, truth)


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise DataError(f"make_rare_stream: {name} must be a whole number, got {plain(repr(value))}.") from None


def _require(met: bool, name: str, rule: str, value: object) -> None:
    if not met:
        raise DataError(f"make_rare_stream: {name} must be {rule}, got {plain(value)}.")


# -- text


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix in OTHER_COMPRESSION:
        raise DataError(f"{plain(target)}: files are written plain or as .gz, not as {target.suffix}.")
    return target


def _table_suffix(path: str | os.PathLike[str]) -> str:
    target = Path(path)
    suffix = (target.with_suffix("") if target.suffix == ".gz" else target).suffix
    if suffix not in (".csv", ".jsonl"):
        raise DataError(f"{plain(target)}: the name must end in .csv or .jsonl, with .gz or without.")
    return suffix


def _ids(at: int, size: int) -> NDArray[np.bytes_]:
    return _ids_of(np.arange(at, at + size))


def _ids_of(events: NDArray[np.int64]) -> NDArray[np.bytes_]:
    return np.char.add(b"e", events.astype("S"))


def _shown(seconds: NDArray[np.int64]) -> NDArray[np.bytes_]:
    return np.datetime_as_string(START + seconds.astype("timedelta64[s]"), unit="s").astype("S")


def _text(suffix: str, cells: list[tuple[str, NDArray[Any]]]) -> bytes:
    """Return rows of a table as CSV or JSON lines; numbers are written as they are, words in quotes in JSON."""
    parts: list[tuple[bytes, NDArray[Any], bytes]] = []
    for place, (name, column) in enumerate(cells):
        words, quote = (column, b'"') if column.dtype.kind == "S" else (column.astype("S"), b"")
        if suffix == ".csv":
            parts.append((b"," if place else b"", words, b""))
        else:
            parts.append((b'%s"%s": %s' % (b", " if place else b"{", name.encode(), quote), words, quote))
    end = b"\n" if suffix == ".csv" else b"}\n"
    rows = len(cells[0][1])
    width = sum(len(before) + words.dtype.itemsize + len(after) for before, words, after in parts) + len(end)
    text = np.zeros((rows, width), np.uint8)
    at = 0
    for piece in [one for part in parts for one in part] + [end]:
        size = len(piece) if isinstance(piece, bytes) else piece.dtype.itemsize
        if isinstance(piece, bytes):
            text[:, at : at + size] = np.frombuffer(piece, np.uint8)
        else:
            text[:, at : at + size] = np.ascontiguousarray(piece).view(np.uint8).reshape(rows, size)
        at += size
    return bytes(text[text != 0])  # words are padded with zeros


def _write(pieces: Iterator[bytes], path: Path) -> None:
    """Write text to a file, which is there complete or not at all."""
    from rarestream.writers.files import opened

    with opened(str(path), level=1) as file:
        for piece in pieces:
            file.write(piece)
