"""fit: groups of rows learn side by side in the tasks of a cluster, in rounds (rarestream.groups).

1. The rows are packed (packing.py), where they are, and kept by Spark. A list of all blocks, without their rows, comes
   to the driver: it divides them between rounds and groups.
2. In each round, the blocks of a group are brought together in one task: the only shuffle, of packed blocks, which
   does not change what a block holds. The task starts from the state that the driver sends, learns its blocks in
   order, and returns what has changed. The driver merges that; if it is much, tasks merge it, each some features.
3. The driver saves the state after each round, if it has a folder for that.

Nothing depends on which task runs where, or again: a task checks that it has exactly the blocks that the driver has
divided, by their numbers and checksums. A source that gives its rows in another order when a lost part of it is read
again is thus an error, and never another model.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rarestream._version import __version__
from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError
from rarestream.features import Hashed
from rarestream.groups import (
    Division,
    Part,
    Receipt,
    RoundReceipt,
    RoundsFit,
    auto_groups,
    auto_rounds,
    divide,
    merge_features,
    train_group,
)
from rarestream.groups.fitting import SAMPLE_ROWS, Trained, piece_rows, prices, receipt_of
from rarestream.groups.receipt import KEY
from rarestream.learners import Learner
from rarestream.learners.base import RacePlan
from rarestream.model import Model
from rarestream.readers.options import Classes, Label
from rarestream.spark import packing
from rarestream.spark.errors import check_version, readable_errors, require_pyspark
from rarestream.spark.packing import (
    add_names,
    block_from_bytes,
    block_to_bytes,
    is_packed,
    joined_classes,
    pack,
    packed_classes,
    packed_space,
)
from rarestream.spark.store import TwoSlots
from rarestream.spark.tasks import arrow_schema

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

WHERE = "rarestream.spark.fit"
BLOCK_ROWS = 1024  # rows that go to a group together
TASK_BYTES = 256 << 20  # of packed blocks that a task learns in a round, with rounds="auto"
PIECE = 32 << 20  # bytes of a row in which a part of a state is sent
ON_DRIVER = 256 << 20  # bytes of all parts of a round, about, up to which the driver merges them
SHARD, MOST_SHARDS = 1 << 20, 256  # features that a task merges, if the driver does not; tasks
CUT_MULTIPLE = 1 << 12  # pieces that a block is cut into, at most
MOST_GROUPS = 4096

_receipts: WeakKeyDictionary[Model, Receipt] = WeakKeyDictionary()  # with times, of the models that `fit` returned

LEARNED = "group int, shard int, piece int, data binary"


def fit(
    df: DataFrame,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    learner: Learner | str = "auto",
    groups: int | str = "auto",
    rounds: int | str = "auto",
    passes: int = 1,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    importance: str | None = None,
    positive: Label | None = None,
    nulls: str = "error",
    scale: str = "unit",
    dtype: str = "float32",
    calibrate: bool = True,
    negatives_kept: float = 1.0,
    price: bool = True,
    **options: Any,
) -> Model:
    """Learn the rows of a Spark frame on the cluster.

    The rows are divided between groups, which learn side by side and are merged several times: rounds. The more groups,
    the more rows are learned at once, and the more AUC is lost against learning in sequence, mostly little:
    `receipt(model)` tells. With one group nothing is lost: the model is that of `Model.learn`, bit for bit.

    Parameters
    ----------
    df : DataFrame
        The rows; or blocks that `pack` has made of them.
    label : str
        The column of the label. Not for packed blocks.
    features : str or sequence of str, optional
        The columns of the features, as for `pack`.
    learner : Learner or str, default "auto"
        As for `Model`. One that cannot be merged needs groups=1.
    groups : int or "auto"
        The number of groups. By default one for each core of the cluster, at most 64, and none with fewer than 20,000
        rows or 100 rows of the rarer class.
    rounds : int or "auto"
        How often groups are merged in a pass. By default a quarter of the number of groups, and 4 at least; 1 with one
        group; more if a task had to hold more than 256 MB of packed rows. A race of settings (`auto`) on many rows
        starts with up to three short rounds more.
    passes : int, >= 1, default 1
        How often all rows are learned.
    checkpoint_dir : str or path, optional
        A folder, on any file system that Spark writes to, in which the state is saved after each round. Called again
        with the same rows and arguments, `fit` goes on after the last round that is there.
    importance, positive, nulls
        As for `pack`.
    scale, dtype, calibrate, negatives_kept
        As for `Model`.
    price : bool, default True
        Whether the receipt tells how much AUC these groups, and more, lose against learning in sequence. The driver
        measures it on a sample of at most 65,536 rows.
    **options
        Of a table: the options of `rarestream.read`, as for `pack`.

    Returns
    -------
    Model
        An ordinary model.

    Raises
    ------
    DataError
        If an argument or a row is invalid, a group would have rows of one class only, rows come in another order when
        they are read again, or the checkpoint is that of other rows or arguments.
    ValueError
        If the learner cannot be learned in groups.
    """
    require_pyspark()
    started = perf_counter()
    model = Model(learner, scale=scale, dtype=dtype, calibrate=calibrate, negatives_kept=negatives_kept)
    _check_numbers(groups, rounds, passes)
    spark = df.sparkSession
    with readable_errors(), ExitStack() as kept:
        packed = _kept(kept, _packed(df, label, features, importance, positive, nulls, options))
        listed = _listed(packed)
        number = auto_groups(_cores(spark), listed.total, listed.total_positives) if groups == "auto" else int(groups)
        turns = _auto_rounds(number, listed) if rounds == "auto" else int(rounds)
        kept.enter_context(_bounded_batches(spark))
        if number > 1:
            model._engine.in_groups()  # raises if its learner cannot be merged
            rows = piece_rows(listed.total, number, turns)
            if len(listed.rows) < 4 * number * turns and int(listed.rows.max()) > rows:  # few blocks for so many groups
                packed = _kept(kept, packed.mapInArrow(_Cutter(rows).cut, packing.SCHEMA))
                listed = _listed(packed)
        plan = model.learner.race_plan()
        short = [] if plan is None else _race_rounds(plan, number)
        division = divide(listed.rows, listed.positives, number, turns, short, race=plan is not None)
        space = packed_space(listed.space)
        if space is not None:
            add_names(space, packed.select("part", "block", "names").where("names is not null").collect())
        _set_space(model, space, names=False)
        held, sample = _collected(spark, packed, listed, division, space, sample=price and number > 1)
        rounds_fit = RoundsFit(model, division, held, passes)
        training = _Training(spark, packed, listed, rounds_fit)
        save = None
        if checkpoint_dir is not None:
            checkpoint = _Checkpoint(spark, checkpoint_dir, listed, model, division, passes)
            checkpoint.resume(rounds_fit)
            save = checkpoint.save
        before = perf_counter() - started
        model = rounds_fit.run(training.train, save)
    found = receipt_of(rounds_fit, listed.total, listed.total_positives)
    found.skipped, found.seconds_before = listed.skipped, before
    if sample:
        used = None if rounds == "auto" else turns
        found.sample, found.prices = prices(model._engine.leader, scale, dtype, sample, number, used)
    _set_space(model, space)
    model.source = {**model.source, KEY: found.record(), "settings": _label_settings(listed.classes, positive)}
    _receipts[model] = found
    return model


def receipt(model: Model) -> Receipt:
    """Return what `fit` has cost: AUC, time and bytes of each round, and the price of the groups.

    Parameters
    ----------
    model : Model
        A model that `fit` returned, or that was loaded from its file, which keeps no times.

    Returns
    -------
    Receipt
        Print it.

    Raises
    ------
    DataError
        If the model was not learned in groups.
    """
    if KEY not in model.source:
        raise DataError("receipt: the model was not made by rarestream.spark.fit.")
    return _receipts.get(model) or Receipt.from_record(model.source[KEY])


def _check_numbers(groups: int | str, rounds: int | str, passes: int) -> None:
    for name, value, most in (
        ("groups", groups, MOST_GROUPS),
        ("rounds", rounds, 1 << 20),
        ("passes", passes, 1 << 20),
    ):
        automatic = name != "passes" and value == "auto"
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= value <= most
        if not (automatic or whole):
            words = "" if name == "passes" else ' or "auto"'
            raise DataError(f"{WHERE}: {name} must be a whole number from 1 to {most:,}{words}, got {value!r}.")


def _packed(
    df: DataFrame,
    label: str | None,
    features: str | Sequence[str] | None,
    importance: str | None,
    positive: Label | None,
    nulls: str,
    options: Mapping[str, Any],
) -> DataFrame:
    if not is_packed(df):
        if label is None:
            raise DataError(f"{WHERE}: label must be the column of the label; there are {', '.join(df.columns)}.")
        columns: dict[str, Any] = {"label": label, "features": features, "importance": importance}
        return pack(df, **columns, positive=positive, nulls=nulls, block_rows=BLOCK_ROWS, **options)
    given: dict[str, Any] = {
        "label": label,
        "features": features,
        "importance": importance,
        "positive": positive,
        **options,
    }
    named = [name for name, value in given.items() if value is not None]
    if named or nulls != "error":
        raise DataError(
            f"{WHERE}: the rows are packed already, so {', '.join(named) or 'nulls'} must be left out: pack has "
            "decided it."
        )
    return df


# -- the list of blocks


class _Listed(NamedTuple):
    """All blocks that have rows, in the order of the stream; block i is the i-th."""

    part: NDArray[np.int64]
    block: NDArray[np.int64]
    rows: NDArray[np.int64]
    positives: NDArray[np.int64]
    check: NDArray[np.int64]
    bytes: NDArray[np.int64]
    skipped: int  # rows, in all
    space: str | None
    classes: Classes | None

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    @property
    def total_positives(self) -> int:
        return int(self.positives.sum())

    @property
    def digest(self) -> str:
        """Text that is the same for the same blocks in the same order."""
        numbers = np.stack([self.part, self.block, self.rows, self.positives, self.check])
        return hashlib.sha256(numbers.tobytes() + (self.space or "").encode()).hexdigest()[:32]


def _kept(kept: ExitStack, frame: DataFrame) -> DataFrame:
    """Return a frame whose rows Spark keeps once they are made, until all is done."""
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame


@contextmanager
def _bounded_batches(spark: SparkSession) -> Iterator[None]:
    """Context in which a task does not get very many packed blocks at once: Spark before 4.1 counts only rows."""
    name, most = "spark.sql.execution.arrow.maxRecordsPerBatch", 64
    before = spark.conf.get(name, None)
    if spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch", None) is not None:
        yield
        return
    spark.conf.set(name, str(most))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _listed(packed: DataFrame) -> _Listed:
    """Return the list of all blocks; DataError if there are none, or not those of one frame."""
    from pyspark.sql import functions

    columns = ("part", "block", "rows", "positives", "check", "bytes")
    size = functions.length("data").alias("bytes")
    found = packed.select(*columns[:-1], size, "skipped", "space", "classes").collect()
    found.sort(key=lambda row: (row["part"], row["block"]))
    skipped = sum(row["skipped"] for row in found)
    spaces = {row["space"] for row in found}
    if len(spaces) > 1:
        raise DataError(f"{WHERE}: the packed blocks have several feature spaces. Pack all rows together.")
    labels = joined_classes([packed_classes(text) for text in {row["classes"]: None for row in found}])
    found = [row for row in found if row["rows"]]
    if not found:
        left_out = f" {skipped:,} rows are left out because their label or features are null." if skipped else ""
        raise DataError(f"{WHERE}: there are no rows to learn.{left_out}")
    part, block, rows, positives, check, sizes = (np.array([row[name] for row in found], np.int64) for name in columns)
    places = set(zip(part.tolist(), block.tolist(), strict=True))
    if len(places) < len(found):
        raise DataError(f"{WHERE}: packed blocks are there twice, such as those of two frames. Pack all rows together.")
    return _Listed(part, block, rows, positives, check, sizes, skipped, next(iter(spaces)), labels)


@dataclass
class _Cutter:
    """Cuts packed blocks into smaller ones; its method runs in tasks."""

    rows: int
    version: str = __version__

    def cut(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow

        check_version(self.version)
        schema = arrow_schema(packing.SCHEMA)
        for batch in batches:
            for row in batch.to_pylist():
                block = block_from_bytes(row["data"], packed_space(row["space"]))
                rows = max(self.rows, -(-len(block) // CUT_MULTIPLE))
                for number, start in enumerate(range(0, len(block), rows)):
                    piece = block[start : start + rows]
                    data = block_to_bytes(piece)
                    assert piece.labels is not None
                    made = {
                        **row,
                        "block": row["block"] * CUT_MULTIPLE + number,
                        "rows": len(piece),
                        "positives": int(np.count_nonzero(piece.labels > 0)),
                        "skipped": 0 if number else row["skipped"],
                        "names": None if number else row["names"],
                        "check": zlib.crc32(data),
                        "data": data,
                    }
                    yield pyarrow.RecordBatch.from_pylist([made], schema)


def _auto_rounds(groups: int, listed: _Listed) -> int:
    """Return the number of rounds: those that so many groups need, or more, so that a task can hold its blocks."""
    return max(auto_rounds(groups), -(-int(listed.bytes.sum()) // (groups * TASK_BYTES)))


def _race_rounds(plan: RacePlan, groups: int) -> list[int]:
    """Return the numbers of rows after which the rounds of a race end: each group then has as many as one machine."""
    return [rows * groups for rows in (plan.cut, plan.early, plan.rows)]


def _chosen(spark: SparkSession, packed: DataFrame, listed: _Listed, columns: Mapping[str, NDArray[Any]]) -> DataFrame:
    """Return some packed blocks with more columns: `at`, the numbers of the blocks, is the first of them."""
    from pyspark.sql import functions

    at = columns["at"]
    values = [listed.part[at], listed.block[at], *columns.values()]
    rows = list(zip(*(value.tolist() for value in values), strict=True))
    schema = ", ".join(f"{name} int" for name in ("part", "block", *columns))
    few = spark.createDataFrame(rows, schema)
    return packed.drop("space", "classes", "names", "skipped", "positives").join(
        functions.broadcast(few), ["part", "block"]
    )


def _collected(
    spark: SparkSession, packed: DataFrame, listed: _Listed, division: Division, space: Hashed | None, sample: bool
) -> tuple[Block | None, list[Block]]:
    """Return the rows that are held out, and blocks that are spread over all rows."""
    held = division.held_out
    spread = np.zeros(0, np.intp)
    if sample:
        number = max(1, min(len(listed.rows), int(SAMPLE_ROWS / listed.rows.mean())))
        spread = np.unique((np.arange(number) * (len(listed.rows) / number)).astype(np.intp))
    wanted = np.union1d(held, spread)
    if not len(wanted):
        return None, []
    found = _chosen(spark, packed, listed, {"at": wanted}).select("at", "check", "data").collect()
    blocks = {}
    for row in found:
        if row["check"] != listed.check[row["at"]]:
            raise _other_order()
        blocks[row["at"]] = block_from_bytes(bytes(row["data"]), space)
    if len(blocks) < len(wanted):
        raise _other_order()
    rows = concatenate([blocks[at] for at in held.tolist()]) if len(held) else None
    return rows, [blocks[at] for at in spread.tolist()]


def _other_order() -> DataError:
    return DataError(
        f"{WHERE}: the source gave other rows, or another order of them, when a part of it was read again: a shuffle "
        "or a random number is in its making. Write the rows, or what pack returns, to Parquet, and fit that."
    )


def _set_space(model: Model, space: Hashed | None, names: bool = True) -> None:
    """Give a model its feature space; without names, which are not needed on the way."""
    if space is None:
        return
    used = space
    if not names:
        used = Hashed(space.bits, names=False)
        used.plan = space.plan
    model._features = model._space = used
    model._engine.reserve(used.slots, exactly=True)
    model._n_features = used.slots


def _label_settings(classes: Classes | None, positive: Label | None) -> dict[str, Any]:
    settings: dict[str, Any] = {} if classes is None else {"classes": list(classes)}
    return settings if positive is None else {**settings, "positive": positive}


def _cores(spark: SparkSession) -> int:
    """Return the number of tasks that run at once."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        return int(context.defaultParallelism)
    from pyspark.sql import functions

    spread = spark.range(1 << 12).select(functions.spark_partition_id().alias("part"))
    return int(spread.distinct().count())


