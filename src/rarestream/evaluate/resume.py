"""Resuming training: what a model keeps about its data, and how it recognises them.

`model.source` after training:

    files     name, size and crc32 (of the first `text` bytes of text, up to 64 KiB) of each input
    settings  the arguments of `read` that give the same rows again
    passes    total number of passes wanted
    pass      number of the current pass, from 1
    rows      rows learned in the current pass
    complete  whether the last pass has ended
    live      of a model that has followed live sources: by the key of each, its kind, its address without secrets,
              the position after the last row learned, and its settings, as above
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rarestream.errors import DataError, advice, plain
from rarestream.readers import Stream
from rarestream.readers.fingerprints import HEAD, Fingerprint, is_same_file
from rarestream.readers.formats import DEFAULT, Format, find_format, format_of_suffix, load_format, module_names
from rarestream.readers.live.stream import LiveStream
from rarestream.readers.options import FormatOptions, OptionError, options_of
from rarestream.readers.sources import Source

if TYPE_CHECKING:
    from rarestream.evaluate.given import GivenBlocks

EVERY_FILE_HAS = ("format", "positive", "shuffle")  # settings that older files have, too


@dataclass(frozen=True, kw_only=True)
class Place:
    """A position in some data, and how the data are read. The default is the start."""

    number: int = 1  # of the pass
    rows: int = 0  # of the pass before this position
    passes: int = 1  # total number wanted
    complete: bool = False  # whether the last pass has ended
    known: bool = False  # whether the model has learned from these data
    resized: bool = False  # whether their size has changed since
    settings: Mapping[str, Any] = field(default_factory=dict)
    position: Mapping[str, Any] = field(default_factory=dict)  # of a live source

    def source(self, stream: Stream | GivenBlocks, before: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the model keeps as `model.source`; the keys are listed at the top of this module.

        Parameters
        ----------
        stream : Stream or GivenBlocks
            The data that the position is in.
        before : mapping
            `model.source` so far: the positions of live sources stay in it.
        """
        found = {
            "files": [dict(described) for described in stream.sources],
            "settings": dict(stream.settings),
            "passes": self.passes,
            "pass": self.number,
            "rows": self.rows,
            "complete": self.complete,
        }
        live = before.get("live")
        if isinstance(stream, LiveStream):
            entry = {
                "kind": stream.kind,
                "address": stream.address,
                "position": stream.position,
                "settings": found["settings"],
            }
            live = {**(live or {}), stream.key: entry}
        return found if live is None else {**found, "live": live}


def place_of(source: Mapping[str, Any], key: str, name: str) -> Place:
    """Return where a model stopped in a live source; the start if it has not followed it.

    Parameters
    ----------
    source : mapping
        `model.source`.
    key : str
        What positions of the live source are kept under.
    name : str
        Its name, whose suffix tells the format.

    Raises
    ------
    DataError
        If what is kept is no position.
    """
    live = source.get("live")
    if not isinstance(live, Mapping) or key not in live:
        return Place()
    try:
        entry = live[key]
        position, rows = dict(entry["position"]), source.get("rows", 0)
        settings = _checked_settings(entry["settings"], name)
        if not isinstance(rows, int):
            raise TypeError
    except (KeyError, TypeError, ValueError, AttributeError, OptionError) as error:
        raise DataError(
            f'{plain(name)}: the model has an invalid position of it, model.source["live"] ({error}). Put back an '
            "earlier file of the model."
        ) from None
    return Place(rows=rows, known=True, settings=settings, position=position)


def remembered(source: Mapping[str, Any]) -> tuple[list[Fingerprint], Place] | None:
    """Return the files and the position stored in a model's `source`; None if there are none.

    A program that trains without files may store anything there, and a model file may come from anywhere, so every
    field is checked.
    """
    try:
        files = [
            Fingerprint(name=entry["name"], size=entry["size"], crc32=entry["crc32"], text=entry.get("text"))
            for entry in source["files"]
        ]
        settings = _checked_settings(source["settings"], files[0]["name"])
        place = Place(
            number=source["pass"],
            rows=source["rows"],
            passes=source["passes"],
            complete=source["complete"],
            known=True,
            settings=settings,
        )
    except (KeyError, TypeError, IndexError, AttributeError, OptionError):
        return None
    counts = (place.number, place.rows, place.passes)
    sound = (
        len(files) > 0
        and all(isinstance(entry["name"], str) for entry in files)
        and all(isinstance(entry.get(word), int | None) for entry in files for word in ("size", "crc32", "text"))
        and all(0 <= (entry.get("text") or 0) <= HEAD for entry in files)
        and all(isinstance(count, int) and count >= 0 for count in counts)
    )
    return (files, place) if sound else None


