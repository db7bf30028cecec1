"""`split`: the rows of files into parts, in one pass, or two where all rows must be known first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple

import numpy as np

from rarestream.errors import DataError, OutputError, advice, plain
from rarestream.readers.formats import Format, find_format
from rarestream.readers.sources import Source, SourceLike, expand
from rarestream.readers.tables import TableOptions
from rarestream.splitting.batch_rows import BatchOutput, BatchRows, batch_outputs
from rarestream.splitting.rules import (
    ByKey,
    ByOrder,
    ByRandom,
    ByTime,
    CountRows,
    CountTimes,
    Rule,
    TimesOfRows,
    given_times,
    shown_times,
)
from rarestream.splitting.shares import Shares, shares_of
from rarestream.splitting.text_rows import KEYS, TextOutput, TextRows, text_outputs
from rarestream.writers.compression import suffix_of

BY = ("random", "order", "key", "time")
BATCHES = ("parquet", "arrow")  # formats that are no text


class SplitPart(NamedTuple):
    """A part.

    Attributes
    ----------
    name : str
        Such as "train".
    path : str
        Its file.
    rows : int
        Number of rows.
    positives : int or None
        Number of positive rows; None if labels are not known.
    """

    name: str
    path: str
    rows: int
    positives: int | None


class SplitResult(NamedTuple):
    """What `split` has written.

    Attributes
    ----------
    parts : list of SplitPart
        The parts, in order.
    by : str
        How rows were split.
    cuts : list of str
        By time: the first time of each part but the first.
    without_key : int
        By key: number of rows without one, which were placed at random.
    refused : int
        Number of invalid rows that were skipped, with `max_bad_rows`.
    refusals : list of str
        Messages for the first of them.
    """

    parts: list[SplitPart]
    by: str
    cuts: list[str]
    without_key: int
    refused: int
    refusals: list[str]

    @property
    def rows(self) -> int:
        """Number of rows of all parts."""
        return sum(part.rows for part in self.parts)


def split(
    source: SourceLike | Sequence[SourceLike],
    into: str | Mapping[str, float] | None = None,
    *,
    by: Literal["random", "order", "key", "time"] = "random",
    column: str | None = None,
    at: Any = None,
    seed: int = 0,
    output_dir: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    format: str | None = None,
    **options: Any,
) -> SplitResult:
    """Split the rows of files into parts, such as train and test.

    A part keeps the format of the data, and its rows are copied as they are. Memory stays constant whatever the size of
    the data. The files appear together when all rows are written; if anything fails, none does.

    Parameters
    ----------
    source : path, glob pattern, "-", binary file, or iterable of these
        What to split; several files make one split.
    into : str or mapping, optional
        Names and shares of the parts, such as "train=0.7,valid=0.1,test=0.2" or {"train": 0.8, "test": 0.2}. With `at`,
        their names alone. By default train and test, 0.8 and 0.2.
    by : {"random", "order", "key", "time"}, default "random"
        "random": by a random number, which depends on `seed` and the number of the row. "order": the first rows to the
        first part, exactly. "key": by a hash of the text in `column`, so that all rows of a key, such as a user, are in
        one part, in every file that is split with the same shares and seed. "time": by the time in `column`, the
        earliest rows to the first part, in whatever order they come.
    column : str, optional
        The column of the key or the time. Rows of svmlight have their qid for it, those of VW text their tag.
    at : date, number or str, or sequence of these, optional
        By time: the first time of each part but the first, instead of shares.
    seed : int, default 0
        By "random" and "key": of the random numbers or the hash.
    output_dir : path, optional
        Where the parts are written. By default beside the first file.
    overwrite : bool, default False
        Whether to replace files that exist.
    format : str, optional
        Format of the data, as for `read`.
    **options
        Options of `read` that say how rows are found, such as `delimiter`; and `label`, to count positive rows.

    Returns
    -------
    SplitResult
        The parts, and how many rows each has. The files of clicks.csv.gz are clicks.train.csv.gz and so on.

    Raises
    ------
    DataError
        If an argument or a row is invalid.
    OutputError
        If a file cannot be written, or exists and is not to be replaced.
    """
    sources = expand(source)
    found = find_format(format, sources)
    if not found.files:
        raise DataError("split: rows in memory have no file to split; split the frame or the list itself.")
    times = None if at is None else _texts_of(at)
    _check(found, by, column, times, seed, sources)
    settings = found.make_options(**{**_roles(found, options, column), "labels": "optional"})
    shares = shares_of(into, None if times is None else len(times))
    paths = _part_paths(sources, found, shares.names, output_dir)
    _check_outputs(paths, sources, overwrite)

    def rows() -> TextRows | BatchRows:
        if found.name in BATCHES:
            return BatchRows(sources, found.name, settings, column)
        return TextRows(sources, found, settings, column, wanted=by in ("key", "time"))

    what = f"column {column!r}" if column is not None else f"the {KEYS.get(found.name, 'tag')}"
    cuts, make = _rule(by, shares, times, seed, rows, what)
    return _written(make, sources, paths, shares, by, found, cuts)


def _roles(format: Format, options: Mapping[str, Any], column: str | None) -> dict[str, Any]:
    """Return the options of reading, with the column of the key or the time."""
    if column is None:
        return dict(options)
    if options.get("label") == column:
        raise DataError(f"split: {column!r} is the column of the label, and cannot be that of the key or the time.")
    return {**options, "tag": column}


def _check(
    format: Format, by: str, column: str | None, at: list[str] | None, seed: int, sources: Sequence[Source]
) -> None:
    if by not in BY:
        raise DataError(f"split: by must be one of {', '.join(BY)}, got {by!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise DataError(f"split: seed must be a whole number, got {seed!r}.")
    named = advice("column=", "--column ")
    tables = issubclass(format.options, TableOptions)
    if by not in ("key", "time"):
        if column is not None:
            option = advice('by="key" or by="time"', "--by key or --by time")
            raise DataError(f"split: a column is for {option}.")
    elif not tables and format.name not in KEYS:
        raise DataError(f"split: {format.name} has no columns, and so no {by}. Split it by order or at random.")
    elif not tables and column is not None:
        has = KEYS[format.name]
        raise DataError(
            f"split: {format.name} has no columns; the {by} is the {has} of a row. Leave out {named}{column}."
        )
    elif tables and column is None:
        raise DataError(f"split: which column is the {by}? Pass {named}COLUMN.")
    if at is not None and by != "time":
        raise DataError(f"split: {advice('at', '--at')} is for {advice('by=', '--by ')}time.")
    if by == "order" or (by == "time" and at is None):
        for source in sources:
            if not source.replayable:
                which = "at random or by key" if by == "order" else f"with {advice('at=', '--at ')}TIME"
                raise DataError(
                    f"{source.name}: can be read only once, and a split by {by} reads it twice. Save it to a file "
                    f"first, or split it {which}."
                )


def _texts_of(at: Any) -> list[str]:
    """Return times as text: of one, or of several."""
    if isinstance(at, str):
        found = [part.strip() for part in at.split(",")]
    elif isinstance(at, Sequence):
        found = [str(one) for one in at]
    else:
        found = [str(at)]
    if not found or not all(found):
        raise DataError(f"split: {advice('at', '--at')} must be a date or a number, got {at!r}.")
    return found


Rows = TextRows | BatchRows
Made = Callable[[], tuple[Rows, Rule]]


def _rule(
    by: str, shares: Shares, at: list[str] | None, seed: int, rows: Callable[[], Rows], what: str
) -> tuple[list[str], Made]:
    """Return what makes the rows and the rule of the pass that writes, after a first pass where one is needed."""
    if by == "time":
        cuts, kind, why = _time_cuts(shares, at, rows, what)

        def made() -> tuple[Rows, Rule]:
            one = rows()
            times = TimesOfRows(what, one.refusals, kind, why)
            return one, ByTime(cuts, times)

        return shown_times(cuts, kind), made
    if by == "order":
        counted = CountRows()
        for piece in rows().pieces():
            counted.parts(piece.rows, None, piece.place)
        return [], lambda: (rows(), ByOrder(shares.ends, counted.rows))
    kind_of_rule = ByKey if by == "key" else ByRandom
    return [], lambda: (rows(), kind_of_rule(shares.ends, seed))


def _time_cuts(shares: Shares, at: list[str] | None, rows: Callable[[], Rows], what: str) -> tuple[list[int], str, str]:
    if at is not None:
        return *given_times(at), f"as {advice('at', '--at')} is"
    one = rows()
    counted = CountTimes(TimesOfRows(what, one.refusals))
    for piece in one.pieces():
        counted.parts(piece.rows, piece.texts, piece.place)
    kind = counted.times.kind
    if not counted.rows or kind is None:
        raise DataError(f"split: no row has a time in {what}.")
    return counted.counts.cuts(shares.ends[:-1]), kind, "as in the first rows"


def _written(
    make: Made,
    sources: Sequence[Source],
    paths: list[str],
    shares: Shares,
    by: str,
    format: Format,
    cuts: list[str],
) -> SplitResult:
    count = len(paths)
    rows, rule = make()
    totals, positives = np.zeros(count, np.int64), np.zeros(count, np.int64)
    labelled = True
    outputs: AbstractContextManager[Sequence[TextOutput | BatchOutput]] = (
        batch_outputs(paths, format.name) if format.name in BATCHES else text_outputs(paths)
    )
    with outputs as files:
        started = False
        for piece in rows.pieces():
            if not started:
                started = True
                for file in files:
                    file.start(rows)  # type: ignore[arg-type]
            parts = rule.parts(piece.rows, piece.texts, piece.place)
            for file, chunk in zip(files, piece.split(parts, count), strict=True):
                file.write(chunk)
            kept = parts >= 0
            totals += np.bincount(parts[kept], minlength=count)
            if piece.labels is None or not piece.labels.all():
                labelled = False
            elif labelled:
                positives += np.bincount(parts[kept & (piece.labels > 0)], minlength=count)
        if not totals.sum():
            raise DataError(f"{', '.join(source.name for source in sources[:3])}: no rows.")
        if isinstance(rule, ByKey) and not rule.keyed:
            raise DataError(
                f"split: no row has a {KEYS.get(format.name, 'key')}, which is the key of {format.name} rows. Split "
                "them by order or at random."
            )
        for file in files:
            file.close()
    labelled = labelled and 0 < int(positives.sum()) < int(totals.sum())
    found = [
        SplitPart(name, path, int(total), int(positive) if labelled else None)
        for name, path, total, positive in zip(shares.names, paths, totals, positives, strict=True)
    ]
    unkeyed = rule.unkeyed if isinstance(rule, ByKey) else 0
    return SplitResult(found, by, cuts, unkeyed, rows.refusals.count, list(rows.refusals.first))


def part_paths(
    source: SourceLike | Sequence[SourceLike],
    into: str | Mapping[str, float] | None = None,
    *,
    at: Any = None,
    output_dir: str | os.PathLike[str] | None = None,
    format: str | None = None,
) -> list[str]:
    """Return the files that `split` would write with these arguments."""
    sources = expand(source)
    names = shares_of(into, None if at is None else len(_texts_of(at))).names
    return _part_paths(sources, find_format(format, sources), names, output_dir)


def _part_paths(
    sources: Sequence[Source], format: Format, names: Sequence[str], output_dir: str | os.PathLike[str] | None
) -> list[str]:
    """Return the files of the parts: clicks.train.csv.gz for clicks.csv.gz."""
    first = sources[0]
    base = first.base if first.path is not None or first.base not in ("-", "<file>") else f"stdin{format.suffixes[0]}"
    packed = suffix_of(base)
    stem = base[: len(base) - len(packed)]
    suffix = next((end for end in format.suffixes if stem.lower().endswith(end)), "")
    suffix = stem[len(stem) - len(suffix) :] if suffix else os.path.splitext(stem)[1]
    stem = stem[: len(stem) - len(suffix)]
    folder = os.path.dirname(first.path or "") if output_dir is None else os.fspath(output_dir)
    return [os.path.join(folder, f"{stem}.{name}{suffix}{packed}") for name in names]


def _check_outputs(paths: Sequence[str], sources: Sequence[Source], overwrite: bool) -> None:
    """Raise OutputError if a file exists and is not to be replaced; DataError if it is one of those that are read."""
    for path in paths:
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise OutputError(f"{plain(path)}: the folder {plain(folder)} does not exist. Create it first.")
        if not os.path.exists(path):
            continue
        if any(source.path is not None and os.path.samefile(source.path, path) for source in sources):
            raise DataError(f"{plain(path)}: is also an input file; it would be lost. Choose another folder or name.")
        if not overwrite:
            option = advice("overwrite=True", "--overwrite")
            raise OutputError(f"{plain(path)}: exists, and is not replaced. Choose another folder, or pass {option}.")
