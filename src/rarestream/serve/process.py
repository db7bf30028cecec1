"""What a process does that serves for days, and answers within a millisecond."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

SWITCH = 0.0005  # seconds after which a thread that computes lets the event loop have the interpreter; 0.005 by default

ARENAS = -8  # M_ARENA_MAX of malloc.h


def run_for_long() -> None:
    """Set up this process for serving.

    The command line hardly ever looks for garbage; a process that runs for long must. What has been imported stays for
    good, and is not looked at again and again. The event loop must not wait long for other threads. And threads share
    one arena of memory where the system is glibc's: in arenas of their own, what one model leaves is lost for the next,
    and memory grows by a tenth while shadows come and go.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
    sys.setswitchinterval(SWITCH)
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library has no such thing
            ctypes.CDLL(None).mallopt(ARENAS, 1)
