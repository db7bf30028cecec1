"""Appending, syncing, crashing, reopening and removing, in any order, against a list."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rarestream.serve.log import Record, SegmentLog
from tests.serve.log.logs import segments

BYTES = 200  # of a segment
new_records = st.lists(st.tuples(st.integers(1, 255), st.integers(1, 5), st.binary(max_size=80)), max_size=5)


class Log(RuleBasedStateMachine):
    """A log, and the list of records that it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.records: list[Record] = []
        self.synced = 0  # how many of them must be there after a crash
        self.next = 1
        self.log = SegmentLog.open(self.folder, segment_bytes=BYTES)

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)

    @rule(records=new_records)
    def append(self, records: list[tuple[int, int, bytes]]) -> None:
        assert self.log.append(records) == self.next
        for kind, count, payload in records:
            self.records.append(Record(self.next, count, kind, payload))
            self.next += count

    @rule()
    def sync(self) -> None:
        self.log.sync()
        self.synced = len(self.records)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.synced = len(self.records)
        self.log = SegmentLog.open(self.folder, segment_bytes=BYTES)
        assert self.log.cut is None

    @precondition(lambda self: segments(self.folder))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Of what was not synced, the disk has some first part: so many bytes, or as many zeros."""
        self.log.close()
        path = segments(self.folder)[-1]
        first = int(path.stem)
        kept = sum(21 + len(one.payload) for one in self.records[: self.synced] if one.sequence >= first)
        size = path.stat().st_size
        left = data.draw(st.integers(min(40 + kept, size), size), "bytes left")
        with open(path, "r+b") as file:
            file.truncate(left)
            file.seek(0, os.SEEK_END)
            file.write(bytes(data.draw(st.integers(0, 50), "zeros")))
        self.log = SegmentLog.open(self.folder, segment_bytes=BYTES)
        found = list(self.log.read())
        count = len([one for one in self.records if one.sequence < self.log.next])
        assert count >= self.synced
        self.records = self.records[:count]
        self.synced, self.next = count, self.log.next
        assert found == self.records

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        sequence = data.draw(st.integers(0, self.next + 2), "before")
        removed = self.log.remove_before(sequence)
        gone = [one for one in self.records if one.sequence < self.log.first]
        assert all(one.sequence + one.count <= sequence for one in gone) and bool(gone) >= bool(removed)
        self.records = self.records[len(gone) :]
        self.synced = max(0, self.synced - len(gone))

    @rule(data=st.data())
    def read_after(self, data: st.DataObject) -> None:
        after = data.draw(st.integers(0, self.next + 2), "after")
        assert list(self.log.read(after)) == [one for one in self.records if one.sequence + one.count - 1 > after]

    @invariant()
    def is_the_list(self) -> None:
        assert list(self.log.read()) == self.records
        with SegmentLog.open(self.folder, read_only=True) as other:
            assert list(other.read()) == self.records
        assert self.log.next == self.next
        assert self.log.first == (self.records[0].sequence if self.records else self.log.first)
        assert self.log.bytes == sum(path.stat().st_size for path in segments(self.folder))
        assert [int(path.stem) for path in segments(self.folder)] == sorted(int(p.stem) for p in segments(self.folder))


Log.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestLog = Log.TestCase
