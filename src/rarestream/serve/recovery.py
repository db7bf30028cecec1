"""The state of a directory: the newest snapshot and what the log has after it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from rarestream.errors import ModelFileError, plain
from rarestream.serve import entries
from rarestream.serve.log import Record, SegmentLog
from rarestream.serve.snapshots import Snapshot, Snapshots
from rarestream.serve.state import STATE_FILE, ServedState

LOG, SNAPSHOTS = "log", "snapshots"


def log_folder(folder: str | os.PathLike[str]) -> Path:
    """Return where the log of a state directory is."""
    return Path(folder) / LOG


def snapshots_of(folder: str | os.PathLike[str], keep: int = 2) -> Snapshots:
    """Return the snapshots of a state directory."""
    return Snapshots(Path(folder) / SNAPSHOTS, keep)


def restored(
    snapshot: Snapshot,
    log: SegmentLog,
    until: int | None = None,
    on_record: Callable[[ServedState], None] | None = None,
) -> ServedState:
    """Return the state of a snapshot, with the records of the log after it.

    Parameters
    ----------
    snapshot : Snapshot
        Where to begin.
    log : SegmentLog
        It must have the records since the snapshot, and those of rows that wait for labels.
    until : int, optional
        The last entry to apply. By default all; a record is applied as a whole.
    on_record : callable, optional
        Called with the state after each record that was applied.

    Raises
    ------
    ModelFileError
        If the log does not have all records since the snapshot.
    """
    state, counts = ServedState.from_files(snapshot.files)
    begin = min(state.join_from, state.sequence + 1)
    if log.first > begin:
        raise ModelFileError(
            f"the log begins at entry {log.first}, but snapshot {state.sequence} needs it from {begin} on: files of "
            "the log were removed. Restore them, or begin with another directory and the model of the snapshot."
        )
    following: list[Record] = []

    def before() -> Iterator[Record]:
        for record in records:
            if record.sequence > state.sequence:
                following.append(record)
                return
            yield record

    records = log.read(after=begin - 1)
    state.rejoin(before(), counts)
    state.slice_rows = 1 << 13
    while True:
        record = following.pop() if following else next(records, None)
        if record is None or (until is not None and record.sequence + record.count - 1 > until):
            break
        for _ in state.apply(record):
            pass
        if on_record is not None:
            on_record(state)
    return state


def first_needed(snapshots: Snapshots) -> int:
    """Return the first entry of the log that a start from one of the snapshots needs."""
    needed = [
        json.loads(snapshots.file(sequence, STATE_FILE))["needed"]
        for sequence in snapshots.sequences()
        if snapshots.problem(sequence) is None
    ]
    return int(min(needed))


def describe(record: Record) -> dict[str, object]:
    """Return a record for people; one of a newer version with its kind and size."""
    try:
        return entries.describe(record)
    except Exception:
        return {
            "sequence": record.sequence,
            "count": record.count,
            "kind": record.kind,
            "bytes": len(record.payload),
            "note": "of a newer version, or damaged",
        }


def name_of(folder: str | os.PathLike[str]) -> str:
    """Return a state directory for messages."""
    return plain(os.fspath(folder))
