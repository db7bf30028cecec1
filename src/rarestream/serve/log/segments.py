"""The bytes of a segment: its header, its records, and how they are found again.

    segment  magic "RARELOG\\n", format u32, first u64, previous u64, previous bytes u64, CRC-32 u32 of all before it
    record   CRC-32 u32 of all after it, length of the payload u32, sequence u64, count u32, kind u8, payload

All numbers are little-endian. `first` is the sequence number of the first entry, and that of the file's name.
`previous` is `first` of the segment before, and `previous bytes` its size when this one was begun: so a segment that is
missing or cut short is noticed without reading all of them. `previous` is 0 where the log begins, or begins anew.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from rarestream.errors import DataError, plain
from rarestream.serve.log.errors import LogError

MAGIC = b"RARELOG\n"
FORMAT = 1
HEADER = struct.Struct("<8sIQQQ")
HEADER_BYTES = HEADER.size + 4
CHECKED = struct.Struct("<IQIB")  # of a record's header, what its CRC counts
RECORD = struct.Struct("<IIQIB")
RECORD_BYTES = RECORD.size
CRC = struct.Struct("<I")
LONGEST = 1 << 30  # bytes of a payload
MOST_ENTRIES = (1 << 32) - 1  # of a record
PIECE = 1 << 20  # bytes that are read at a time
LARGE = 1 << 16  # bytes of a payload from which on it is written from where it is, not copied beside others
NAMED = re.compile(r"\d{20}\.log")
NEAR = 1 << 40  # a record further on than this many entries is not looked for


NewRecord = tuple[int, int, bytes]  # kind, count, payload


class Record(NamedTuple):
    """What was appended under one CRC: a number of entries, one after the other."""

    sequence: int  # of its first entry, from 1
    count: int  # type: ignore[assignment]  # entries, at least 1; hides the method of tuples
    kind: int  # from 1 to 255, what the payload is; the log does not know
    payload: bytes


class Header(NamedTuple):
    """The header of a segment."""

    first: int
    previous: int
    previous_bytes: int

    def encode(self) -> bytes:
        data = HEADER.pack(MAGIC, FORMAT, *self)
        return data + CRC.pack(crc32(data))


def segment_name(first: int) -> str:
    return f"{first:020}.log"


def segment_names(folder: str) -> list[str]:
    """Return the names of segments in a folder, in order. Other files are none of ours."""
    return sorted(name for name in os.listdir(folder) if NAMED.fullmatch(name))


def decode_header(data: bytes, path: str) -> Header | str:
    """Return the header of a segment, or what is wrong with it. `data` are its first bytes.

    Raises
    ------
    LogError
        If it was written by a newer version: nothing is wrong with it, but it cannot be read here.
    """
    if len(data) < HEADER_BYTES:
        return f"it ends after {len(data)} bytes, within its header"
    magic, version, *numbers = HEADER.unpack_from(data)
    if magic != MAGIC:
        return "it does not begin as a segment of a log does"
    if crc32(data[: HEADER.size]) != CRC.unpack_from(data, HEADER.size)[0]:
        return "the CRC of its header is wrong"
    if version > FORMAT:
        raise LogError(
            f"{plain(path)}: written by log format {version}; this version reads up to {FORMAT}. Upgrade rarestream."
        )
    header = Header(*numbers)
    if os.path.basename(path) != segment_name(header.first):
        return f"by its header its name is {segment_name(header.first)}; if it was renamed, rename it back"
    return header


def begun_only(data: bytes, header: Header) -> bool:
    """Return whether these bytes may be what a crash left of a header: a part of it, and zeros, and nothing else."""
    whole = header.encode()
    return len(data) <= len(whole) and all(found in (0, byte) for found, byte in zip(data, whole, strict=False))


def encode(records: Iterable[NewRecord], sequence: int) -> tuple[list[bytes], int, int]:
    """Return the bytes of records in a few parts, their size, and the sequence number after them.

    Parameters
    ----------
    records
        Kind, count and payload of each.
    sequence
        Of the first entry.
    """
    parts: list[bytes] = []
    joined: list[bytes] = []
    size = 0
    try:
        for kind, count, payload in records:
            length = len(payload)
            if count < 1 or kind < 1 or length > LONGEST:
                raise _unfit(kind, count, length)
            head = CHECKED.pack(length, sequence, count, kind)
            joined += (CRC.pack(crc32(payload, crc32(head))), head)
            if length < LARGE:
                joined.append(payload)
            else:
                parts += (b"".join(joined), payload)
                joined.clear()
            sequence += count
            size += RECORD_BYTES + length
    except struct.error:
        raise _unfit(kind, count, length) from None
    if joined:
        parts.append(b"".join(joined))
    return parts, size, sequence


def _unfit(kind: int, count: int, length: int) -> DataError:
    return DataError(
        f"SegmentLog.append: a record has a kind from 1 to 255, from 1 to {MOST_ENTRIES:,} entries and a payload of at "
        f"most {LONGEST:,} bytes, got kind {kind}, {count:,} entries and {length:,} bytes."
    )


def read_at(file: int, offset: int, size: int) -> bytes:
    """Return bytes of a file: as many as asked for, or those up to its end."""
    data = os.pread(file, size, offset)
    if len(data) == size or not data:
        return data
    parts = [data]
    left = size - len(data)
    while left:
        data = os.pread(file, left, offset + size - left)
        if not data:
            break
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


class open_segment:  # noqa: N801 - it is used as a function is
    """A segment, open for reading in a `with` block.

    Raises
    ------
    LogError
        If it cannot be opened.
    """

    def __init__(self, folder: str, name: str) -> None:
        self.path = path = os.path.join(folder, name)
        try:
            self.number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise LogError(f"{plain(path)}: was removed while the log was read. Read it again.") from error
        except OSError as error:
            raise LogError(f"{plain(path)}: cannot be read ({error.strerror}).") from error

    def __enter__(self) -> open_segment:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.number)


class Scan:
    """Reads the records of a segment, and stops at the first that is not whole.

    Parameters
    ----------
    file
        The open file.
    offset
        Where to begin.
    end
        Where to end: what is behind it is not looked at.
    sequence
        What the sequence number of the first record must be.

    Attributes
    ----------
    offset : int
        Behind the last record that is whole.
    sequence : int
        After the last entry.
    records : int
        Number of records.
    fault : str or None
        Why it has stopped before the end.
    written : bool
        Whether the fault is a record as it was written, in a wrong place: never what a crash leaves.
    """

    def __init__(self, file: int, offset: int, end: int, sequence: int) -> None:
        self._file, self._end = file, end
        self.offset, self.sequence = offset, sequence
        self.records = 0
        self.fault: str | None = None
        self.written = False

    def pieces(self, after: int) -> Iterator[list[Record]]:
        """Yield the records that have an entry above `after`, a few at a time."""
        wanted = PIECE
        while self.offset < self._end and self.fault is None:
            asked = min(wanted, self._end - self.offset)
            data = read_at(self._file, self.offset, asked)
            found, wanted = self._parse(data, after)
            if found:
                yield found
            if len(data) < asked and self.fault is None:  # cut off while it was read
                self.fault = "it ends within a record"

    def run(self) -> Scan:
        """Read to the end, and keep nothing."""
        for _ in self.pieces(1 << 64):
            pass
        return self

    def _parse(self, data: bytes, after: int) -> tuple[list[Record], int]:
        """Return the records of a piece of the file, and how many bytes to read next."""
        found: list[Record] = []
        add, unpack, view = found.append, RECORD.unpack_from, memoryview(data)
        make, cls = tuple.__new__, Record  # twice as fast as Record(...)
        at, size, sequence, records = 0, len(data), self.sequence, self.records
        wanted = PIECE
        left = self._end - self.offset  # bytes of the file from the start of the piece
        while at < size:
            begin = at + RECORD_BYTES
            if begin > size:
                if at + RECORD_BYTES > left:
                    self.fault = "the header of a record is cut short"
                break
            crc, length, first, count, kind = unpack(data, at)
            end = begin + length
            if end > size:
                if end > left or length > LONGEST:
                    self.fault = f"a record of {length:,} bytes does not fit in the file"
                wanted = max(PIECE, end - at)
                break
            if crc32(view[at + 4 : end]) != crc:
                self.fault = "the CRC of a record is wrong"
                break
            if first != sequence or not count or not kind:
                wrong = f"begins with entry {first:,}, where {sequence:,} should be"
                self.fault = f"a record {wrong if first != sequence else 'has no entry, or no kind'}"
                self.written = True
                break
            sequence += count
            records += 1
            if sequence > after + 1:
                add(make(cls, (first, count, kind, data[begin:end])))
            at = end
        self.offset += at
        self.sequence, self.records = sequence, records
        return found, wanted


def record_after(file: int, begin: int, end: int, sequence: int) -> int | None:
    """Return where a whole record begins behind one that is not, or None if there is none.

    What a crash leaves at the end of a file has no whole record behind it. Every byte may be the beginning of one.

    Parameters
    ----------
    file
        The open file.
    begin, end
        The bytes in which it may be.
    sequence
        About its sequence number: that of the record that is not whole.
    """
    import numpy as np

    # Payloads that look like headers of long records would make this slow. What takes too long counts as found: then
    # nothing is cut off, and a person decides.
    budget = 8 * (end - begin) + (1 << 26)
    at = begin
    while at + RECORD_BYTES <= end:
        data = read_at(file, at, min(PIECE + RECORD_BYTES - 1, end - at))
        starts = len(data) - RECORD_BYTES + 1
        if starts < 1:
            return None
        # At each byte the number that a header there would have; 0 becomes the largest.
        numbers = np.ndarray((starts,), "<u8", data, 8, (1,)) - np.uint64(1)
        likely = (numbers < np.uint64(min(sequence + NEAR, (1 << 64) - 1))) & (
            np.ndarray((starts,), "u1", data, 20, (1,)) != 0
        )
        likely &= np.ndarray((starts,), "<u4", data, 16, (1,)) != 0
        likely &= np.ndarray((starts,), "<u4", data, 4, (1,)) <= min(LONGEST, end - at)
        for start in map(int, np.flatnonzero(likely)):
            crc, length, *_ = RECORD.unpack_from(data, start)
            stop = at + start + RECORD_BYTES + length
            if stop > end:
                continue
            if budget <= 0 or _crc(file, at + start + 4, stop) == crc:
                return at + start
            budget -= length
        at += starts
    return None


def _crc(file: int, begin: int, end: int) -> int:
    found = 0
    while begin < end:
        data = read_at(file, begin, min(PIECE, end - begin))
        if not data:
            break
        found = crc32(data, found)
        begin += len(data)
    return found
