"""What went wrong, in words and an exit code: 1 failed, 2 wrong usage, 3 data refused, 130 interrupted."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

FAILED, USAGE, REFUSED, INTERRUPTED = 1, 2, 3, 130
BROKEN_PIPE = 141  # as the shell reports a program that SIGPIPE ended

debugging = False  # set by --debug


def say(message: str, code: int) -> NoReturn:
    """Ends the program with one plain message on standard error."""
    from rarestream.cli.look import stderr

    ink = stderr()
    ink.line(f"{ink('rarestream:', 'red', 'bold')} {message}")
    sys.exit(code)


def silence() -> None:
    """Whoever read standard output has gone: the rest of it goes nowhere, and nothing complains again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(error: BaseException) -> NoReturn:
    """Ends the program as the error deserves. Mistakes of a user's get a message; a traceback only on request."""
    from rarestream.errors import DataError, RarestreamError, plain

    if isinstance(error, BrokenPipeError):
        silence()
        sys.exit(BROKEN_PIPE)
    if debugging or os.environ.get("RARESTREAM_DEBUG", "0") not in ("", "0"):
        raise error
    if isinstance(error, DataError):
        say(str(error), REFUSED)
    if isinstance(error, RarestreamError):
        say(str(error), FAILED)
    if isinstance(error, KeyboardInterrupt):
        say("interrupted; nothing was saved.", INTERRUPTED)
    if isinstance(error, MemoryError):
        say(
            "out of memory. A model takes 8 bytes a column (16 with --dtype float64): hash or renumber columns.", FAILED
        )
    if isinstance(error, OSError):
        place = f"{plain(error.filename)}: " if error.filename else ""
        say(f"{place}{(error.strerror or str(error)).lower()}.", FAILED)
    raise error
