"""The exceptions of the package. A message names the place, the rule, the value that broke it, and what to do."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class RarestreamError(Exception):
    """Base class of all exceptions of this package."""


class DataError(RarestreamError, ValueError):
    """Invalid rows or arguments. Nothing was learned from them."""


class RowError(DataError):
    """A row of a block that cannot be learned or scored.

    Attributes
    ----------
    where : str
        The function that raised it.
    row : int
        Number of the row within its block, from 0.
    reason : str
        What is wrong with the row; continues "this row ...".
    place : str or None
        File and line of the row, if known.
    scores : array of float64 or None
        Of `Model.learn`: the scores of the rows before it, which were learned.
    """

    scores: Any = None

    def __init__(self, where: str, row: int, reason: str, place: str | None = None) -> None:
        super().__init__(
            f"{where}: row {row} of the block {reason}" if place is None else f"{place}: this row {reason}"
        )
        self.where, self.row, self.reason, self.place = where, row, reason, place

    def __reduce__(self) -> tuple[Any, tuple[str, int, str, str | None]]:
        return RowError, (self.where, self.row, self.reason, self.place)


class ModelFileError(RarestreamError, ValueError):
    """A model file that is damaged, invalid or of a newer format, or that cannot be written."""


class ExportError(RarestreamError, ValueError):
    """A model that cannot be written in the format asked for. The message says which one can hold it."""


class OutputError(RarestreamError, OSError):
    """A file that cannot be written. An existing file is unchanged."""


class DownloadError(RarestreamError, OSError):
    """A file that could not be downloaded. What has come of it is kept: the next attempt continues there."""


class MissingExtraError(RarestreamError, ImportError):
    """An optional dependency is not installed. The message names the extra that installs it."""


class ModelBusyError(RarestreamError, RuntimeError):
    """A model was used while another thread was learning with it, or learned while another thread was using it."""


class NotCalibratedError(RarestreamError, ValueError):
    """Probabilities of a model that has no calibration. The message says how it gets one."""


class FewRowsWarning(UserWarning):
    """Probabilities that are based on very few rows of a class."""


class SortedRowsWarning(UserWarning):
    """The rows that a model learns look sorted by label."""


class RoundsStoppedWarning(UserWarning):
    """Learning in groups stopped before its last round, because the AUC on rows held out fell."""


class SettingsDroppedWarning(UserWarning):
    """Some of the settings that a model races cannot learn a row; the others continue."""


# -- the wording of messages

_command_line = False  # whether messages are for a user of the command line


def advice(python: str, command: str) -> str:
    """Return advice for the reader of a message: arguments in Python, options on the command line.

    Call it when a message is made, not when a module is imported.
    """
    return command if _command_line else python


def for_command_line() -> bool:
    """Return whether messages are worded for the command line."""
    return _command_line


@contextmanager
def worded_for_command_line(wanted: bool = True) -> Iterator[None]:
    """Context in which `advice` names options of the command line or, with False, arguments in Python."""
    global _command_line
    before, _command_line = _command_line, wanted
    try:
        yield
    finally:
        _command_line = before


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, or None if there is none like it; dual_auc finds dual-auc."""
    import difflib

    spelled = {name.replace("_", "-"): name for name in known}
    near = difflib.get_close_matches(str(word).lower().replace("_", "-"), spelled, 1)
    return spelled[near[0]] if near else None


LONGEST_QUOTE = 40  # bytes of a file's text that a message quotes


def quoted(token: bytes) -> str:
    """Return text of a file in quotes, shortened and safe to print."""
    shown, more = token[:LONGEST_QUOTE], "..." if len(token) > LONGEST_QUOTE else ""
    try:
        return repr(token.decode()[:LONGEST_QUOTE]) + more
    except UnicodeDecodeError:
        return repr(shown)[1:] + more


# Characters that could move the cursor of a terminal, change its colours or the direction of text: control characters,
# bidirectional overrides, and surrogates. Compiled when first used, because that takes a millisecond.
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"


def plain(name: object) -> str:
    """Return a name from outside, such as that of a file, safe to print: an escape character becomes \\x1b."""
    return re.sub(f"[\t\n{_UNSAFE}]", _escaped, str(name))


def plain_text(text: str) -> str:
    """Return a whole message, safe to print; its line ends and tabs are kept."""
    return re.sub(f"[{_UNSAFE}]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
