"""Going on where training stopped: what a model keeps of its data, and how it knows them again.

`model.source` after training:

    files     name, size and crc32 (of the first `text` bytes of text, up to 64 KiB) of each input
    settings  how they were read: the arguments `read` needs to read them the same way
    passes    wanted in all
    pass      the one at hand, counted from 1
    rows      learned of it
    complete  whether the last pass came to its end
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarestream.errors import DataError, advice
from rarestream.readers import Stream
from rarestream.readers.heads import HEAD, Described, recognised
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
    """A place in some data, and how the data are read. The default is the start of anything."""

    number: int = 1  # of the pass
    rows: int = 0  # behind this place in the pass
    passes: int = 1  # wanted in all
    complete: bool = False  # nothing is left of the passes wanted
    known: bool = False  # the model has learned from these data
    resized: bool = False  # and they have grown since, or a row behind the head was mended
    settings: Mapping[str, Any] = field(default_factory=dict)

    def source(self, stream: Stream) -> dict[str, Any]:
        """What the model keeps: see above."""
        return {
            "files": [dict(described) for described in stream.sources],
            "settings": stream.settings,
            "passes": self.passes,
            "pass": self.number,
            "rows": self.rows,
            "complete": self.complete,
        }


def remembered(source: Mapping[str, Any]) -> tuple[list[Described], Place] | None:
    """The files and the place that a model's `source` tells of; None if it tells of none.

    A program that trains without files may keep notes of its own there, and a model file may come from anywhere.
    """
    try:
        files = [
            Described(name=entry["name"], size=entry["size"], crc32=entry["crc32"], text=entry.get("text"))
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


def _are_classes(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != 2 or value[0] == value[1] or value[1] is None:
        return False
    return all(one is None or (isinstance(one, float | int) and math.isfinite(one)) for one in value)


def place_in(source: Mapping[str, Any], data: Sequence[Source]) -> Place:
    """Where a model with this `source` stopped in the data; the start if it never saw them.

    The same files in the same order are known again by name and head, so a log that has grown, or that got a
    successor, goes on where it stopped. Standard input is always new.
    """
    kept = remembered(source)
    if kept is None:
        return Place()
    files, place = kept
    if len(files) > len(data) or not all(map(recognised, files, data)):
        return Place()
    resized = len(files) < len(data) or any(entry["size"] != one.size for entry, one in zip(files, data, strict=True))
    if not resized:
        return place
    if place.settings.get("shuffle") is not None:
        raise DataError(
            f"{data[0].name}: has another size than when it was learned in shuffled order, so that order is lost. "
            "Put the new rows in a file of their own and train on that, or follow a growing file without "
            f"{advice('shuffle', '--shuffle')}."
        )
    return Place(
        number=place.number, rows=place.rows, passes=place.passes, known=True, resized=True, settings=place.settings
    )
