"""Structured Streaming: one model learns the rows of a stream as they come, each of them once.

Spark cuts a stream into numbered batches and hands every one to a function. Ours packs its rows in parallel, collects
the packed blocks, learns them in order, and saves the model. `model.source["spark_stream"]` tells what it has learned:

    query     the id of the streaming query, which its checkpoint keeps when it is started again
    batch     the number of the last batch learned
    skipped   rows without label or features that were left out, under nulls="skip"

A batch that Spark delivers again, because it was stopped between our save and its own note of it, is thus recognised
and skipped. With Spark Connect the function runs on the server, so that it knows nothing but what is sent along: it
loads and saves the model by its path, in every batch.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rarestream._version import __version__
from rarestream.errors import DataError, RowError, plain
from rarestream.features import Hashed
from rarestream.learners import Learner
from rarestream.model import Model
from rarestream.readers.options import Classes, Label
from rarestream.spark.errors import check_version, readable_errors, require_pyspark
from rarestream.spark.packing import add_names, blocks_of, joined_classes, pack, packed_classes, packed_space
from rarestream.system import check_writable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

WHERE = "stream_fit"
KEY = "spark_stream"  # of Model.source
NEW = {"scale": "unit", "dtype": "float32"}  # of a new model, if not given


def stream_fit(
    df: DataFrame,
    model_path: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    label: str,
    features: str | Sequence[str] | None = None,
    learner: Learner | str = "auto",
    importance: str | None = None,
    positive: Label | None = None,
    nulls: str = "error",
    scale: str | None = None,
    dtype: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Learn a stream of Spark's Structured Streaming, every row once and in the order in which its source delivers it.

    The model is what `Model.learn` makes of the rows on one machine, whatever the cluster is: only reading and packing
    them is done in parallel. It is saved after every batch. Stopped at any moment and started again with the same
    arguments, training goes on with the next row, to the same bits. A model that exists at `model_path` goes on
    learning.

    The driver, or the server of Spark Connect, holds the model and the packed blocks of one batch: about 8 bytes for
    each non-zero of its rows, and while Spark collects them as much again. How large batches are is up to the source,
    by options such as maxFilesPerTrigger or maxOffsetsPerTrigger; spark.driver.maxResultSize limits a batch, too.

    The rows of the first batch decide what those of a table become, and which label is positive, as for `pack`.

    Parameters
    ----------
    df : DataFrame
        A streaming frame, from `spark.readStream`.
    model_path : str or path
        The model file, on the file system of the driver; with Spark Connect, an absolute path on the server.
    checkpoint : str or path
        The folder in which Spark notes how far it has read, on any file system of Spark's. Belongs to this model file:
        keep or delete both.
    label : str
        The column of the label.
    features : str or sequence of str, optional
        The columns of the features, as for `pack`.
    learner : Learner or str, default "auto"
        The learner of a new model. For one that exists: "auto", or its own.
    importance, positive, nulls
        As for `pack`.
    scale, dtype : str, optional
        As for `Model`, for a new model; by default "unit" and "float32". For one that exists: its own, or None.
    trigger : mapping, optional
        When to make batches: arguments of Spark's `DataStreamWriter.trigger`. By default {"availableNow": True}: all
        rows that are there now, in as many batches as the source makes of them, then the query ends. With
        {"processingTime": "1 minute"} it runs until it is stopped.
    **options
        Of a table: as for `pack`. They are for a new model; one that exists keeps its own.

    Returns
    -------
    StreamingQuery
        The running query; wait for its end with `awaitTermination()`.

    Raises
    ------
    DataError
        If the frame is not a stream, or an argument is invalid. What is wrong with a batch stops the query: it is in
        the message of the StreamingQueryException that `awaitTermination` raises. Nothing of that batch is in the model
        file then, and starting again goes on with that batch.
    OutputError
        If the model file cannot be written.
    MissingExtraError
        If pyspark is not installed.
    """
    require_pyspark()
    if not df.isStreaming:
        raise DataError(f"{WHERE}: the frame is not a stream; read it with spark.readStream, or learn it with fit.")
    remote = type(df).__module__.startswith("pyspark.sql.connect")
    path = _checked_path(model_path, remote)
    Model(learner, scale=scale or NEW["scale"], dtype=dtype or NEW["dtype"])  # raises if one of them is invalid
    if not remote:
        check_writable(path)
    batches = BatchLearner(
        path=path,
        checkpoint=os.fspath(checkpoint),
        learner=learner,
        arguments={name: value for name, value in (("scale", scale), ("dtype", dtype)) if value is not None},
        columns={"label": label, "features": features, "importance": importance, "positive": positive, "nulls": nulls},
        options=options,
    )
    writer = df.writeStream.foreachBatch(batches).option("checkpointLocation", batches.checkpoint)
    return writer.trigger(**({"availableNow": True} if trigger is None else trigger)).start()


