"""Going on where training stopped: what a model keeps of its data, and how it knows them again.

`model.source` after training:

    files     name, size and crc32 (of the first 64 KiB) of each input
    settings  how they were read: the arguments `read` needs to read them the same way
    passes    wanted in all
    pass      the one at hand, counted from 1
    rows      learned of it
    complete  whether the last pass came to its end
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarestream.errors import DataError, advice
from rarestream.readers import Stream
from rarestream.readers.sources import HEAD, Described, Source

SETTINGS: dict[str, Any] = {
    "format": str | None,
    "zero_based": bool | None,
    "positive": float | int | None,
    "shuffle": int | None,
}


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
        files = [Described(name=entry["name"], size=entry["size"], crc32=entry["crc32"]) for entry in source["files"]]
        settings = {word: source["settings"][word] for word in SETTINGS}
        place = Place(
            number=source["pass"],
            rows=source["rows"],
            passes=source["passes"],
            complete=source["complete"],
            known=True,
            settings=settings,
        )
    except (KeyError, TypeError, IndexError):
        return None
    counts = (place.number, place.rows, place.passes)
    sound = (
        len(files) > 0
        and all(isinstance(entry["name"], str) for entry in files)
        and all(isinstance(entry[word], int | None) for entry in files for word in ("size", "crc32"))
        and all(isinstance(count, int) and count >= 0 for count in counts)
        and all(isinstance(settings[word], kinds) for word, kinds in SETTINGS.items())
    )
    return (files, place) if sound else None


def place_in(source: Mapping[str, Any], data: Sequence[Source]) -> Place:
    """Where a model with this `source` stopped in the data; the start if it never saw them.

    The same files in the same order are known again by name and head, so a log that has grown, or that got a
    successor, goes on where it stopped. Standard input is always new.
    """
    kept = remembered(source)
    if kept is None:
        return Place()
    files, place = kept
    if len(files) > len(data) or not all(map(_same, files, data)):
        return Place()
    resized = len(files) < len(data) or any(
        entry["size"] != one.described["size"] for entry, one in zip(files, data, strict=True)
    )
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


def _same(entry: Described, source: Source) -> bool:
    """Whether the source is what the entry describes, as far as its head goes."""
    now = source.described
    if entry["name"] != now["name"] or entry["size"] is None or now["size"] is None:
        return False
    if entry["size"] >= HEAD or entry["size"] == now["size"]:
        return entry["crc32"] == now["crc32"]
    return source.path is not None and zlib.crc32(_head(source, entry["size"])) == entry["crc32"]


def _head(source: Source, size: int) -> bytes:
    raw = source.open()
    try:
        data = b""
        while len(data) < size and (more := raw.read(size - len(data))):
            data += more
        return data
    finally:
        raw.close()
