"""The program: its commands, the options before a command, and errors turned into messages and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from rarestream.cli import failures
from rarestream.cli.parser import HELP_FLAGS, Command, Group, UsageError, exit_with_usage, suggestion
from rarestream.errors import worded_for_command_line

ABOUT = "Learns to rank rare events on sparse streams, one row at a time."
EPILOG = "Exit codes: 0 success, 1 failure, 2 usage error, 3 bad data, 130 interrupted."
COMMANDS = (
    "doctor",
    "join",
    "train",
    "race",
    "compare",
    "predict",
    "evaluate",
    "threshold",
    "explain",
    "inspect",
    "prune",
    "calibrate",
    "serve",
    "export",
    "convert",
    "split",
    "log",
    "datasets",
    "demo",
    "reproduce",
)
OPTIONS = {
    "--version": "Print the version.",
    "--debug": "Show the traceback of an error.",
    "--show-completion": "Print the completion script of a shell: bash, zsh or fish.",
}


def load(name: str) -> Callable[..., None] | Group:
    """The function of a command. Its module is imported now: a command pays for its own imports only."""
    if name == "reproduce":
        about = "Reproduce the paper's experiments."
        return Group("rarestream reproduce", about, experiment_names, load_experiment)
    if name == "log":
        from rarestream.cli import log

        return Group("rarestream log", log.ABOUT, lambda: log.NAMES, lambda inner: getattr(log, inner))
    function: Callable[..., None] = getattr(import_module(f"rarestream.cli.{name}"), name)
    return function


def experiment_names() -> list[str]:
    from rarestream.cli.reproduce import NAMES

    return [*NAMES, "report", "farm-ads"]


def load_experiment(name: str) -> Callable[..., None]:
    from rarestream.cli import farm_ads, reproduce

    if name == "farm-ads":
        return farm_ads.farm_ads
    return reproduce.report if name == "report" else reproduce.command(name)


PROGRAM = Group("rarestream", ABOUT, lambda: COMMANDS, load)


def run(words: Sequence[str]) -> None:
    """Run the command that the words name. Every failure ends the program with its exit code."""
    rest = list(words)
    failures.debugging = False
    while rest and rest[0] == "--debug":
        failures.debugging = bool(rest.pop(0))
    with worded_for_command_line():
        try:
            if rest and (rest[0] in ("--version", "--complete") or rest[0].partition("=")[0] == "--show-completion"):
                _answer(*rest)
            else:
                _run_in(PROGRAM, rest)
            sys.stdout.flush()  # here and not at exit, where a reader that has gone would be a traceback
        except (Exception, KeyboardInterrupt) as error:
            failures.end(error)


def _run_in(group: Group, words: Sequence[str]) -> None:
    """Run a command of the group, or of a group in it."""
    word, rest = (words[0], words[1:]) if words else (None, ())
    at: Group | Command = group
    try:
        if word in HELP_FLAGS:
            print(_group_help(group))
        elif word is None:
            print(_group_help(group), file=sys.stderr)
            sys.exit(failures.USAGE)
        elif word.startswith("-"):
            hint = suggestion(word, OPTIONS) if group is PROGRAM else ""
            raise UsageError(f"No such option: {word}.{hint}")
        else:
            at = group.find(word)
            if isinstance(at, Group):
                _run_in(at, rest)
            else:
                at.run(rest)
    except UsageError as error:
        exit_with_usage(at.usage, error)


def _answer(option: str, *words: str) -> None:
    """Print what an option in place of a command asks for."""
    option, equals, value = option.partition("=")
    if option == "--version":
        from rarestream._version import __version__

        print(f"rarestream {__version__}")
        return
    from rarestream.cli import completion

    if option == "--complete":  # what the completion scripts call
        for line in completion.candidates(PROGRAM, words, OPTIONS):
            print(line)
        return
    try:
        if not equals and not words:
            raise UsageError(f"Option '{option}' requires a value.")
        print(completion.script(value if equals else words[0]), end="")
    except UsageError as error:
        exit_with_usage(PROGRAM.usage, error)


def _group_help(group: Group) -> str:
    if group is not PROGRAM:
        return group.help()
    return group.help(
        [(f"{flag} SHELL" if flag == "--show-completion" else flag, text) for flag, text in OPTIONS.items()], EPILOG
    )
