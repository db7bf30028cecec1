"""Scores of a model as columns of a Spark frame."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rarestream.errors import DataError, nearest
from rarestream.features import Hashed
from rarestream.model import Model
from rarestream.spark.errors import require_pyspark
from rarestream.spark.inputs import WHERE, Inputs, column, numbered, resolve
from rarestream.spark.rows import RowReader
from rarestream.spark.tasks import partition

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyspark.sql import DataFrame

MOST_MODELS = 4  # that a worker keeps


def score(
    df: DataFrame,
    model: Model,
    *,
    features: str | Sequence[str] | None = None,
    score: str | None = "score",
    probability: str | None = None,
    keep: Sequence[str] | None = None,
) -> DataFrame:
    """Add the scores of a model to a Spark frame; larger means more likely positive.

    Rows whose vector, arrays or map are null have the score null.

    Parameters
    ----------
    df : DataFrame
        The rows.
    model : Model
        Any model. Workers receive its weights only.
    features : str or sequence of str, optional
        The columns of the features, as for `pack`. By default those of the table that the model has learned; a model
        with column numbers does not know its columns.
    score : str or None, default "score"
        Name of the new column of scores, double; None for none.
    probability : str, optional
        Name of the new column of probabilities, double. By default there is none.
    keep : sequence of str, optional
        The columns of `df` to keep. By default all. With a few short ones, such as an id, and not the features, Spark
        has much less to move.

    Returns
    -------
    DataFrame
        The columns of `df` that are kept, and the new ones after them. Invalid rows raise an error when it is run.

    Raises
    ------
    DataError
        If columns are missing, those of the features are not known or do not fit the model, or a new column exists.
    NotCalibratedError
        If probabilities are wanted and the model has no calibration.
    """
    require_pyspark()
    if not isinstance(model, Model):
        raise TypeError(f"{WHERE}: score takes a Model, got {type(model).__name__}.")
    new = [name for name in (score, probability) if name is not None]
    if len(set(new)) < len(new):
        raise DataError(f"{WHERE}: score and probability name the same new column, {score!r}.")
    kept = list(df.columns) if keep is None else _known(df, keep)
    for name in new:
        if name.lower() in (known.lower() for known in kept):
            raise DataError(f"{WHERE}: the frame has a column {name!r} already. Drop it, or choose another name.")
    if probability is not None:
        model.known_calibration(f"{WHERE}: score")
    planned = isinstance(model.features, Hashed) and model.features.plan is not None
    if features is None and not planned:
        raise DataError(f"{WHERE}: the model does not know the columns of its features. Name them with features.")
    inputs = resolve(df, features=features, nulls="skip", like=model)
    if not new:
        return df.select(*(column(name) for name in kept))
    scorer = Scorer(inputs, *_sent(df, model), score is not None, probability is not None)
    add = _by_column if _has_arrow_udf() and not set(kept).isdisjoint(inputs.columns) else _by_batch
    return add(df, scorer, kept, new)


def _known(df: DataFrame, keep: Sequence[str]) -> list[str]:
    """Return the columns to keep, which must exist."""
    wanted = [keep] if isinstance(keep, str) else list(keep)
    for name in wanted:
        if name not in df.columns:
            near = nearest(name, df.columns)
            hint = f"; did you mean {near!r}?" if near else f"; there are {', '.join(df.columns[:12])}."
            raise DataError(f"{WHERE}: keep names a column {name!r} that the frame does not have{hint}")
    return wanted


def _functions() -> Any:
    from pyspark.sql import functions

    return functions


def _has_arrow_udf() -> bool:
    return hasattr(_functions(), "arrow_udf")  # since Spark 4.1


def _sent(df: DataFrame, model: Model) -> tuple[str, Any]:
    """Return a digest of a model, and its bytes as tasks receive them: broadcast, or in Spark Connect as they are."""
    data = model.to_bytes("scoring")
    digest = hashlib.sha256(data).hexdigest()
    context = getattr(df.sparkSession, "_sc", None)
    return digest, data if context is None else context.broadcast(data)


def _by_column(df: DataFrame, scorer: Scorer, kept: Sequence[str], new: Sequence[str]) -> DataFrame:
    """Return the frame with the new columns. Only those of the features are moved to Python."""
    functions = _functions()
    kind = "double" if len(new) == 1 else "struct<" + ", ".join(f"c{at}: double" for at in range(len(new))) + ">"
    # A function without annotations: Spark would look for its own kinds of them.
    scores = functions.arrow_udf(lambda *cells: scorer.of_cells(*cells), kind)(*scorer.inputs.feature_columns())
    known = [column(name) for name in kept]
    if len(new) == 1:
        return df.select(*known, scores.alias(new[0]))
    taken = set(kept)
    both = next(name for name in (f"scores{'_' * at}" for at in range(len(taken) + 1)) if name not in taken)
    parts = [column(both)[f"c{at}"].alias(name) for at, name in enumerate(new)]
    return df.select(*known, scores.alias(both)).select(*known, *parts)


def _by_batch(df: DataFrame, scorer: Scorer, kept: Sequence[str], new: Sequence[str]) -> DataFrame:
    """Return the frame with the new columns: those that are kept go through Python, too.

    That is quicker where the features are not kept, and the only way before Spark 4.1.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    known = [df.schema[name] for name in kept]
    fields = [StructField(f"c{at}", field.dataType, field.nullable) for at, field in enumerate(known)]
    fields += [StructField(f"c{at}", DoubleType()) for at in range(len(kept), len(kept) + len(new))]
    moved = df.select(*numbered([*(column(name) for name in kept), *scorer.inputs.feature_columns()]))
    return moved.mapInArrow(scorer.of_batches, StructType(fields)).toDF(*kept, *new)


