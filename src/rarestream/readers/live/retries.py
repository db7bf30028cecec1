"""Retries of a broker that is away: pauses that grow, notes for the user, and an end."""

from __future__ import annotations

import time
from collections.abc import Callable

from rarestream.errors import DataError, plain
from rarestream.readers.live.addresses import GIVE_UP

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds; each pause is twice the one before
SLICE = 0.05  # seconds after which a wait notices that it should stop


class Retries:
    """What is known of a broker: whether it answers, and when it is asked next.

    Times are those of a monotonic clock: it does not matter if someone sets the clock of the machine.

    Parameters
    ----------
    broker : str
        What messages call it.
    give_up : float
        Seconds without an answer after which `failed` raises.
    notes : list of str
        Where notes for the user go.
    """

    def __init__(self, broker: str, give_up: float, notes: list[str]) -> None:
        self._broker = broker
        self._give_up = give_up
        self._notes = notes
        self._since: float | None = None  # when it was first away; None: it answers
        self._pause = FIRST_PAUSE
        self._next = 0.0

    @property
    def away(self) -> bool:
        """Whether the last attempt has failed."""
        return self._since is not None

    def failed(self, reason: object) -> None:
        """Note that an attempt has failed, and when the next one is due.

        Raises
        ------
        DataError
            If there was no answer for `give_up` seconds.
        """
        now = time.monotonic()
        if self._since is None:
            self._since, self._pause = now, FIRST_PAUSE
        left = self._since + self._give_up - now
        why = plain(str(reason).strip().rstrip("."))
        if left <= 0:
            raise DataError(
                f"{self._broker}: no answer for {self._give_up:g} seconds ({why}). Everything up to here can be "
                f"continued when it is back; {GIVE_UP}=SECONDS in the address waits longer."
            )
        pause = min(self._pause, left)
        self._next = now + pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        seconds = f"{pause:.0f}" if pause >= 1 else f"{pause:.1g}"
        self._notes.append(f"no answer from {self._broker} ({why}); trying again in {seconds} s.")

    def answered(self) -> None:
        """Note that the broker answers."""
        if self._since is not None:
            self._notes.append(f"{self._broker} answers again.")
            self._since = None

    def due(self, until: float, stopped: Callable[[], bool]) -> bool:
        """Wait for the next attempt, but no longer than `until`; return whether it is due."""
        if self._since is None:
            return True
        wait(min(self._next, until), stopped)
        return time.monotonic() >= self._next and not stopped()


def wait(until: float, stopped: Callable[[], bool]) -> None:
    """Sleep until a time of the monotonic clock, or until it is stopped.

    In slices, and without a lock: a handler of a signal may stop a wait of its own thread.
    """
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, SLICE))
