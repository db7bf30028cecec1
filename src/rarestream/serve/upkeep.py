"""What a service does now and then: snapshots, time that passes, the gate of a shadow, alarms, numbers for people."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from typing import TYPE_CHECKING

from rarestream.errors import DataError
from rarestream.serve import entries
from rarestream.serve.errors import RequestError

if TYPE_CHECKING:
    from rarestream.serve.service import Service

WEIGHTS = 60.0  # seconds between two looks at all weights
JUDGED = 10.0  # seconds between two looks at a shadow
CONTROL = 1.0  # seconds between two looks at everything
LONGEST_TICK = 60.0  # seconds between two entries that say what time it is, while rows wait for labels
SHADOW_POSITIVES = 200  # that the gate of a shadow waits for, which a drift alarm has started

say = logging.getLogger("rarestream.serve")


class Upkeep:
    """Looks after a service.

    Parameters
    ----------
    service : Service
        It has a state.
    snapshot_sequence : int
        That of the newest snapshot.
    """

    def __init__(self, service: Service, snapshot_sequence: int) -> None:
        self._service = service
        self.snapshot_sequence = snapshot_sequence
        self.snapshot_time = time.monotonic()
        self._making: asyncio.Task[int] | None = None
        self._weights_time = 0.0
        self._ticked = time.monotonic()
        self._alarms = service.state.monitor.drift.alarm_count
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End; a snapshot that is being made is finished."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(CONTROL)
            for look in (self._weights, self._tick, self._rules, self._shadow, self._drift, self._snapshot):
                try:
                    await look()
                except RequestError as error:
                    say.warning("%s", error)
                except Exception:
                    say.exception("a regular task failed")

    async def _weights(self) -> None:
        """Compute what the live page shows, in another thread; while weights are read, nothing is learned."""
        service, monitor = self._service, self._service.state.monitor
        await asyncio.get_running_loop().run_in_executor(None, monitor.work)
        if time.monotonic() - self._weights_time >= WEIGHTS and not monitor.weights.read(service.answering):
            await service.in_thread(monitor.weights.finish, service.answering)
            self._weights_time = time.monotonic()

    async def _tick(self) -> None:
        """Say what time it is, so that rows without labels are decided."""
        service = self._service
        every = min(LONGEST_TICK, max(1.0, service.state.rules.label_wait / 20))
        if service.state.waiting and time.monotonic() - self._ticked > every:
            self._ticked = time.monotonic()
            if service.why_not_learning() is None and not service.stopping:
                service.submit(entries.Tick(service.now()), 0)

    async def _rules(self) -> None:
        if not self._service.stopping and self._service.broken is None:
            await self._service.change_rules()

    async def _shadow(self) -> None:
        """Look at the gate when it is due; promote a shadow that passes, if nobody is to be asked."""
        service, shadow = self._service, self._service.state.shadow
        if shadow is None:
            return
        due = shadow.due()
        if not due and time.monotonic() - service.judged_time < JUDGED:
            return
        judged = await service.shadow()
        wanted = due and judged.passes and shadow.promote == "auto"
        if wanted and service.state.shadow is shadow and not service.stopping:
            await service.submit(entries.Promote(service.now()), 0).answer
            say.info("the shadow was promoted: version %d", service.version)

    async def _drift(self) -> None:
        """Tell of an alarm, and do what was chosen."""
        service = self._service
        if service.state.monitor.drift.alarm_count <= self._alarms:
            return
        self._alarms = service.state.monitor.drift.alarm_count
        say.warning("the AUC has fallen: %s", service.state.alarms[-1])
        action, rows = service.options.on_drift, service.options.drift_half_life
        if action == "tell" or service.why_not_learning() is not None or service.stopping:
            return
        try:
            changed = await service.in_thread(service.answering.with_half_life, rows)
        except (DataError, ValueError) as error:
            say.warning("the half-life was not changed: %s", error)
            return
        if action == "half-life":
            await service.submit(entries.HalfLife(service.now(), rows), 0).answer
        elif service.state.shadow is None:
            file = await service.in_thread(changed.to_bytes)
            entry = entries.StartShadow(service.now(), file, "auto", SHADOW_POSITIVES, 0.0)
            await service.submit(entry, 0).answer

    # -- snapshots

    async def _snapshot(self) -> None:
        options = self._service.options
        changed = self._service.state.sequence - self.snapshot_sequence
        age = time.monotonic() - self.snapshot_time
        if changed >= options.snapshot_entries or (changed and age >= options.snapshot_seconds):
            await self.snapshot()

    async def snapshot(self) -> int:
        """Make a snapshot of everything applied so far, and return its sequence number.

        Another process makes it, from the last one and the log, so that nobody has to wait.
        """
        if self._making is None or self._making.done():
            making = self._make_snapshot(self._service.state.sequence)
            self._making = asyncio.get_running_loop().create_task(making)
        return await asyncio.shield(self._making)

    async def _make_snapshot(self, sequence: int) -> int:
        if sequence <= self.snapshot_sequence:
            return self.snapshot_sequence
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rarestream.serve.snapshotting",
            str(self._service.folder),
            str(sequence),
            stdin=asyncio.subprocess.PIPE,  # it ends if this process does
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None and process.stderr is not None
            out, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
            await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        if process.returncode:
            say.error("no snapshot was made: %s", errors.decode("utf-8", "replace").strip()[-2000:])
            self.snapshot_time = time.monotonic()
            raise RequestError(503, "no_snapshot", "No snapshot could be made; the log of the service says why.")
        self.snapshot_sequence = int(out.split()[0])
        self.snapshot_time = time.monotonic()
        needed = int(out.split()[1])
        await self._service.forget_log(needed)
        return self.snapshot_sequence
