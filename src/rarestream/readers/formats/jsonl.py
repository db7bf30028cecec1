"""JSON lines: one object per line, as RFC 8259 has it. Its keys are the columns of a table.

Text, numbers, true, false and null are cells; a list is a cell with several categories; an object inside a row has its
path as namespace: {"user": {"geo": {"country": "DE"}}} is country=DE in user.geo. Blank lines are skipped. A key may
come only once in an object. What cells become is explained in tables.py. The parser is native/json.hpp.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rarestream.readers.formats import text_format
from rarestream.readers.parser import LineParser
from rarestream.readers.tables import ColumnCounts, TableOptions, table_message

if TYPE_CHECKING:
    from rarestream.readers.chunks import Chunk
    from rarestream.readers.parser import BadRow, ParsedRows
    from rarestream.readers.picking import Wanted
    from rarestream.readers.reading import Reading
    from rarestream.readers.tables import PlannedTable

OBJECT, VALUE, NUMBER = 20, 23, 24

# Messages for the numbers of json::Rule. {0} is the text that breaks the rule.
RULES = {
    OBJECT: 'a line must be a JSON object, such as {{"site": "a.com"}}, but this one starts with {0}.',
    21: "a key in double quotes is expected, got {0}.",
    22: "a colon is expected after a key, got {0}.",
    VALUE: "a JSON value is expected, got {0}.",
    NUMBER: "{0} is not a JSON number: digits, without leading zeros, and digits after a point.",
    25: "a comma or }} is expected after a value, got {0}.",
    26: "a comma or ] is expected after an element, got {0}.",
    27: "the line ends before its object does. Each object must be on one line; jq -c . puts it there.",
    28: "the string that starts here, {0}, is not closed on this line. A line end inside a string must be written \\n.",
    29: "control character {0} in a string; it must be written as an escape, such as \\t or \\u0009.",
    30: "{0} is not an escape of JSON. A backslash must be written \\\\.",
    31: "{0} is half of a surrogate pair, which is no character. Write both halves, or the character itself.",
    32: "not UTF-8, {0}. Convert the file, for example with iconv -f latin1 -t utf8.",
    33: "the key {0} comes twice in this object. Rename or drop one.",
    34: "objects and lists are nested more than 64 deep.",
    35: "text after the object, {0}. Each object must be on a line of its own.",
}


class JsonlParser(LineParser):
    """Parses JSON lines; a `rarestream.readers.parser.Parser`."""

    name = "jsonl"

    def __init__(self, reading: Reading) -> None:
        from rarestream.readers.objects import ObjectPlanner

        self._planner = ObjectPlanner(reading)
        self._stop_after = reading.refusals.stop_after
        self._table: PlannedTable | None = None
        self.space = self._planner.space

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        from rarestream import _native

        self._table = self._planner.table(chunk.name, partial(_native.survey_jsonl, chunk.text))
        return self.parse(chunk, context)

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        from rarestream.readers.parser import parsed_rows

        assert self._table is not None
        return parsed_rows(self._table.parser.parse_jsonl(chunk.text, stop_after=self._stop_after))

    def columns(self, chunk: Chunk, context: Any) -> list[ColumnCounts]:
        """Return what the cells of each column of a chunk are."""
        from rarestream import _native

        return [ColumnCounts(*column) for column in _native.survey_jsonl(chunk.text, missing=[])[1]]

    def pick(self, chunk: Chunk, context: Any, wanted: Wanted) -> tuple[Any, ...]:
        """Return the rows of a chunk as they are written, without their last braces, and some of their cells."""
        from rarestream import _native

        return _native.pick_jsonl(
            chunk.text,
            names=[wanted.key, wanted.time, wanted.label, wanted.absent],
            rows=wanted.rows,
            label=bool(wanted.label),
            stop_after=self._stop_after,
        )

    def message(self, bad: BadRow) -> str:
        message = table_message(bad) or json_message(bad)
        if bad.rule == OBJECT and bad.token.startswith(b"["):
            message += " If the file is one array of objects, jq -c '.[]' puts each on a line."
        return message


def json_message(bad: BadRow) -> str:
    """Return what is wrong with a row that breaks a rule of JSON."""
    from rarestream.readers.parser import quoted

    message = RULES[bad.rule].format(quoted(bad.token))
    if bad.rule in (VALUE, NUMBER) and bad.token.lower().strip(b"-+") in (b"nan", b"inf", b"infinity"):
        message += " A missing value is null, or a key that is left out."
    elif bad.rule in (OBJECT, VALUE, 21) and bad.token.startswith(b"'"):
        message += " JSON has double quotes."
    return message


FORMAT = text_format("jsonl", (".jsonl", ".ndjson"), TableOptions, JsonlParser, "JSON lines: one object per line.")
