"""`train --dashboard`: the page in the browser that shows the run."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rarestream.cli.parser import UsageError
from rarestream.errors import DataError, plain

if TYPE_CHECKING:
    from rarestream.cli.progress import ProgressBar
    from rarestream.evaluate import TrainingRun
    from rarestream.monitor.dashboard import Dashboard, PageServer

OPTION = "--dashboard"


def check(address: str, data: Sequence[str]) -> None:
    """Raise UsageError if an address was probably meant for the page, but is among DATA."""
    for word in data:
        if re.fullmatch(r"(\S*[A-Za-z0-9\]])?:[0-9]{1,5}", word) and not Path(word).exists():
            raise UsageError(f"{plain(word)} is taken for a file of DATA. For the page, pass {OPTION}={plain(word)}.")


def server(address: str) -> PageServer:
    """What serves the page, listening already; UsageError if it cannot."""
    from rarestream.monitor.dashboard import PageServer

    try:
        return PageServer(address)
    except DataError as error:
        raise UsageError(str(error).removeprefix("live page: "), OPTION) from None


def start(
    run: TrainingRun, server: PageServer, show: ProgressBar, target: Path, *, json: bool, quiet: bool
) -> Dashboard:
    """Begin to show the run, and say where."""
    from rarestream.monitor.dashboard import Dashboard

    made = Dashboard(run, server, f"training {plain(target.name)}")
    if json:
        from rarestream.cli.progress import emit

        emit({"event": "dashboard", "url": server.url})
    if not quiet:
        show.note(f"Live page: {server.url}")
        if not server.is_local:
            show.warn(
                "everyone who can reach this machine can read the live page, names of features included. For this "
                f"machine only, pass {OPTION} without an address."
            )
    return made


def end(server: PageServer, run: TrainingRun, show: ProgressBar, *, stay: bool) -> None:
    """End the page; in a terminal, only once the user has seen enough of it."""
    if stay and not run.interrupted and sys.stdin.isatty() and sys.stderr.isatty():
        show.note(f"The page shows the last numbers at {server.url} until Ctrl-C; the model is saved.")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    server.close()
