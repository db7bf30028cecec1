"""Words to values: what is accepted, how a mistake is reported, and what the help page shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

from rarestream.cli.app import COMMANDS, PROGRAM
from rarestream.cli.parser import Argument, Command, Option, Options, UsageError
from tests import children
from tests.cli.conftest import run


class Shared(Options):
    title = "Shared"

    level: Annotated[int, Option("--level", metavar="N", help="A level.", min=0, max=9)] = 3
    base: Annotated[bool | None, Option("--zero", off="--one", help="The base.")] = None


def example(
    first: Annotated[Path, Argument("FIRST", help="One file.")],
    rest: Annotated[list[str] | None, Argument("REST", help="More files.")] = None,
    output: Annotated[Path | None, Option("--output", "-o", metavar="FILE", help="A file.")] = None,
    rate: Annotated[float, Option("--rate", metavar="R", help="A rate.")] = 0.5,
    set: Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="Settings.")] = None,
    shape: Annotated[
        str | None, Option("--shape", metavar="NAME", help="A shape.", choices=lambda: ["round", "square"])
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Say little.")] = False,
    *,
    shared: Shared,
) -> None:
    """Do something with files.

    In two paragraphs.
    """


COMMAND = Command("program example", example)


def parsed(*words: str) -> dict[str, Any]:
    values = COMMAND.parse(words)
    assert values is not None
    return values | vars(values.pop("shared"))


def test_defaults_and_types():
    values = parsed("a")
    assert values == {
        "first": Path("a"),
        "rest": None,
        "output": None,
        "rate": 0.5,
        "set": None,
        "shape": None,
        "quiet": False,
        "level": 3,
        "base": None,
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a", "b", "c"], {"first": Path("a"), "rest": ["b", "c"]}),
        (["a", "-q", "b"], {"quiet": True, "rest": ["b"]}),
        (["-", "-"], {"first": Path("-"), "rest": ["-"]}),
        (["a", "--", "-q", "--rate"], {"quiet": False, "rest": ["-q", "--rate"]}),
        (["a", "--output", "x"], {"output": Path("x")}),
        (["a", "--output=x=y"], {"output": Path("x=y")}),
        (["a", "-o", "x"], {"output": Path("x")}),
        (["a", "-ox"], {"output": Path("x")}),
        (["a", "-qo", "x"], {"output": Path("x"), "quiet": True}),
        (["a", "-o", "-x"], {"output": Path("-x")}),
        (["a", "--rate", "-1e3"], {"rate": -1000.0}),
        (["a", "--rate", "1", "--rate", "2"], {"rate": 2.0}),
        (["a", "--set", "x=1", "--set", "y=2"], {"set": ["x=1", "y=2"]}),
        (["a", "--level", "9"], {"level": 9}),
        (["a", "--zero"], {"base": True}),
        (["a", "--zero", "--one"], {"base": False}),
        (["a", "--shape", "round"], {"shape": "round"}),
    ],
)
def test_words_are_parsed_as_other_programs_parse_them(words, expected):
    values = parsed(*words)
    assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Missing argument 'FIRST'."),
        (["a", "--outptu", "x"], "No such option: --outptu. Did you mean --output?"),
        (["a", "--qiet"], "Did you mean --quiet?"),
        (["a", "-x"], "No such option: -x."),
        (["a", "--out", "x"], "No such option: --out."),  # no abbreviations: a new option must not change a script
        (["a", "--output"], "Option '--output' requires a value."),
        (["a", "--quiet=yes"], "Option '--quiet' does not take a value."),
        (["a", "--rate", "x"], "Invalid value for '--rate': must be a number, got 'x'."),
        (["a", "--level", "1.5"], "Invalid value for '--level': must be a whole number, got '1.5'."),
        (["a", "--level", "10"], "Invalid value for '--level': must be between 0 and 9, got 10."),
        (["a", "--shape", "rond"], "must be one of round, square, got 'rond'. Did you mean round?"),
    ],
)
def test_a_mistake_is_named_with_a_suggestion(words, says):
    with pytest.raises(UsageError) as raised:
        COMMAND.parse(words)
    assert says in str(raised.value)


def test_required_options_and_extra_arguments():
    def strict(output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="A file.")]) -> None:
        """Write a file."""

    command = Command("program strict", strict)
    assert command.usage == "program strict --output FILE [OPTIONS]"
    with pytest.raises(UsageError, match="Missing option '--output' / '-o'."):
        command.parse([])
    with pytest.raises(UsageError, match="Unexpected argument 'x'."):
        command.parse(["-o", "y", "x"])


def test_help_wins_over_what_is_missing():
    assert COMMAND.parse(["--help"]) is None
    assert COMMAND.parse(["-qh"]) is None


def test_the_help_page(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        COMMAND.help()
        == """\
