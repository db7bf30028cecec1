"""`python -m rarestream` is the command line."""

from rarestream.cli import main

main()