# -- rounds


class _Training:
    """The rounds on the cluster."""

    def __init__(self, spark: SparkSession, packed: DataFrame, listed: _Listed, fit: RoundsFit) -> None:
        self.spark, self.packed, self.listed, self.fit, self.division = spark, packed, listed, fit, fit.division
        held_out = fit.held_out
        self._row_entries = 0.0 if held_out is None else held_out.nonzeros / max(1, len(held_out))
        self._keys = np.array(_partition_keys(spark, self.division.groups))

    def train(self, state: bytes, number: int, strength: float, again: bool) -> Trained:
        rows = self.division.group_rows(number)
        expected = [self._check(number, group) for group in range(self.division.groups)]
        context = getattr(self.spark, "_sc", None)
        sent: Any = state if context is None else context.broadcast(state)
        trainer = _Trainer(sent, number, rows.tolist(), expected, strength, again)
        shards = self._shards(int(rows.max()))
        try:
            if shards == 1:
                found = self._blocks(number).mapInArrow(trainer.train, LEARNED).collect()
                received = sum(len(row["data"]) for row in found)
                parts = [_part(found, "group", group) for group in range(self.division.groups)]
                return Trained(parts, received)
            trainer.keys = _partition_keys(self.spark, shards)
            learned = self._blocks(number).mapInArrow(trainer.train, LEARNED + ", key int")
            apart = learned.repartition(shards, "key").sortWithinPartitions("shard", "group", "piece").drop("key")
            found = apart.mapInArrow(_Merger(sent, self.division.groups).merge, LEARNED).collect()
            received = sum(len(row["data"]) for row in found)
            numbers = sorted({row["shard"] for row in found})
            return Trained([_part(found, "shard", shard) for shard in numbers], received, merged=True)
        finally:
            if context is not None:
                with suppress(Exception):  # the session may be gone
                    sent.destroy()

    def _blocks(self, number: int) -> DataFrame:
        """Return the blocks of a round, those of a group in one partition, in any order."""
        at = np.flatnonzero(self.division.round_of == number)
        group, part = self.division.group_of[at], self.listed.part[at]
        near = self.packed.where(f"part >= {part.min()} and part <= {part.max()}")  # Spark need not look at others
        blocks = _chosen(self.spark, near, self.listed, {"at": at, "group": group, "key": self._keys[group]})
        blocks = blocks.select("at", "group", "key", "check", "data")
        return blocks.repartition(self.division.groups, "key").drop("key")

    def _check(self, number: int, group: int) -> int:
        at = self.division.blocks(number, group)
        return _digest(at, self.listed.check[at])

    def _shards(self, rows: int) -> int:
        """Return how many tasks merge what groups have learned of so many rows at most; 1: the driver does."""
        model = self.fit.model
        touched = rows * self._row_entries
        if isinstance(model.features, Hashed):
            touched = min(touched, model.n_features)
        if self.division.groups == 1:
            return 1
        number_bytes = 8 if model.dtype == "float64" else 4
        expected = self.division.groups * touched * (4 + number_bytes * len(model._engine.in_groups().merge_rules()))
        if expected <= ON_DRIVER:
            return 1
        return max(2, min(MOST_SHARDS, -(-model.n_features // SHARD)))


def _digest(at: NDArray[np.integer[Any]], check: NDArray[np.integer[Any]]) -> int:
    """Return a number that depends on which blocks there are, in which order, and on what they hold."""
    return zlib.crc32(np.stack([at, check], axis=1).astype(np.int64).tobytes())


def _partition_keys(spark: SparkSession, partitions: int) -> list[int]:
    """Return a number for each of so many partitions that Spark's hash brings there."""
    from pyspark.sql import functions

    keys: dict[int, int] = {}
    first, size = 0, 32 * partitions
    while len(keys) < partitions:
        numbers = spark.range(first, first + size).select(functions.col("id").cast("int").alias("key"))
        places = numbers.select("key", functions.pmod(functions.hash("key"), functions.lit(partitions)).alias("place"))
        for row in places.collect():
            keys.setdefault(row["place"], row["key"])
        first += size
    return [keys[place] for place in range(partitions)]


def _part(rows: Sequence[Any], column: str, number: int) -> Part:
    mine = sorted((row for row in rows if row[column] == number), key=lambda row: row["piece"])
    if not mine:
        raise DataError(
            f"{WHERE}: {column} {number} has returned nothing. Run it again, and report it if that repeats."
        )
    return Part.from_bytes(b"".join(bytes(row["data"]) for row in mine))


@dataclass
class _Trainer:
    """Learns the blocks of a group; its method runs in tasks."""

    state: Any  # bytes, or a broadcast of them
    number: int
    rows: list[int]  # of each group
    checks: list[int]  # of the blocks of each group
    strength: float
    again: bool
    keys: list[int] | None = None  # of the partition in which each range of features is merged; None: on the driver
    version: str = __version__

    def train(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        check_version(self.version)
        mine = _GroupBlocks(batches)
        group = mine.group
        if group is None:  # a partition without blocks
            return
        if mine.digest != self.checks[group]:
            raise _other_order()
        model = _loaded(self.state)
        part = train_group(
            model,
            mine.blocks(model.features if isinstance(model.features, Hashed) else None),
            rows=self.rows[group],
            of=sum(self.rows),
            strength=self.strength,
            again=self.again,
        )
        if self.keys is None:
            yield from _pieces(group, 0, part, None)
            return
        ends = [*(SHARD * shard for shard in range(1, len(self.keys))), 1 << 31]
        for shard, (key, first, end) in enumerate(zip(self.keys, [0, *ends], ends, strict=False)):
            yield from _pieces(group, shard, _between(part, first, end), key)


@dataclass
class _Merger:
    """Merges what all groups have learned of some features; its method runs in tasks."""

    state: Any
    groups: int
    version: str = __version__

    def merge(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        check_version(self.version)
        found: dict[int, dict[int, list[bytes]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                found.setdefault(row["shard"], {}).setdefault(row["group"], []).append(row["data"])
        if not found:
            return
        model = _loaded(self.state)
        for shard, groups in sorted(found.items()):
            if len(groups) < self.groups:
                raise DataError(f"{WHERE}: only {len(groups)} of {self.groups} groups have returned shard {shard}.")
            parts = [Part.from_bytes(b"".join(groups[group])) for group in sorted(groups)]
            yield from _pieces(0, shard, merge_features(model, parts, 0, 1 << 31), None)


def _loaded(state: Any) -> Model:
    return Model.from_bytes(state if isinstance(state, bytes) else state.value)


def _between(part: Part, first: int, stop: int) -> Part:
    assert part.change is not None
    return Part(part.rows, part.positives, part.change.between(first, stop))


def _pieces(group: int, shard: int, part: Part, key: int | None) -> Iterator[RecordBatch]:
    """Yield a part of a state as rows of bounded size."""
    import pyarrow

    schema = arrow_schema(LEARNED if key is None else LEARNED + ", key int")
    data = part.to_bytes()
    for number, start in enumerate(range(0, len(data), PIECE)):
        row: dict[str, Any] = {"group": group, "shard": shard, "piece": number, "data": data[start : start + PIECE]}
        yield pyarrow.RecordBatch.from_pylist([row if key is None else {**row, "key": key}], schema)


class _GroupBlocks:
    """The blocks of the group that a task has, which are held in memory."""

    def __init__(self, batches: Iterable[RecordBatch]) -> None:
        found = [
            (at.as_py(), group.as_py(), check.as_py(), data.as_buffer())
            for batch in batches
            for at, group, check, data in zip(*(batch.column(name) for name in self.COLUMNS), strict=True)
        ]
        found.sort(key=lambda row: row[0])
        groups = {group for _, group, _, _ in found}
        if len(groups) > 1:
            raise DataError(f"{WHERE}: a task has blocks of two groups. Report it, with the version of Spark.")
        self.group: int | None = next(iter(groups), None)
        numbers = np.array([(at, check) for at, _, check, _ in found], np.int64).reshape(-1, 2)
        self.digest = _digest(numbers[:, 0], numbers[:, 1])
        self._data = [data for *_, data in found]

    COLUMNS = ("at", "group", "check", "data")

    def blocks(self, space: Hashed | None) -> Iterator[Block]:
        """Yield the blocks, in order."""
        for data in self._data:
            yield block_from_bytes(data, space)


# -- checkpoints


class _Checkpoint:
    """The state after each round, in a folder."""

    def __init__(
        self,
        spark: SparkSession,
        folder: str | os.PathLike[str],
        listed: _Listed,
        model: Model,
        division: Division,
        passes: int,
    ) -> None:
        self.folder = os.fspath(folder)
        self._slots = TwoSlots(spark, self.folder)
        settings = {"name": model.learner.name, "settings": model.learner.settings}
        self._about: dict[str, Any] = {
            "rows": listed.digest,
            "learner": json.loads(json.dumps(settings)),
            "scale": model.scale,
            "dtype": model.dtype,
            "calibrate": model.calibrate,
            "negatives_kept": model.negatives_kept,
            "groups": division.groups,
            "rounds": division.rounds,
            "passes": passes,
            "version": __version__,
        }

    def resume(self, fit: RoundsFit) -> None:
        """Go on after the last round that is saved; DataError if it is that of other rows or arguments."""
        found = self._slots.latest()
        if found is None:
            return
        done, data, about = found
        other = [name for name, value in self._about.items() if about.get(name) != value]
        if other:
            raise DataError(
                f"{WHERE}: checkpoint_dir {self.folder} has {done} rounds of a fit with other {', '.join(other)}. Pass "
                "the same frame and arguments to go on with it, or another folder to start anew. If only rows differ "
                "though the data are the same, Spark has divided them into other partitions: fit what pack has written."
            )
        rounds = [RoundReceipt(**one) for one in about["receipts"]]
        fit.resume(Model.from_bytes(data), done, about["strength"], rounds)
        fit.stopped = about["stopped"]

    def save(self, fit: RoundsFit) -> None:
        """Save the state after a round."""
        receipts = [asdict(one) for one in fit.rounds]
        about = {**self._about, "receipts": receipts, "strength": fit.strength, "stopped": fit.stopped}
        self._slots.save(fit.done, fit.model.to_bytes(), about)
