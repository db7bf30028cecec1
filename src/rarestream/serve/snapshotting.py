"""Makes a snapshot of a state directory from the one before and the log: a process of its own, which nobody waits for.

    python -m rarestream.serve.snapshotting STATE SEQUENCE

It prints the sequence number of the snapshot, and the first entry of the log that is needed from then on.
"""

from __future__ import annotations

import os
import sys
import threading

from rarestream.errors import RarestreamError
from rarestream.serve.log import SegmentLog
from rarestream.serve.recovery import first_needed, log_folder, restored, snapshots_of


def main(folder: str, sequence: int) -> int:
    """Write the snapshot; return the exit code."""
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)
    snapshots = snapshots_of(folder)
    try:
        snapshot, _ = snapshots.newest()
        if snapshot is None:
            raise RarestreamError("there is no snapshot to begin with.")
        log = SegmentLog.open(log_folder(folder), read_only=True)
        state = restored(snapshot, log, until=sequence)
        if state.sequence > snapshot.sequence:
            snapshots.write(state.sequence, state.files())
        print(state.sequence, first_needed(snapshots))
    except RarestreamError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _end_with_the_service() -> None:
    """End when the other end of standard input is closed: the service has ended, and the next one may begin."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
