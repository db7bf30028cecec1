"""Another reader of the state directory, which has replayed the log from its first record, and compares."""

from __future__ import annotations

import heapq
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rarestream.serve import entries
from rarestream.serve.log import Record, SegmentLog
from rarestream.serve.messages import Labelled, Learned
from rarestream.serve.recovery import log_folder, restored, snapshots_of
from rarestream.serve.rows import Limits, RowDecoder, RowText
from rarestream.serve.snapshots import Snapshot
from rarestream.serve.state import ServedState
from tests.serve_kills.load import Told

NUMBER = re.compile(rb"1\.(\d{10})")
MOST = 20  # things that are wrong and said


class Replayed:
    """The state after all records of the log, from the first on, and what it was told to compare on the way."""

    def __init__(self, folder: Path, first: Snapshot) -> None:
        self.folder, self.first = folder, first
        self.state, _ = ServedState.from_files(first.files)
        self.wrong: list[str] = []
        self.rows = self.labels = self.compared = self.snapshots = 0
        self._learned: dict[int, int] = {}  # row: its sequence number
        self._stored: set[str] = set()
        self._keys: dict[str, int] = {}  # idempotency key: the sequence number of its record
        self._refused: set[int] = set()

    def say(self, what: str) -> None:
        if len(self.wrong) < MOST:
            self.wrong.append(what)

    def check(self, told: Told) -> None:
        """Go on to the end of the log, and compare with what clients were told and with each snapshot."""
        self.wrong += told.wrong[:MOST]
        self._refused |= told.refused
        self._wanted: dict[int, list[int]] = {}  # rows of the states that scored, by version
        for version, rows in sorted(told.scored.keys() | told.models.keys()):
            self._wanted.setdefault(version, []).append(rows)  # sorted, and so a heap
        log = SegmentLog.open(log_folder(self.folder), read_only=True)
        for record in log.read(after=self.state.sequence):
            if record.sequence != self.state.sequence + 1:
                self.say(f"after entry {self.state.sequence} the log has {record.sequence}")
                break
            self._apply(record, told)
        self._compare_model(told)
        for what, left in (("acknowledged", told.answers), ("that scored", told.scored), ("of /model", told.models)):
            if left:
                self.say(
                    f"states or requests {what} are not in the log: {list(left)[:5]}, it ends at {self.state.sequence}"
                )
        for repeated in told.repeated:
            if self._keys.get(repeated.key) != repeated.sequence:
                self.say(f"{repeated}, but the log has it at {self._keys.get(repeated.key)}")
        if lost := told.stored - self._stored:
            self.say(f"{len(lost)} stored rows are not in the log, such as {next(iter(lost))}")
        if kept := self._refused & self._learned.keys():
            self.say(f"{len(kept)} rows were refused and learned, such as {next(iter(kept))}")
        self._compare_snapshots(log)

    def _apply(self, record: Record, told: Told) -> None:
        entry = entries.decode(record)
        last = record.sequence + record.count - 1
        answer = told.answers.pop(last, None)
        if isinstance(entry, entries.Learn):
            numbers = [int(digits) for digits in NUMBER.findall(entry.text)]
            if len(numbers) != record.count:
                self.say(f"record {record.sequence} has {len(numbers)} rows and the count {record.count}")
            for at, number in enumerate(numbers):
                if number in self._learned:
                    self.say(f"row {number} is in the log twice: {self._learned[number]}, {record.sequence + at}")
                self._learned[number] = record.sequence + at
            self.rows += record.count
            if answer is not None and told.learned.pop(last, None) != numbers:
                self.say(f"other rows than acknowledged are at {record.sequence} to {last}")
        elif isinstance(entry, entries.Store):
            self._stored.update(entry.ids)
        elif isinstance(entry, entries.LabelRows):
            self.labels += record.count
            if answer is not None and told.labelled.pop(last, None) != entry.ids:
                self.say(f"other labels than acknowledged are at {record.sequence} to {last}")
        if isinstance(entry, entries.Learn | entries.LabelRows) and entry.key is not None:
            if entry.key in self._keys:
                self.say(f"key {entry.key} is in the log twice: {self._keys[entry.key]} and {last}")
            self._keys[entry.key] = last
        found = self._run(self.state.apply(record), told)
        if answer is not None:
            self.compared += 1
            _compare_answers(self, last, found, answer)

    def _run(self, steps: Generator[None, None, Any], told: Told) -> Any:
        """Apply a record, and stop at each state that has scored."""
        state = self.state
        while True:
            self._compare_model(told)
            wanted = self._wanted.get(state.version, [])
            while wanted and wanted[0] <= state.model.rows:
                heapq.heappop(wanted)
            state.slice_rows = min(wanted[0] - state.model.rows, 997) if wanted else 997
            try:
                next(steps)
            except StopIteration as stop:
                self._compare_model(told)
                return stop.value

    def _compare_model(self, told: Told) -> None:
        """Compare the model, as it is, with what clients were told of it."""
        at = self.state.version, self.state.model.rows
        model = self.state.model
        for scored in told.scored.pop(at, ()):
            decoder = RowDecoder.of_model(model, Limits())
            decoded = decoder.decode(RowText("json", scored.row.encode(), 1), names=False)
            score = float(model.score(decoded.block)[0])
            probable = None
            if model.calibration is not None:
                probable = float(model.calibration.probability(np.array([score]), model.negatives_kept)[0])
            self.compared += 1
            if (score, probable) != (scored.score, scored.probability):
                self.say(f"version {at[0]} after {at[1]} rows: {score!r} {probable!r} instead of {scored}")
        answer = told.models.pop(at, None)
        if answer is not None:
            auc = model.progress.auc
            found = (model.positives, None if auc != auc else float(auc), auc.low, auc.high)
            shown = (answer["positives"], *answer["auc"].values())
            self.compared += 1
            if found != shown:
                self.say(f"version {at[0]} after {at[1]} rows: {found} instead of {shown}, as /model says")

    def _compare_snapshots(self, log: SegmentLog) -> None:
        snapshots = snapshots_of(self.folder)
        expected = self.state.files()
        for sequence in snapshots.sequences():
            if (problem := snapshots.problem(sequence)) is not None:
                self.say(f"snapshot {sequence} is not whole: {problem}")
                continue
            found = restored(snapshots.load(sequence), log).files()
            self._same(f"snapshot {sequence} and the log after it", found, expected)
            self.snapshots += 1

    def _same(self, what: str, found: dict[str, bytes], expected: dict[str, bytes]) -> None:
        other = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
        if other:
            self.say(f"{what}: {', '.join(other)} differ from those of the replayed log at {self.state.sequence}")

    def check_from_scratch(self) -> None:
        """Replay all of the log in one go, in large slices."""
        log = SegmentLog.open(log_folder(self.folder), read_only=True)
        self._same("the whole log", restored(self.first, log).files(), self.state.files())


def _compare_answers(self: Replayed, last: int, found: Learned | Labelled | None, answer: dict[str, Any]) -> None:
    mine = msgspec.json.decode(msgspec.json.encode(found))
    if mine != answer:
        other = [name for name in answer if mine is None or mine.get(name) != answer[name]]
        self.say(
            f"the answer at {last} differs in {other}: replayed {str(mine)[:200]}, acknowledged {str(answer)[:200]}"
        )
