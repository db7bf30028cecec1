"""SQL: a script that makes a table of weights and views that score, the same for SQLite and DuckDB.

It uses only what both have: SQLite has no GREATEST, DuckDB divides whole numbers to decimals. Named features are looked
up by name, or are slots. Models of a table get two more views, which take its rows as they are and make the features of
the model's plan, as docs/features.md defines them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rarestream.errors import ExportError
from rarestream.export.linear import Linear
from rarestream.export.text import SCALE_RULES, digits
from rarestream.features import Kind, TablePlan

SUFFIXES = (".sql",)
OPTIONS = ("name", "inputs")
PROBABILITY = True
LINES = 1000  # weights of one INSERT
MOST_COLUMNS = 400  # of a table: SQLite joins at most 500 SELECTs by UNION ALL
SMALLEST_SHARE = "1e-9"  # smaller shares of a number's buckets are rounding


def exported(linear: Linear, name: str, inputs: str | None) -> tuple[bytes, list[str]]:
    """Return the script; ExportError if the names of features are not known."""
    notes: list[str] = []
    by_name = linear.by_name(inputs)
    features = list(map(_text, linear.names(notes)) if by_name else map(str, linear.index.tolist()))
    obstacle = _table_obstacle(linear.plan) if by_name else None
    with_table = by_name and obstacle is None
    kind = "TEXT" if by_name else "INTEGER"
    parts = [
        _header(linear, name, by_name, with_table, obstacle),
        "BEGIN TRANSACTION;",
        *_drops(name, with_table),
        *_weights(linear, name, features, kind),
        f"-- The features of rows: one line for each. Lines of the same row and feature are added.\n"
        f"CREATE TABLE IF NOT EXISTS {name}_rows (row_id BIGINT, feature {kind}, value DOUBLE);",
        _scores_view(linear, f"{name}_scores", f"{name}_rows", f"{name}_weights"),
    ]
    if with_table:
        parts += [
            _table(linear.plan, name),
            _table_rows_view(linear.plan, name),
            _scores_view(linear, f"{name}_table_scores", f"{name}_table_rows", f"{name}_weights", f"{name}_table"),
        ]
    parts.append("COMMIT;\n")
    return "\n\n".join(parts).encode(), notes


def usage(linear: Linear, file: str, name: str, inputs: str | None) -> str:
    """Return how the file is used."""
    table = linear.by_name(inputs) and _table_obstacle(linear.plan) is None
    into = f"{name}_table" if table else f"{name}_rows"
    return (
        f"Run it once in SQLite or DuckDB, fill the table {into}, then: SELECT * FROM {name}_{'table_' * table}scores;"
    )


def _header(linear: Linear, name: str, by_name: bool, with_table: bool, obstacle: str | None) -> str:
    example = "'site^a.com', 1" if by_name else "17, 0.5"
    insert = f"INSERT INTO {name}_rows VALUES (1, {example});"
    select = f"SELECT * FROM {name}_scores;"
    outputs = "row_id, score" if linear.slope is None else "row_id, score, probability"
    lines = [
        f"A model as tables and views: {linear.about}.",
        "",
        "Written by `rarestream export`, for SQLite (3.35 or later, with its mathematical functions) and DuckDB. Run",
        "it once; run again, it replaces weights and views, and keeps what is in the tables of rows.",
        "",
        f"  {insert}   -- row_id, feature, value: a line for each feature",
        f"  {select:<{len(insert)}}   -- {outputs}",
        "",
        "The score of a row is the sum of weight times value over its features. Before, the row is scaled:",
        f"{SCALE_RULES[linear.scale]}. Features without a weight count in the scaling only.",
    ]
    if not by_name:
        lines.append(f"A feature is its {'number' if linear.space is None else 'slot'}, from 0.")
    else:
        lines.append("A feature is its namespace, mostly a column, ^ and its name. Names that are new have no weight.")
    if with_table:
        lines += [
            "",
            f"Rows of a table can be scored as they are: put them into {name}_table, or make a view of that name",
            f"before you run this script, with row_id and the columns below, and SELECT * FROM {name}_table_scores.",
        ]
    elif obstacle is not None:
        lines += ["", f"There is no view that takes whole rows of a table: {obstacle}."]
    return "\n".join(f"-- {line}".rstrip() for line in lines)


def _drops(name: str, with_table: bool) -> list[str]:
    views = ["scores", *(["table_scores", "table_rows"] if with_table else [])]
    drops = [f"DROP VIEW IF EXISTS {name}_{view};" for view in views]
    return ["\n".join([*drops, f"DROP TABLE IF EXISTS {name}_weights;"])]


def _weights(linear: Linear, name: str, features: Sequence[str], kind: str) -> Iterator[str]:
    largest = "" if linear.largest is None else ", largest DOUBLE"
    yield f"CREATE TABLE {name}_weights (feature {kind} PRIMARY KEY, weight DOUBLE{largest});"
    columns = [features, digits(linear.weight)]
    if linear.largest is not None:
        columns.append(digits(linear.largest))
    rows = [f"({', '.join(row)})" for row in zip(*columns, strict=True)]
    for start in range(0, len(rows), LINES):
        yield f"INSERT INTO {name}_weights VALUES\n" + ",\n".join(rows[start : start + LINES]) + ";"


def _scores_view(linear: Linear, view: str, rows: str, weights: str, table: str | None = None) -> str:
    """Return a view of scores; with a `table`, of all its rows, also those without features."""
    value = "value"
    if linear.largest is not None:
        # New features, and values beyond the largest, are divided by themselves.
        value = "CASE WHEN ABS(value) < largest THEN value / largest ELSE SIGN(value) END"
    scaled = "total" if linear.scale == "none" else "CASE WHEN squares > 0 THEN total / SQRT(squares) ELSE 0 END"
    source = "totals" if table is None else f"{table} LEFT JOIN totals ON totals.row_id = {table}.row_id"
    row_id = "row_id" if table is None else f"{table}.row_id AS row_id"
    selected = "SELECT row_id, score FROM scored"
    if linear.slope is not None:
        odds = f"{linear.slope!r} * score + {linear.intercept!r}"
        selected = (
            f"SELECT row_id, score,\n"
            f"  CASE WHEN {odds} < -700 THEN 0 ELSE 1 / (1 + EXP(-({odds}))) END AS probability\n"
            f"FROM scored"
        )
    return f"""CREATE VIEW {view} AS
