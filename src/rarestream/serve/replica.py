"""A read-only service: it scores with the model of the newest snapshot of a directory that another service writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from rarestream.errors import ModelFileError, RarestreamError
from rarestream.metrics import Estimate
from rarestream.model import Model
from rarestream.monitor import Monitor
from rarestream.serve.messages import IdLabel, Labelled, Learned, ModelOut, ShadowOut
from rarestream.serve.recovery import name_of, snapshots_of
from rarestream.serve.rows import Limits, RowDecoder, RowText
from rarestream.serve.scoring import Scoring, read_only
from rarestream.serve.state import MODEL_FILE, STATE_FILE

say = logging.getLogger("rarestream.serve")


class Replica(Scoring):
    """A read-only service over a state directory.

    Parameters
    ----------
    folder : path
        The state directory of a service that learns, or a copy that is kept up to date.
    limits : Limits
        Of requests.
    every : float
        Seconds between two looks for a newer snapshot.
    """

    def __init__(self, folder: str | os.PathLike[str], limits: Limits | None = None, every: float = 1.0) -> None:
        super().__init__()
        self.folder, self.every = os.fspath(folder), every
        self.limits = Limits() if limits is None else limits
        self._snapshots = snapshots_of(folder)
        self._following: asyncio.Task[None] | None = None
        self._taken = 0.0  # when the snapshot was taken over

    async def start(self) -> None:
        """Load the newest snapshot and follow.

        Raises
        ------
        ModelFileError
            If there is none that is whole.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, self._load, -1)
        if found is None:
            raise ModelFileError(
                f"{name_of(self.folder)}: has no snapshot to follow. Start the service that learns first: "
                "rarestream serve MODEL --dir STATE."
            )
        self._take(*found)
        self._following = loop.create_task(self._follow())
        self.ready = True
        await self._open_lines()

    async def stop(self) -> None:
        """End."""
        await self._close_lines()
        self.ready = False
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following

    def _load(self, after: int) -> tuple[Model, int, int] | None:
        """Return the newest model after a sequence number, its version and its sequence number."""
        newest = self._snapshots.sequences()
        if not newest or newest[-1] <= after:
            return None
        snapshot, notes = self._snapshots.newest()
        for note in notes:
            say.warning("%s", note)
        if snapshot is None or snapshot.sequence <= after:
            return None
        version = json.loads(snapshot.files[STATE_FILE])["version"]
        return Model.from_bytes(snapshot.files[MODEL_FILE], "snapshot"), version, snapshot.sequence

    def _take(self, model: Model, version: int, sequence: int) -> None:
        model.prepare_one()
        self.decoder = RowDecoder.of_model(model, self.limits)
        self.answering, self.version, self.sequence = model, version, sequence
        self._monitor = Monitor.of(model)
        self._taken = time.monotonic()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.every)
            try:
                found = await loop.run_in_executor(None, self._load, self.sequence)
            except (RarestreamError, OSError) as error:  # such as a snapshot of a newer version
                say.warning("the newest snapshot cannot be used: %s", error)
                continue
            if found is not None:
                self._take(*found)

    # -- requests

    async def learn(
        self,
        rows: RowText,
        labels: Sequence[int] | None,
        importances: Sequence[float] | None = None,
        key: str | None = None,
    ) -> Learned:
        """Refuse."""
        raise read_only("It does not learn.")

    async def label(self, labels: Sequence[IdLabel], key: str | None = None) -> Labelled:
        """Refuse."""
        raise read_only("It does not learn.")

    async def snapshot(self) -> int:
        """Refuse."""
        raise read_only("It makes no snapshots.")

    async def start_shadow(self, file: bytes, promote: str, needed_positives: int, margin: float) -> ShadowOut:
        """Refuse."""
        raise read_only("It has no shadow.")

    async def shadow(self) -> ShadowOut:
        """Refuse."""
        raise read_only("It has no shadow.")

    async def stop_shadow(self) -> None:
        """Refuse."""
        raise read_only("It has no shadow.")

    async def promote(self) -> ModelOut:
        """Refuse."""
        raise read_only("It has no shadow.")

    def model(self) -> ModelOut:
        """Return what there is to know about the model that answers."""
        return self.describe(False, "This service is read-only: it follows the snapshots of another.", None)

    def model_file(self) -> bytes:
        """Return the model file of the snapshot that is followed."""
        self.check_ready()
        return self._snapshots.file(self._snapshots.sequences()[-1], MODEL_FILE)

    def statistics(self) -> dict[str, Any]:
        """Return the numbers of the live page."""
        self.check_ready()
        self._monitor.predicted = self.predicted
        message = self._monitor.message(self.answering)
        message["latency"] = self.latency()
        progress: Estimate = self.answering.progress.auc
        return message | {
            "version": self.version,
            "sequence": self.sequence,
            "auc": {
                "value": None if progress != progress else float(progress),
                "low": progress.low,
                "high": progress.high,
            },
            "disk": {
                "log_bytes": None,
                "snapshot_sequence": self.sequence,
                "snapshot_age": time.monotonic() - self._taken,
                "full": False,
            },
            "learning": False,
            "reason": "This service is read-only: it follows the snapshots of another.",
        }
