"""Following live sources: rows that come as long as the program runs, each of them learned once.

model = Model.load("m.rare") if Path("m.rare").exists() else Model()
train(model, follow("clicks.csv", label="clicked", model=model), save="m.rare")
"""

from __future__ import annotations

import os
from typing import Any

from rarestream.errors import DataError
from rarestream.evaluate.resume import place_of, reading_settings
from rarestream.features import Space
from rarestream.model import Model
from rarestream.readers.live.opening import LiveSource, key_of, open_live
from rarestream.readers.live.stream import LiveStream
from rarestream.readers.options import as_json


def follow(
    source: LiveSource,
    format: str | None = None,
    rows: int = 8192,
    *,
    model: Model | None = None,
    dead_letters: str | os.PathLike[str] | None = None,
    idle: float | None = None,
    lost: bool = False,
    **options: Any,
) -> LiveStream:
    """Open a live source as a stream of Blocks that goes on as rows come.

    The stream can be learned with `rarestream.evaluate.train`, which keeps the position of the source after every row
    in `model.source`, or in a loop over Blocks. It is stopped by `stop`, by the end of a pipe, or after `idle` seconds.

    Parameters
    ----------
    source : path, folder, pattern, "-", or address
        A file that rows are added to, which may be rotated; a folder that files are added to, or a pattern for their
        names, such as `"logs/*.csv"`; "-" for standard input; a named pipe; kafka://HOST:PORT/TOPIC; or
        redis://HOST:PORT/DB/STREAM.
    format : str, optional
        Format of the rows. By default it follows from the suffix; messages of a broker are JSON objects.
    rows : int, >= 1, default 8192
        Maximum number of rows in a Block.
    model : Model, optional
        The model that is to learn the rows. If it has followed this source before, the stream starts after the last
        row it has learned, with the same options; the features of the rows are its own.
    dead_letters : path, optional
        A file that invalid rows are written to, as JSON lines with place, reason and text. Up to 1000 of them are then
        skipped, if `max_bad_rows` does not say otherwise; counted from the start of this stream.
    idle : float, > 0, optional
        Seconds without rows after which the stream ends. By default it never does.
    lost : bool, default False
        Whether to go on where rows that the model has not learned are gone, such as a log that was deleted. By default
        that is an error.
    **options
        Those of `rarestream.read`, such as label, positive and max_bad_rows. Rows cannot be shuffled.

    Returns
    -------
    LiveStream
        An iterable of Blocks.

    Raises
    ------
    DataError
        If the source cannot be followed, an option is unknown, or the model has learned rows up to a position that is
        gone. Invalid rows raise it during iteration.
    MissingExtraError
        If the package for a broker is not installed.
    """
    features: Space | None = None
    position: dict[str, Any] = {}
    if model is not None:
        features = model.features
        key = key_of(source)
        place = place_of(model.source, key, key)
        position = dict(place.position)
        known = dict(place.settings) if place.known else reading_settings(model.source, None, format)
        for name, value in options.items():
            kept = known.get(name)
            if place.known and as_json(value) != kept and name not in ("max_bad_rows", "threads"):
                raise DataError(
                    f"follow: the model has followed this source with {name}={kept!r} and must continue so, got "
                    f"{value!r}. Drop {name}."
                )
        kept_format = known.pop("format", None)
        format = format or kept_format
        options = {**known, **options}
    return open_live(
        source,
        format,
        rows,
        features=features,
        position=position,
        dead_letters=dead_letters,
        idle=idle,
        lost=lost,
        **options,
    )