class Scorer:
    """Scores rows; its methods run in tasks.

    Parameters
    ----------
    inputs : Inputs
        What the columns of the features are.
    digest : str
        Of the bytes of the model.
    model : bytes or Broadcast
        The bytes of the model.
    score, probability : bool
        What is wanted.
    """

    def __init__(self, inputs: Inputs, digest: str, model: Any, score: bool, probability: bool) -> None:
        self.inputs, self.digest, self.model = inputs, digest, model
        self.score, self.probability = score, probability
        self._reader: RowReader | None = None
        self._before = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None, "_before": 0}

    def of_cells(self, *columns: Array) -> Array:
        """Return the scores of rows, by the columns of their features."""
        import pyarrow

        found = self._of(pyarrow.RecordBatch.from_arrays(list(columns), self.inputs.names))
        if len(found) == 1:
            return found[0]
        return pyarrow.StructArray.from_arrays(found, [f"c{at}" for at in range(len(found))])

    def of_batches(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield batches with the scores of their rows in place of the last columns, which have the features."""
        import pyarrow

        for batch in batches:
            kept = batch.num_columns - len(self.inputs.names)
            features = pyarrow.RecordBatch.from_arrays(batch.columns[kept:], self.inputs.names)
            columns = [*batch.columns[:kept], *self._of(features)]
            yield pyarrow.RecordBatch.from_arrays(columns, [f"c{at}" for at in range(len(columns))])

    def _of(self, batch: RecordBatch) -> list[Array]:
        import pyarrow

        if self._reader is None:
            self._reader = RowReader(self.inputs, f"partition {partition()}", names=False)
        rows = self._reader.read(batch, self._before)
        self._before += len(batch)
        model = loaded(self.digest, self.model)
        scores = model.score(rows.block)
        found = [scores] if self.score else []
        if self.probability:
            assert model.calibration is not None
            found.append(model.calibration.probability(scores, model.negatives_kept))
        if rows.present is None:
            return [pyarrow.array(each) for each in found]
        out = []
        for each in found:
            filled = np.zeros(len(batch))
            filled[rows.present] = each
            out.append(pyarrow.array(filled, mask=~rows.present))
        return out


_loaded: OrderedDict[str, Model] = OrderedDict()


def loaded(digest: str, model: Any) -> Model:
    """Return the model of these bytes, which may be broadcast. A worker keeps the last few for all its tasks."""
    found = _loaded.pop(digest, None)
    if found is None:
        found = Model.from_bytes(model if isinstance(model, bytes) else model.value)
    _loaded[digest] = found
    while len(_loaded) > MOST_MODELS:
        _loaded.popitem(last=False)
    return found
