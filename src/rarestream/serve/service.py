"""The service: scores rows, learns from those that have labels, and joins labels that come late.

All of it runs in the thread of one event loop, which owns the model. A request that changes something takes this way:

    decoded and checked -> queued -> written to the log -> flushed to disk -> applied in its order -> answered

Rows are learned in slices of a fraction of a millisecond; between two slices requests are answered, each with the
state after a whole number of rows. Rows that are scored and stored for their labels are written to the log before the
answer, and flushed with the next request that waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import zlib
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np

from rarestream.errors import DataError, ModelFileError, OutputError, RarestreamError, plain
from rarestream.model import Model
from rarestream.serve import entries
from rarestream.serve.errors import RequestError
from rarestream.serve.log import SegmentLog, StateLock
from rarestream.serve.messages import IdLabel, Labelled, Learned, ModelOut, Prediction, ShadowOut
from rarestream.serve.options import Options
from rarestream.serve.pipeline import Pipeline
from rarestream.serve.recovery import log_folder, name_of, restored, snapshots_of
from rarestream.serve.rows import DecodedRows, Limits, RowDecoder, RowText
from rarestream.serve.scoring import AT_ONCE
from rarestream.serve.state import MODEL_FILE, Rules, ServedState
from rarestream.serve.upkeep import Upkeep

say = logging.getLogger("rarestream.serve")


class Service(Pipeline):
    """A service over a state directory.

    Parameters
    ----------
    folder : path
        The state directory: log, snapshots and lock. It is made if it does not exist.
    model : Model, optional
        What to begin with, if the directory has no state.
    options : Options
        How it runs.
    origin : str, optional
        Where the model comes from, for people.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: Model | None = None,
        options: Options | None = None,
        origin: str | None = None,
    ) -> None:
        super().__init__(Options() if options is None else options)
        self.folder = Path(folder)
        self._first_model, self._origin = model, origin
        self._snapshots = snapshots_of(folder)
        self._upkeep: Upkeep | None = None
        self._keys: dict[str, tuple[int, asyncio.Future[Any]]] = {}  # of requests under way
        self._judged: ShadowOut | None = None  # the shadow, as it was some seconds ago
        self.judged_time = 0.0

    # -- start and stop

    async def start(self) -> None:
        """Recover the state and begin.

        Raises
        ------
        RarestreamError
            If another service uses the directory, its log is damaged, or there is neither a state nor a model.
        """
        try:
            self._lock = StateLock(self.folder)
        except OSError as error:
            raise OutputError(f"{name_of(self.folder)}: cannot be used ({error.strerror}). Choose another.") from error
        try:
            state, log, snapshot = await asyncio.get_running_loop().run_in_executor(None, self._recover)
        except BaseException:
            self._lock.release()
            raise
        self.begin(state, log)
        self._upkeep = Upkeep(self, snapshot)
        self.ready = True
        try:
            await self.change_rules()
        except RequestError as error:
            say.warning("the rules are as before, and will be changed when that is possible: %s", error)
        await self._open_lines()

    async def change_rules(self) -> None:
        """Apply the rules that are wanted, if they are others."""
        wanted = self.options.rules(self.state.rules)
        if wanted != self.state.rules and self.answering.kind == "resumable":
            entry = entries.ChangeRules(self.now(), wanted.label_wait, wanted.unlabelled, wanted.window)
            await self.submit(entry, 0).answer

    def _recover(self) -> tuple[ServedState, SegmentLog, int]:
        """Return the state, its log, and the sequence number of the snapshot that it began with."""
        snapshot, notes = self._snapshots.newest()
        for note in notes:
            say.warning("%s", note)
        if snapshot is None:
            if self._snapshots.sequences() or any(log_folder(self.folder).glob("*.log")):
                raise ModelFileError(
                    f"{name_of(self.folder)}: has no snapshot that is whole. Restore one from a copy of the directory, "
                    "or begin with another directory."
                )
            if self._first_model is None:
                raise ModelFileError(
                    f"{name_of(self.folder)}: has no state yet. Name the model to begin with: "
                    "rarestream serve MODEL --dir STATE."
                )
            state = ServedState(self._first_model, self.options.rules(Rules()))
            state.origin = {"model": self._origin, "print": _print(self._first_model.to_bytes(self._first_model.kind))}
            self._snapshots.write(0, state.files())
            snapshot, _ = self._snapshots.newest()
            assert snapshot is not None
        log = SegmentLog.open(
            log_folder(self.folder), first=snapshot.sequence + 1, segment_bytes=self.options.segment_bytes
        )
        if log.cut is not None:
            say.warning("%s", log.cut)
        begun = time.monotonic()
        try:
            state = restored(snapshot, log)
            self._check_origin(state)
            state.monitor.weights.finish(state.model)
        except BaseException:
            log.close()
            raise
        replayed = state.sequence - snapshot.sequence
        if replayed:
            say.info("replayed %d entries of the log in %.1f s", replayed, time.monotonic() - begun)
        return state, log, snapshot.sequence

    def _check_origin(self, state: ServedState) -> None:
        """Raise a ModelFileError if a model was named, and the directory began with another one."""
        model, known = self._first_model, state.origin
        if model is not None and known.get("print") != _print(model.to_bytes(model.kind)):
            raise ModelFileError(
                f"{name_of(self.folder)}: began with another model ({plain(str(known.get('model')))}) and has "
                f"{state.sequence} entries since. Leave MODEL out to continue with it, swap models with "
                "POST /shadow, or choose another directory."
            )

    async def stop(self) -> None:
        """Finish what was accepted, make a snapshot and close. Requests that come now are refused with 503."""
        if self.stopping:
            return
        self.stopping = True
        await self._close_lines()
        if not self.ready:
            return
        await self.finish()
        self.ready = False
        assert self._upkeep is not None
        await self._upkeep.stop()
        try:
            if self.state.sequence > self._upkeep.snapshot_sequence and not self.behind:
                await self._loop.run_in_executor(
                    None, lambda: self._snapshots.write(self.state.sequence, self.state.files())
                )
        except RarestreamError as error:
            say.warning("no last snapshot: %s The log has everything; the next start takes longer.", error)
        finally:
            self._log.close()
            self._lock.release()

    # -- requests

    async def predict(self, rows: RowText, ids: list[str] | None = None, remember: bool = False) -> Prediction:
        """Score rows, and store them for their labels if they have ids or are to be remembered."""
        self.check_ready()
        prediction = await self.scored(rows)
        if ids is None and not remember:
            return prediction
        count = len(prediction.scores)
        if ids is None:
            ids = [uuid4().hex for _ in range(count)]
        if len(ids) != count:
            raise RequestError(
                422, "bad_request", f"ids: there are {len(ids)} ids for {count} rows; each row needs one."
            )
        if rows.format == "arrow":
            raise RequestError(422, "bad_request", "ids: rows of Arrow tables are not stored for labels. Use JSON.")
        try:
            prediction.stored = await self._store(rows, ids)
            prediction.ids = ids
        except RequestError as error:
            if error.code not in ("busy", "disk_full", "log_broken"):
                raise  # else predictions go on though rows cannot be stored
        return prediction

    async def _store(self, rows: RowText, ids: list[str]) -> int:
        """Write rows to the log, to be joined with their labels; return how many ids are new."""
        self.check_learning()
        now = self.now()
        seen: set[str] = set()
        for name in ids:
            if name not in self._storing and not self.state.join.has_event(name, now):
                seen.add(name)
        entry = entries.Store(now, rows.format, rows.text, ids)
        pending = self.submit(entry, len(ids), written=True)
        for name in ids:
            self._storing[name] = self._storing.get(name, 0) + 1
        assert pending.written is not None
        await pending.written
        return len(seen)

    async def learn(
        self,
        rows: RowText,
        labels: Sequence[int] | None,
        importances: Sequence[float] | None = None,
        key: str | None = None,
    ) -> Learned:
        """Learn rows. Returns when they are on disk and learned.

        Parameters
        ----------
        rows : RowText
            The rows.
        labels : sequence of int or None
            1, or 0 or -1; None: the rows have them.
        importances : sequence of float, optional
            0, or between 1e-100 and 1e12.
        key : str, optional
            Of idempotency: a request with a key that is known is not learned again.

        Raises
        ------
        RequestError
            If it is refused; nothing was learned.
        """
        self.check_learning()
        label_bytes = None if labels is None else np.array([1 if y == 1 else -1 for y in labels], np.int8).tobytes()
        weights = None if importances is None else np.array(importances, np.float64)
        print = _print(rows.text, label_bytes, None if weights is None else weights.tobytes())

        async def run() -> Learned:
            decoder, model = self.decoder, self.answering
            if len(rows.text) <= AT_ONCE:
                decoded = decoder.decode(rows, names=True)
            else:
                decoded = await self._loop.run_in_executor(self.threads, lambda: decoder.decode(rows, names=True))
            count = len(decoded.block)
            _check_count("labels", labels, count)
            _check_count("importances", importances, count)
            if weights is not None:
                _check_importances(weights)
            if labels is None:
                _check_labels(decoded)
            if not count:
                return Learned(0, [], [], self.version, self.sequence)
            entry = entries.Learn(
                self.now(),
                key,
                print,
                rows.format,
                rows.text,
                label_bytes,
                None if weights is None else weights.tobytes(),
            )
            answer: Learned = await self.submit(entry, count, decoded, model).answer
            return answer

        answer: Learned = await self._once(key, print, run())
        return answer

    async def label(self, labels: Sequence[IdLabel], key: str | None = None) -> Labelled:
        """Give labels to stored rows, which are then learned. Returns when that is done, and on disk."""
        self.check_learning()
        names = [label.id for label in labels]
        values = np.array([1 if label.label == 1 else -1 for label in labels], np.int8).tobytes()
        if len(names) > self.limits.rows:
            raise RequestError(
                413, "too_large", f"The request has {len(names)} labels; at most {self.limits.rows} are allowed."
            )
        print = _print("\n".join(names).encode(), values)

        async def run() -> Labelled:
            if not names:
                return Labelled(0, [], [], [], [], self.version, self.sequence)
            entry = entries.LabelRows(self.now(), key, print, names, values)
            answer: Labelled = await self.submit(entry, len(names)).answer
            return answer

        answer: Labelled = await self._once(key, print, run())
        return answer

    async def _once(self, key: str | None, print: int, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what a request returns; what it did return, if its key is known."""
        if key is None:
            return await work
        known = self.state.keys.get(key)
        under_way = self._keys.get(key)
        if known is not None or under_way is not None:
            work.close()
            if print != (known.print if known is not None else under_way[0]):  # type: ignore[index]
                raise RequestError(
                    422, "key_reused", "The idempotency key was used for another request. Each needs a key of its own."
                )
            if known is not None:
                return known.answer()
            assert under_way is not None
            answer = await asyncio.shield(under_way[1])
            again = self.state.keys.get(key)
            return answer if again is None else again.answer()
        # In a task of its own: whoever repeats the request waits for it, even if the first caller has gone.
        task = self._loop.create_task(work)
        self._keys[key] = print, task
        task.add_done_callback(lambda _: self._keys.pop(key, None))
        return await asyncio.shield(task)

    # -- the model and its shadow

    def model(self) -> ModelOut:
        """Return what there is to know about the model that answers."""
        reason = self.why_not_learning()
        return self.describe(reason is None, reason, self._judged if self.state.shadow is not None else None)

    def model_file(self) -> bytes:
        """Return the model file of the newest snapshot."""
        self.check_ready()
        snapshot, _ = self._snapshots.newest()
        assert snapshot is not None
        return snapshot.files[MODEL_FILE]

    async def shadow(self) -> ShadowOut:
        """Return how the shadow compares with the model that answers."""
        self.check_ready()
        shadow = self.state.shadow
        if shadow is None:
            raise RequestError(404, "not_found", "There is no shadow model. POST one to /shadow.")
        rows = shadow.compared()
        judged = await self._loop.run_in_executor(None, shadow.judged, rows)
        self._judged, self.judged_time = judged, time.monotonic()
        return judged

    async def start_shadow(self, file: bytes, promote: str, needed_positives: int, margin: float) -> ShadowOut:
        """Let a model learn beside the one that answers.

        Raises
        ------
        RequestError
            If the file is no model that can learn.
        """
        self.check_learning()
        try:
            model = await self._loop.run_in_executor(None, _readable, file)
        except RarestreamError as error:
            raise RequestError(422, "bad_model", str(error)) from error
        if model.kind != "resumable":
            raise RequestError(422, "bad_model", "The file has only weights. Save the model with kind='resumable'.")
        entry = entries.StartShadow(self.now(), file, promote, needed_positives, margin)
        await self.submit(entry, 0).answer
        self._judged = None
        return await self.shadow()

    async def stop_shadow(self) -> None:
        """Drop the shadow."""
        self.check_learning()
        if self.state.shadow is None:
            raise RequestError(404, "not_found", "There is no shadow model.")
        await self.submit(entries.StartShadow(self.now(), None, "manual", 0, 0.0), 0).answer
        self._judged = None

    async def promote(self) -> ModelOut:
        """Let the shadow replace the model that answers.

        Raises
        ------
        RequestError
            If there is none, or the gate is closed.
        """
        self.check_learning()
        judged = await self.shadow()
        if not judged.passes:
            found = judged.difference
            shown = "not known yet"
            if found.value is not None:
                shown = f"{found.value:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
            raise RequestError(
                409,
                "gate_closed",
                f"The gate is closed: the AUC of the shadow minus that of the model is {shown} after "
                f"{judged.positives} positives; it needs {judged.needed_positives}, and a lower end above "
                f"{-judged.margin:+.4f}.",
            )
        await self.submit(entries.Promote(self.now()), 0).answer
        say.info("the shadow was promoted: version %d", self.version)
        return self.model()

    async def snapshot(self) -> int:
        """Make a snapshot of everything applied so far, and return its sequence number."""
        self.check_ready()
        assert self._upkeep is not None
        return await self._upkeep.snapshot()

    async def forget_log(self, needed: int) -> None:
        """Remove old files of the log: what is before the first entry needed, and more than is to be kept."""
        await self._loop.run_in_executor(None, self._log.remove_before, needed, self.options.keep_log)

    # -- numbers

    def statistics(self) -> dict[str, Any]:
        """Return the numbers of the live page."""
        self.check_ready()
        assert self._upkeep is not None
        state, counts = self.state, self.state.join.counts
        state.monitor.predicted = self.predicted
        message = state.monitor.message(self.answering, work=False, look=False)
        message |= {
            "version": state.version,
            "sequence": state.sequence,
            "labels": {
                "waiting": state.waiting,
                "oldest_seconds": state.oldest_waiting(time.time()),
                "joined": counts.matched,
                "unlabelled": counts.unmatched,
                "duplicate": counts.duplicate_labels,
                "late": counts.late_labels,
                "unknown": counts.labels_without_event,
            },
            "queue": {"rows": self.queued_rows, "bytes": self.queued_bytes, "limit": self.options.queue_rows},
            "disk": {
                "log_bytes": self._log.bytes,
                "snapshot_sequence": self._upkeep.snapshot_sequence,
                "snapshot_age": time.monotonic() - self._upkeep.snapshot_time,
                "full": self.full is not None,
            },
            "latency": self.latency(),
            "shadow": None if self._judged is None or state.shadow is None else msgspec.to_builtins(self._judged),
            "learning": self.why_not_learning() is None,
            "reason": self.why_not_learning(),
        }
        return message


def _readable(file: bytes) -> Model:
    """Return the model of a file for a shadow, which can read rows: what is in the log must be."""
    model = Model.from_bytes(file, "the file")
    RowDecoder.of_model(model, Limits.none())
    return model


def _print(*parts: bytes | None) -> int:
    """Return a checksum of parts."""
    found = 0
    for part in parts:
        found = zlib.crc32(b"\0" if part is None else part, zlib.crc32(b"|", found))
    return found


def _check_count(what: str, given: Sequence[Any] | None, rows: int) -> None:
    if given is not None and len(given) != rows:
        raise RequestError(
            422, "bad_request", f"{what}: there are {len(given)} for {rows} rows; each row needs exactly one."
        )


def _check_labels(decoded: DecodedRows) -> None:
    """Raise a RequestError unless each row came with a label."""
    if decoded.labels is None or not decoded.labels.all():
        row = 0 if decoded.labels is None else int(np.argmin(np.abs(decoded.labels)))
        raise RequestError(422, "bad_rows", f"row {row}: has no label, which is needed to learn it.", row=row)


def _check_importances(weights: Any) -> None:
    from rarestream.blocks import checked_importances

    try:
        checked_importances(weights, len(weights))
    except DataError as error:
        raise RequestError(422, "bad_request", str(error)) from error
