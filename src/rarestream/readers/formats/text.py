"""Labelled text: one row per line, `label<TAB>free text`.

The text becomes features of the namespace `text`: its words in lower case, or n-grams of words or characters. An empty
label is a missing one. Blank lines are skipped. The parser is native/text.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarestream.errors import DataError
from rarestream.readers.formats import text_format
from rarestream.readers.parser import LineParser
from rarestream.readers.tables import (
    ColumnCounts,
    HashedOptions,
    PlannedTable,
    TableOptions,
    counts_option,
    hashed_space,
    ngrams_option,
    plan_of,
    table_message,
)

if TYPE_CHECKING:
    from rarestream.readers.chunks import Chunk
    from rarestream.readers.parser import BadRow, ParsedRows
    from rarestream.readers.reading import Reading

LABEL, TEXT = "label", "text"  # the columns

# Messages for the numbers of text::Rule. {0} is the text that breaks the rule.
RULES = {
    20: "a row is a label, a tab and text, but this one, which starts with {0}, has no tab. "
    "A row without a label starts with the tab.",
    22: "a NUL byte; this looks like binary data, or UTF-16, not text in UTF-8.",
    23: "not UTF-8, {0}. Convert the file, for example with iconv -f latin1 -t utf8.",
}


@dataclass(frozen=True, kw_only=True)
class LabelledTextOptions(HashedOptions):
    """The options of labelled text."""

    ngrams: str = ngrams_option()
    counts: bool = counts_option()


class LabelledTextParser(LineParser):
    """Parses labelled text; a `rarestream.readers.parser.Parser`."""

    name = "text"

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.space = hashed_space(reading)
        self._table: PlannedTable | None = None

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        self._table = self._planned(chunk.name)
        return self.parse(chunk, context)

    def _planned(self, place: str) -> PlannedTable:
        from rarestream.features.plan import Kind

        plan = self.space.plan
        if plan is not None and not any(column.name == TEXT and column.kinds == Kind.TEXT for column in plan.columns):
            raise DataError(
                f"{place}: the model was trained on a table without a column {TEXT!r} of free text. "
                "Use data with the same columns, or train a new model."
            )
        options: Any = self._reading.options
        asked = TableOptions(label=LABEL, text=(TEXT,), ngrams=options.ngrams, counts=options.counts)
        columns = [ColumnCounts(name, 0, 0, 0, 1, 0, 0) for name in (LABEL, TEXT)]
        table = PlannedTable(self.space, plan_of(self.space, columns, asked))
        table.columns_of(place, (LABEL, TEXT), self._reading)
        return table

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        from rarestream.readers.parser import parsed_rows

        assert self._table is not None
        parser, numbers = self._table.parser, self._table.numbers
        return parsed_rows(
            parser.parse_text(
                chunk.text,
                label=numbers[LABEL],
                words=numbers[TEXT],
                stop_after=self._reading.refusals.stop_after,
            )
        )

    def message(self, bad: BadRow) -> str:
        from rarestream.readers.parser import quoted

        return table_message(bad) or RULES[bad.rule].format(quoted(bad.token))


# Not .txt: a file of any format may be called that.
FORMAT = text_format(
    "text", (".text",), LabelledTextOptions, LabelledTextParser, "Lines of a label, a tab and free text."
)
