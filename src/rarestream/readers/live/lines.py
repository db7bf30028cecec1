"""What a live source supplies: rows as lines of text, each with the position of the source after it.

A position is what a model file keeps, in the same atomic save as the state that the rows before it have led to. Started
at that position again, a source delivers the next row: so every row is learned once, whenever the program is killed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from rarestream.readers.chunks import last_line_end

Position = dict[str, Any]  # ready for JSON; empty: where the source starts by default

LINGER = 0.1  # seconds that rows wait for more before they are delivered
MOST_TEXT = 1 << 20  # approximate bytes of text that are delivered at once


class Lines(ABC):
    """Some whole lines of a live source, in order.

    Attributes
    ----------
    text : bytes
        The lines, each with its line end.
    begins : bool
        Whether the first line is the first of a file, which may be a heading.
    """

    text: bytes
    begins: bool = False

    @abstractmethod
    def position(self, lines: int) -> Position:
        """Return the position of the source after the first so many lines; 0: before the first."""

    @abstractmethod
    def place(self, line: int) -> str:
        """Return where a line is, for messages, such as "clicks.csv:1043"; `line` counts from 1."""


class NoLines(Lines):
    """No lines, but a position: where a source starts that nobody has read before."""

    text = b""

    def __init__(self, position: Position) -> None:
        self._position = position

    def position(self, lines: int) -> Position:
        return self._position

    def place(self, line: int) -> str:
        raise IndexError("there are no lines")


class JoinedLines(Lines):
    """Several Lines of a source, one after the other."""

    def __init__(self, parts: Sequence[Lines]) -> None:
        self.text = b"".join(part.text for part in parts)
        self.begins = parts[0].begins
        self._parts = parts
        self._ends = list(accumulate(part.text.count(b"\n") for part in parts))

    def position(self, lines: int) -> Position:
        number, before = self._find(lines)
        return self._parts[number].position(lines - before)

    def place(self, line: int) -> str:
        number, before = self._find(line)
        return self._parts[number].place(line - before)

    def _find(self, line: int) -> tuple[int, int]:
        """Return the number of the part that has a line, and the lines before it."""
        number = min(bisect_left(self._ends, line), len(self._ends) - 1)
        return number, self._ends[number - 1] if number else 0


class LineSource(ABC):
    """A source of lines that may go on for ever.

    `take` runs in a thread of its own, one call at a time; `stop` may be called from any thread and from a signal
    handler, `saved` and the attributes from the thread that learns.

    Attributes
    ----------
    name : str
        What messages and the model file call it: a path, or an address without a password.
    ended : bool
        Whether nothing will ever come again: the other end of a pipe is closed.
    notes : list of str
        What a user should know as it happens, a sentence each, such as that a file was rotated; whoever shows one
        removes it.
    """

    kind: ClassVar[str]  # in model files
    default_format: ClassVar[str | None] = None  # None: by the suffix of the name
    address: str | None = None  # what to follow it by again, without secrets; None: its key
    replayable: ClassVar[bool] = True  # whether rows after a position can be read again
    headed: ClassVar[bool] = False  # whether a table may start with the names of its columns
    name: str
    ended: bool = False

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.row_end: Callable[[bytearray, int], int] = last_line_end  # where rows of the format end, as for Chunks

    @property
    def key(self) -> str:
        """What the model file keeps the position under: the name, wherever the program is started."""
        return self.name

    @abstractmethod
    def start(self, position: Position) -> None:
        """Open the source at a position. Called once, before `take`.

        Raises
        ------
        DataError
            If there is no such source, or rows after the position are gone.
        """

    @abstractmethod
    def take(self, patience: float) -> Lines | None:
        """Return the next lines, about MOST_TEXT bytes of them at most; None if none came in `patience` seconds.

        A line that has come is delivered after LINGER seconds at the latest. Lines without text only move the position:
        to a file that was just opened, or to where a topic ended when it was opened.

        Raises
        ------
        DataError
            If the source is lost: a broker that did not answer for a long time, a topic that was deleted.
        """

    def head(self) -> bytes:
        """Return the first text of the file whose middle `take` is about to continue; empty if there is none."""
        return b""

    def behind(self) -> str:
        """Return how much is waiting to be read, such as "1,204 messages behind"; empty if that is not known."""
        return ""

    def saved(self, position: Position) -> None:  # noqa: B027  most sources need not know
        """Take note that everything up to a position is in the model file."""

    @abstractmethod
    def stop(self) -> None:
        """End a `take` that is waiting; it returns None soon. Safe to call from a signal handler."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""
