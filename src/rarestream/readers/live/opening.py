"""Opens live sources: which kind a name stands for, and the stream of its rows."""

from __future__ import annotations

import os
import stat
from typing import Any, BinaryIO

from rarestream.errors import DataError, advice
from rarestream.readers.formats import Format, find_format, load_format
from rarestream.readers.live.addresses import is_address, open_broker
from rarestream.readers.live.dead_letters import DeadLetters, remembered
from rarestream.readers.live.file import FileSource
from rarestream.readers.live.folder import FolderStream, is_folder
from rarestream.readers.live.lines import LineSource, Position
from rarestream.readers.live.pipe import PipeSource
from rarestream.readers.live.stream import LineStream, LiveStream
from rarestream.readers.options import FormatOptions
from rarestream.readers.sources import Source, expand

LiveSource = str | os.PathLike[str] | BinaryIO
MANY_LETTERS = 1000  # invalid rows that are skipped where they are written to a file and no other number is given


def key_of(source: LiveSource) -> str:
    """Return what a model file keeps the position of a source under."""
    if is_address(source):
        return _source(source, False).key
    return os.path.abspath(source) if isinstance(source, str | os.PathLike) and source != "-" else "-"


def open_live(
    source: LiveSource,
    format: str | None = None,
    rows: int = 8192,
    *,
    features: Any = None,
    position: Position | None = None,
    dead_letters: str | os.PathLike[str] | None = None,
    idle: float | None = None,
    lost: bool = False,
    **options: Any,
) -> LiveStream:
    """Open a live source at a position; the parameters are those of `rarestream.follow`.

    Parameters
    ----------
    position : dict, optional
        The `position` of an earlier stream of this source. By default the source is read from its start.
    features : feature space, optional
        As for `read`.
    """
    if rows < 1:
        raise DataError(f"follow: rows must be >= 1, got {rows}.")
    if idle is not None and not idle > 0:
        raise DataError(f"follow: idle must be a number of seconds > 0, got {idle}.")
    at = dict(position or {})
    kept = remembered(at)
    at.pop("dead_letters", None)
    path, size = (None if dead_letters is None else os.path.abspath(dead_letters)), None
    if kept is not None and path in (None, kept[0]):
        path, size = kept
    folder = os.fspath(source) if isinstance(source, str | os.PathLike) and not is_address(source) else None
    made = None if folder is not None and is_folder(folder) else _source(source, lost)
    found = _format(format, made, folder)
    if path is not None and "max_bad_rows" not in options:
        options["max_bad_rows"] = MANY_LETTERS
    wanted: FormatOptions = found.make_options(**options)
    more: dict[str, Any] = {
        "rows": rows,
        "named": format or (None if made is None else made.default_format),
        "features": features,
        "position": at,
        "idle": idle,
        "dead_letters": DeadLetters(wanted.max_bad_rows, path, size),
    }
    if made is None:
        assert folder is not None
        return FolderStream(folder, found, wanted, lost=lost, **more)
    return LineStream(made, found, wanted, **more)


def _source(source: LiveSource, lost: bool) -> LineSource:
    if is_address(source):
        return open_broker(str(source), lost)
    if isinstance(source, str | os.PathLike) and source != "-":
        path = os.fspath(source)
        if not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode):
            return FileSource(path, lost)
    (found,) = expand(source)
    if found.path is None and found.size is not None:
        raise DataError(f"{found.name}: is an open file; pass its path to follow it.")
    return PipeSource(found)


def _format(name: str | None, source: LineSource | None, folder: str | None) -> Format:
    if name is not None:
        return find_format(name, ())
    if source is not None and source.default_format is not None:
        return load_format(source.default_format)
    if source is not None:
        return find_format(None, [Source(source.name, source.name, None)])
    assert folder is not None
    names = [folder] if not os.path.isdir(folder) else sorted(os.listdir(folder))
    from rarestream.readers.formats import format_of_suffix

    for one in names:
        if (found := format_of_suffix(one)) is not None:
            return found
    option = advice("format=NAME", "--format NAME")
    raise DataError(f"{folder}: which format have the files that will be there? Pass {option}.")
