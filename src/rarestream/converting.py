"""`convert`: rows of any format to a file of another, without loading them.

Reading the new file gives the same rows, bit for bit: features, values, labels, importances and tags. The docstrings of
the modules of `writers` say what a format cannot hold; `Converted.notes` says it of the rows that were written.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, cast

from rarestream.errors import DataError, OutputError, RowError, advice, plain
from rarestream.readers.stream import read
from rarestream.system import whole
from rarestream.writers.files import STDOUT, opened
from rarestream.writers.registry import FORMATS, output_format

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.readers import Stream
    from rarestream.writers.registry import Writer

UNLABELLED = {"keep": "missing", "drop": "required", "all": "optional"}  # and the option `labels` of `read`


class Converted(NamedTuple):
    """What `convert` has written.

    Attributes
    ----------
    path : str
        The file; "-" for standard output.
    to : str
        Its format.
    rows : int
        Number of rows.
    positives : int
        Number of rows whose label is +1.
    unlabelled : int
        Number of rows without a label; with ``unlabelled="drop"``, those that were left out.
    bytes : int
        Size before compression.
    refused : int
        Number of invalid rows that were skipped, with `max_bad_rows`.
    refusals : list of str
        Messages for the first of them.
    notes : list of str
        What a user should know, such as names that the format cannot hold; a sentence each.
    """

    path: str
    to: str
    rows: int
    positives: int
    unlabelled: int
    bytes: int
    refused: int
    refusals: list[str]
    notes: list[str]


def convert(
    source: Any,
    path: str | os.PathLike[str],
    to: Literal["svmlight", "vw", "blocks"] | None = None,
    *,
    format: str | None = None,
    unlabelled: Literal["keep", "drop", "all"] = "keep",
    overwrite: bool = False,
    **options: Any,
) -> Converted:
    """Write rows of any format to a file of another.

    Memory stays constant whatever the size of the data. The file is complete when it appears: it is written under
    another name first. Reading it gives the same rows, bit for bit.

    Parameters
    ----------
    source : path, glob pattern, "-", binary file, or iterable of these; frame, or iterable of dicts
        What to read, as for `read`.
    path : path
        The file to write, compressed if its name ends in .gz, .bz2, .xz or .zst; "-" for standard output.
    to : {"svmlight", "vw", "blocks"}, optional
        Its format. By default that of the suffix: .svm, .vw or .blocks.
    format : str, optional
        Format of the data, as for `read`.
    unlabelled : {"keep", "drop", "all"}, default "keep"
        Rows without a label: "keep" writes them without one, which svmlight cannot hold; "drop" leaves them out, and
        counts them; "all": no row has a label, or it is not wanted.
    overwrite : bool, default False
        Whether to replace a file that exists.
    **options
        Other options of `read`, such as `label` for tables.

    Returns
    -------
    Converted
        What was written, and what a user should know of it.

    Raises
    ------
    DataError
        If data are invalid, or the format cannot hold a row: an existing file is then unchanged.
    OutputError
        If the file cannot be written, or exists and is not to be replaced.
    """
    name = os.fspath(path)
    name = STDOUT if name == "/dev/stdout" else name
    to_name = output_format(to, name)
    if unlabelled not in UNLABELLED:
        raise DataError(f"convert: unlabelled must be one of {', '.join(UNLABELLED)}, got {unlabelled!r}.")
    stream = read(source, format, labels=UNLABELLED[unlabelled], **options)
    if name != STDOUT:
        _check_output(name, stream, overwrite)
    if not FORMATS[to_name].text:
        with whole(name) as raw:
            return _written(stream, raw, name, to_name, unlabelled == "all")
    with opened(name) as file:
        done = _written(stream, cast(BinaryIO, file), name, to_name, unlabelled == "all")
    return done._replace(bytes=file.size)


def _written(stream: Stream, file: BinaryIO, name: str, to: str, no_labels: bool) -> Converted:
    import numpy as np

    writer: Writer | None = None
    rows = positives = unlabelled = 0
    for block in stream.partly_labelled():
        if no_labels:
            block = replace(block, labels=None, classes=None)
        if writer is None:
            writer = FORMATS[to].make(file, **_facts(to, block, stream))
        try:
            writer.write(block)
        except RowError as error:
            raise RowError(error.where, error.row, error.reason, stream.where(error.row)) from None
        rows += len(block)
        if block.labels is not None:
            positives += int(np.count_nonzero(block.labels > 0))
            unlabelled += int(np.count_nonzero(block.labels == 0))
        elif block.classes is None:
            unlabelled += len(block)
        if not stream.replayable and name == STDOUT:  # whoever writes to a pipe may be waiting for an answer
            file.flush()
    assert writer is not None  # no rows are an error
    writer.close()
    size = 0 if FORMATS[to].text else file.tell()
    return Converted(
        name,
        to,
        rows,
        positives,
        unlabelled + stream.unlabelled,
        size,
        stream.refused,
        stream.refusals,
        [*stream.notes, *getattr(writer, "notes", ())],
    )


def _facts(to: str, block: Block, stream: Stream) -> dict[str, Any]:
    """Return what a writer needs to know of the rows, beside the rows."""
    if to == "vw":
        return {"first": int(block.space is None and stream.settings.get("zero_based") is False)}
    return {"settings": lambda: stream.settings} if to == "blocks" else {}


def _check_output(name: str, stream: Stream, overwrite: bool) -> None:
    """Raise OutputError if the file exists and is not to be replaced; DataError if it is one of those that are read."""
    if not os.path.exists(name):
        return
    for source in stream.paths:
        if os.path.samefile(source, name):
            raise DataError(f"{plain(name)}: is also an input file; it would be lost. Choose another name.")
    if not overwrite:
        option = advice("overwrite=True", "--overwrite")
        raise OutputError(f"{plain(name)}: exists, and is not replaced. Choose another name, or pass {option}.")