Usage: program example [OPTIONS] FIRST [REST...]

  Do something with files.

  In two paragraphs.

Arguments:
  FIRST    One file.
  REST...  More files.

Options:
  -o, --output FILE  A file.
  --rate R           A rate. [default: 0.5]
  --set NAME=VALUE   Settings.
  --shape NAME       A shape.
  -q, --quiet        Say little.
  -h, --help         Show this help.

Shared:
  --level N       A level. [default: 3; range: 0 to 9]
  --zero / --one  The base."""
    )


def all_commands():
    for name in COMMANDS:
        found = PROGRAM.find(name)
        if isinstance(found, Command):
            yield [name]
        else:
            yield from ([name, inner] for inner in found.names())


@pytest.mark.parametrize("columns", [80, 200])
def test_every_help_page_fits_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in [[], ["reproduce"], ["log"], *all_commands()]:
        done = run(*words, "--help")
        assert done.exit_code == 0 and done.stdout.startswith(f"Usage: {' '.join(['rarestream', *words])} ")
        assert max(map(len, done.stdout.splitlines())) <= columns


def test_misspelt_commands_and_options_get_a_suggestion():
    for words, near in (
        (["trian"], "train"),
        (["reproduce", "tabel2"], "table2"),
        (["train", "--leaner", "auto"], "--learner"),
        (["--verison"], "--version"),
    ):
        done = run(*words)
        assert done.exit_code == 2 and f"Did you mean {near}?" in done.stderr
        assert done.stderr.startswith("Usage: rarestream") and done.stdout == ""


def test_a_command_imports_what_it_uses_and_no_more(tmp_path):
    data = tmp_path / "data.svm"
    data.write_text("1 1:1\n-1 2:1\n")
    code = (
        f"import sys; sys.argv = ['rarestream', 'train', {str(data)!r}, '-q', '-o', {str(tmp_path / 'm.rare')!r}]\n"
        "from rarestream.cli import main\n"
        "main()\n"
        "print(*sys.modules)"
    )
    loaded = set(children.run([sys.executable, "-c", code]).stdout.split())
    assert "rarestream.cli.train" in loaded
    unused = ["argparse", "click", "rich", "scipy", "shlex", "shutil", "tempfile", "concurrent.futures"]
    unused += [f"rarestream.{name}" for name in ("cli.race", "cli.compare", "race", "compare", "reproduce")]
    assert loaded.isdisjoint(unused), loaded.intersection(unused)


@pytest.mark.parametrize("words", ["--help", "train --help", "--show-completion bash"])
def test_a_reader_that_has_gone_is_no_traceback(words):
    command = f"{sys.executable} -m rarestream {words} | true; exit ${{PIPESTATUS[0]}}"
    done = children.run(["bash", "-c", command])
    assert done.returncode in (0, 141) and done.stderr == ""


def test_an_option_with_an_implied_value_takes_another_only_after_an_equals_sign():
    def watch(
        data: Annotated[list[str] | None, Argument("DATA", help="Files.")] = None,
        page: Annotated[str | None, Option("--page", metavar="WHERE", help="A page.", implied="here")] = None,
    ) -> None:
        """Watch."""

    command = Command("program watch", watch)
    assert command.parse([])["page"] is None
    assert command.parse(["--page", "there"]) == {"data": ["there"], "page": "here"}
    assert command.parse(["--page=there"])["page"] == "there"
    assert "--page[=WHERE]" in command.help()
