"""Tasks of a fit that kill the executor they run in, or its worker, in the middle of a round.

What is to die is the content of the file round-N of a folder: "executor" or "worker". The first task of that round that
has taken the file away does it, and no other: so it happens once, in that round, whatever is slow.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarestream.spark import fitting


@dataclass
class DyingTrainer(fitting._Trainer):
    """In place of the trainer that `fit` sends to tasks."""

    faults: str = ""

    def train(self, batches: Iterable[Any]) -> Iterator[Any]:
        yield from super().train(self._until_death(batches))

    def _until_death(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            die(Path(self.faults) / f"round-{self.number}")  # these rows were learned, and are lost


def die(order: Path) -> None:
    """Kills what a file says, if it is there and no other task was faster."""
    taken = order.with_name(f"{order.name}-taken-{os.getpid()}")
    try:
        order.rename(taken)
    except FileNotFoundError:
        return
    executor = parent(os.getppid())  # the parent of this process is the daemon that forks Python workers
    if taken.read_text() == "worker":
        os.kill(parent(executor), signal.SIGKILL)
    os.kill(executor, signal.SIGKILL)
    while True:
        signal.pause()  # until the daemon ends, which the executor has started


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
