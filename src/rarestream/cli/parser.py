"""Commands from typed functions: parsing, the help page and shell completion follow from one signature.

A command is a function whose parameters are annotated with an Argument or an Option:

    def head(
        data: Annotated[list[str], Argument("DATA", help="Files to read.")],
        lines: Annotated[int, Option("--lines", "-n", metavar="N", help="Lines to show.", min=1)] = 10,
    ) -> None:
        "Show the first lines of DATA."

The annotated type says how a word is converted: str, Path, int, float, bool for a flag, or a list of str for an
option or argument that may be repeated. Options that several commands share are attributes of a class derived from
Options; a command takes all of them as one parameter.

This module is imported before every command, so it imports little: half of the time that a small command took was
spent importing a framework.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

HELP_FLAGS = ("-h", "--help")
FLAGS_WIDEST = 30  # columns for an option and its value; what is longer gets a line of its own


class UsageError(Exception):
    """A command line that cannot be run. `option` is the option or argument to blame, as a user writes it."""

    def __init__(self, message: str, option: str | None = None) -> None:
        super().__init__(message if option is None else f"Invalid value for '{option}': {message}")


class Option:
    """An option, declared in Annotated[type, Option(...)].

    Parameters
    ----------
    flags
        As a user writes them, the full name first: "--output", "-o".
    help
        One sentence for the help page.
    metavar
        Name of the value on the help page; NAME-like words in capitals.
    off
        For a flag that is on, off or not given (bool | None): the flag that turns it off.
    min, max
        Allowed range of a number, ends included.
    choices
        Returns the allowed values. Called only when the option is given or completed.
    default
        What the help page says of the default, where that is not the default of the parameter.
    split
        For an option that may be repeated: whether commas separate several values of one word.
    implied
        The value of the option if it is given without one; another one is given as --flag=VALUE only, so that the
        word after the flag is not taken for it.
    """

    def __init__(
        self,
        *flags: str,
        help: str,
        metavar: str = "",
        off: str | None = None,
        min: float | None = None,
        max: float | None = None,
        choices: Callable[[], Sequence[str]] | None = None,
        default: str | None = None,
        split: bool = False,
        implied: str | None = None,
    ) -> None:
        self.flags, self.help, self.metavar, self.off = flags, help, metavar, off
        self.min, self.max, self.choices, self.default, self.split = min, max, choices, default, split
        self.implied = implied


class Argument:
    """An argument, declared in Annotated[type, Argument(...)]; a list takes all words that are left to it."""

    def __init__(self, metavar: str, *, help: str) -> None:
        self.metavar, self.help = metavar, help


class Options:
    """Options that several commands share: each annotated attribute of a derived class is one."""

    title: typing.ClassVar[str]  # of the options on the help page

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    @classmethod
    def parameters(cls, group: str) -> list[Parameter]:
        """All options, as those of the parameter `group` of a command."""
        return cls.usual_parameters(group)

    @classmethod
    def usual_parameters(cls, group: str) -> list[Parameter]:
        """Those of the options that are quickly found: all of them, unless a derived class knows better."""
        found = []
        for name, hint in typing.get_type_hints(cls, include_extras=True).items():
            if hasattr(hint, "__metadata__"):
                default = {name: getattr(cls, name)} if hasattr(cls, name) else {}
                found.append(_parameter(name, hint, default, group, cls.title))
        return found


class Parameter(NamedTuple):
    """A parameter of a command, or an attribute of its Options."""

    name: str
    kind: type  # of one value
    repeated: bool
    required: bool
    default: Any
    spec: Any  # an Option or an Argument
    group: str | None  # the parameter that it is an attribute of
    title: str

    @property
    def label(self) -> str:
        """As an error names it."""
        return self.spec.flags[0] if isinstance(self.spec, Option) else self.spec.metavar

    @property
    def flags(self) -> tuple[str, ...]:
        return (*self.spec.flags, self.spec.off) if self.spec.off else self.spec.flags

    def convert(self, word: str) -> Any:
        """The value of a word; UsageError if it has none."""
        if self.kind is int or self.kind is float:
            try:
                value = self.kind(word)
            except ValueError:
                kind = "a whole number" if self.kind is int else "a number"
                raise UsageError(f"must be {kind}, got {word!r}.", self.label) from None
            low, high = self.spec.min, self.spec.max
            if (low is not None and not value >= low) or (high is not None and not value <= high):
                rule = f"at least {low}" if high is None else f"between {low} and {high}"
                raise UsageError(f"must be {rule}, got {word}.", self.label)
            return value
        if isinstance(self.spec, Option) and self.spec.choices is not None:
            require_choice(self.label, word, self.spec.choices())
        return self.kind(word)


def require_choice(option: str, value: str, known: Sequence[str] | Mapping[str, Any], what: str | None = None) -> None:
    """Raise UsageError unless the value is known; suggest the nearest one that is."""
    if value in known:
        return
    what = f"{what} must be" if what else "must be"
    raise UsageError(f"{what} one of {', '.join(known)}, got {value!r}.{suggestion(value, known)}", option)


def suggestion(word: str, known: Iterable[str]) -> str:
    """What an error says of a word that was probably meant, if any looks like it."""
    from rarestream.errors import nearest

    near = nearest(word, known)
    return f" Did you mean {near}?" if near else ""


def parameters_of(function: Callable[..., None], usual: bool = False) -> list[Parameter]:
    """The parameters of a command, those of its Options among them; `usual`: only those that are quickly found."""
    parameters: list[Parameter] = []
    positional = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = {
        **dict(zip(names[len(names) - len(positional) :], positional, strict=True)),
        **(function.__kwdefaults__ or {}),
    }
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, Options):
            parameters += hint.usual_parameters(name) if usual else hint.parameters(name)
        elif hasattr(hint, "__metadata__"):
            parameters.append(_parameter(name, hint, defaults, None, "Options"))
    return parameters


def _parameter(name: str, hint: Any, defaults: Mapping[str, Any], group: str | None, title: str) -> Parameter:
    kind = hint.__origin__
    some = [inner for inner in typing.get_args(kind) if inner is not type(None)]
    if type(None) in typing.get_args(kind):
        kind = some[0]
    repeated = typing.get_origin(kind) is list
    if repeated:
        kind = typing.get_args(kind)[0]
    return Parameter(name, kind, repeated, name not in defaults, defaults.get(name), hint.__metadata__[0], group, title)


class Command:
    """A function and the words it takes.

    To know all options of a command that reads data, the modules of all formats are imported. Most runs name none of
    these options: with `usual`, the command knows only the others.
    """

    def __init__(self, name: str, function: Callable[..., None], usual: bool = False) -> None:
        self.name, self.function, self.usual = name, function, usual

    @cached_property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.function, self.usual)

    @cached_property
    def arguments(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if isinstance(parameter.spec, Argument)]

    @cached_property
    def options(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if isinstance(parameter.spec, Option)]

    @cached_property
    def by_flag(self) -> dict[str, Parameter]:
        return {flag: parameter for parameter in self.options for flag in parameter.flags}

    def run(self, words: Sequence[str]) -> None:
        """Call the function with what the words say; print the help page if they ask for it."""
        values = self.parse(words)
        if values is None:
            print(self.help())
        else:
            self.function(**values)

    def parse(self, words: Sequence[str]) -> dict[str, Any] | None:
        """What the function is called with; None if help is asked for. Raises UsageError."""
        if not self.usual:
            usual = Command(self.name, self.function, usual=True)
            if usual._knows(words):
                return usual.parse(words)
        given: dict[str, Any] = {}
        rest = []
        for flag, word in self._scan(words):
            if flag in HELP_FLAGS:
                return None
            if flag is None:
                rest.append(word)
                continue
            parameter = self.by_flag[flag]
            if parameter.kind is bool:
                given[parameter.name] = flag != parameter.spec.off
            elif parameter.repeated:
                parts = [part.strip() for part in word.split(",")] if parameter.spec.split else [word]
                values = [parameter.convert(part) for part in parts if part or not parameter.spec.split]
                given.setdefault(parameter.name, []).extend(values)
            else:
                given[parameter.name] = parameter.convert(word)
        for number, parameter in enumerate(self.arguments, 1):
            # A list takes all words but those of the arguments after it.
            count = max(1, len(rest) - (len(self.arguments) - number)) if parameter.repeated else 1
            values, rest = [parameter.convert(word) for word in rest[:count]], rest[count:]
            if values:
                given[parameter.name] = values if parameter.repeated else values[0]
        if rest:
            raise UsageError(f"Unexpected argument {rest[0]!r}.")
        return self._values(given)

    def _knows(self, words: Sequence[str]) -> bool:
        """Whether these words name only options that are known here, and do not ask for help."""
        try:
            return not any(flag in HELP_FLAGS for flag, _ in self._scan(words))
        except UsageError:
            return False

    def _scan(self, words: Sequence[str]) -> Iterator[tuple[str | None, str]]:
        """Flags with their values, and arguments with None, in order: --flag VALUE, --flag=VALUE, -fVALUE, -ab."""
        left = iter(words)
        for word in left:
            if word == "--":
                yield from ((None, word) for word in left)
            elif word == "-" or not word.startswith("-"):
                yield None, word
            elif word.startswith("--"):
                flag, equals, value = word.partition("=")
                if not self._takes_value(flag):
                    if equals:
                        raise UsageError(f"Option '{flag}' does not take a value.")
                    yield flag, ""
                else:
                    implied = self.by_flag[flag].spec.implied
                    yield flag, value if equals else self._next(flag, left) if implied is None else implied
            else:
                letters = word[1:]
                while letters:
                    flag, letters = f"-{letters[0]}", letters[1:]
                    if self._takes_value(flag):
                        yield flag, letters or self._next(flag, left)
                        break
                    yield flag, ""

    def _takes_value(self, flag: str) -> bool:
        if flag in HELP_FLAGS:
            return False
        if flag not in self.by_flag:
            hint = suggestion(flag, [*self.by_flag, "--help"]) if flag.startswith("--") else ""
            raise UsageError(f"No such option: {flag}.{hint}")
        return self.by_flag[flag].kind is not bool

    @staticmethod
    def _next(flag: str, left: Iterator[str]) -> str:
        for word in left:
            return word
        raise UsageError(f"Option '{flag}' requires a value.")

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters: those given, the defaults of the others; shared options as one value."""
        values: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for parameter in self.parameters:
            if parameter.required and parameter.name not in given:
                if isinstance(parameter.spec, Option):
                    flags = " / ".join(f"'{flag}'" for flag in parameter.flags)
                    raise UsageError(f"Missing option {flags}.")
                raise UsageError(f"Missing argument '{parameter.label}'.")
            into = values if parameter.group is None else groups.setdefault(parameter.group, {})
            into[parameter.name] = given.get(parameter.name, parameter.default)
        hints = typing.get_type_hints(self.function) if groups else {}
        return values | {name: hints[name](**inner) for name, inner in groups.items()}

    # -- the help page

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def usage(self) -> str:
        required = [parameter for parameter in self.options if parameter.required]
        words = [self.name, *(f"{parameter.label} {parameter.spec.metavar}" for parameter in required), "[OPTIONS]"]
        for parameter in self.arguments:
            word = parameter.spec.metavar + ("..." if parameter.repeated else "")
            words.append(word if parameter.required else f"[{word}]")
        return " ".join(words)

    def help(self) -> str:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.arguments:
            metavar = parameter.spec.metavar + ("..." if parameter.repeated else "")
            sections.setdefault("Arguments", []).append((metavar, parameter.spec.help))
        for parameter in sorted(
            self.options, key=lambda option: option.title != "Options"
        ):  # a command's own come first
            sections.setdefault(parameter.title, []).append((_flags(parameter), parameter.spec.help + _note(parameter)))
        sections.setdefault("Options", []).append(("-h, --help", "Show this help."))
        return help_page(self.usage, self.function.__doc__ or "", sections)