WITH summed AS (
  SELECT row_id, feature, SUM(value) AS value FROM {rows} GROUP BY row_id, feature
),
scaled AS (
  SELECT row_id, COALESCE(weight, 0) AS weight, {value} AS value
  FROM summed LEFT JOIN {weights} ON {weights}.feature = summed.feature
),
totals AS (
  SELECT row_id, SUM(weight * value) AS total, SUM(value * value) AS squares FROM scaled GROUP BY row_id
),
scored AS (
  SELECT {row_id}, COALESCE({scaled}, 0) AS score FROM {source}
)
{selected};"""


# -- rows of a table


def _features(plan: TablePlan) -> list[tuple[str, int]]:
    """Return the columns that are features, and their kinds."""
    roles = {plan.label, plan.importance, plan.tag}
    return [(column.name, column.kinds) for column in plan.columns if column.kinds and column.name not in roles]


def _table_obstacle(plan: TablePlan) -> str | None:
    """Return why there is no view for rows of a table; None if there is one."""
    columns = _features(plan)
    if plan.open or not columns:
        return "the model has no fixed columns"
    if len(columns) > MOST_COLUMNS:
        return f"it has more than {MOST_COLUMNS} columns"
    for name, kinds in columns:
        if kinds & Kind.TEXT:
            return f"SQL does not split the text of column {name!r} into words"
        if kinds & Kind.AUTO:
            return f"what column {name!r} becomes depends on each value"
    if any(name.lower() == "row_id" for name, _ in columns):
        return "a column is called row_id"
    if len({name.lower() for name, _ in columns}) < len(columns):
        return "names of columns differ only in the case of letters"
    return None


def _table(plan: TablePlan, name: str) -> str:
    columns = ["row_id BIGINT"]
    for column, kinds in _features(plan):
        columns.append(f"{_identifier(column)} {'DOUBLE' if kinds & Kind.NUMBER else 'TEXT'}")
    return (
        "-- Rows as they are; NULL and empty text are missing. Dates are text such as 2026-01-31T12:00, in UTC.\n"
        f"CREATE TABLE IF NOT EXISTS {name}_table (\n  " + ",\n  ".join(columns) + "\n);"
    )


def _table_rows_view(plan: TablePlan, name: str) -> str:
    """Return a view of the features of a table's rows.

    It goes by way of `texts`, which have what is a name already, `dates`, `numbers`, and `cells`, which have all names.
    """
    texts, dates, numbers, table = [], [], [], f"{name}_table"
    for column, kinds in _features(plan):
        cell, label = f"{table}.{_identifier(column)}", _text(column)
        text = f"CAST({cell} AS TEXT)"
        present = f"{cell} IS NOT NULL AND {text} <> ''"
        if plan.missing:
            present += f" AND {text} NOT IN ({', '.join(map(_text, plan.missing))})"
        if kinds & Kind.DATE:
            dates.append(f"SELECT row_id, {label} AS col, {text} AS day FROM {table} WHERE {present}")
        elif kinds & Kind.NUMBER:
            both = int(bool(kinds & Kind.CATEGORY))
            numbers.append(
                f"SELECT row_id, {label} AS col, {both} AS category, {cell} AS x FROM {table} WHERE {present}"
            )
        else:
            texts.append(f"SELECT row_id, {label} AS col, {text} AS name FROM {table} WHERE {present}")
    ctes = []
    cells = []
    if texts:
        ctes.append(f"texts AS (\n  {_union(texts)}\n)")
        cells.append("SELECT row_id, col, name, 1.0 AS value, 1 AS part FROM texts")
    if dates:
        ctes += [f"dates AS (\n  {_union(dates)}\n)", _CALENDAR]
        cells += _DATE_CELLS
    if numbers:
        ctes += [f"numbers AS (\n  {_union(numbers)}\n)", *_number_ctes(plan)]
        cells += _number_cells(plan)
    ctes.append(f"cells AS ( -- part: whether it takes part in crosses\n  {_union(cells)}\n)")
    features = ["SELECT row_id, col || '^' || name AS feature, value FROM cells", *map(_cross, plan.crosses)]
    body = ",\n".join(ctes)
    return f"CREATE VIEW {name}_table_rows AS\nWITH {body}\n" + "\nUNION ALL ".join(features) + ";"


# January and February count as the last months of the year before. A weekday counts from Monday, 0.
_CALENDAR = """parts AS (
  SELECT row_id, col, day, CAST(SUBSTR(day, 1, 4) AS INTEGER) AS y, CAST(SUBSTR(day, 6, 2) AS INTEGER) AS m,
    CAST(SUBSTR(day, 9, 2) AS INTEGER) AS d
  FROM dates
),
shifted AS (
  SELECT row_id, col, d, CASE WHEN m < 3 THEN y - 1 ELSE y END AS y, CASE WHEN m < 3 THEN m + 10 ELSE m - 2 END AS m
  FROM parts
),
weekdays AS (
  SELECT row_id, col,
    CAST(d + y + FLOOR(y / 4.0) - FLOOR(y / 100.0) + FLOOR(y / 400.0) + FLOOR(31 * m / 12.0) + 6 AS INTEGER) % 7 AS w
  FROM shifted
)"""
_DATE_CELLS = [
    "SELECT row_id, col, 'hour=' || CAST(SUBSTR(day, 12, 2) AS INTEGER) AS name, 1.0 AS value, 1 AS part FROM dates\n"
    "    WHERE LENGTH(day) > 10",
    "SELECT row_id, col, 'weekday=' || w, 1.0, 1 FROM weekdays",
    "SELECT row_id, col, 'month=' || m, 1.0, 1 FROM parts",
]


def _number_ctes(plan: TablePlan) -> list[str]:
    # Of a column that is a category and a number, whole numbers are both.
    wholes = """wholes AS (
  SELECT row_id, col, x, CASE WHEN category = 1 AND ABS(x) < 9007199254740992
    THEN CASE WHEN CAST(x AS BIGINT) = x THEN 1 ELSE 0 END ELSE 0 END AS category
  FROM numbers
)"""
    if plan.numbers == "raw":
        return [wholes]
    soft = """logs AS ( -- u = 2 log2 |x|
  SELECT row_id, col, category, x, 2 * LOG2(ABS(CAST(x AS DOUBLE))) AS u FROM wholes WHERE x <> 0
),
buckets AS ( -- u lies between the buckets k and k + 1, and has shares of both
  SELECT row_id, col, category, x, CAST(FLOOR(u) AS INTEGER) AS k, 1 - (u - FLOOR(u)) AS value FROM logs
  UNION ALL SELECT row_id, col, category, x, CAST(FLOOR(u) AS INTEGER) + 1 AS k, u - FLOOR(u) AS value FROM logs
)"""
    return [wholes, soft]


def _number_cells(plan: TablePlan) -> list[str]:
    name = "CAST(CAST(x AS BIGINT) AS TEXT)"
    whole = f"SELECT row_id, col, {name} AS name, 1.0 AS value, 1 AS part FROM wholes WHERE category = 1"
    if plan.numbers == "raw":
        return [whole, "SELECT row_id, col, '', x, 1 - category FROM wholes WHERE x <> 0"]
    zero = "SELECT row_id, col, '~0', 1.0, 1 - category FROM wholes WHERE x = 0"
    half = "CAST(CAST((ABS(k) - ABS(k) % 2) / 2 AS INTEGER) AS TEXT) || CASE WHEN k % 2 <> 0 THEN '.5' ELSE '' END"
    name = f"CASE WHEN x < 0 THEN '~-2^' ELSE '~2^' END || CASE WHEN k < 0 THEN '-' ELSE '' END\n    || {half}"
    soft = f"SELECT row_id, col,\n    {name},\n    value, 1 - category FROM buckets WHERE value > {SMALLEST_SHARE}"
    return [whole, zero, soft]


def _cross(cross: str) -> str:
    """Return the features of a cross: all pairs of cells of two columns, and likewise of more."""
    columns = cross.split("*")
    alias = [f"c{number}" for number in range(len(columns))]
    name = " || '\x1f' || ".join(f"{one}.name" for one in alias)
    value = " * ".join(f"{one}.value" for one in alias)
    joined = "cells AS c0" + "".join(f" JOIN cells AS {one} ON {one}.row_id = c0.row_id" for one in alias[1:])
    rules = [f"{one}.col = {_text(column)} AND {one}.part = 1" for one, column in zip(alias, columns, strict=True)]
    start = _text(f"{cross}^")
    return f"SELECT c0.row_id, {start} || {name}, {value}\n  FROM {joined}\n  WHERE {' AND '.join(rules)}"


def _union(selects: Sequence[str]) -> str:
    return "\n  UNION ALL ".join(selects)


def _text(text: str) -> str:
    """Return text as SQL writes it."""
    if "\0" in text:
        raise ExportError(
            f"export: the name {text!r} has a zero character, which SQL text cannot hold. Use another format."
        )
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
