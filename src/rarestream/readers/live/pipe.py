"""Rows that another program writes to a pipe: standard input, or a named pipe.

What was read from a pipe cannot be read again. The position is the number of rows that came out of it, for whoever
writes to it: after a restart, the program that has the rows continues after as many as the model file says.
"""

from __future__ import annotations

import time

from rarestream.readers.chunks import BYTE_ORDER_MARK
from rarestream.readers.compression import Plain
from rarestream.readers.live.lines import LINGER, MOST_TEXT, LineSource, Position
from rarestream.readers.live.text import TextLines, Unfinished
from rarestream.readers.sources import LAST_READS, NothingYetError, Source, StoppedError


class PipeSource(LineSource):
    """Follows a pipe of text that is not compressed.

    Parameters
    ----------
    source : Source
        The pipe.
    """

    kind = "pipe"
    replayable = False
    headed = True

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.name = source.name
        self._source = source
        self._raw = source.open()
        self._text = Plain(self._raw, b"")
        self._unfinished = Unfinished(source.name)
        self._lines = 0
        self._begins = True
        self._view = memoryview(bytearray(MOST_TEXT))

    def start(self, position: Position) -> None:
        pass

    def take(self, patience: float) -> TextLines | None:
        until = time.monotonic() + patience
        while not self.ended:
            self._raw.patience = max(0.0, until - time.monotonic())
            try:
                count = self._text.readinto(self._view)
            except NothingYetError:
                return self._rows()
            except StoppedError:
                self.ended = True
                return self._rows()  # a row that its writer has not finished is left out
            if count:
                if not len(self._unfinished):
                    until = min(until, time.monotonic() + LINGER)
                self._unfinished.add(bytes(self._view[:count]))
            else:
                self.ended = True
                return self._made(self._unfinished.take_all())
            if len(self._unfinished) >= MOST_TEXT or time.monotonic() >= until:
                rows = self._rows()
                if rows is not None:
                    return rows
        return None

    def _rows(self) -> TextLines | None:
        return self._made(self._unfinished.take_rows(self.row_end))

    def _made(self, text: bytes) -> TextLines | None:
        if not text:
            return None
        begins, self._begins = self._begins, False
        if begins and text.startswith(BYTE_ORDER_MARK):
            text = text[len(BYTE_ORDER_MARK) :]
        made = _PipeLines(text, begins, self.name, self._lines)
        self._lines += text.count(b"\n")
        return made

    def stop(self) -> None:
        self._raw.stop(LAST_READS)

    def close(self) -> None:
        self._raw.close()


class _PipeLines(TextLines):
    def __init__(self, text: bytes, begins: bool, name: str, before: int) -> None:
        super().__init__(text, begins)
        self._name, self._before = name, before

    def position(self, lines: int) -> Position:
        return {"lines": self._before + lines}

    def place(self, line: int) -> str:
        return f"{self._name}:{self._before + line}"
