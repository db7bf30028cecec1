"""How the program ends when something is wrong: 1 failed, 2 wrong usage, 3 data refused, 130 interrupted."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

FAILED, USAGE, REFUSED, INTERRUPTED = 1, 2, 3, 130
BROKEN_PIPE = 141  # as the shell reports a program that SIGPIPE ended

debugging = False  # whether a traceback is shown: set by --debug


def exit_with(message: str, code: int) -> NoReturn:
    """Print a message on standard error and exit with the code."""
    from rarestream.cli.look import stderr

    ink = stderr()
    ink.message(f"{ink('rarestream:', 'red', 'bold')} {message}")
    sys.exit(code)


def discard_stdout() -> None:
    """Discard what is still written to standard output, whose reader has gone, so that no further write fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(error: BaseException) -> NoReturn:
    """Exit with the code and the message of an error; with a traceback if that was asked for, or if it is a bug."""
    from rarestream.errors import DataError, RarestreamError, plain

    if isinstance(error, BrokenPipeError):
        discard_stdout()
        sys.exit(BROKEN_PIPE)
    if debugging or os.environ.get("RARESTREAM_DEBUG", "0") not in ("", "0"):
        raise error
    if isinstance(error, DataError):
        exit_with(str(error), REFUSED)
    if isinstance(error, RarestreamError):
        exit_with(str(error), FAILED)
    if isinstance(error, KeyboardInterrupt):
        exit_with("interrupted; nothing was saved.", INTERRUPTED)
    if isinstance(error, MemoryError):
        exit_with(
            "out of memory. A model takes 8 bytes per column (16 with --dtype float64): hash or renumber columns.",
            FAILED,
        )
    if isinstance(error, OSError):
        place = f"{plain(error.filename)}: " if error.filename else ""
        exit_with(f"{place}{(error.strerror or str(error)).lower()}.", FAILED)
    raise error
