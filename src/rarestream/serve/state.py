"""What the service knows, and how a record of the log changes it.

`ServedState.apply` depends on the state and the record alone: replaying a log gives the same bits, whenever and however
often. It is a generator, which pauses between slices of rows so that rows can be scored meanwhile; where it pauses does
not matter.

Rows that wait for their labels are not part of a snapshot. They are in the log, and the join is made again from the
records since `join_from`.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError, ModelFileError, RowError
from rarestream.joining import JoinCounts, Joined, LabelJoin
from rarestream.metrics import Calibration
from rarestream.model import Model
from rarestream.monitor import Monitor
from rarestream.serve import entries
from rarestream.serve.errors import RequestError
from rarestream.serve.log import Record
from rarestream.serve.messages import Labelled, Learned, RefusedRow
from rarestream.serve.rows import DecodedRows, Limits, RowDecoder, RowText
from rarestream.serve.shadow import Shadow

FORMAT = 1  # of snapshots
MODEL_FILE, STATE_FILE = "model.rare", "state.json"
KEYS = 100_000  # idempotency keys that are remembered
WAITING_MEMORY = 256 << 20  # bytes of rows that wait for their labels; more go to a temporary file
PORTION = 256  # rows that the join returns at once
FORMATS = {"json": b"j", "vw": b"v", "svmlight": b"s"}  # of rows that wait, before their text
FORMAT_NAMES = {code: name for name, code in FORMATS.items()}
MARKS_PER_WAIT = 16
GRID = 256  # rows

Slices = Generator[None, None, Any]


@dataclass(frozen=True)
class Rules:
    """What decides how records are applied. They are part of the state: a change of them is a record.

    Parameters
    ----------
    label_wait : float
        Seconds after which the label of a stored row is late.
    unlabelled : {"drop", "negative"}
        What becomes of stored rows without a label then: they are dropped, or learned as negatives.
    window : int
        Rows of the windowed AUC.
    """

    label_wait: float = 3600.0
    unlabelled: str = "drop"
    window: int = 10_000


class KnownKey(msgspec.Struct, array_like=True):
    """A request with an idempotency key that was applied."""

    print: int
    learned: int
    version: int
    sequence: int
    refused: list[RefusedRow] = []
    unknown: list[str] | None = None  # of labels; None: the request was to learn
    duplicate: list[str] = []
    late: list[str] = []

    def answer(self) -> Learned | Labelled:
        """Return what a repeated request is told."""
        if self.unknown is None:
            return Learned(self.learned, self.refused, None, self.version, self.sequence, True)
        return Labelled(
            self.learned,
            self.unknown,
            self.duplicate,
            self.late,
            self.refused,
            self.version,
            self.sequence,
            True,
        )


class ServedState:
    """The model that answers, the rows that wait for labels, a shadow, keys and statistics.

    Parameters
    ----------
    model : Model
        It must be resumable, or it can only score.
    rules : Rules
        How records are applied.
    """

    def __init__(self, model: Model, rules: Rules) -> None:
        self.rules = rules
        self.sequence = 0
        self.version = 1
        self.time = 0.0
        self.keys: dict[str, KnownKey] = {}
        self.shadow: Shadow | None = None
        self.origin: dict[str, Any] = {}  # of the first model
        self.slice_rows = GRID  # rows to learn at once
        self.least_nonzeros = 0  # or as many rows as have so many
        self._marks: deque[tuple[float, int, float]] = deque()  # of stored rows: time, sequence, label_wait
        self.join = new_join(rules.label_wait)
        self._take(model)
        self.monitor = Monitor.of(model, rules.window)

    def _take(self, model: Model) -> None:
        self.model = model
        self.decoder = RowDecoder.of_model(model, Limits.none())  # what the log has was accepted
        self._calibration = None if model.calibration is None else model.calibration.copy()
        self._progress: Any = model.progress

    # -- applying

    def apply(
        self,
        record: Record,
        entry: entries.Entry | None = None,
        decoded: DecodedRows | None = None,
        model: Model | None = None,
    ) -> Slices:
        """Apply a record. Its answer is what the generator returns.

        Parameters
        ----------
        record : Record
            The next one of the log.
        entry : Entry, optional
            What it holds, if that is known.
        decoded : DecodedRows, optional
            Its rows, if they were decoded already.
        model : Model, optional
            For which: they are decoded again if another one answers now.
        """
        assert record.sequence == self.sequence + 1, "records are applied in order"
        if entry is None:
            entry = entries.decode(record)
        self.time = max(self.time, entry.time)
        if self.join.counts.events:
            yield from self._expire()
        last = record.sequence + record.count - 1
        answer: Any = None
        if isinstance(entry, entries.Learn):
            answer = yield from self._learn_entry(entry, record, decoded if model is self.model else None)
            answer.sequence = last
            self._remember(entry.key, entry.print, answer)
        elif isinstance(entry, entries.Store):
            self._mark(record.sequence)
            store_rows(self.join, entry, self.time)
        elif isinstance(entry, entries.LabelRows):
            answer = yield from self._label_entry(entry)
            answer.sequence = last
            self._remember(entry.key, entry.print, answer)
        elif isinstance(entry, entries.StartShadow):
            self.shadow = None
            if entry.file is not None:
                begun = Model.from_bytes(entry.file)
                self.shadow = Shadow(begun, entry.promote, entry.needed_positives, entry.margin)
        elif isinstance(entry, entries.Promote):
            if self.shadow is not None:
                self._take(self.shadow.model)
                self.shadow = None
                self.version += 1
        elif isinstance(entry, entries.ChangeRules):
            yield from self._change(entry)
        elif isinstance(entry, entries.HalfLife):
            with contextlib.suppress(DataError, ValueError):  # the model was swapped for one that cannot forget
                self._take(self.model.with_half_life(entry.rows))
        self.sequence = last
        return answer

    def _learn_entry(self, entry: entries.Learn, record: Record, decoded: DecodedRows | None) -> Slices:
        rows = RowText(entry.format, entry.text, record.count)
        if decoded is None:
            try:
                decoded = self.decoder.decode(rows, names=True)
            except RequestError as error:  # the model was swapped after the rows had been accepted for another
                refused = [RefusedRow(row, str(error)) for row in range(record.count)]
                return Learned(0, refused, [None] * record.count, self.version, 0)
        labels, importances = _labels(entry, decoded)
        self._add_names(decoded)
        scores, refused = yield from self._learn(rows, decoded.block, labels, importances, record.sequence)
        return Learned(len(scores) - len(refused), refused, _numbers(scores), self.version, 0)

    def apply_together(
        self, records: Sequence[Record], learns: Sequence[entries.Learn], decoded: Sequence[DecodedRows]
    ) -> Generator[None, None, list[Learned]]:
        """Apply several records of rows to learn, whose rows are decoded: the same as one by one, and much quicker.

        Only if nothing expires meanwhile, as `expires_by` tells, there is no shadow, and all have one format, which is
        not Arrow, and importances, or none has.
        """
        assert records[0].sequence == self.sequence + 1, "records are applied in order"
        self.time = max(self.time, learns[-1].time)
        every = [_labels(learn, rows) for learn, rows in zip(learns, decoded, strict=True)]
        labels = np.concatenate([one for one, _ in every])
        given = [h for _, h in every if h is not None]
        importances = np.concatenate(given) if given else None
        for rows in decoded:
            self._add_names(rows)
        block = concatenate([replace(rows.block, labels=None, importances=None) for rows in decoded])
        text = RowText(learns[0].format, b"\n".join(learn.text for learn in learns), len(block))
        scores, refused = yield from self._learn(text, block, labels, importances, records[0].sequence)
        answers, begin = [], 0
        for record, learn in zip(records, learns, strict=True):
            stop = begin + record.count
            mine = [RefusedRow(row.row - begin, row.reason) for row in refused if begin <= row.row < stop]
            last = record.sequence + record.count - 1
            answer = Learned(record.count - len(mine), mine, _numbers(scores[begin:stop]), self.version, last)
            self._remember(learn.key, learn.print, answer)
            answers.append(answer)
            begin = stop
        self.sequence = records[-1].sequence + records[-1].count - 1
        return answers

    def expires_by(self, time: float) -> bool:
        """Return whether rows that wait for labels may have waited too long at a time."""
        return max(time, self.time) - self.join.earliest > self.rules.label_wait

    def _add_names(self, decoded: DecodedRows) -> None:
        space = decoded.block.space
        if decoded.names is not None and space is not None and space.names is not None:
            space.names.add(decoded.names)

    def _learn(
        self,
        rows: RowText,
        block: Block,
        labels: NDArray[np.int8],
        importances: NDArray[np.float64] | None,
        first: int | None = None,
    ) -> Generator[None, None, tuple[NDArray[np.float64], list[RefusedRow]]]:
        """Learn rows in slices; those that cannot be learned are left out, and have the score nan.

        `first` is the sequence number of the first row, if each row is an entry.
        """
        scores = np.full(len(block), np.nan)
        refused: list[RefusedRow] = []
        shadow = None if self.shadow is None else self.shadow.decoded(rows)
        labelled = replace(block, labels=labels, importances=importances)
        least = self.least_nonzeros * len(block) // max(1, len(block.indices))
        at = alone = counted = 0
        while at < len(block):
            # Never across a multiple of GRID rows: what is taken from the model there must not depend on slices.
            stop = min(len(block), at + max(self.slice_rows, least), at + GRID - self.model.rows % GRID)
            if at < alone:
                stop = at + 1
            begun = at
            try:
                scores[at:stop] = self.model.learn(labelled[at:stop])
                at = stop
            except RowError as error:
                scores[at : at + error.row] = error.scores
                at += error.row + 1
                refused.append(RefusedRow(at - 1, f"the row {error.reason}"))
            except DataError as error:  # no memory for a feature index
                if stop - at > 1:
                    alone = stop  # each row for itself: which ones are refused must not depend on slices either
                    continue
                refused.append(RefusedRow(at, str(error)))
                at = stop
            if at == len(block) or not self.model.rows % GRID:
                self._count(labels, scores, importances, counted, at)
                counted = at
            if shadow is not None and self.shadow is not None:
                self.shadow.learn(shadow, begun, at, labels, importances, scores)
            if first is not None:
                self.sequence = first + at - 1
            if at < len(block):
                yield
        return scores, refused

    def _count(
        self,
        labels: NDArray[np.int8],
        scores: NDArray[np.float64],
        importances: NDArray[np.float64] | None,
        begin: int,
        stop: int,
    ) -> None:
        """Show rows that were learned to the monitor."""
        found, mine = scores[begin:stop], labels[begin:stop]
        weights = None if importances is None else importances[begin:stop]
        known = ~np.isnan(found)
        if not known.all():
            found, mine = found[known], mine[known]
            weights = None if weights is None else weights[known]
        model, calibration = self.model, self._calibration
        # By the calibration as it was at the last multiple of GRID rows, wherever slices begin.
        probable = None if calibration is None else calibration.probability(found, model.negatives_kept)
        self.monitor.count(mine, found, probable, weights)
        # A race of settings has ended: its winner has scored all rows. That, too, is looked at only there.
        if not model.rows % GRID and model.progress is not self._progress:
            self._progress = model.progress
            self.monitor.adopt(model.progress)
        if not model.rows % GRID and model.calibration is not None:
            self._calibration = model.calibration.copy()

    # -- labels that come late

    def _label_entry(self, entry: entries.LabelRows) -> Slices:
        answer = Labelled(0, [], [], [], [], self.version, 0)
        labels = np.frombuffer(entry.labels, np.int8)
        for begin in range(0, len(labels), PORTION):
            found: list[Joined] = []
            numbers: list[int] = []  # of their labels
            for number in range(begin, min(begin + PORTION, len(labels))):
                name = entry.ids[number]
                outcome = self.join.outcome(name, self.time)
                if outcome == "label":
                    found += self.join.label(name, self.time, int(labels[number]))
                    numbers.append(number)
                else:
                    self._count_label(outcome)
                    getattr(answer, outcome).append(name)
            refused = yield from self._learn_joined(found)
            answer.refused += [RefusedRow(numbers[row.row], row.reason) for row in refused]
            answer.learned += len(found) - len(refused)
            if begin + PORTION < len(labels):
                yield
        return answer

    def _count_label(self, outcome: str) -> None:
        """Count a label that the join is not given, as no row waits for it."""
        counts = self.join.counts
        counts.labels += 1
        counts.duplicate_labels += outcome == "duplicate"
        counts.late_labels += outcome == "late"
        counts.labels_without_event += outcome == "unknown"

    def _expire(self) -> Slices:
        """Decide the rows whose labels would be late now."""
        yield from self._learn_unlabelled(self.join.advance(self.time))

    def _learn_unlabelled(self, decided: Iterator[Joined]) -> Slices:
        """Learn rows without a label as negatives, if that is the rule."""
        while rows := list(islice(decided, PORTION)):
            if self.rules.unlabelled == "negative":
                yield from self._learn_joined(rows)
                yield

    def _learn_joined(self, rows: Sequence[Joined]) -> Generator[None, None, list[RefusedRow]]:
        """Learn rows that have their labels now; those without one are negative."""
        refused: list[RefusedRow] = []
        begin = 0
        while begin < len(rows):
            code = rows[begin].payload[:1]
            stop = begin + 1
            while stop < len(rows) and rows[stop].payload[:1] == code:
                stop += 1
            part = rows[begin:stop]
            text = RowText(FORMAT_NAMES[code], b"\n".join(row.payload[1:] for row in part), len(part))
            labels = np.array([1 if row.label == 1 else -1 for row in part], np.int8)
            try:
                decoded = self.decoder.decode(text, names=True)
            except RequestError as error:  # the model was swapped since the rows were stored
                refused += [RefusedRow(begin + row, str(error)) for row in range(len(part))]
            else:
                self._add_names(decoded)
                _, wrong = yield from self._learn(text, decoded.block, labels, None)
                refused += [RefusedRow(begin + row.row, row.reason) for row in wrong]
            begin = stop
        return refused

    @property
    def waiting(self) -> int:
        """Rows that wait for their labels."""
        counts = self.join.counts
        return counts.events - counts.duplicate_events - counts.refused_events - counts.matched - counts.unmatched

    def oldest_waiting(self, now: float) -> float | None:
        """Return how many seconds the oldest row has waited for its label; None if that is not known, or none waits."""
        earliest = self.join.earliest
        return max(0.0, now - earliest) if abs(earliest) < float("inf") and self.waiting else None

    @property
    def alarms(self) -> list[Any]:
        """The alarms of the drift detector."""
        return self.monitor.drift.alarms

    # -- rules, keys

    def _change(self, entry: entries.ChangeRules) -> Slices:
        rules, before = Rules(entry.label_wait, entry.unlabelled, entry.window), self.rules
        self.rules = rules
        if rules.window != before.window:
            self.monitor.take_in()  # rows that the next monitor would not show to the drift detector
            self.monitor = Monitor.of(self.model, rules.window, drift=self.monitor.drift)
        if rules.label_wait != before.label_wait:
            counts, moved = replace(self.join.counts), new_join(rules.label_wait)
            yield from self._learn_unlabelled(moved_rows(self.join, moved, self.time))
            counts.unmatched += moved.counts.unmatched
            self.join, moved.counts = moved, counts

    def _remember(self, key: str | None, print: int, answer: Learned | Labelled) -> None:
        if key is None:
            return
        known = KnownKey(print, answer.learned, answer.version, answer.sequence, answer.refused)
        if isinstance(answer, Labelled):
            known.unknown, known.duplicate, known.late = answer.unknown, answer.duplicate, answer.late
        self.keys[key] = known
        if len(self.keys) > KEYS:
            del self.keys[next(iter(self.keys))]

    # -- snapshots

    def _mark(self, sequence: int) -> None:
        wait = self.rules.label_wait
        if not self._marks or self.time - self._marks[-1][0] > wait / MARKS_PER_WAIT:
            self._marks.append((self.time, sequence, wait))
        # A row is remembered for two waits, to recognise its copies; what is known of those depends on two more.
        # Rows of a time with a shorter wait wait as long as the others since it was changed.
        longest = max(wait, *(mark[2] for mark in self._marks))
        while len(self._marks) > 1 and self.time - self._marks[1][0] > 4 * longest:
            self._marks.popleft()

    @property
    def join_from(self) -> int:
        """The sequence number from which on the log is needed to make the join again."""
        return self._marks[0][1] if self._marks else self.sequence + 1

    def files(self) -> dict[str, bytes]:
        """Return a snapshot, which `from_files` continues from."""
        from safetensors.numpy import save

        arrays = {f"monitor.{name}": array for name, array in self.monitor.state().items()}
        if self._calibration is not None:
            arrays["calibration"] = self._calibration.state()
        files = {MODEL_FILE: self.model.to_bytes(self.model.kind)}
        if self.shadow is not None:
            files["shadow.rare"] = self.shadow.model.to_bytes()
            arrays |= {f"shadow.{name}": array for name, array in self.shadow.arrays().items()}
        files["numbers.safetensors"] = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        files["keys.msgpack"] = msgspec.msgpack.encode(self.keys)
        facts = {
            "format": FORMAT,
            "sequence": self.sequence,
            "needed": min(self.join_from, self.sequence + 1),  # the first entry of the log that a start needs
            "version": self.version,
            "adopted": self._progress is self.model.progress,  # whether the monitor has what a race has ended with
            "time": self.time,
            "rules": asdict(self.rules),
            "marks": list(self._marks),
            "labels": self.join.counts.as_dict(),
            "origin": self.origin,
            "shadow": None if self.shadow is None else self.shadow.settings(),
        }
        files[STATE_FILE] = json.dumps(facts, indent=1).encode()
        return files

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> tuple[ServedState, JoinCounts]:
        """Return the state of a snapshot, without the rows that wait for labels, and what the join had counted.

        Raises
        ------
        ModelFileError
            If it is of a newer version.
        """
        from safetensors.numpy import load

        facts = json.loads(files[STATE_FILE])
        if facts["format"] > FORMAT:
            raise ModelFileError(
                f"the snapshot is of format {facts['format']}; this version reads up to {FORMAT}. Upgrade rarestream."
            )
        self = cls(Model.from_bytes(files[MODEL_FILE], "snapshot"), Rules(**facts["rules"]))
        self.sequence, self.version, self.time = facts["sequence"], facts["version"], facts["time"]
        self.origin = facts["origin"]
        if not facts["adopted"]:
            self._progress = None
        self._marks = deque(tuple(mark) for mark in facts["marks"])
        self.keys = msgspec.msgpack.decode(files["keys.msgpack"], type=dict[str, KnownKey])
        arrays = load(files["numbers.safetensors"])
        self.monitor = Monitor.from_state(_part(arrays, "monitor."))
        self._calibration = Calibration.from_state(arrays["calibration"]) if "calibration" in arrays else None
        if facts["shadow"] is not None:
            model = Model.from_bytes(files["shadow.rare"], "shadow")
            self.shadow = Shadow.restored(model, facts["shadow"], _part(arrays, "shadow."))
        return self, JoinCounts(**facts["labels"])

    def rejoin(self, records: Iterable[Record], counts: JoinCounts) -> None:
        """Make the join again from the records between `join_from` and the snapshot; nothing is learned.

        Parameters
        ----------
        records : iterable of Record
            Those from `join_from` up to the sequence of the state.
        counts : JoinCounts
            What the join had counted at the snapshot.
        """
        if self._marks:
            self.join = new_join(self._marks[0][2])
        time = self._marks[0][0] if self._marks else 0.0
        for record in records:
            entry = entries.decode(record)
            time = max(time, entry.time)  # the order of the log is not exactly that of the clock
            if self.join.counts.events:
                _exhaust(self.join.advance(time))
            if isinstance(entry, entries.Store):
                store_rows(self.join, entry, time)
            elif isinstance(entry, entries.LabelRows):
                for name in entry.ids:
                    if self.join.outcome(name, time) == "label":
                        _exhaust(self.join.label(name, time, 1))
            elif isinstance(entry, entries.ChangeRules) and entry.label_wait != self.join.within:
                moved = new_join(entry.label_wait)
                _exhaust(moved_rows(self.join, moved, time))
                self.join = moved
        if self._marks:
            _exhaust(self.join.advance(self.time))
        self.join.counts = replace(counts)


def new_join(label_wait: float) -> LabelJoin:
    """Return a join of stored rows and their labels, by the times of the records, which never go back."""
    return LabelJoin(label_wait, order="match", disorder=0.0, jump=float("inf"), memory=WAITING_MEMORY)


def store_rows(join: LabelJoin, entry: entries.Store, time: float) -> None:
    """Add stored rows to a join. Those whose id is known already are left out."""
    code = FORMATS[entry.format]
    payloads = [code + line for line in entry.text.split(b"\n")]
    _exhaust(join.events(entry.ids, [time] * len(payloads), payloads))


def moved_rows(join: LabelJoin, into: LabelJoin, time: float) -> Iterator[Joined]:
    """Move the rows that wait to a join with another time to wait; yield those that have waited longer than that."""
    for row in join.finish():
        yield from into.event(row.key, row.time, row.payload)
    yield from into.advance(time)


def _labels(entry: entries.Learn, decoded: DecodedRows) -> tuple[NDArray[np.int8], NDArray[np.float64] | None]:
    """Return labels and importances of rows to learn: beside them, or of their text."""
    labels = decoded.labels if entry.labels is None else np.frombuffer(entry.labels, np.int8)
    importances = decoded.importances
    if entry.importances is not None:
        importances = np.frombuffer(entry.importances, np.float64)
    assert labels is not None
    return labels, importances


def _exhaust(rows: Iterable[Any]) -> None:
    deque(rows, maxlen=0)


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _numbers(scores: NDArray[np.float64]) -> list[float | None]:
    if not np.isnan(scores).any():
        return scores.tolist()  # type: ignore[no-any-return]
    return [None if score != score else score for score in scores.tolist()]
