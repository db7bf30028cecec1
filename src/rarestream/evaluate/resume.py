"""Resuming training: what a model keeps about its data, and how it recognises them.

`model.source` after training:

    files     name, size and crc32 (of the first `text` bytes of text, up to 64 KiB) of each input
    settings  the arguments of `read` that give the same rows again
    passes    total number of passes wanted
    pass      number of the current pass, from 1
    rows      rows learned in the current pass
    complete  whether the last pass has ended
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarestream.errors import DataError, advice
from rarestream.readers import Stream
from rarestream.readers.fingerprints import HEAD, Fingerprint, is_same_file
from rarestream.readers.sources import Source

SETTINGS: dict[str, Any] = {
    "format": str | None,
    "zero_based": bool | None,
    "positive": float | int | None,
    "shuffle": int | None,
}
LATER_SETTINGS = {"classes": None, "max_bad_rows": 0, "finished": True}  # older files do not have them


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

    def source(self, stream: Stream) -> dict[str, Any]:
        """Return what the model keeps as `model.source`; the keys are listed at the top of this module."""
        return {
            "files": [dict(described) for described in stream.sources],
            "settings": stream.settings,
            "passes": self.passes,
            "pass": self.number,
            "rows": self.rows,
            "complete": self.complete,
        }


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
        settings = {word: source["settings"][word] for word in SETTINGS}
        settings |= {word: source["settings"].get(word, usual) for word, usual in LATER_SETTINGS.items()}
        place = Place(
            number=source["pass"],
            rows=source["rows"],
            passes=source["passes"],
            complete=source["complete"],
            known=True,
            settings=settings,
        )
    except (KeyError, TypeError, IndexError, AttributeError):
        return None
    counts = (place.number, place.rows, place.passes)
    sound = (
        len(files) > 0
        and all(isinstance(entry["name"], str) for entry in files)
        and all(isinstance(entry.get(word), int | None) for entry in files for word in ("size", "crc32", "text"))
        and all(0 <= (entry.get("text") or 0) <= HEAD for entry in files)
        and all(isinstance(count, int) and count >= 0 for count in counts)
        and all(isinstance(settings[word], kinds) for word, kinds in SETTINGS.items())
        and _are_classes(settings["classes"])
        and isinstance(settings["max_bad_rows"], int)
        and settings["max_bad_rows"] >= 0
        and isinstance(settings["finished"], bool)
    )
    return (files, place) if sound else None


def reading_settings(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `read` that other data for this model should be read with, too.

    These are the column base and the labels; {} if no files are stored in the model's `source`.
    """
    kept = remembered(source)
    if kept is None:
        return {}
    settings = kept[1].settings
    classes = settings["classes"]
    if classes is not None and classes[1] == 1 and classes[0] in (-1, 0):
        classes = [None, classes[1]]  # whether -1 or 0 is the negative label depends on the file
    found = {"zero_based": settings["zero_based"], "positive": settings["positive"], "classes": classes}
    return {word: value for word, value in found.items() if value is not None}


def _are_classes(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != 2 or value[0] == value[1] or value[1] is None:
        return False
    return all(label is None or (isinstance(label, float | int) and math.isfinite(label)) for label in value)


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