def _checked_path(path: str | os.PathLike[str], remote: bool) -> str:
    name = os.fspath(path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name):
        raise DataError(
            f"{WHERE}: model_path must be a path on the file system of the driver, got {plain(name)!r}. Choose one "
            "there; a folder that is mounted will do."
        )
    if remote and not os.path.isabs(name):
        raise DataError(
            f"{WHERE}: with Spark Connect model_path must be an absolute path, because the file is on the server, got "
            f"{plain(name)!r}."
        )
    return name if remote else os.path.abspath(name)


class Learned(NamedTuple):
    """What a model has learned of a stream."""

    query: str
    batch: int  # -1: nothing yet
    skipped: int

    @classmethod
    def of(cls, model: Model) -> Learned | None:
        """Return what the file of a model tells; None if it has learned no stream."""
        found = model.source.get(KEY)
        if found is None:
            return None
        try:
            return cls(str(found["query"]), int(found["batch"]), int(found["skipped"]))
        except (KeyError, TypeError, ValueError):
            reason = f'the model has an invalid model.source["{KEY}"], {found!r}'
            raise DataError(f"{WHERE}: {reason}. Put back an earlier file of it.") from None


@dataclass
class BatchLearner:
    """The function that Spark calls with every batch; it is sent to the server of Spark Connect."""

    path: str
    checkpoint: str
    learner: Learner | str
    arguments: Mapping[str, Any]  # of Model
    columns: Mapping[str, Any]  # arguments of pack that hold for every batch
    options: Mapping[str, Any]  # and those that decide the plan of a table
    version: str = __version__
    query: str | None = None  # known once a batch has come

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Learn a batch and save the model, unless it has learned this batch before."""
        check_version(self.version)
        if self.query is None:
            self.query = _query_id(df, self.checkpoint)
        model = self._loaded()
        before = Learned(self.query, -1, 0) if model is None else Learned.of(model) or Learned(self.query, -1, 0)
        if before == (self.query, batch, before.skipped):
            return  # Spark was stopped before it could note this batch
        self._check_next(model, before, batch)
        try:
            model, skipped = self._learned(df, model, first=before.batch < 0)
        except DataError as error:
            raise DataError(f"{WHERE}: batch {batch} of the stream, of which nothing is saved: {error}") from None
        learned = Learned(self.query, batch, before.skipped + skipped)
        model.source = {**model.source, KEY: learned._asdict()}
        model.save(self.path)

    def _loaded(self) -> Model | None:
        """Return the model of the file; None if there is no file. It must be what the arguments ask for."""
        if not os.path.exists(self.path):
            return None
        model = Model.load(self.path)
        asked = Model(self.learner).learner
        raced = model.chosen_by is not None and model.chosen_by.name == asked.name
        if self.learner != "auto" and model.learner != asked and not raced:
            self._refuse("learner", repr(model.learner), repr(asked))
        for name, value in self.arguments.items():
            if getattr(model, name) != value:
                self._refuse(name, repr(getattr(model, name)), repr(value))
        return model

    def _refuse(self, name: str, known: str, asked: str) -> None:
        raise DataError(
            f"{WHERE}: {plain(self.path)} has {name}={known}, but {asked} is asked for. Drop {name} to go on with this "
            "model, or choose another model_path and checkpoint for a new one."
        )

    def _check_next(self, model: Model | None, before: Learned, batch: int) -> None:
        """Raise a DataError unless the batch follows what the model has learned."""
        path, checkpoint = plain(self.path), plain(self.checkpoint)
        if before.query != self.query:
            raise DataError(
                f"{WHERE}: {path} has learned another stream, up to batch {before.batch}, than that of checkpoint "
                f"{checkpoint}. If its checkpoint was deleted or moved, put it back: without it all rows would be "
                "learned again. For a new model choose another model_path; to let this one learn this stream too, "
                f'remove model.source["{KEY}"] and save it.'
            )
        if batch == before.batch + 1:
            return
        if model is None:
            what = "is not there"
        elif before.batch < 0:
            what = "has learned nothing of this stream"
        else:
            what = f"has learned this stream up to batch {before.batch}"
        rows = "rows would be learned twice" if batch <= before.batch else "the rows before would be missing"
        raise DataError(
            f"{WHERE}: {path} {what}, but checkpoint {checkpoint} is at batch {batch}; {rows}. Put back the model file "
            "and the checkpoint of one time, or delete both to learn the whole stream again."
        )

    def _learned(self, df: DataFrame, model: Model | None, first: bool) -> tuple[Model, int]:
        """Return the model after a batch, and the number of rows that were left out."""
        fresh = model is None or model.features is None
        options = {name: value for name, value in self.options.items() if fresh or name in ("bits", "names")}
        with readable_errors():
            try:
                rows = pack(df, like=model, **self.columns, **options).collect()
            except DataError:
                if not df.isEmpty():
                    raise
                rows = []  # and so it decides nothing
        rows.sort(key=lambda row: (row["part"], row["block"]))
        if model is None:
            model = Model(self.learner, **{**NEW, **self.arguments})
        if not rows:
            return model, 0
        space = model.features if isinstance(model.features, Hashed) else packed_space(rows[0]["space"])
        if space is not None:
            add_names(space, rows)
        for row in rows:
            for block in blocks_of([row], space):
                try:
                    model.learn(block)
                except RowError as error:
                    place = f"partition {row['part']}: block {row['block']}: row {error.row}"
                    raise RowError(WHERE, error.row, error.reason, place) from None
        self._note_labels(model, (packed_classes(row["classes"]) for row in rows), first)
        return model, sum(row["skipped"] for row in rows)

    def _note_labels(self, model: Model, found: Iterable[Classes | None], first: bool) -> None:
        """Note in the model which label is positive, for the batches that follow."""
        settings: dict[str, Any] = dict(model.source.get("settings") or {})
        if self.columns["positive"] is not None:
            settings["positive"] = self.columns["positive"]
        # The classes of a model that exists are in those of its first batch.
        classes = joined_classes(found, None if first else settings.get("classes"))
        if classes is not None:
            settings["classes"] = list(classes)
        elif settings.get("positive") is None:
            raise DataError(
                "its rows have a single label, which does not tell what the other one is. Pass positive=VALUE to name "
                "the label that counts as +1."
            )
        model.source = {**model.source, "settings": settings}


def _query_id(df: DataFrame, checkpoint: str) -> str:
    """Return the id of the query of a checkpoint, which Spark keeps there in the file metadata."""
    row = df.sparkSession.read.text(f"{checkpoint.rstrip('/')}/metadata").head()
    try:
        return str(json.loads(row[0])["id"])
    except (TypeError, KeyError, ValueError):
        raise DataError(
            f"{WHERE}: {plain(checkpoint)}/metadata has no id of a query: the checkpoint is damaged."
        ) from None
