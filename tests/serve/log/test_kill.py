"""A process that appends is killed at some moment: everything it has acknowledged is there, and nothing is half there."""

from __future__ import annotations

import sys
from pathlib import Path

from rarestream.serve.log import SegmentLog, StateLock
from tests import children

# Appends groups of records of all lengths, and says after each sync which entry is the last.
WRITE = """
import sys
from rarestream.serve.log import SegmentLog, StateLock
lock = StateLock(sys.argv[1])
log = SegmentLog.open(sys.argv[1] + "/log", segment_bytes=100_000)
while True:
    first = log.next
    log.append([(1, 1, str(first + number).encode() * ((first + number) % 997)) for number in range(1 + first % 7)])
    log.append([(2, 1, b"stored")])
    log.sync()
    print(log.next - 1, flush=True)
"""
KILLS = 8


def test_what_was_acknowledged_outlives_the_process(tmp_path: Path):
    acknowledged = 0
    for number in range(KILLS):
        with children.Child([sys.executable, "-c", WRITE, tmp_path]) as writer:
            for _ in range(1 + 37 * number % 100):
                acknowledged = int(writer.line())
            writer.kill()
            rest = [line for line in writer.lines() if line.endswith("\n")]
            acknowledged = int(rest[-1]) if rest else acknowledged
        with StateLock(tmp_path), SegmentLog.open(tmp_path / "log") as log:
            assert log.next > acknowledged
            expected = 1
            for one in log.read():
                assert one.sequence == expected
                assert one.payload == (b"stored" if one.kind == 2 else str(expected).encode() * (expected % 997))
                expected += 1
            assert expected == log.next
