"""The svmlight format: `label [qid:N] [cost:W] index:value ...  # comment`, one row per line.

Blank lines, comment lines and a byte order mark are ignored. Fields are separated by spaces or tabs; lines may end in
CR LF. `qid` becomes the tag of a row, `cost` its importance. Indices may be in any order; duplicates are summed. Labels
are explained in labels.py.

Indices count from 1, as in svmlight. With `zero_based=None`, an index 0 in the first chunk (about 1 MB of the first
file; of a pipe, the rows that arrive first) makes the whole stream zero-based; an index 0 that comes later is an error.
The parser is native/svmlight.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarestream.errors import advice
from rarestream.readers.formats import text_format
from rarestream.readers.options import FormatOptions, option
from rarestream.readers.parser import BadRow, LineParser, ParsedRows, parsed_rows, quoted

if TYPE_CHECKING:
    from rarestream.readers.chunks import Chunk
    from rarestream.readers.reading import Reading

NO_LABEL, ZERO_INDEX = 1, 7


def zero_based_option() -> Any:
    """Declare the option `zero_based`."""
    return option(
        None,
        help="Whether columns count from 0 or from 1.",
        off="--one-based",
        cli_default="as in the model, else detected",
    )


@dataclass(frozen=True, kw_only=True)
class SvmlightOptions(FormatOptions):
    """The options of svmlight."""

    text_labels = False

    zero_based: bool | None = zero_based_option()


class SvmlightParser(LineParser):
    """Parses svmlight text; a `rarestream.readers.parser.Parser`."""

    name = "svmlight"

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._first_index = 0 if reading.options.zero_based else 1

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        rows = self.parse(chunk, context)
        if self._reading.options.zero_based is None and any(row.rule == ZERO_INDEX for row in rows.bad):
            self._first_index = 0
            rows = self.parse(chunk, context)
        self._reading.found["zero_based"] = self._first_index == 0
        return rows

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        from rarestream import _native

        rows = _native.parse_svmlight(
            chunk.text,
            first_index=self._first_index,
            label_required=self._reading.options.labels == "required",
            stop_after=self._reading.refusals.stop_after,
        )
        return parsed_rows(rows)

    def message(self, bad: BadRow) -> str:
        message = svmlight_message(bad)
        if bad.rule == NO_LABEL:
            return f"{message} " + advice(
                "To score rows without labels, pass labels='optional'.",
                "Rows without labels cannot be learned; to score them, use rarestream predict.",
            )
        if bad.rule == ZERO_INDEX:
            return f"{message} If this file counts from 0, pass {advice('zero_based=True', '--zero-based')}."
        return message


def svmlight_message(bad: BadRow) -> str:
    """Return what is wrong with a row of svmlight text."""
    return _rules()[bad.rule].format(quoted(bad.token))


def _rules() -> dict[int, str]:
    """Return the messages for the numbers of svmlight::Rule. {0} is the text that breaks the rule."""
    from rarestream.blocks import LARGEST_IMPORTANCE, LARGEST_INDEX, SMALLEST_IMPORTANCE

    return {
        NO_LABEL: "a row starts with its label, but this one starts with {0}.",
        2: "the label must be a number, got {0}.",
        3: "the label must be a finite number, got {0}.",
        4: "a feature is index:value, but {0} has no colon.",
        5: "a feature index must be a whole number, got {0}. Names must be hashed or numbered first.",
        6: "a feature index must not be negative, got {0}.",
        ZERO_INDEX: "feature index 0, but svmlight counts from 1.",
        8: f"feature index {{0}} is too large; the largest is {LARGEST_INDEX + 1:,} "
        "(one less when counting from 0). Hash or renumber larger ones.",
        9: "a feature value must be a number, got {0}.",
        10: "a feature value must be finite, got {0}. "
        "NaN and infinity have no place in a dot product: drop or impute them.",
        11: "a feature value must fit in float32 (up to 3.4e38), got {0}. Scale the values down.",
        12: f"cost must be a number between {SMALLEST_IMPORTANCE:g} and {LARGEST_IMPORTANCE:g}, or 0, which skips a "
        "row, got {0}.",
        13: "qid must be a whole number from 0 to 2^63 - 1, got {0}.",
        14: "control character {0} in the text; this looks like binary data, not svmlight.",
        15: "duplicate features of this row sum to a value beyond float32. Scale the values down.",
    }


FORMAT = text_format(
    "svmlight",
    (".svm", ".svmlight", ".libsvm"),
    SvmlightOptions,
    SvmlightParser,
    "label index:value ... , one row per line",
)
