"""Frames and dicts of other packages as Blocks of hashed features, through `read`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.features import Hashed
from rarestream.readers import read
from rarestream.readers.sources import FRAME, ROWS

FEW = 10_000  # rows that are encoded faster without threads


def read_rows(X: Any, space: Hashed, options: Mapping[str, Any], where: str) -> list[Block]:
    """Return the rows of a frame or a list of dicts, with features of the space.

    Parameters
    ----------
    X : frame or list of dicts
        The rows.
    space : Hashed
        The feature space. Its plan says what the columns are; if it has none, the rows and `options` decide it.
    options : mapping
        The options of reading.
    where : str
        The class of the estimator, for messages.

    Raises
    ------
    DataError
        If a value cannot be a feature, or an option is not allowed or names a column that is not there.
    """
    threads = 0 if hasattr(X, "__len__") and len(X) < FEW else None
    try:
        stream = read(X, labels="optional", threads=threads, features=space, **options)
        blocks = list(stream)
    except DataError as error:
        raise DataError(_placed(where, str(error))) from None
    for note in stream.notes:
        warnings.warn(_placed(where, note), stacklevel=2)  # that line, so that a note is shown once
    return blocks


def _placed(where: str, message: str) -> str:
    """Return a message of `read` with the name of the estimator instead."""
    for place in ("read", FRAME, ROWS):
        message = message.removeprefix(f"{place}: ")
    return f"{where}: {message}"
