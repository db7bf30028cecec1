"""The command line, `rarestream` or `python -m rarestream`."""


def main() -> None:
    from rarestream.cli.app import app

    app(prog_name="rarestream")
