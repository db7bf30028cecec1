"""What the columns of a Spark frame become: rows of Blocks.

`features` is one of

    a vector column          of pyspark.ml or pyspark.mllib, sparse and dense vectors mixed, all of one size
    a column array<number>   dense rows, all of one length
    a pair of columns        (indices array<int | bigint>, values array<number>), of one length in each row
    a column map<int | bigint, number>    column numbers and their values
    other columns, or None   a table: named features, hashed as `rarestream.read` does with the same columns

`resolve` looks at the schema, and at the first rows for what they decide: the plan of a table, and which label is
positive. It returns `Inputs`, which tasks receive: `RowReader` turns record batches of these columns into Blocks.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rarestream._version import __version__
from rarestream.adapters.tables import read_rows
from rarestream.errors import DataError, nearest, plain
from rarestream.features import Hashed
from rarestream.features.plan import TablePlan, table_parser
from rarestream.model import Model, check_space
from rarestream.readers.batches import FIRST, BatchRules, exported
from rarestream.readers.labels import YES, LabelRule, OneLabelError
from rarestream.readers.options import Classes, Label, OptionError, check_positive
from rarestream.readers.parser import ParsedRows, parsed_rows
from rarestream.readers.tables import MOST_COLUMNS, TableOptions
from rarestream.spark.errors import require_pyspark
from rarestream.spark.first_rows import first_rows

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch, Table
    from pyspark.sql import Column, DataFrame

WHERE = "spark"  # what messages begin with that are not about a row
Kind = Literal["vector", "array", "pair", "map", "table"]
Nulls = Literal["error", "skip"]
SKIP = 'pass nulls="skip" to leave such rows out and count them'
SHOWN = 12  # columns that a message lists


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the rows of a frame are; tasks receive it.

    Attributes
    ----------
    kind : str
        What holds the features.
    columns : tuple of str
        The columns that hold them.
    label, importance : str or None
        The columns of the label and the importance.
    positive, classes
        Which label is positive, as in `LabelRule`.
    earlier : bool
        Whether the classes are those of a model that has learned before.
    nulls : {"error", "skip"}
        What to do with rows without label or features.
    space : str or None
        The feature space, as `space_to_json` has it; None: column numbers.
    one_value : bool
        Whether the features are a single column, in which null is a row without features.
    size : int or None
        Of all vectors; None: the first decides.
    notes : tuple of str
        What the first rows decided and a user should know.
    """

    kind: Kind
    columns: tuple[str, ...]
    label: str | None = None
    importance: str | None = None
    positive: Label | None = None
    classes: Classes | None = None
    earlier: bool = False
    nulls: Nulls = "error"
    space: str | None = None
    one_value: bool = False
    size: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    @property
    def names(self) -> list[str]:
        """The names of the columns that a RowReader needs, in the order of `select`."""
        return [*self.columns, *(name for name in (self.label, self.importance) if name is not None)]

    def select(self, df: DataFrame) -> DataFrame:
        """Return a frame with the columns that a RowReader needs, and no others. They are numbered: see `named`."""
        return df.select(
            *numbered([*self.feature_columns(), *(column(name) for name in self.names[len(self.columns) :])])
        )

    def feature_columns(self) -> list[Column]:
        """Return the columns of the features as a RowReader needs them."""
        from pyspark.sql import functions

        if self.kind == "vector":
            return [functions.unwrap_udt(column(self.columns[0]))]
        return [column(name) for name in self.columns]

    def named(self, batch: RecordBatch) -> RecordBatch:
        """Return a batch of `select` with the names of its columns."""
        return batch.rename_columns(self.names)