class Group:
    """Commands under one name. Each is loaded when it is run, completed or listed: `load(name)` is its function."""

    def __init__(
        self,
        name: str,
        about: str,
        names: Callable[[], Sequence[str]],
        load: Callable[[str], Callable[..., None] | Group],
    ) -> None:
        self.name, self.about, self.names, self._load = name, about, names, load

    def find(self, name: str) -> Command | Group:
        if name not in self.names():
            raise UsageError(f"No such command {name!r}.{suggestion(name, self.names())}")
        found = self._load(name)
        return found if isinstance(found, Group) else Command(f"{self.name} {name}", found)

    @property
    def summary(self) -> str:
        return self.about.partition("\n")[0]

    @property
    def usage(self) -> str:
        return f"{self.name} [OPTIONS] COMMAND [ARGS]..."

    def help(self, options: Sequence[tuple[str, str]] = (), epilog: str = "") -> str:
        commands = [(name, self.find(name).summary) for name in self.names()]
        sections = {"Commands": commands, "Options": [*options, ("-h, --help", "Show this help.")]}
        return help_page(self.usage, self.about, sections, epilog)


def _flags(parameter: Parameter) -> str:
    """-o, -f, --output MODEL"""
    flags = ", ".join(sorted(parameter.spec.flags, key=len))
    if parameter.spec.off:
        flags += f" / {parameter.spec.off}"
    if parameter.spec.implied is not None:
        return f"{flags}[={parameter.spec.metavar}]"
    return f"{flags} {parameter.spec.metavar}".rstrip()


