"""The command line, `rarestream` or `python -m rarestream`."""

import gc
import os
import sys


def main() -> None:
    """Run the program with the arguments of the command line and exit with its code."""
    gc.set_threshold(100_000)  # imports make many objects and no garbage: looking for it took 5 % of a short run
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's, which nothing here needs, wait for work on every core
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as with 2>&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a bar that a terminal cannot show must not end the program
    try:
        from rarestream.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)  # before any command began
    run(sys.argv[1:])
