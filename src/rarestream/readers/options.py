"""The options of reading: each is declared once, with its type, default, check and a line of documentation.

`FormatOptions` declares what all formats have. A format declares its own options in a class derived from it:

    @dataclass(frozen=True, kw_only=True)
    class TabOptions(FormatOptions):
        header: bool = option(True, help="Whether the first line names the columns.")
        ignore: tuple[str, ...] = option((), metavar="NAMES", help="Columns to leave out.")

The arguments of `read`, the options of every command that reads data, the keys of a --config file, and what a model
file remembers of its data follow from these declarations. An option that several formats have must be declared alike in
all of them. A type is bool, int, float, str, Literal, `float | str`, or `tuple[str, ...]`, and may allow None.

The command line imports this module before it knows what to do, so it imports little.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from rarestream.errors import DataError, advice, nearest

Label = float | str
Classes = tuple[Label | None, Label]  # the negative label, if known, and the positive one
ALL_CLASSES = "all"  # in place of two labels

# Who remembers an option: nobody; a model, for the data that it has learned; or a model, for any data.
Remembered = Literal["never", "same data", "any data"]
# Which commands have an option: none, all that read data, those that need labels, those that learn, or those that often
# read the same data again.
Commands = Literal["none", "all", "labels", "learning", "again"]

_AUTO_OFF = "--no-..."


class OptionError(DataError):
    """A reading option that is unknown or has a value that is not allowed.

    Attributes
    ----------
    option : str
        Its name.
    reason : str
        What is wrong with it, without its name: continues "label: ".
    """

    def __init__(self, message: str, option: str, reason: str) -> None:
        super().__init__(message)
        self.option, self.reason = option, reason

    def __reduce__(self) -> tuple[Any, tuple[str, str, str]]:
        return OptionError, (str(self), self.option, self.reason)


class OptionInfo(NamedTuple):
    """An option as it was declared."""

    name: str
    kind: type  # of a value: bool, int, float, str, or tuple (of str); str for a number or text
    optional: bool  # whether it may be None
    default: Any
    help: str
    metavar: str
    flags: tuple[str, ...]  # on the command line
    off: str | None  # the flag that turns it off
    min: float | None
    max: float | None
    choices: tuple[str, ...]
    check: Callable[[Any], Any] | None
    default_text: str | None  # what a help page says of the default
    not_given: Any  # its value on the command line when it is not given
    remembered: Remembered
    commands: Commands

    @property
    def rule(self) -> str:
        """What a value must be: continues "must be"."""
        if self.choices:
            words = [repr(choice) for choice in self.choices]
            return " or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}"
        if self.kind in (int, float) and self.min is not None:
            return f">= {self.min}" if self.max is None else f"between {self.min} and {self.max}"
        return {bool: "True or False", int: "a whole number", float: "a number", tuple: "a list of names"}.get(
            self.kind, "text"
        )

    def checked(self, value: Any) -> Any:
        """Return a value as it is kept; OptionError if it is not allowed."""
        if value is None and self.optional:
            return None
        try:
            if self.check is not None:
                return self.check(value)
            return self._converted(value)
        except (TypeError, ValueError) as error:
            rule = str(error) if self.check is not None and isinstance(error, ValueError) else self.rule
            reason = f"must be {rule}, got {value!r}."
            raise OptionError(f"read: {self.name} {reason}", self.name, reason) from None

    def _converted(self, value: Any) -> Any:
        if self.kind is bool:
            if not isinstance(value, bool):
                raise TypeError
        elif self.kind in (int, float):
            if isinstance(value, bool | str):
                raise TypeError
            value = operator.index(value) if self.kind is int else float(value)
            if (self.min is not None and not value >= self.min) or (self.max is not None and not value <= self.max):
                raise ValueError
        elif self.kind is tuple:
            value = (value,) if isinstance(value, str) else tuple(value)
            if not all(isinstance(item, str) for item in value):
                raise TypeError
        elif not isinstance(value, str) or (self.choices and value not in self.choices):
            raise TypeError
        return value


def option(
    default: Any,
    *,
    help: str,
    metavar: str = "",
    flags: Sequence[str] | None = None,
    off: str | None = _AUTO_OFF,
    min: float | None = None,
    max: float | None = None,
    choices: Sequence[str] = (),
    check: Callable[[Any], Any] | None = None,
    cli_default: str | None = None,
    not_given: Any = None,
    remembered: Remembered = "any data",
    commands: Commands = "all",
) -> Any:
    """Declare an option: a field of a dataclass derived from FormatOptions.

    Parameters
    ----------
    default : object
        The default of `read`.
    help : str
        One sentence.
    metavar : str
        Name of the value on a help page, such as N; not for a bool.
    flags : sequence of str, optional
        As written on the command line. By default the name with dashes: max_bad_rows is --max-bad-rows.
    off : str or None
        Flag that turns a bool off. By default --no-NAME.
    min, max : float, optional
        Range of a number, ends included.
    choices : sequence of str
        The words allowed; not needed for a Literal.
    check : callable, optional
        Instead of the check by type, range and choices: `check(value)` returns the value as it is kept, or raises a
        ValueError whose text continues "NAME must be". It is given the words of the command line, too.
    cli_default : str, optional
        What a help page says of the default. By default nothing for None, False and (), else the default itself.
    not_given : object
        Its value on the command line when it is not given there. None: not passed to `read`.
    remembered : {"any data", "same data", "never"}
        Whether a model remembers it: for all data it is used with, to read the data that it has learned again, or not.
    commands : {"all", "labels", "learning", "again", "none"}
        Which commands have it: all that read data, those that need labels, those that learn, those that often read the
        same data again, or none.
    """
    metadata = {
        "help": help,
        "metavar": metavar,
        "flags": flags,
        "off": off,
        "min": min,
        "max": max,
        "choices": tuple(choices),
        "check": check,
        "cli_default": cli_default,
        "not_given": not_given,
        "remembered": remembered,
        "commands": commands,
    }
    return dataclasses.field(default=default, metadata=metadata)


# -- labels, as arguments


def as_label(value: object) -> Label:
    """Return a label: a number, also of a text that is one, or else text. ValueError for what cannot be a label."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            if not value.strip():
                raise
            return value
    elif isinstance(value, bool):
        return str(value).lower()
    else:
        number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def shown_label(label: Label) -> str:
    """Return a label as messages show it: 1, 'spam'."""
    return repr(label) if isinstance(label, str) else f"{label:g}"


