"""SegmentLog: entries are appended, synced, read in order, and removed from the front."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Self

from rarestream.errors import DataError, plain
from rarestream.serve.log.errors import LogBrokenError, LogError, LogFullError
from rarestream.serve.log.reading import read_segments, read_shared
from rarestream.serve.log.segments import HEADER_BYTES, Header, NewRecord, Record, encode, segment_name
from rarestream.serve.log.survey import Segment, cut, survey
from rarestream.system import flush_folder, sync_folder

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_PARTS = 1024  # of one writev: the least that systems allow

fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class SegmentLog:
    """An append-only log of entries with sequence numbers, in files of a folder.

    A record is one or more entries under one CRC: it is there as a whole, or not at all. Only one process may have a
    log open for writing; `StateLock` sees to that. Others may open it to read.

    `append`, `sync` and `read` may be called from several threads. What `read` yields was appended before it was
    called.

    Attributes
    ----------
    folder : str
        Where the segments are.
    next : int
        Sequence number of the next entry.
    cut : str or None
        What was cut off as a torn end when it was opened, for people; read-only: what would be.
    """

    def __init__(
        self, folder: str, segments: list[Segment], next: int, cut: str | None, segment_bytes: int, read_only: bool
    ) -> None:
        self.folder, self.next, self.cut = folder, next, cut
        self._segment_bytes, self._read_only = segment_bytes, read_only
        self._segments = [(segment.first, segment.bytes) for segment in segments]
        # The next entry may be further on than the end of the last segment: then the log begins anew there.
        self._anew = not segments or segments[-1].last != next - 1
        self._file: int | None = None  # of the last segment
        self._appending, self._syncing = threading.Lock(), threading.Lock()
        self._refuses: str | None = None  # why it refuses everything
        self._closed = False

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        first: int = 1,
        segment_bytes: int = 64 << 20,
        read_only: bool = False,
    ) -> Self:
        """Open a log, or make one.

        Headers and sizes of all segments are checked, and the records of the last one; `read` checks the others.

        Parameters
        ----------
        folder
            The folder of the segments. It is made if it is not there, unless it is only read.
        first
            Sequence number of the next entry at least. An empty log begins there; one that ends before it, as after a
            repair, goes on there.
        segment_bytes
            Size of a segment from which on another one is begun.
        read_only
            Whether to change nothing. Another process may be writing.

        Raises
        ------
        LogDamagedError
            If it is not as it was written, apart from a torn end.
        LogError
            If it cannot be read, or was written by a newer version.
        """
        path = os.fspath(folder)
        if first < 1:
            raise DataError(f"SegmentLog.open: first must be >= 1, got {first}.")
        try:
            if not read_only and not os.path.isdir(path):
                os.makedirs(path, exist_ok=True)
                sync_folder(os.path.dirname(os.path.abspath(path)))
            found = survey(path, thorough=False)
            if found.damage is not None:
                # The first damage may be in a segment that was not read; and where another process writes, files may
                # have changed while they were looked at.
                found = survey(path)
        except OSError as error:
            raise LogError(f"{plain(path)}: cannot be opened ({error.strerror}).") from error
        found.raise_damage()
        if found.torn is not None and not read_only:
            cut(path, found.torn)
        what = None if found.torn is None else str(found.torn)
        log = cls(path, found.segments, max(first, found.next or 1), what, segment_bytes, read_only)
        if not read_only:
            log._sync_last()
        return log

    @property
    def first(self) -> int:
        """Sequence number of the first entry that is kept; `next` if there is none."""
        segments = self._segments
        return segments[0][0] if segments else self.next

    @property
    def bytes(self) -> int:
        """Size of all segments."""
        return sum(size for _, size in self._segments)

    # -- writing

    def append(self, records: Sequence[NewRecord]) -> int:
        """Append records. They are on disk once `sync` has returned.

        Parameters
        ----------
        records
            Kind, from 1 to 255, number of entries, and payload of each.

        Returns
        -------
        int
            Sequence number of the first entry.

        Raises
        ------
        LogFullError
            If there is no space. The log is as it was, and the same can be tried again.
        LogBrokenError
            If writing failed otherwise, or has failed before.
        DataError
            If a record is not as it should be. Nothing was appended.
        """
        with self._appending:
            self._check()
            first = self.next
            if not records:
                return first
            parts, size, following = encode(records, first)
            begun = self._segments[-1][1] if self._segments and not self._anew else 0
            if begun == 0 or (begun > HEADER_BYTES and begun + size > self._segment_bytes):
                self._begin_segment()
            assert self._file is not None
            at, end = self._segments[-1]
            try:
                _write(self._file, parts, size)
                self._segments[-1] = (at, end + size)
                self.next = following
            except BaseException as error:
                self._undo(self._file, at, end, first)
                if not isinstance(error, OSError):
                    raise
                raise self._failed(error) from error
            return first

    def sync(self) -> None:
        """Wait until everything that was appended is on disk (fdatasync).

        Raises
        ------
        LogBrokenError
            If the disk reports an error: what was appended may be lost, and asking again would not tell. From then on
            the log refuses everything.
        """
        with self._syncing:
            self._check()
            if self._file is not None:
                self._sync(self._file)

    def remove_before(self, sequence: int, keep: float = 0) -> int:
        """Remove the segments that have only entries below a sequence number. The last segment stays.

        Parameters
        ----------
        sequence
            The first entry that is needed.
        keep
            Bytes: nothing more is removed once the log has at most as many.

        Returns
        -------
        int
            Number of segments removed.
        """
        with self._appending:
            self._check()
            removed = 0
            while len(self._segments) > 1 and self._segments[1][0] <= sequence and self.bytes > keep:
                path = self._path(self._segments[0][0])
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    raise LogError(f"{plain(path)}: cannot be removed ({error.strerror}).") from error
                self._segments = self._segments[1:]  # a new list: `read` has the old one
                removed += 1
            if removed:
                flush_folder(self.folder)
            return removed

    def close(self) -> None:
        """Sync and close. Nothing can be appended from then on."""
        with self._appending, self._syncing:
            file, self._file = self._file, None
            self._closed = True
            if file is not None:
                try:
                    if self._refuses is None:
                        self._sync(file)
                finally:
                    os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check(self) -> None:
        """Raise why nothing can be written, if so."""
        if self._refuses is not None:
            raise LogBrokenError(self._refuses)
        if self._closed or self._read_only:
            what = "is closed" if self._closed else "is open for reading only"
            raise LogError(f"{plain(self.folder)}: the log {what}.")

    def _sync(self, file: int) -> None:
        try:
            fdatasync(file)
        except OSError as error:
            raise self._broken(f"could not be written to disk ({error.strerror})") from error

    def _broken(self, what: str) -> LogBrokenError:
        self._refuses = (
            f"{plain(self.folder)}: the log {what}, and what it holds now is not known. Mend the disk and start again: "
            "what is on disk is read then."
        )
        return LogBrokenError(self._refuses)

    def _failed(self, error: OSError) -> LogError:
        """The exception for a write that failed and was undone."""
        if self._refuses is not None:
            return LogBrokenError(self._refuses)
        if error.errno in FULL:
            return LogFullError(
                f"{plain(self.folder)}: no space for the log ({error.strerror}). It is as it was before. Free some "
                "space and try again."
            )
        return self._broken(f"could not be written ({error.strerror})")

    def _undo(self, file: int, at: int, end: int, first: int) -> None:
        """Make the last segment end where it did."""
        try:
            os.ftruncate(file, end)
        except OSError as error:
            self._broken(f"has the beginning of a record that cannot be removed ({error.strerror})")
        self._segments[-1] = (at, end)
        self.next = first

    def _path(self, first: int) -> str:
        return os.path.join(self.folder, segment_name(first))

    def _sync_last(self) -> None:
        """Open the last segment to append to it.

        The process before may have ended between an append and its sync: what is read now must be on disk, too.
        """
        if not self._segments:
            return
        path = self._path(self._segments[-1][0])
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise LogError(f"{plain(path)}: cannot be written ({error.strerror}).") from error
        try:
            self._sync(self._file)
            sync_folder(self.folder)
        except OSError as error:
            raise self._broken(f"could not be written to disk ({error.strerror})") from error
        finally:
            if self._refuses is not None:
                os.close(self._file)

    def _begin_segment(self) -> None:
        """Make the file of the next segment, with its header and its name on disk before anything is appended to it.

        The segment before must be on disk first: its size is in the header.
        """
        before = (0, 0) if self._anew else self._segments[-1]
        path = self._path(self.next)
        file = None
        with self._syncing:
            self._check()
            if self._file is not None:
                self._sync(self._file)
            try:
                file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
                header = Header(self.next, *before).encode()
                _write(file, [header], len(header))
                os.fsync(file)
                sync_folder(self.folder)
            except BaseException as error:
                if file is not None:
                    os.close(file)
                    try:
                        os.unlink(path)
                    except OSError as left:
                        self._broken(f"has the beginning of a segment that cannot be removed ({left.strerror})")
                if not isinstance(error, OSError):
                    raise
                if file is None and error.errno not in FULL:
                    raise LogError(f"{plain(path)}: cannot be made ({error.strerror}).") from error
                raise self._failed(error) from error
            if self._file is not None:
                os.close(self._file)
            self._file, self._anew = file, False
            self._segments = [*self._segments, (self.next, HEADER_BYTES)]

    # -- reading

    def read(self, after: int = 0) -> Iterator[Record]:
        """Return the records that have an entry above a sequence number, in order.

        They are those that were appended before this call; files are read as the records are taken.

        Parameters
        ----------
        after
            Sequence number of the last entry that is not needed. If `first` is above the one after it, what is between
            was removed.

        Raises
        ------
        LogDamagedError
            Where the log is not as it was written. Everything before is yielded.
        LogError
            If a segment cannot be read, was removed meanwhile, or was written by a newer version.
        """
        if self._read_only:
            return read_shared(self.folder, after)
        with self._appending:
            segments = list(self._segments)
        return read_segments(self.folder, segments, after)


def _write(file: int, parts: list[bytes], size: int) -> None:
    """Write all parts at the end of the file: one call, unless the system takes less."""
    written = os.writev(file, parts if len(parts) <= MOST_PARTS else parts[:MOST_PARTS])
    while written < size:
        # What is left of the part in which it stopped, and the parts behind it.
        skip = written
        left: list[memoryview] = []
        for part in parts:
            if skip >= len(part):
                skip -= len(part)
            elif len(left) < MOST_PARTS:
                left.append(memoryview(part)[skip:])
                skip = 0
        more = os.writev(file, left)
        if more == 0:
            raise OSError(errno.EIO, "nothing was written")
        written += more
