"""What a log on disk is like: its segments, an end that a crash has torn, damage, and the repair of it.

A crash can only leave the end of the last segment torn: bytes that are no record, with no whole record behind them.
Everything else that is not as it was written is damage.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from rarestream.errors import plain
from rarestream.serve.log.errors import LogDamagedError, LogError
from rarestream.serve.log.segments import (
    HEADER_BYTES,
    PIECE,
    Header,
    Scan,
    begun_only,
    decode_header,
    open_segment,
    read_at,
    record_after,
    segment_names,
)
from rarestream.system import sync_folder, whole, write_whole


class Segment(NamedTuple):
    """A segment as it was found. What was not counted is None: only the last one is read when a log is opened."""

    name: str
    first: int
    bytes: int  # of those that are whole
    last: int | None = None  # entry; first - 1 if it has none
    records: int | None = None


class TornEnd(NamedTuple):
    """What a crash has left of an append, or of a segment that was being begun."""

    name: str
    offset: int  # where it begins; 0: it is the whole file
    bytes: int
    last: int  # entry before it

    def __str__(self) -> str:
        bytes = f"{self.bytes:,} byte{'' if self.bytes == 1 else 's'}"
        if self.offset == 0:
            return f"{self.name}: a segment that was begun and has no entry ({bytes})"
        return f"{self.name}: {bytes} at the end, after entry {self.last:,}, are of an append that was not finished"


class Damage(NamedTuple):
    """The first place that is not as it was written."""

    name: str
    offset: int
    last: int  # entry before it
    reason: str


@dataclass
class Survey:
    """A log as it is on disk, up to the first damage."""

    folder: str
    segments: list[Segment] = field(default_factory=list)
    torn: TornEnd | None = None
    damage: Damage | None = None
    next: int | None = None  # sequence number of the next entry; None if there is no segment
    unread: list[str] = field(default_factory=list)  # segments that begin at the damage or behind it

    def raise_damage(self) -> None:
        if self.damage is not None:
            name, offset, last, reason = self.damage
            raise LogDamagedError(os.path.join(self.folder, name), offset, last, reason)


def survey(folder: str, thorough: bool = True, *, first: int = 0) -> Survey:
    """Look at a log. Changes nothing.

    Parameters
    ----------
    folder
        The folder of the segments.
    first
        Leave out the segments before the one with this first entry.
    thorough
        Whether all records are read; else only those of the last segment, and the headers and sizes of all.

    Raises
    ------
    LogError
        If a segment cannot be read, or was written by a newer version.
    """
    found = Survey(folder)
    names = [name for name in segment_names(folder) if int(name[:20]) >= first]
    heads = [_head(folder, name) for name in names]
    for number, (name, (head, size)) in enumerate(zip(names, heads, strict=True)):
        before = found.segments[-1] if found.segments else None
        named = int(name[:20])
        last = number == len(names) - 1
        if not isinstance(head, Header):
            begun = Header(named, *((before.first, before.bytes) if before else (0, 0)))
            good = _last(found, named)
            if last and 0 <= size <= HEADER_BYTES and _may_be_begun(folder, name, begun):
                found.torn = TornEnd(name, 0, size, good)
                found.next = found.next or named
            else:
                found.damage = Damage(name, 0, good, head)
        elif found.next is not None and head.previous and head.first != found.next:
            missing = f"the entries from {found.next:,} to {head.first - 1:,} are missing before it"
            reason = missing if head.first > found.next else f"entry {head.first:,} is there twice"
            found.damage = Damage(name, 0, found.next - 1, reason)
        elif head.previous == 0 and found.next is not None and head.first < found.next:
            found.damage = Damage(name, 0, found.next - 1, f"entry {head.first:,} is there twice")
        else:
            after = None if last else heads[number + 1][0]
            _look_at(found, name, head, size, after if isinstance(after, Header) else None, last, thorough)
        if found.damage is not None:
            found.unread = names[number + (found.damage.name == name and found.damage.offset > 0) :]
            break
    return found


def _look_at(
    found: Survey, name: str, head: Header, size: int, after: Header | None, last: bool, thorough: bool
) -> None:
    """Add a segment whose header is good; `after` is the header of the next one."""
    linked = after is not None and after.previous == head.first
    as_begun = linked and after is not None and after.previous_bytes == size
    if as_begun and not thorough and after is not None:
        found.segments.append(Segment(name, head.first, size, after.first - 1))
        found.next = after.first
        return
    with open_segment(found.folder, name) as file:
        scan = Scan(file.number, HEADER_BYTES, size, head.first).run()
        reason = scan.fault
        if reason is not None and last and not scan.written:
            if record_after(file.number, scan.offset + 1, size, scan.sequence) is None:
                found.torn = TornEnd(name, scan.offset, size - scan.offset, scan.sequence - 1)
                reason = None
            else:
                reason += ", and whole records follow it"
    if reason is None and linked and after is not None and not as_begun:
        reason = f"it has {size:,} bytes, and had {after.previous_bytes:,} when the next segment was begun"
    found.segments.append(Segment(name, head.first, scan.offset, scan.sequence - 1, scan.records))
    found.next = scan.sequence
    if reason is not None:
        found.damage = Damage(name, scan.offset, scan.sequence - 1, reason)


def _last(found: Survey, named: int) -> int:
    """The last good entry before a segment of this name."""
    return (named if found.next is None else found.next) - 1


def _may_be_begun(folder: str, name: str, header: Header) -> bool:
    with open_segment(folder, name) as file:
        return begun_only(read_at(file.number, 0, HEADER_BYTES + 1), header)


def _head(folder: str, name: str) -> tuple[Header | str, int]:
    """Return the header of a segment, or what is wrong with it, and the size of the file."""
    with open_segment(folder, name) as file:
        status = os.fstat(file.number)
        if not stat.S_ISREG(status.st_mode):
            return "it is not a file", -1
        return decode_header(read_at(file.number, 0, HEADER_BYTES), file.path), status.st_size


def cut(folder: str, torn: TornEnd) -> None:
    """Remove a torn end."""
    path = os.path.join(folder, torn.name)
    try:
        if torn.offset == 0:
            os.unlink(path)
        else:
            _truncate(path, torn.offset)
        sync_folder(folder)
    except OSError as error:
        raise LogError(f"{plain(path)}: its torn end cannot be cut off ({error.strerror}).") from error


def _truncate(path: str, size: int) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.ftruncate(file, size)
        os.fsync(file)
    finally:
        os.close(file)


# -- repair


class Repair(NamedTuple):
    """What a repair has done."""

    first: int  # entry of the log now
    last: int
    damage: Damage | None  # None: there was none
    shortened: bool  # whether entries at the end were moved, or were missing; else only such as a snapshot has
    torn: TornEnd | None  # that was cut off, or will be when the log is opened
    aside: str | None  # the folder that has what was moved
    moved: list[str]  # files in it


def repair(folder: str, aside: str, needed: int | None = None) -> Repair:
    """Keep what is before the first damage, and move the rest aside. Nobody else may have the log open.

    If there is a snapshot, entries before it are not needed. Where the log is whole from a segment behind the damage
    on, and has all that the snapshot has not, that part is kept instead, and what is before it is moved aside.

    At any moment, a crash leaves either a log that is damaged still, with all its bytes in the two folders, or one that
    is repaired: so it can be run again.

    Parameters
    ----------
    folder
        The folder of the segments.
    aside
        The folder in which a folder is made for what is moved.
    needed
        The first entry that the newest snapshot has not.

    Raises
    ------
    LogError
        If a file cannot be read, moved or written, or was written by a newer version.
    """
    found = survey(folder)
    damage = found.damage
    if damage is None:
        if found.torn is not None:
            cut(folder, found.torn)
        return _result(found, None, False, None, [])
    into = os.path.join(aside, f"after-{damage.last:020}")
    try:
        os.makedirs(into, exist_ok=True)
        moved = []
        behind = None if needed is None else _whole_behind(found, needed)
        if behind is not None:
            # The oldest first: so damage never comes to be at the end, where it could be taken for a torn end.
            before = [name for name in segment_names(folder) if name < behind.segments[0].name]
            moved += [_move(folder, name, into) for name in before]
            found = behind
        shortened = found.damage is not None
        if found.damage is not None:
            moved += _move_rest(found, found.damage, into)
        for each in (os.path.dirname(aside) or ".", aside, into, folder):
            sync_folder(each)
    except OSError as error:
        raise LogError(
            f"{plain(folder)}: could not be repaired ({error.strerror or error}). Nothing is lost: repair it again "
            "when that is mended."
        ) from error
    found = survey(folder)
    found.raise_damage()
    return _result(found, damage, shortened, into, sorted(moved))


def _result(found: Survey, damage: Damage | None, shortened: bool, into: str | None, moved: list[str]) -> Repair:
    following = found.next or 1
    first = found.segments[0].first if found.segments else following
    return Repair(first, following - 1, damage, shortened, found.torn, into, moved)


def _whole_behind(found: Survey, needed: int) -> Survey | None:
    """Return the log from a segment behind the damage on, if it has the entry that is needed, and all from there."""
    starts = [int(name[:20]) for name in found.unread if int(name[:20]) <= needed]
    if not starts:
        return None
    behind = survey(found.folder, first=starts[-1])
    return behind if behind.segments and behind.next is not None and behind.next >= needed else None


def _move_rest(found: Survey, damage: Damage, into: str) -> list[str]:
    """Move what is behind a damage, and cut it off; returns the names of the files."""
    moved = []
    kept = [segment.name for segment in found.segments]
    path = os.path.join(found.folder, damage.name)
    if 0 < damage.offset < os.path.getsize(path):  # the end of a segment that is kept: copied first, cut off last
        moved.append(_copy_end(found.folder, damage, into))
    rest = [name for name in found.unread if name not in kept]
    for name in reversed(rest):
        if kept or name != rest[0]:
            moved.append(_move(found.folder, name, into))
        else:  # none is kept: an empty segment in its place remembers the sequence number
            moved.append(_copy_end(found.folder, damage, into))
            write_whole(os.path.join(found.folder, name), Header(damage.last + 1, 0, 0).encode())
    if damage.offset > 0:
        _truncate(path, damage.offset)
    return moved


def _move(folder: str, name: str, into: str) -> str:
    target = _free(os.path.join(into, name))
    os.rename(os.path.join(folder, name), target)
    return os.path.basename(target)


def _copy_end(folder: str, damage: Damage, into: str) -> str:
    """Copy what is behind the damage of a segment to a file; returns its name."""
    path = os.path.join(into, f"{damage.name}.from-{damage.offset}" if damage.offset else damage.name)
    with open_segment(folder, damage.name) as file:
        size = os.fstat(file.number).st_size
        if not _same_end(path, file.number, damage.offset, size):  # as after a repair that was interrupted
            path = _free(path)
            with whole(path) as copy:
                for at in range(damage.offset, size, PIECE):
                    copy.write(read_at(file.number, at, min(PIECE, size - at)))
    return os.path.basename(path)


def _same_end(path: str, file: int, offset: int, size: int) -> bool:
    with suppress(OSError), open(path, "rb") as copy:
        pieces = (read_at(file, at, min(PIECE, size - at)) for at in range(offset, size, PIECE))
        return all(copy.read(len(piece)) == piece for piece in pieces) and not copy.read(1)
    return False


def _free(path: str) -> str:
    """Return the path, or one like it that nothing has."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}.{number}"
    return free
