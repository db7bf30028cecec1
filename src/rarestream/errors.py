"""The errors a user meets: each says the place, the rule, what came, and the way on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class RarestreamError(Exception):
    """What every error of this package is, so that one `except` can catch them all."""


class DataError(RarestreamError, ValueError):
    """Rows that break a rule. Nothing was learned from them."""


class RowError(DataError):
    """A row of a block that cannot be learned or scored. `row` is its number within the block, from 0.

    `says` is what is wrong with it, and goes on from "this row". `place` is its file and line, where they are known.
    """

    def __init__(self, where: str, row: int, says: str, place: str | None = None) -> None:
        super().__init__(f"{where}: row {row} of the block {says}" if place is None else f"{place}: this row {says}")
        self.where, self.row, self.says, self.place = where, row, says, place

    def __reduce__(self) -> tuple[Any, tuple[str, int, str, str | None]]:
        return RowError, (self.where, self.row, self.says, self.place)


class ModelFileError(RarestreamError, ValueError):
    """A model file that is damaged, hostile, or of a format this version does not read; or that cannot be written."""


class OutputError(RarestreamError, OSError):
    """A file that cannot be written. What was there is as it was."""


class MissingExtraError(RarestreamError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class ModelBusyError(RarestreamError, RuntimeError):
    """`learn` while another thread learns or scores with the same model, or the reverse."""


class SortedRowsWarning(UserWarning):
    """Rows that a model learns look sorted by label."""


# -- how messages are worded

_command_line = False  # whether a user of the command line reads the messages


def advice(python: str, command: str) -> str:
    """The way on, in the words of whoever reads it: arguments for a Python program, options on the command line.

    Asked for when a message is made, never when a module is imported.
    """
    return command if _command_line else python


def for_command_line() -> bool:
    """Whether messages are worded for the command line."""
    return _command_line


@contextmanager
def worded_for_command_line(wanted: bool = True) -> Iterator[None]:
    """Within it, `advice` names options of the command line; or arguments again, with False."""
    global _command_line
    before, _command_line = _command_line, wanted
    try:
        yield
    finally:
        _command_line = before


# What moves a terminal's cursor, recolours it or turns the direction of text: controls, bidirectional overrides, and
# what cannot be encoded. Compiled when first used: that takes a millisecond.
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"


def plain(name: object) -> str:
    """A name from outside, such as that of a file, as a message may show it: \\x1b stands for an escape."""
    return re.sub(f"[\t\n{_UNSAFE}]", _escaped, str(name))


def plain_text(text: str) -> str:
    """The same for a whole message, whose line ends and tabs are ours."""
    return re.sub(f"[{_UNSAFE}]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
