"""A file that another program adds rows to, such as a log; rotation and truncation are noticed.

A position is an offset in the file that had the name when it was read, which is recognised by its inode and its first
text. A log that was rotated while nobody followed it is found beside the file, under a name such as access.log.1 or
access.log-20260131.gz: its rest is read, then the files that were rotated after it, then the one that has the name now.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress

from rarestream.errors import DataError, advice, plain
from rarestream.readers.chunks import BYTE_ORDER_MARK
from rarestream.readers.compression import METHODS, open_text
from rarestream.readers.fingerprints import first_text
from rarestream.readers.live.lines import MOST_TEXT, LineSource, Position
from rarestream.readers.live.text import TextLines, Unfinished
from rarestream.readers.sources import Source

HEAD = 4096  # bytes of text by which a file is recognised
PAUSE = 0.05  # seconds between two looks at a file that has not grown
GRACE = 1.0  # seconds for which a rotated file must not have grown before the next one is read


class FileSource(LineSource):
    """Follows a file of plain text.

    Parameters
    ----------
    path : str
        The file. It may come later.
    lost : bool
        Whether to read the file from its start if the one that a position is in cannot be found.
    """

    kind = "file"
    headed = True

    def __init__(self, path: str, lost: bool = False) -> None:
        super().__init__()
        self.path, self.name = path, plain(path)
        if _compressed(path):
            raise DataError(
                f"{self.name}: a compressed file cannot be followed while it is written. Follow the file before it is "
                "compressed, or the folder that compressed files are moved to."
            )
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise DataError(f"{self.name}: the folder {plain(folder)} does not exist. Check the name.")
        self._lost = lost
        self._stopping = threading.Event()
        self._file: _OpenFile | None = None
        self._before: _OpenFile | None = None  # the file that was read to its end before
        self._grew = 0.0  # when the open file has last grown, or still had the name
        self._missing_said = False

    @property
    def key(self) -> str:
        return os.path.abspath(self.path)

    # -- where to start

    def start(self, position: Position) -> None:
        if "offset" not in position:
            return
        offset, line = int(position["offset"]), int(position.get("line", 0))
        if self._is(self.path, position):
            self._file = _OpenFile(self.path, offset, line)
            return
        for path, _ in self._rotated():
            if self._is(path, position):
                self.notes.append(f"{self.name}: was rotated; its rest is read from {plain(path)}.")
                self._file = _OpenFile(path, offset, line)
                return
        if self._lost:
            self.notes.append(
                f"{self.name}: the file that the model has learned up to byte {offset:,} is gone; what followed there "
                "is not learned."
            )
            return
        what = "is another file than" if os.path.exists(self.path) else "is not there, and neither is"
        raise DataError(
            f"{self.name}: {what} the one that the model has learned up to byte {offset:,}; rows that followed there "
            f"would be lost. Put it back, or beside it as {plain(os.path.basename(self.path))}.1; to go on without "
            f"these rows, pass {advice('lost=True', '--lost')}."
        )

    def _is(self, path: str, position: Position) -> bool:
        """Return whether a file is that of a position: by its inode, or by all of its first text; and long enough."""
        try:
            now = os.stat(path)
        except OSError:
            return False
        offset, covered = int(position["offset"]), int(position.get("head", 0))
        same = (now.st_dev, now.st_ino) == (position.get("device"), position.get("inode"))
        if not stat.S_ISREG(now.st_mode) or not (same or covered):
            return False
        if not _compressed(path) and now.st_size < offset:
            return False
        head = first_text(Source(path, path, now.st_size, path), covered)
        return len(head) == covered and zlib.crc32(head) == position.get("crc32")

    def _rotated(self) -> list[tuple[str, os.stat_result]]:
        """Return the files beside this one that have its name and a number or a date, oldest first."""
        folder, base = os.path.split(os.path.abspath(self.path))
        stem, suffix = os.path.splitext(base)
        number, packed = r"[.-]\d[\d.:T_-]*", "(?:" + "|".join(re.escape(method) for method in METHODS) + ")?"
        named = re.compile(f"(?:{re.escape(base)}{number}|{re.escape(stem)}{number}{re.escape(suffix)}){packed}", re.I)
        with os.scandir(folder) as entries:
            found = []
            for entry in entries:
                if named.fullmatch(entry.name):
                    with suppress(OSError):  # renamed by the next rotation, or gone
                        found.append((entry.path, os.stat(entry.path)))
        # Renaming a file changes its ctime: it tells which of two that were last written at the same time came first.
        return sorted(found, key=lambda one: (one[1].st_mtime_ns, one[1].st_ctime_ns, one[0]))

    def _after(self, file: _OpenFile) -> str | None:
        """Return the file that was rotated next after one; None if there is none: the one that has the name follows."""
        rotated = self._rotated()
        for number, (_, now) in enumerate(rotated):
            if file.is_same(now):
                return rotated[number + 1][0] if number + 1 < len(rotated) else None
        return next((path for path, now in rotated if now.st_mtime_ns > file.written), None)

    def head(self) -> bytes:
        return b"" if self._file is None or not self._file.offset else self._file.head()

    # -- rows

    def take(self, patience: float) -> TextLines | None:
        until = time.monotonic() + patience
        while not self._stopping.is_set():
            lines = self._opened() if self._file is None else self._read(self._file)
            if lines is not None:
                return lines
            left = until - time.monotonic()
            if left <= 0:
                break
            self._stopping.wait(min(PAUSE, left))
        return None

    def _opened(self) -> TextLines | None:
        """Open the next file: a rotated one, or the one that has the name now. Its first lines move the position."""
        path = (None if self._before is None else self._after(self._before)) or self.path
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise DataError(f"{self.name}: is not a regular file. Check the name.")
            opened = _OpenFile(path, 0, 0)
        except FileNotFoundError:
            if not self._missing_said:
                self._missing_said = True
                self.notes.append(f"{self.name}: is not there yet; waiting for it.")
            return None
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read: {(error.strerror or '').lower()}.") from None
        if self._before is not None:
            now = self._after(self._before)
            if now is not None and not opened.is_same(os.stat(now)):  # files were rotated just now: look again
                opened.close()
                return None
        self._file, self._before = opened, None
        self._missing_said = False
        self._grew = time.monotonic()
        return opened.lines(b"")

    def _read(self, file: _OpenFile) -> TextLines | None:
        """Return whole rows of the open file, if there are new ones; see whether it was rotated or truncated."""
        grew = file.read()
        if file.truncated:
            self._file = self._copy_of(file)
            file.close()
            return None
        if rows := file.whole_rows(self.row_end):
            self._grew = time.monotonic()
            return file.lines(rows)
        if grew or file.has_name(self.path):
            self._grew = time.monotonic()
            return None
        # A program that has not noticed yet that its log was rotated still writes to the old file for a moment.
        if not file.finished and time.monotonic() - self._grew < GRACE and self._after(file) is None:
            return None
        rest = file.last_lines()
        self._file, self._before = None, file
        file.close()
        self.notes.append(f"{self.name}: was rotated; the next file is read from its start.")
        return rest if rest.text else None

    def _copy_of(self, file: _OpenFile) -> _OpenFile | None:
        """Return the copy that was made of a file before it was truncated, if there is one: its rest is not lost."""
        position = file.here()
        for path, _ in self._rotated():
            if self._is(path, position):
                self.notes.append(f"{self.name}: was truncated; what was not read yet is read from {plain(path)}.")
                return _OpenFile(path, int(position["offset"]), int(position["line"]))
        self.notes.append(
            f"{self.name}: was truncated after byte {file.offset:,} and is read from its start. Rows that were written "
            "and removed between two looks are not known."
        )
        return None

    def behind(self) -> str:
        file = self._file
        left = 0 if file is None else file.left()
        return f"{left:,} bytes behind" if left else ""

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _OpenFile:
    """A file that is open, and read up to an offset of its text."""

    def __init__(self, path: str, offset: int, line: int) -> None:
        self.name = plain(path)
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        now = os.fstat(self._fd)
        self._device, self._inode = now.st_dev, now.st_ino
        self.offset, self._line = offset, line  # of the rows that were returned
        self.truncated = False
        self.written = 0  # when it was last written, once it is closed
        self._unfinished = Unfinished(self.name)
        self._head = b""
        self._text = None
        if _compressed(path):  # it was rotated, and is complete
            self._raw = Source(self.name, os.path.basename(path), now.st_size, path).open()
            self._text = open_text(self._raw)
            self._skip(offset)

    @property
    def finished(self) -> bool:
        """Whether nobody adds to it."""
        return self._text is not None

    def _skip(self, size: int) -> None:
        while size:
            taken = len(self._more(min(size, MOST_TEXT)))
            if not taken:
                raise DataError(f"{self.name}: is shorter than what was learned of it. Put the whole file back.")
            size -= taken

    def _at(self, offset: int, size: int) -> bytes:
        """Return the bytes that are at an offset, as many as are there."""
        os.lseek(self._fd, offset, os.SEEK_SET)  # not pread, which Windows does not have
        return os.read(self._fd, size)

    def _more(self, size: int) -> bytes:
        """Return some text that was not read yet."""
        try:
            if self._text is None:
                return self._at(self.offset + len(self._unfinished), size)
            view = bytearray(size)
            return bytes(view[: self._text.readinto(memoryview(view))])
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read: {(error.strerror or str(error)).lower()}.") from None

    def read(self) -> bool:
        """Read what is there, up to about MOST_TEXT bytes; return whether that is anything."""
        if self._text is None:
            at = self.offset + len(self._unfinished)
            # The file may have grown again since it was truncated: its first text tells.
            head = self._at(0, max(1, len(self._head)))
            if os.fstat(self._fd).st_size < at or (self._head and head[: len(self._head)] != self._head):
                self.truncated = True
                return False
        data = self._more(MOST_TEXT)
        self._unfinished.add(data)
        return bool(data)

    def whole_rows(self, row_end: Callable[[bytearray, int], int]) -> bytes:
        """Return the whole rows that were read; empty: none."""
        return self._unfinished.take_rows(row_end)

    def last_lines(self) -> TextLines:
        """Return what was read and is no whole row as one, because nothing follows it."""
        end = self.offset + len(self._unfinished)
        return self.lines(self._unfinished.take_all(), end)

    def lines(self, text: bytes, end: int | None = None) -> TextLines:
        """Return rows as lines, and move on to their end: the offset after the text, if not given."""
        end = self.offset + len(text) if end is None else end
        made = _FileLines(text, self.offset == 0 and bool(text), self, self.offset, end, self._line)
        if self._text is None and len(self._head) < HEAD:
            self._head = self._at(0, HEAD)
        self.offset = end
        self._line += text.count(b"\n")
        return made

    def head(self) -> bytes:
        """Return the first text of the file."""
        if self._text is None:
            return self._at(0, MOST_TEXT)
        return first_text(self._raw.source, MOST_TEXT)

    def position(self, offset: int, line: int) -> Position:
        """Return a position for model files."""
        if self._text is not None and len(self._head) < HEAD:
            self._head = self.head()[:HEAD]
        covered = min(offset, len(self._head))
        return {
            "offset": offset,
            "line": line,
            "device": self._device,
            "inode": self._inode,
            "head": covered,
            "crc32": zlib.crc32(self._head[:covered]),
        }

    def is_same(self, other: os.stat_result) -> bool:
        """Return whether this is the file that something is known of."""
        return (other.st_dev, other.st_ino) == (self._device, self._inode)

    def here(self) -> Position:
        """Return the position after the rows that were returned."""
        return self.position(self.offset, self._line)

    def has_name(self, path: str) -> bool:
        """Return whether this is the file that has the name, or there is none that has."""
        try:
            return self.is_same(os.stat(path))
        except OSError:
            return True  # a rotation is over when the new file is there

    def left(self) -> int:
        """Return the bytes that are not read yet."""
        try:
            return 0 if self._text is not None else max(0, os.fstat(self._fd).st_size - self.offset)
        except OSError:  # closed by the thread that reads
            return 0

    def close(self) -> None:
        """Close the file; `written` tells when that was last done."""
        self.written = os.fstat(self._fd).st_mtime_ns
        os.close(self._fd)
        if self._text is not None:
            self._raw.close()


class _FileLines(TextLines):
    """Lines of a file; their text is without a byte order mark."""

    def __init__(self, text: bytes, begins: bool, file: _OpenFile, offset: int, end: int, line: int) -> None:
        self._mark = len(BYTE_ORDER_MARK) if begins and text.startswith(BYTE_ORDER_MARK) else 0
        super().__init__(text[self._mark :], begins)
        self._file, self._offset, self._end, self._line = file, offset, end, line

    def position(self, lines: int) -> Position:
        size = self._mark + self.bytes_of(lines) if lines else 0
        return self._file.position(min(self._offset + size, self._end), self._line + lines)

    def place(self, line: int) -> str:
        return f"{self._file.name}:{self._line + line}"


def _compressed(path: str) -> bool:
    return path.lower().endswith(tuple(METHODS))