def _checked_settings(settings: Mapping[str, Any], first: str) -> dict[str, Any]:
    """Return the settings, checked and complete, of data whose first file has this name."""
    name = settings["format"]
    if not all(word in settings for word in EVERY_FILE_HAS) or not isinstance(name, str | None):
        raise TypeError
    format = _format_of(name, first)
    # Of a format that this version does not know, only the options that all formats have can be checked.
    options = (FormatOptions if format is None else format.options).from_settings(settings)
    return {"format": name, **options.settings()}


def _format_of(name: str | None, first: str) -> Format | None:
    """Return the format of data that were read with this `format`; None if there is no such format."""
    if name is None:
        return format_of_suffix(first) or load_format(DEFAULT)
    return load_format(name) if name in module_names() else None


def reading_settings(
    source: Mapping[str, Any], data: Sequence[Source] | None = None, format: str | None = None
) -> dict[str, Any]:
    """Return the arguments of `read` that other data for this model should be read with, too.

    These are the labels and what else gives a feature the same number, such as the column base; {} if no files are
    stored in the model's `source`. Options that the format of the data does not have are left out. Data whose name does
    not tell their format, such as standard input, are read in that of the model; so are data with the suffix of files
    whose format the user had to name.

    Parameters
    ----------
    source : mapping
        `model.source`.
    data : sequence of Source, optional
        The files. By default they have the format of the model's data.
    format : str, optional
        Format of the files. By default it follows from the suffix of the first.
    """
    kept = remembered(source)
    if kept is None:
        return {}
    files, place = kept
    settings = place.settings
    learned = _format_of(settings["format"], files[0]["name"]) or load_format(DEFAULT)
    named = format_of_suffix(data[0].name) if format is None and data is not None else None
    # The model's files may not be of the format that their suffix names; others with that suffix are not, either.
    own = None if settings["format"] is not None and named == format_of_suffix(files[0]["name"]) else named
    wanted = find_format(format, ()) if format is not None else own or learned
    found = {
        name: settings[name]
        for name, option in options_of(wanted.options).items()
        if option.remembered == "any data" and settings.get(name) is not None
    }
    classes = found.get("classes")
    if not wanted.options.text_labels and any(
        isinstance(label, str) for label in (found.get("positive"), *(classes or []))
    ):
        found = {name: value for name, value in found.items() if name not in ("positive", "classes")}
    elif classes is not None and classes[1] == 1 and classes[0] in (-1, 0):
        found["classes"] = [None, classes[1]]  # whether -1 or 0 is the negative label depends on the file
    if format is None and own is None and learned.name != (DEFAULT if named is None else named.name):
        found["format"] = learned.name
    return found


def column_base(source: Mapping[str, Any]) -> int:
    """Return the number of the first column in the files of a model's `source`: 0 or 1; 0 without files."""
    kept = remembered(source)
    return 0 if kept is None or kept[1].settings.get("zero_based") else 1


def class_labels(source: Mapping[str, Any]) -> tuple[int | float | str, int | float | str]:
    """Return the negative and the positive label as in the files of a model's `source`; -1 and 1 if not known."""
    kept = remembered(source)
    classes = None if kept is None else kept[1].settings.get("classes")
    if classes is None or None in classes:
        return -1, 1
    low, high = (int(label) if isinstance(label, float) and label.is_integer() else label for label in classes)
    return low, high


def place_in(source: Mapping[str, Any], data: Sequence[Source]) -> Place:
    """Return where a model stopped in the data; the start if it has not seen them.

    Files are recognised by name, order and first text, so training resumes in a log that has grown or that another
    file now follows. Standard input is always new.

    Parameters
    ----------
    source : mapping
        `model.source`.
    data : sequence of Source
        The files, in order.

    Returns
    -------
    Place
        The position, with the arguments of `read` in its `settings`.

    Raises
    ------
    DataError
        If the files have changed size and were learned in shuffled order, which is lost then.
    """
    kept = remembered(source)
    if kept is None:
        return Place()
    files, place = kept
    if len(files) > len(data) or not all(map(is_same_file, files, data)):
        return Place()
    resized = len(files) < len(data) or any(entry["size"] != file.size for entry, file in zip(files, data, strict=True))
    if not resized:
        return place
    if place.settings.get("shuffle") is not None:
        raise DataError(
            f"{data[0].name}: has changed size since it was learned in shuffled order, so that order is lost. "
            "Save the new rows to a separate file and train on that, or train on a growing file without "
            f"{advice('shuffle', '--shuffle')}."
        )
    return Place(
        number=place.number, rows=place.rows, passes=place.passes, known=True, resized=True, settings=place.settings
    )
