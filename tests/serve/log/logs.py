"""Small logs to damage."""

from __future__ import annotations

from pathlib import Path

from rarestream.serve.log import Record, SegmentLog


def record(sequence: int, count: int = 1) -> Record:
    """A record whose payload is different from all others, of different lengths, one of them empty."""
    return Record(sequence, count, 1 + sequence % 255, b"entry %d " % sequence * (sequence % 5))


def fill(folder: Path, entries: int, segment_bytes: int = 300) -> list[Record]:
    """Append records one by one; returns them."""
    records = []
    with SegmentLog.open(folder, segment_bytes=segment_bytes) as log:
        while log.next <= entries:
            one = record(log.next, 1 + log.next % 3)
            log.append([(one.kind, one.count, one.payload)])
            records.append(one)
        log.sync()
    return records


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
