"""Replays the log of a state directory, and compares what comes out with its snapshots, bit for bit."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from rarestream.errors import DataError, ModelFileError, OutputError
from rarestream.serve.log import SegmentLog
from rarestream.serve.recovery import log_folder, name_of, restored, snapshots_of
from rarestream.serve.snapshots import Snapshot, Snapshots
from rarestream.serve.state import STATE_FILE, ServedState


class Compared(NamedTuple):
    """A snapshot that the replay has come by."""

    sequence: int
    differs: list[str]  # files whose bits are others; none: it is the same state


class Replay(NamedTuple):
    """The state after a replay."""

    first: int  # entry of the snapshot that it began with
    state: ServedState
    last: int  # entry of the log
    compared: list[Compared]


def replay(folder: str | os.PathLike[str], until: int | None = None, *, check: bool = True) -> Replay:
    """Replay the log, from the oldest snapshot that it is complete for. Nothing is changed; a service may be running.

    Parameters
    ----------
    folder : path
        The state directory.
    until : int, optional
        The last entry to apply; by default the last of the log. A record is applied as a whole, or not at all.
    check : bool
        Whether the state is compared with each newer snapshot.

    Raises
    ------
    ModelFileError
        If no snapshot is whole and has the log that follows it.
    DataError
        If the entry is before the oldest state that is still there.
    LogDamagedError
        If the log is damaged.
    """
    log = SegmentLog.open(log_folder(folder), read_only=True)
    try:
        snapshots = snapshots_of(folder)
        first = _oldest(snapshots, log.first)
        if first is None:
            raise ModelFileError(
                f"{name_of(folder)}: no snapshot is whole and has all entries of the log after it: nothing can be "
                "replayed. rarestream log verify STATE says what is there."
            )
        if until is not None and until < first.sequence:
            raise DataError(
                f"{name_of(folder)}: entry {until} is gone: the oldest state that is still there is that of entry "
                f"{first.sequence}. A service keeps its two newest snapshots; copy them to go back further."
            )
        compared: list[Compared] = []

        def compare(state: ServedState) -> None:
            if state.sequence in left and (found := _compared(snapshots, state)) is not None:
                compared.append(found)

        left = {sequence for sequence in snapshots.sequences() if check and sequence > first.sequence}
        state = restored(first, log, until, compare)
        return Replay(first.sequence, state, log.next - 1, compared)
    finally:
        log.close()


def _oldest(snapshots: Snapshots, begin: int) -> Snapshot | None:
    """Return the oldest snapshot that needs nothing of the log before an entry."""
    for sequence in snapshots.sequences():
        if snapshots.problem(sequence) is None:
            try:
                if json.loads(snapshots.file(sequence, STATE_FILE))["needed"] >= begin:
                    return snapshots.load(sequence)
            except OutputError:  # removed meanwhile, by the service
                continue
    return None


def _compared(snapshots: Snapshots, state: ServedState) -> Compared | None:
    """Return how a state differs from its snapshot; None if that is damaged, or was removed meanwhile."""
    try:
        theirs = snapshots.load(state.sequence).files
    except OutputError:
        return None
    mine = state.files()
    return Compared(state.sequence, sorted(name for name in mine | theirs if mine.get(name) != theirs.get(name)))
