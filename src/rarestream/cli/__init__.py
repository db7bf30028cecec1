"""The command line, `rarestream` or `python -m rarestream`."""

import os
import sys


def main() -> None:
    """Words in, exit code out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as with 2>&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a bar that a terminal cannot show must not end the program
    from rarestream.cli.app import app

    app(prog_name="rarestream")