def resolve(
    df: DataFrame,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    importance: str | None = None,
    positive: Label | None = None,
    nulls: str = "error",
    bits: int | None = None,
    like: Model | None = None,
    **options: Any,
) -> Inputs:
    """Return what the rows of a frame are, by its schema and, where they decide something, its first rows.

    Parameters
    ----------
    df : DataFrame
        The rows.
    label : str, optional
        The column of the label; None: rows have none.
    features : str, sequence of str, optional
        The columns of the features, as the docstring of this module lists them. By default those of the plan of `like`,
        else all other columns.
    importance : str, optional
        The column of the importance of rows.
    positive : number or str, optional
        The label that counts as +1; by default as for `rarestream.read`.
    nulls : {"error", "skip"}
        Whether a row without label or features is an error, or left out and counted.
    bits : int, optional
        Of a table: names are hashed to 2^bits slots. By default as in `like`, else 22.
    like : Model, optional
        A model whose features, plan and classes the rows must have.
    **options
        Of a table: those of `rarestream.read`, such as categorical and crosses.

    Raises
    ------
    DataError
        If a column is missing or of a wrong type, an option is not allowed, or there are no rows to decide by.
    """
    require_pyspark()
    if nulls not in ("error", "skip"):
        raise DataError(f'{WHERE}: nulls must be "error" or "skip", got {nulls!r}.')
    schema = _Schema(df)
    for word, name in (("label", label), ("importance", importance)):
        if name is not None:
            schema.require(word, name)
    kind, columns = _features(schema, features, [name for name in (label, importance) if name is not None], like)
    for word, name in (("label", label), ("importance", importance)):
        if name in columns:
            raise DataError(f"{WHERE}: column {name!r} is named by both {word} and features. Name it once.")
    if label is not None and label == importance:
        raise DataError(f"{WHERE}: column {label!r} is named by both label and importance. Name it once.")
    inputs = Inputs(kind=kind, columns=columns, label=label, importance=importance, nulls=nulls)  # type: ignore[arg-type]
    inputs = replace(inputs, **_labels_of(positive, like))
    given = {name: value for name, value in {"bits": bits, **options}.items() if value is not None}
    if kind != "table":
        if given:
            word = next(iter(given))
            raise DataError(
                f"{WHERE}: {word} is an option of tables, whose features have names; {_described(kind, columns)} has "
                "column numbers. Drop it."
            )
        if like is not None:
            check_space(WHERE, like.features, None)
        return _decide_labels(df, inputs, _first_of(df, inputs))
    one_value = isinstance(features, str) and schema.is_map(features)
    inputs = replace(inputs, one_value=one_value)
    space, inputs, first = _decide_plan(df, schema, inputs, given, like)
    return _decide_labels(df, replace(inputs, space=space_to_json(space)), first)


# -- the schema


class _Schema:
    """The columns of a frame and their types."""

    def __init__(self, df: DataFrame) -> None:
        self.types: dict[str, Any] = {}
        self.doubled: set[str] = set()
        for field in df.schema.fields:
            if field.name in self.types:
                self.doubled.add(field.name)
            self.types[field.name] = field.dataType

    def require(self, word: str, name: Any) -> None:
        if not isinstance(name, str):
            raise DataError(f"{WHERE}: {word} must be the name of a column, got {name!r}.")
        if name in self.doubled:
            raise DataError(f"{WHERE}: two columns are named {plain(name)!r}. Rename one.")
        if name not in self.types:
            near = nearest(name, self.types)
            hint = f"Did you mean {near!r}? " if near else ""
            raise DataError(
                f"{WHERE}: {word} names the column {name!r}, which is not there. {hint}"
                f"The columns are {_listed(list(self.types), SHOWN)}."
            )

    def shown(self, name: str) -> str:
        return str(self.types[name].simpleString())

    def is_vector(self, name: str) -> bool:
        return type(self.types[name]).__name__ == "VectorUDT"

    def is_map(self, name: str) -> bool:
        return bool(self.types[name].typeName() == "map")

    def is_number_map(self, name: str) -> bool:
        found = self.types[name]
        return self.is_map(name) and found.keyType.typeName() in ("byte", "short", "integer", "long")

    def is_array(self, name: str, of: Sequence[str]) -> bool:
        found = self.types[name]
        return bool(found.typeName() == "array" and found.elementType.typeName() in of)

    def is_pair(self, names: Sequence[str]) -> bool:
        return len(names) == 2 and self.is_array(names[0], INDICES) and self.is_array(names[1], DECIMALS)


DECIMALS = ("float", "double")
INDICES = ("integer", "long")
NUMBERS = ("byte", "short", *INDICES, *DECIMALS)


