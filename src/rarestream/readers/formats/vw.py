"""Vowpal Wabbit text: `[label [importance [base]]] ['tag]|namespace[:scale] name[:value] ... |namespace ...`.

One row per line. Names are hashed as `vw --hash all` does it; a feature is a name in its namespace, its value 1 if none
is written, times the scale of the namespace. Features of value 0 are left out. A row without a label has none; the last
word before the first bar is its tag if it starts with an apostrophe or touches the bar. Where Vowpal Wabbit warns of a
fault and goes on, a row is refused. Blank lines are skipped. The parser is native/vw.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarestream.readers.formats import text_format
from rarestream.readers.parser import LineParser
from rarestream.readers.tables import HashedOptions, hashed_space

if TYPE_CHECKING:
    from rarestream.readers.chunks import Chunk
    from rarestream.readers.parser import BadRow, ParsedRows
    from rarestream.readers.reading import Reading

# Messages for the numbers of vw::Rule. {0} is the text that breaks the rule.
RULES = {
    1: "a row has a bar before its features, as in 1 |site a.com, but this one, which starts with {0}, has none.",
    2: "the label must be a number, got {0}. A row without a label starts with the bar, or with its 'tag.",
    3: "the label must be a finite number, got {0}.",
    4: "{0} is not a label of two classes. Labels of several classes, with costs or of contextual bandits are not "
    "supported: write one number.",
    5: "a label, an importance and a base come before the bar, but {0} is a fourth word. "
    "Put the bar before the features; a tag touches it, or starts with an apostrophe.",
    6: "the importance, which is the second word, must be 0 or a number between 1e-100 and 1e12, got {0}. "
    "A tag touches the bar, or starts with an apostrophe.",
    7: "the third word before the bar is a prediction to start from, got {0}. Only 0 is supported: drop it.",
    8: "a tab before the bar. Vowpal Wabbit would skip all that is before it: use blanks.",
    9: "a namespace that has a scale needs a name, as in |price:0.5, got {0}.",
    10: "the scale of a namespace must be a number, got {0}.",
    11: "a feature value must be a number, got {0}. For a category, write it into the name, as in site=a.com.",
    12: "a feature value must be finite, got {0}. "
    "NaN and infinity have no place in a dot product: drop or impute them.",
    13: "a feature value, times the scale of its namespace, must fit in float32 (up to 3.4e38), got {0}. "
    "Scale the values down.",
    14: "control character {0} in the text; this looks like binary data, not VW text.",
    15: "not UTF-8, {0}. Convert the file, for example with iconv -f latin1 -t utf8.",
    16: "duplicate features of this row sum to a value beyond float32. Scale the values down.",
}


@dataclass(frozen=True, kw_only=True)
class VwOptions(HashedOptions):
    """The options of Vowpal Wabbit text."""

    text_labels = False


class VwParser(LineParser):
    """Parses Vowpal Wabbit text; a `rarestream.readers.parser.Parser`."""

    name = "vw"

    def __init__(self, reading: Reading) -> None:
        self.space = hashed_space(reading)
        self._stop_after = reading.refusals.stop_after
        self._parser = self._new_parser()

    def _new_parser(self) -> Any:
        from rarestream import _native

        return _native.VwParser(bits=self.space.bits, names=self.space.names is not None)

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        self._parser = self._new_parser()  # one that has seen no names: the chunk may be parsed a second time
        return self.parse(chunk, context)

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        from rarestream.readers.parser import parsed_rows

        return parsed_rows(self._parser.parse(chunk.text, stop_after=self._stop_after))

    def message(self, bad: BadRow) -> str:
        return vw_message(bad)


def vw_message(bad: BadRow) -> str:
    """Return what is wrong with a row of VW text."""
    from rarestream.readers.parser import quoted

    return RULES[bad.rule].format(quoted(bad.token))


FORMAT = text_format("vw", (".vw",), VwOptions, VwParser, "Vowpal Wabbit text: label |namespace name:value ...")
