"""How a service runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rarestream.serve.rows import Limits
from rarestream.serve.state import Rules


@dataclass(frozen=True)
class Options:
    """How a service runs. Only the first three decide what becomes of the state.

    Parameters
    ----------
    label_wait, unlabelled, window
        As in `Rules`; None: as before, for a directory that has a state.
    limits : Limits
        Of requests.
    queue_rows, queue_bytes : int
        What may wait to be learned; more is refused with 429.
    snapshot_entries : int
        Entries of the log after which a snapshot is made.
    snapshot_seconds : float
        Seconds after which one is made, if anything has changed.
    keep_log : float
        Bytes of the log to keep beyond what is needed; infinite: everything.
    segment_bytes : int
        Size of a file of the log.
    on_drift : {"tell", "half-life", "shadow"}
        What an alarm of the drift detector does.
    drift_half_life : float
        Rows, for the latter two.
    """

    label_wait: float | None = None
    unlabelled: str | None = None
    window: int | None = None
    limits: Limits = field(default_factory=Limits)
    queue_rows: int = 100_000
    queue_bytes: int = 128 << 20
    snapshot_entries: int = 1_000_000
    snapshot_seconds: float = 600.0
    keep_log: float = 1 << 30
    segment_bytes: int = 64 << 20
    on_drift: str = "tell"
    drift_half_life: float = 20_000

    def rules(self, before: Rules) -> Rules:
        """Return the rules that are wanted, which are as before where nothing is said."""
        return Rules(
            before.label_wait if self.label_wait is None else self.label_wait,
            before.unlabelled if self.unlabelled is None else self.unlabelled,
            before.window if self.window is None else self.window,
        )