def _features(schema: _Schema, features: Any, roles: Sequence[str], like: Model | None) -> tuple[Kind, tuple[str, ...]]:
    """Return what holds the features, and its columns."""
    if isinstance(features, str):
        schema.require("features", features)
        kind = _kind_of_one(schema, features)
        return kind, (features,)
    if features is None:
        plan = None if like is None or not isinstance(like.features, Hashed) else like.features.plan
        if plan is not None:
            return "table", _planned(plan, schema, roles)
        names = [name for name in schema.types if name not in roles]
        if schema.doubled:
            schema.require("features", min(schema.doubled))
        if not names:
            raise DataError(f"{WHERE}: there is no column for features besides {_listed(roles, SHOWN)}.")
    else:
        try:
            names = list(features)
        except TypeError:
            raise DataError(
                f"{WHERE}: features must be the name of a column, a pair of columns (indices, values), or a list of "
                f"columns, got {features!r}."
            ) from None
        if not names:
            raise DataError(f"{WHERE}: features names no column. Name one, or drop it to use all other columns.")
        for name in names:
            schema.require("features", name)
        if len(set(names)) < len(names):
            raise DataError(f"{WHERE}: features names a column twice.")
    if schema.is_pair(names):
        return "pair", tuple(names)
    if isinstance(features, tuple) and len(features) == 2:
        shown = " and ".join(f"{name!r} is {schema.shown(name)}" for name in names)
        raise DataError(
            f"{WHERE}: a pair of columns must be (indices array<int>, values array<double>), but {shown}. If these are "
            f"columns of a table, pass a list: features={names!r}."
        )
    if len(names) == 1 and schema.is_vector(names[0]):
        return "vector", tuple(names)
    for name in names:
        if schema.is_vector(name):
            raise DataError(
                f"{WHERE}: column {name!r} is a vector, which cannot be one of several columns. Pass features={name!r} "
                "alone, or leave it out of features."
            )
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{WHERE}: {len(names):,} columns; a table has at most {MOST_COLUMNS:,}. Use a map column.")
    return "table", tuple(names)


def _kind_of_one(schema: _Schema, name: str) -> Kind:
    if schema.is_vector(name):
        return "vector"
    if schema.is_array(name, DECIMALS):
        return "array"
    if schema.is_number_map(name):
        if schema.types[name].valueType.typeName() not in NUMBERS:
            raise DataError(
                f"{WHERE}: column {name!r} is {schema.shown(name)}; a map with column numbers must have numbers as "
                "values. Cast them to double, or make the keys text."
            )
        return "map"
    return "table"


def _planned(plan: TablePlan, schema: _Schema, roles: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a model's plan has."""
    wanted = [planned.name for planned in plan.columns if planned.kinds and planned.name not in roles]
    if not wanted:
        raise DataError(
            f"{WHERE}: the model has learned rows without fixed columns, such as dicts, so it does not know what the "
            "columns of a frame are. Train a model on a frame or a table."
        )
    absent = [name for name in wanted if name not in schema.types]
    if absent:
        columns = f"columns {_listed(absent, 5)} are" if len(absent) > 1 else f"column {absent[0]!r} is"
        raise DataError(
            f"{WHERE}: the {columns} missing, which the model has learned. Use a frame with the same columns, or train "
            "a new model."
        )
    for name in wanted:
        schema.require("features", name)
    return tuple(wanted)


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(plain(name)) for name in names[:most]) + more


def _described(kind: Kind, columns: Sequence[str]) -> str:
    what = {"vector": "a vector", "array": "an array", "pair": "a pair of arrays", "map": "a map with numbers as keys"}
    return f"{_listed(columns, 2)}, {what[kind]},"


def numbered(columns: Sequence[Column]) -> list[Column]:
    """Return columns with names of ours: in `mapInArrow` a name must not have dots or backticks."""
    return [each.alias(f"c{number}") for number, each in enumerate(columns)]


