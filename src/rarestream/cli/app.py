"""The command line: words in, exit code out. Every decision lives in a room below; heavy imports wait for a command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rarestream.cli import failures
from rarestream.cli.compare import compare
from rarestream.cli.demo import demo
from rarestream.cli.evaluate import evaluate
from rarestream.cli.farm_ads import farm_ads
from rarestream.cli.inspect import inspect
from rarestream.cli.predict import predict
from rarestream.cli.prune import prune
from rarestream.cli.race import race
from rarestream.cli.reproduce import NAMES as EXPERIMENTS
from rarestream.cli.reproduce import command as experiment
from rarestream.cli.reproduce import report
from rarestream.cli.train import train
from rarestream.errors import plain_text, worded_for_command_line

EPILOG = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 data refused, 130 interrupted."
HELP = {"help_option_names": ["-h", "--help"]}


class Program(TyperGroup):
    """The commands. While one runs, errors name options; what they quote cannot reach the terminal raw."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        with worded_for_command_line():
            return super().main(*arguments, **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _plain_usage_errors():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _plain_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _plain_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "message"):  # click's errors, be it typer's own copy of click or not
            error.message = plain_text(str(error.message))
        raise


app = typer.Typer(
    name="rarestream",
    cls=Program,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings=HELP,
    epilog=EPILOG,
)
reproduce = typer.Typer(
    name="reproduce", help="Run the paper's experiments again.", no_args_is_help=True, context_settings=HELP
)


def _version(asked: bool) -> None:
    if asked:
        from rarestream._version import __version__

        print(f"rarestream {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback(epilog=EPILOG)
def rarestream(version: Version = False, debug: Debug = False) -> None:
    """Learns to rank rare events on sparse streams, one row at a time."""
    failures.debugging = debug


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, its errors turned to words and exit codes."""

    @functools.wraps(command)
    def run(**arguments: object) -> None:
        try:
            command(**arguments)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except (Exception, KeyboardInterrupt) as error:
            failures.end(error)

    return run


for _command in (train, race, compare, predict, evaluate, prune, inspect, demo):
    app.command(context_settings=HELP)(_guarded(_command))
for _name in EXPERIMENTS:
    reproduce.command(_name, context_settings=HELP)(_guarded(experiment(_name)))
reproduce.command(context_settings=HELP)(_guarded(report))
reproduce.command(context_settings=HELP)(_guarded(farm_ads))
app.add_typer(reproduce)
