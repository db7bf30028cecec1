"""The command line, `rarestream` or `python -m rarestream`."""

import sys


def main() -> None:
    """Words in, exit code out."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a bar that a terminal cannot show must not end the program
    from rarestream.cli.app import app

    app(prog_name="rarestream")