def column(name: str) -> Column:
    """Return a column of a frame by its name, which may hold any characters."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


# -- what the first rows decide


def _first_of(df: DataFrame, inputs: Inputs) -> Table | None:
    """Return the first labels and the size of the first vector; None if nothing is to be decided by them."""
    from pyspark.sql import functions

    if inputs.label is None or (_labels_known(inputs) and inputs.kind not in ("vector", "array")):
        return None
    columns = [column(inputs.label).alias("label")]
    if inputs.kind == "array":
        columns.append(functions.size(column(inputs.columns[0])).alias("size"))
    elif inputs.kind == "vector":
        vector = inputs.feature_columns()[0]
        columns.append(functions.coalesce(vector["size"], functions.size(vector["values"])).alias("size"))
    first = first_rows(df.select(*columns), 1 if _labels_known(inputs) else FIRST)
    return _not_empty(first)


def _not_empty(first: Table | None) -> Table:
    if first is None:
        raise DataError(f"{WHERE}: the frame has no rows, so nothing can be learned. Check the filters before it.")
    return first


def _decide_plan(
    df: DataFrame, schema: _Schema, inputs: Inputs, given: Mapping[str, Any], like: Model | None
) -> tuple[Hashed, Inputs, Table | None]:
    """Return the feature space of a table with its plan, the inputs with the columns it needs, and the first rows."""
    options = _table_options(inputs, given)
    if like is None or like.features is None:
        space = Hashed(22 if options.bits is None else options.bits, options.names)
    else:
        if not isinstance(like.features, Hashed):
            raise DataError(
                f"{WHERE}: {_listed(inputs.columns, 3)} have named features, which are hashed, but the model has "
                f"{like.features.describe()}. Use a vector, a pair of arrays or a map with numbers as keys, or train a "
                "new model."
            )
        if options.bits not in (None, like.features.bits):
            raise DataError(
                f"{WHERE}: bits must be {like.features.bits}, as in the model, got {options.bits}. Drop it, or train a "
                "new model."
            )
        space = like.features.fresh()
    first: Table | None = None
    if space.plan is None or given.keys() - {"bits", "names"}:
        from pyspark.sql import functions

        ignored = set(options.ignore)
        columns = [functions.lit(None).cast("string") if name in ignored else column(name) for name in inputs.names]
        first = _not_empty(first_rows(df.select(*numbered(columns)), FIRST)).rename_columns(inputs.names)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            read_rows(first, space, {**given, **options.roles, "positive": inputs.positive}, WHERE)
        said = [str(note.message).removeprefix(f"{WHERE}: ") for note in notes]
        inputs = replace(inputs, notes=tuple(note for note in said if not note.startswith("label ")))
        if inputs.label is not None:
            first = first.select([inputs.label]).rename_columns(["label"])
    elif inputs.label is not None and not _labels_known(inputs):
        first = _not_empty(first_rows(df.select(column(inputs.label).alias("label")), FIRST))
    assert space.plan is not None
    kinds = {planned.name: planned.kinds for planned in space.plan.columns}
    used = tuple(name for name in inputs.columns if kinds.get(name, 0))
    if not used:
        raise DataError(f"{WHERE}: no column of {_listed(inputs.columns, 5)} is a feature of the plan.")
    absent = [name for name, kind in kinds.items() if kind and name not in used]
    if absent and not space.plan.open:
        shown = _listed(absent, 5)
        raise DataError(f"{WHERE}: features lacks {shown}, which the model has learned. Drop features to use its plan.")
    return space, replace(inputs, columns=used), first


def _table_options(inputs: Inputs, given: Mapping[str, Any]) -> TableOptions:
    try:
        for word in given:
            if word not in TABLE_OPTIONS:
                near = nearest(word, TABLE_OPTIONS)
                hint = f"Did you mean {near}?" if near else f"They are {', '.join(TABLE_OPTIONS)}."
                raise DataError(f"{WHERE}: there is no option {word}. {hint}")
        return TableOptions(label=inputs.label, importance=inputs.importance, **given)
    except OptionError as error:
        raise DataError(f"{WHERE}: {error.option} {error.reason}") from None


TABLE_OPTIONS = (
    *("bits", "names", "numeric", "categorical", "text", "dates", "ignore", "crosses", "numbers", "missing"),
    *("ngrams", "counts"),
)


def _labels_of(positive: Any, like: Model | None) -> dict[str, Any]:
    """Return which label is positive, as far as arguments and the model say."""
    if positive is not None:
        try:
            return {"positive": check_positive(positive)}
        except ValueError as error:
            raise DataError(f"{WHERE}: positive must be {error}, got {positive!r}.") from None
    settings = {} if like is None else like.source.get("settings") or {}
    if settings.get("positive") is not None:
        return {"positive": settings["positive"], "earlier": True}
    classes = settings.get("classes")
    if not isinstance(classes, list | tuple):
        return {}
    low, high = classes
    if high == 1 and low in (-1, 0):
        low = None  # which of them is the negative label depends on the rows
    return {"classes": (low, high), "earlier": True}


def _labels_known(inputs: Inputs) -> bool:
    return inputs.positive is not None or inputs.classes is not None


def _decide_labels(df: DataFrame, inputs: Inputs, first: Table | None) -> Inputs:
    """Return the inputs with the two labels, which the first rows decide, and with the size of vectors."""
    label = inputs.label
    if first is None or label is None:
        return inputs
    if "size" in first.column_names:
        sizes = first["size"].drop_null()
        inputs = replace(inputs, size=sizes[0].as_py() if len(sizes) else None)
    if _labels_known(inputs):
        return inputs
    labels = first["label"].combine_chunks().drop_null()
    if len(labels) == 0:
        if inputs.nulls == "error":
            raise DataError(
                f"{WHERE}: column {inputs.label!r} is null in all of the first {len(first):,} rows. Rows that are "
                f"learned need labels: name another column, or {SKIP}."
            )
        labels = _more_labels(df, label, labels)
    parsed = _parsed_labels(labels)
    different = len(set(parsed.label_texts or ()))
    if different == 1 and _open_ended(parsed):
        import pyarrow

        labels = pyarrow.concat_arrays([labels, _more_labels(df, label, labels)])
        parsed = _parsed_labels(labels)
    rule = LabelRule(None, False)
    try:
        rule.signs(parsed.labels, parsed.label_texts)
    except OneLabelError as error:
        message = error.message("rows").replace("that both come early", "that both occur")
        raise DataError(f"{WHERE}: column {inputs.label!r}: {message}") from None
    if not parsed.label_texts:
        raise DataError(f"{WHERE}: column {inputs.label!r} is null in every row. Name the column of the labels.")
    obvious = rule.classes is None or str(rule.classes[1]).lower() in YES
    notes = inputs.notes if rule.note is None or obvious else (*inputs.notes, rule.note)
    return replace(inputs, classes=rule.classes, notes=notes)


def _parsed_labels(labels: Array) -> ParsedRows:
    import pyarrow

    parser, numbers = table_parser(TablePlan(label="label"), 22, False)
    batch = pyarrow.RecordBatch.from_arrays([labels], ["label"])
    try:
        found = parser.parse_arrow(exported(batch), columns=[numbers["label"]], start=0, stop=len(batch), stop_after=1)
    except ValueError as error:
        raise DataError(f"{WHERE}: the labels cannot be read: {plain(str(error))}. Name another column.") from None
    parsed = parsed_rows(found)
    if parsed.bad:
        raise DataError(f"{WHERE}: {BatchRules(None).message(parsed.bad[0])}")
    return parsed


def _open_ended(parsed: ParsedRows) -> bool:
    """Return whether what the other label is matters: not for 0 and -1, whose other class is 1."""
    (text,) = set(parsed.label_texts or ())
    try:
        return float(text) not in (0.0, -1.0)
    except ValueError:
        return True


def _more_labels(df: DataFrame, label: str, known: Array) -> Array:
    """Return the first labels of a frame that are not null, and not the one that is known, if any is."""
    name = column(label)
    rows = df.where(name.isNotNull() if len(known) == 0 else name.isNotNull() & (name != known[0].as_py()))
    first = first_rows(rows.select(name.alias("label")), FIRST)
    return known.slice(0, 0) if first is None else first["label"].combine_chunks()


# -- feature spaces


def space_to_json(space: Hashed | None) -> str | None:
    """Return a feature space, without its names, as text; None: column numbers."""
    return None if space is None else json.dumps(space.settings(), ensure_ascii=False)


def space_from_json(text: str | None) -> Hashed | None:
    """Return the feature space of `space_to_json`, which knows no names yet; DataError if it is invalid."""
    if text is None:
        return None
    try:
        return Hashed.from_settings(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{WHERE}: the feature space of packed rows is invalid ({error}). Pack them again.") from None
