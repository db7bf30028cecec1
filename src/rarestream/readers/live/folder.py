"""A folder that files are added to, of any format; each is read once, in the order of their names.

A file is read once its size has stayed the same for a second: it should be moved into the folder when it is complete.
Files whose names start with a dot or an underscore, or end in .tmp or .part, are ignored: they are being written.
"""

from __future__ import annotations

import glob
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

from rarestream.blocks import Block
from rarestream.errors import DataError, advice, plain
from rarestream.readers.formats import Format
from rarestream.readers.live.lines import Position
from rarestream.readers.live.stream import TICK, LiveStream
from rarestream.readers.options import FormatOptions
from rarestream.readers.reading import Reading
from rarestream.readers.sources import Source, expand
from rarestream.readers.stream import Stream

EVERY_LINE = 1 << 62
SETTLED = 1.0  # seconds for which the size of a file must have stayed the same
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".swp")  # endings of files that are being written


def is_folder(path: str) -> bool:
    """Return whether a name stands for a folder, or for the files in one that match a pattern."""
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


class FolderStream(LiveStream):
    """The rows of the files of a folder, and of those that are added to it.

    Parameters
    ----------
    path : str
        The folder, or the folder and a pattern for the names of files, such as logs/*.csv.
    lost : bool
        Whether to go on with the next file if one is gone before it was read to its end.
    """

    def __init__(
        self, path: str, format: Format, options: FormatOptions, *, position: Position, lost: bool = False, **more: Any
    ) -> None:
        self._folder, self._pattern = (path, "*") if os.path.isdir(path) else os.path.split(path)
        self._folder = self._folder or "."
        if glob.has_magic(self._folder) or not os.path.isdir(self._folder):
            raise DataError(
                f"{plain(path)}: the folder {plain(self._folder)} does not exist. A pattern may only be in the names "
                "of files, such as logs/*.csv."
            )
        super().__init__(
            Source(plain(path), os.path.basename(path.rstrip("/")) or path, None),
            "folder",
            os.path.abspath(path),
            format,
            options,
            position=position,
            **more,
        )
        self._done: dict[str, int] = {str(name): int(size) for name, size in position.get("done", {}).items()}
        self._start: tuple[str, int] | None = None  # the file that was not read to its end, and the rows of it
        if isinstance(position.get("file"), str):
            self._start = position["file"], int(position.get("rows", 0))
        self._lost = lost
        self._stopping = threading.Event()
        self._inner: Stream | None = None  # the file that is being read
        self._name = ""
        self._rows_before = 0  # of that file, before the Block yielded last
        self._seen: dict[str, tuple[int, float]] = {}  # the size of files, and since when they have it
        self._said: set[str] = set()
        self._notes: list[str] = []
        self._unlabelled = 0  # of the files before

    @property
    def replayable(self) -> bool:
        """Whether rows that were read and not learned can be read again, by another stream."""
        return True

    @property
    def unlabelled(self) -> int:
        """Number of rows left out so far because they have no label."""
        return self._unlabelled + (0 if self._inner is None else self._inner.unlabelled)

    def where(self, row: int) -> str | None:
        """Return file and line of a row of the Block yielded last."""
        return None if self._inner is None else self._inner.where(row)

    def behind(self) -> str:
        waiting = sum(name not in self._done for name in self._names()) - (self._inner is not None)
        return "" if waiting <= 0 else f"{waiting:,} {'file' if waiting == 1 else 'files'} behind"

    def take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    def learned(self, rows: int) -> None:
        if self._inner is not None:
            self._move({"file": self._name, "rows": self._rows_before + rows})

    def _move(self, current: Position) -> None:
        self._position = {"done": self._done, **current}

    def _names(self) -> list[str]:
        """Return the files there are, by name."""
        try:
            with os.scandir(self._folder) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith((".", "_"))
                    and not entry.name.lower().endswith(UNFINISHED)
                    and fnmatch(entry.name, self._pattern)
                    and entry.is_file()
                )
        except OSError as error:
            raise DataError(
                f"{plain(self._folder)}: the folder cannot be read: {(error.strerror or str(error)).lower()}."
            ) from None

    def _live(self) -> Iterator[Block]:
        reading = self._reading
        reading.when_stopped(self._stopping.set)
        with closing(self._dead_letters):
            while not self._stopping.is_set():
                name = self._next()
                if name is not None:
                    yield from self._file(name)
                    self._moved = time.monotonic()
                    continue
                if self._idle_for_long:
                    return
                self._stopping.wait(TICK)
                yield from self._waits()

    def _next(self) -> str | None:
        """Return the next file to read; None if there is none yet."""
        names = self._names()
        now = time.monotonic()
        # What is no longer there need not be remembered. A new dict: positions that were handed out keep the old one.
        there = set(names)
        self._done = {name: size for name, size in self._done.items() if name in there}
        self._seen = {name: seen for name, seen in self._seen.items() if name in there}
        if self._start is not None and self._start[0] in names:
            return self._start[0]
        if self._start is not None:
            name, rows = self._start
            what = f"{plain(os.path.join(self._folder, name))}: is gone; the model has learned {rows:,} rows of it"
            if not self._lost:
                option = advice("lost=True", "--lost")
                raise DataError(f"{what}, and the others would be lost. Put it back, or pass {option}.")
            self._notes.append(f"{what}, and the others are lost.")
            self._start = None
        for name in names:
            try:
                size = os.stat(os.path.join(self._folder, name)).st_size
            except OSError:  # it was removed just now
                self._seen.pop(name, None)
                continue
            if name in self._done:
                if size != self._done[name] and name not in self._said:
                    self._said.add(name)
                    self._notes.append(
                        f"{plain(name)}: has changed since it was learned, from {self._done[name]:,} to {size:,} "
                        "bytes; what is new in it is not learned. Add rows as new files."
                    )
                continue
            if self._seen.get(name, (-1, 0.0))[0] != size:
                self._seen[name] = size, now
        waiting = (name for name in names if name in self._seen)
        return next((name for name in waiting if now - self._seen[name][1] >= SETTLED), None)

    def _file(self, name: str) -> Iterator[Block]:
        """Yield the rows of a file that were not learned yet."""
        path = os.path.join(self._folder, name)
        rows = 0 if self._start is None else self._start[1]
        sources = expand(path)
        size = sources[0].size or 0
        self._inner, self._name, self._rows_before = self._opened(sources), name, rows
        self._dead_letters.begin(None)
        blocks = iter(self._inner.skip(rows))
        self._reading.when_stopped(self._stop_both)
        for block in blocks:
            if self._stopping.is_set():
                return
            self._keep(self._inner._reading)
            yield block
            self.learned(len(block))
            self._rows_before += len(block)
        if self._stopping.is_set():
            return
        # Only now: a file whose middle is read again after a kill is refused the same rows again.
        self._dead_letters.pass_line(EVERY_LINE)
        self._start = None
        self._unlabelled += self._inner.unlabelled
        self._keep(self._inner._reading)
        self._inner = None
        self._seen.pop(name, None)
        self._done = {**self._done, name: size}
        self._move({})
        yield from self._waits()  # the position has moved

    def _opened(self, sources: list[Source]) -> Stream:
        """Open a file as the ones before it were read: their labels and columns stay as they are."""
        options = self._options
        known: Reading = self._reading
        found = {name: value for name, value in known.found.items() if getattr(options, name, None) is None}
        if known.classes is not None and options.positive is None and not options.all_classes:
            found["classes"] = known.classes
        return Stream(
            sources,
            self._format,
            replace(options, **found),
            rows=self._rows,
            named=self._named,
            features=known.features,
            refusals=self._dead_letters,
            may_be_empty=True,
        )

    def _stop_both(self) -> None:
        self._stopping.set()
        if self._inner is not None:
            self._inner.stop()

    def _keep(self, reading: Reading) -> None:
        """Remember what the rows of a file have decided."""
        mine = self._reading
        mine.features, mine.found, mine.facts = reading.features, {**mine.found, **reading.found}, reading.facts
        mine.classes = reading.classes
        mine.notes += [note for note in reading.notes if note not in mine.notes]