def _note(parameter: Parameter) -> str:
    """The default, and the range where it has two ends."""
    default = parameter.spec.default
    if default is None and parameter.default is not None and parameter.default is not False and not parameter.required:
        default = str(parameter.default)
    notes = [] if default is None else [f"default: {default}"]
    if parameter.spec.max is not None:
        notes.append(f"range: {parameter.spec.min} to {parameter.spec.max}")
    return f" [{'; '.join(notes)}]" if notes else ""


def help_page(usage: str, about: str, sections: Mapping[str, Sequence[tuple[str, str]]], epilog: str = "") -> str:
    """Usage, description and sections of two aligned columns, in the width of the terminal."""
    import shutil
    import textwrap

    from rarestream.cli.look import WIDEST_TEXT

    width = max(40, min(shutil.get_terminal_size((80, 24)).columns, WIDEST_TEXT))
    lines = [*textwrap.wrap(f"Usage: {usage}", width, subsequent_indent=" " * 7)]
    for paragraph in textwrap.dedent("    " + about).strip().split("\n\n"):
        wrapped = textwrap.wrap(" ".join(paragraph.split()), width - 2, break_on_hyphens=False)
        lines += ["", *(f"  {line}" for line in wrapped)]
    for title, rows in sections.items():
        left = max(len(term) for term, _ in rows if len(term) <= FLAGS_WIDEST)
        lines += ["", f"{title}:"]
        for term, text in rows:
            described = textwrap.wrap(text, max(20, width - left - 4), break_on_hyphens=False) or [""]
            if len(term) > left:
                lines.append(f"  {term}")
            else:
                lines.append(f"  {term:<{left}}  {described.pop(0)}".rstrip())
            lines += [f"{'':<{left + 4}}{line}" for line in described]
    if epilog:
        lines += ["", *textwrap.wrap(epilog, width)]
    return "\n".join(lines)


def exit_with_usage(usage: str, error: UsageError) -> NoReturn:
    """End the program with exit code 2: how the command is used, and what is wrong."""
    from rarestream.cli.failures import USAGE
    from rarestream.cli.look import stderr

    ink = stderr()
    program = usage.partition(" [")[0].partition(" --")[0]
    ink.message(f"Usage: {usage}\nTry '{program} -h' for help.\n\n{ink('Error:', 'red', 'bold')} {error}")
    sys.exit(USAGE)
