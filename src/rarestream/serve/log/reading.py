"""Reading records from segments, one after the other, while others may be appended."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rarestream.serve.log.errors import LogDamagedError
from rarestream.serve.log.segments import (
    HEADER_BYTES,
    Header,
    Record,
    Scan,
    decode_header,
    open_segment,
    read_at,
    record_after,
    segment_name,
    segment_names,
)

LOOKS = 5  # times that an end is looked at again that another process may be writing


def read_shared(folder: str, after: int) -> Iterator[Record]:
    """Yield the records of a log that another process may be writing, up to its end or the first damage."""
    return read_segments(folder, [(int(name[:20]), None) for name in segment_names(folder)], after)


def read_segments(folder: str, segments: Sequence[tuple[int, int | None]], after: int) -> Iterator[Record]:
    """Yield the records that have an entry above `after`.

    Parameters
    ----------
    folder
        Where the segments are.
    segments
        The first entry of each, and how many of its bytes to read. None: all; another process may be writing more.
    after
        Sequence number of the last entry that is not needed.
    """
    expected: int | None = None
    for number, (first, size) in enumerate(segments):
        last = number == len(segments) - 1
        if not last and segments[number + 1][0] <= after + 1:
            continue
        with open_segment(folder, segment_name(first)) as file:
            header = decode_header(read_at(file.number, 0, HEADER_BYTES), file.path)
            good = (first if expected is None else expected) - 1
            if not isinstance(header, Header):
                if last and size is None and os.fstat(file.number).st_size <= HEADER_BYTES:
                    return  # another process is making it, or has not come to it
                raise LogDamagedError(file.path, 0, good, header)
            if expected is not None and first != expected and (header.previous or first < expected):
                reason = f"it begins with entry {first:,}, where {expected:,} should be"
                raise LogDamagedError(file.path, 0, good, reason)
            scan = Scan(file.number, HEADER_BYTES, os.fstat(file.number).st_size if size is None else size, first)
            for records in scan.pieces(after):
                yield from records
            if scan.fault is not None and not (last and size is None and _being_written(file.number, scan)):
                raise LogDamagedError(file.path, scan.offset, scan.sequence - 1, scan.fault)
            expected = scan.sequence


def _being_written(file: int, scan: Scan) -> bool:
    """Return whether the end that was met may be an append of another process, or what a crash has left of one."""
    for _ in range(LOOKS):
        end = os.fstat(file).st_size
        again = Scan(file, scan.offset, end, scan.sequence).run()
        if again.fault is None or again.offset > scan.offset:
            return True  # it was, and is whole by now
        if not again.written and record_after(file, scan.offset + 1, end, scan.sequence) is None:
            return True
    return False