def check_positive(value: Any, text: bool = True) -> Label:
    """Return the positive label, or raise a ValueError."""
    try:
        label = as_label(value)
        if text or not isinstance(label, str):
            return label
    except (TypeError, ValueError):
        pass
    raise ValueError("a label in the file" if text else "a finite number that is a label in the file")


def check_classes(value: Any, text: bool = True) -> Classes | str:
    """Return the two labels, or ALL_CLASSES, or raise a ValueError."""
    if isinstance(value, str) and value == ALL_CLASSES:
        return value
    try:
        low, high = value
        if text or not (isinstance(low, str) or isinstance(high, str)):
            pair = None if low is None else as_label(low), as_label(high)
            if pair[0] != pair[1]:
                return pair
    except (TypeError, ValueError):
        pass
    raise ValueError("two different labels, (negative or None, positive), or 'all'")


def _check_memory(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(">= 1 byte")
    return value


def _check_folder(value: Any) -> str:
    folder = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    if not isinstance(folder, str) or not folder:
        raise ValueError("the path of a folder")
    return folder


# -- all options of a format


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options that all formats have. A value that is not allowed raises OptionError."""

    text_labels: ClassVar[bool] = True  # whether labels may be other than numbers

    positive: float | str | None = option(
        None,
        metavar="VALUE",
        help="The label that counts as positive, against all others.",
        check=check_positive,
        cli_default="1, true or yes; else the larger of two numbers, or the rarer of two texts",
        commands="labels",
    )
    classes: tuple[float | str | None, float | str] | str | None = option(
        None,
        help="The negative and the positive label; 'all' for any number of classes.",
        check=check_classes,
        commands="none",
    )
    max_bad_rows: int = option(
        0,
        metavar="N",
        help="Maximum number of invalid rows to skip.",
        min=0,
        cli_default="0",
        remembered="same data",
    )
    labels: Literal["required", "missing", "optional"] = option(
        "required", help="Whether every row needs a label.", remembered="never", commands="none"
    )
    shuffle: int | None = option(
        None,
        metavar="SEED",
        help="Learn rows in a random order drawn with this seed.",
        remembered="same data",
        commands="learning",
    )
    threads: int | None = option(
        None,
        metavar="N",
        help="Number of threads that parse ahead; 0 for none.",
        min=0,
        cli_default="by the number of cores",
        remembered="never",
    )
    memory: int | None = option(
        None, help="Bytes of memory for a shuffle.", check=_check_memory, remembered="never", commands="none"
    )
    finished: bool = option(
        True,
        help="Learn a last line without a line end too. By default it is left out, as it may be incomplete.",
        off=None,
        not_given=False,
        remembered="same data",
        commands="learning",
    )

    cache: bool = option(
        False,
        help="Keep the rows in a .blocks file beside DATA, which is read instead the next time.",
        off=None,
        remembered="never",
        commands="again",
    )
    cache_dir: str | None = option(
        None,
        metavar="FOLDER",
        help="As --cache, with the file in this folder.",
        check=_check_folder,
        remembered="never",
        commands="again",
    )

    def __post_init__(self) -> None:
        for info in options_of(type(self)).values():
            object.__setattr__(self, info.name, info.checked(getattr(self, info.name)))
        if not self.text_labels:
            _check_number_labels(self)
        if self.all_classes and self.positive is not None:
            reason = "cannot be combined with classes='all': no class is positive."
            raise OptionError(f"read: positive {reason}", "positive", reason)

    @property
    def all_classes(self) -> bool:
        """Whether labels are classes, of which there may be any number."""
        return isinstance(self.classes, str)

    @property
    def cached(self) -> bool:
        """Whether rows are kept in a cache."""
        return self.cache or self.cache_dir is not None

    @property
    def labels_optional(self) -> bool:
        """Whether rows may have any label or none."""
        return self.labels == "optional"

    @property
    def labels_missing(self) -> bool:
        """Whether rows without a label are kept; other labels than two are invalid."""
        return self.labels == "missing"

    def settings(self) -> dict[str, Any]:
        """Return what a model file remembers, ready for JSON: a format's own options, then those of all formats."""
        infos = [info for info in options_of(type(self)).values() if info.remembered != "never"]
        return {info.name: as_json(getattr(self, info.name)) for info in infos}

    @classmethod
    def from_settings(cls: type[Options], settings: Mapping[str, Any]) -> Options:
        """Return the options of `settings()`. A newer option may be missing; what is not an option is ignored.

        Raises
        ------
        OptionError
            If a value is not allowed.
        """
        infos = [info for info in options_of(cls).values() if info.remembered != "never"]
        return cls(**{info.name: settings[info.name] for info in infos if info.name in settings})


Options = TypeVar("Options", bound=FormatOptions)


def _check_number_labels(options: FormatOptions) -> None:
    for name, check in (("positive", check_positive), ("classes", check_classes)):
        value = getattr(options, name)
        try:
            if value is not None:
                check(value, text=False)
        except ValueError as error:
            reason = f"must be {error}, got {value!r}."
            raise OptionError(f"read: {name} {reason}", name, reason) from None


def as_json(value: Any) -> Any:
    """Return the value of an option as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


_INFOS: dict[type, dict[str, OptionInfo]] = {}


def options_of(cls: type[FormatOptions]) -> Mapping[str, OptionInfo]:
    """Return the options of a format by name: its own first, then those of all formats."""
    if cls not in _INFOS:
        hints = typing.get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        common = [field.name for field in dataclasses.fields(FormatOptions)]
        names = [name for name in fields if name not in common] + common
        _INFOS[cls] = {name: _info(fields[name], hints[name]) for name in names}
    return _INFOS[cls]


def _info(field: dataclasses.Field[Any], hint: Any) -> OptionInfo:
    declared = field.metadata
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [part for part in parts if part is not type(None)]
    choices = declared["choices"]
    if typing.get_origin(kinds[0]) is Literal:
        choices, kinds = typing.get_args(kinds[0]), [str]
    kind = str if len(kinds) > 1 else typing.get_origin(kinds[0]) or kinds[0]
    name = "--" + field.name.replace("_", "-")
    off = declared["off"]
    if off == _AUTO_OFF:
        off = f"--no-{name[2:]}" if kind is bool else None
    text = declared["cli_default"]
    if text is None and field.default not in (None, (), "") and not isinstance(field.default, bool):
        text = str(field.default)
    return OptionInfo(
        field.name,
        kind,
        type(None) in parts,
        field.default,
        declared["help"],
        declared["metavar"],
        tuple(declared["flags"] or [name]),
        off,
        declared["min"],
        declared["max"],
        tuple(choices),
        declared["check"],
        text,
        declared["not_given"],
        declared["remembered"],
        declared["commands"],
    )


def unknown_option(format: str, name: str, known: Iterable[str], others: Sequence[str]) -> OptionError:
    """Return the error of an option that a format does not have; `others` are the formats that have it."""
    if others:
        have = f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} it"
        way_on = f"{have}. If the data are of another format, pass {advice('format=NAME', '--format NAME')}."
        return OptionError(
            f"read: {format} has no option {name}; {way_on}", name, f"{format} has no such option; {way_on}"
        )
    near = nearest(name, known)
    hint = f" Did you mean {near}?" if near else f" It has {', '.join(sorted(known))}."
    return OptionError(f"read: {format} has no option {name}.{hint}", name, f"{format} has no such option.{hint}")
