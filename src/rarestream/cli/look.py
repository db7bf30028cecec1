"""Text for a terminal: readable numbers, colour where the terminal supports it, bars, tables and curves."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rarestream.errors import plain, plain_text
from rarestream.evaluate.text import duration as duration
from rarestream.evaluate.text import share as share
from rarestream.evaluate.text import short as short

if TYPE_CHECKING:
    from rarestream.learners import Learner
    from rarestream.model import Model

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
NARROWEST = 12  # columns for the last column of a table; with fewer it gets lines of its own
WIDEST_TEXT = 100  # columns of sentences; longer lines are hard to read
EIGHTHS = " ▏▎▍▌▋▊▉█"
OURS = re.compile(f"(\x1b\\[(?:(?:{'|'.join(['0', *STYLES.values()])});?)+m)")  # colours as Ink makes them


class Ink:
    """Writes lines to one output, in colour if that is a terminal that supports it."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.terminal = file.isatty()
        self._colour = self.terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str, *styles: str) -> str:
        if not self._colour or not styles:
            return text
        return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        print(self.safe(text), file=self.file, flush=True)

    def message(self, text: str) -> None:
        """Print sentences, wrapped at words in a terminal. Indented lines, such as commands to paste, stay whole."""
        self.line("\n".join(map(_wrapped, text.split("\n"))) if self.terminal else text)

    def safe(self, text: str) -> str:
        """The text without any control character but line ends, tabs and, where there is colour, colours."""
        if not self._colour:
            return plain_text(text)
        return "".join(part if OURS.fullmatch(part) else plain_text(part) for part in OURS.split(text))


class LiveLine:
    """A line on standard error that is redrawn in place, if it is `shown` at all."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._drawn = False

    def draw(self, text: str) -> None:
        if self.shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._drawn = False


def wrap(text: str, columns: int) -> list[str]:
    """The lines of a text broken between words; colours take no space."""
    lines: list[str] = []
    used = columns
    for word in re.split(r"(?<=\S) ", text):
        size = len(OURS.sub("", word))
        if used + 1 + size > columns:
            lines.append(word.lstrip())
            used = size
        else:
            lines[-1] += " " + word
            used += 1 + size
    return lines


def _wrapped(line: str) -> str:
    """A line of a message in lines that fit in the terminal, those after the first indented."""
    import shutil

    columns = max(40, min(shutil.get_terminal_size((80, 24)).columns, WIDEST_TEXT))
    if line.startswith(" ") or len(OURS.sub("", line)) <= columns:
        return line
    return "\n  ".join(wrap(line, columns - 2))


def width() -> int:
    """Columns to draw in: those of the terminal, but at least 60 and at most 120."""
    import shutil  # not above: it brings in every compression module

    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 120))


def count(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.0f}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 weight, 2,000 weights."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number of bytes with a unit: 812 bytes, 8.12 kB."""
    return f"{short(number)}B" if number >= 1000 else f"{number} bytes"


def scoring_size(model: Model, nonzeros: int, way: str = "rarestream prune") -> str:
    """How large a file for scoring would be, and the command that writes it.

    The size is estimated, as measuring it takes as long as saving: an index and a number per weight, and a header.
    """
    number = 8 if model.dtype == "float64" else 4
    table = getattr(model.features, "names", None)
    name = table.bytes / len(table) if table else 0  # of a feature: as in memory
    return f"  for scoring only about {size(1200 + round(nonzeros * (4 + number + name)))}: {way}"


def all_features(model: Model) -> str:
    """What the weights of a model are of: 300 columns, hashed features (22 bits)."""
    bits = getattr(model.features, "bits", None)
    return counted(model.n_features, "column") if bits is None else f"hashed features ({bits} bits)"


def settings(learner: Learner) -> str:
    """The settings of a learner that are not its defaults."""
    from rarestream.learners import make_learner

    usual = make_learner(learner.name).settings
    changed = {word: value for word, value in learner.settings.items() if value != usual[word]}
    return assignments(changed) or "default settings"


def described(learner: Learner) -> str:
    """A learner and its settings: dual-auc with l1=0.1."""
    return f"{learner.name} with {settings(learner)}"


def assignments(settings: Mapping[str, Any], between: str = " ") -> str:
    """Settings as a user writes them: l1=0.1 rows=20000."""
    return between.join(
        f"{word}={value:g}" if isinstance(value, float) else f"{word}={value}" for word, value in settings.items()
    )


def quoted(words: Iterable[object]) -> str:
    """A command to paste into a shell. Control characters in a name are escaped, as bash and zsh read them."""
    return " ".join(_quoted(str(word)) for word in words)


def _quoted(word: str) -> str:
    if plain(word) == word:
        import shlex

        return shlex.quote(word)
    spelled = (f"\\{char}" if char in "\\'" else char if plain(char) == char else _escaped_bytes(char) for char in word)
    return f"$'{''.join(spelled)}'"


def _escaped_bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def bar(value: float, largest: float, cells: int) -> str:
    """A bar of up to so many cells, fine to an eighth of one."""
    eighths = round(8 * cells * min(1.0, abs(value) / largest)) if largest > 0 else 0
    full, rest = divmod(max(eighths, 1 if value else 0), 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def bar_left(value: float, largest: float, cells: int) -> str:
    """A bar that grows to the left, in a field of so many cells, fine to half of one."""
    halves = round(2 * cells * min(1.0, abs(value) / largest)) if largest > 0 else 0
    full, rest = divmod(max(halves, 1 if value else 0), 2)
    return ("▐" * rest + "█" * full).rjust(cells)


def signed_bar(ink: Ink, value: float, largest: float, half: int) -> str:
    """A bar to the left or to the right of a line, with so many cells on each side."""
    if value < 0:
        return ink(bar_left(value, largest, half), "red") + "│"
    return " " * half + "│" + (ink(bar(value, largest, half), "green") if value else "")


def cut(text: str, columns: int) -> str:
    """The text, its end left out if it is longer than so many characters."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def table(
    rows: Sequence[Sequence[str]], heading: Sequence[str], left: Sequence[int] = (), columns: int | None = None
) -> list[str]:
    """The rows of a table, heading first; columns are right-aligned but those in `left`.

    If the table is wider than `columns`, the text of its last column continues on further lines.
    """
    from rarestream.study.text import align

    every = [heading, *rows]
    lines = align(every, left)
    if columns is None or max(map(len, lines)) <= columns:
        return lines
    lines = align([row[:-1] for row in every], left)
    start = max(map(len, lines)) + 2
    indent = start if columns - start >= NARROWEST else 4
    for number, row in enumerate(every):
        parts = wrap(row[-1], columns - indent) if row[-1] else []
        if parts and indent == start:
            lines[number] = lines[number].ljust(start) + parts.pop(0)
        lines[number] = "\n".join([lines[number], *(" " * indent + part for part in parts)])
    return lines


def curve(
    points: Sequence[tuple[float, float]],
    ceiling: float,
    ceiling_label: str,
    columns: int,
    ends: tuple[str, str],
    lines: int = 10,
) -> list[str]:
    """A curve of (x, AUC), x from 0, in dots of a braille grid, under a dashed line at the ceiling. `ends` name the
    ends of the x axis."""
    if not points:
        return []
    margin, plot = 7, columns - 7
    last = max(x for x, _ in points)
    heights = [_between(points, (column + 1) / (2 * plot) * last) for column in range(2 * plot)]
    known = [y for y in heights if y is not None]
    low, high = min(known), max(ceiling, *known)
    dots = [[0] * plot for _ in range(lines)]

    def height(y: float) -> int:  # in dots from the top
        return round((high - y) / (high - low or 1) * (4 * lines - 1))

    before: int | None = None
    for column, y in enumerate(heights):
        if y is not None:
            now = height(y)
            start = now if before is None else before
            for dot in range(min(now, start), max(now, start) + 1):  # no gaps where it is steep
                _dot(dots, column, dot)
            before = now
    top = height(ceiling)
    out = []
    for line in range(lines):
        cells = [chr(0x2800 + bits) if bits else " " for bits in dots[line]]
        if line == top // 4:
            cells = [cell if cell != " " else "╌" for cell in cells]
            cells[plot - len(ceiling_label) :] = ceiling_label
        value = high - line / max(1, lines - 1) * (high - low)
        axis = f"{value:.3f} ┤" if line % 3 == 0 or line == lines - 1 else " " * 6 + "│"
        out.append(axis + "".join(cells))
    foot = ends[0] + ends[1].rjust(plot - len(ends[0]))
    out += [" " * (margin - 1) + "└" + "─" * plot, " " * margin + foot]
    return out


def _between(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """The height at x of the line through the points, which ascend; None left of the first."""
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0 or 1)
    return points[-1][1] if x >= points[-1][0] else None


def _dot(dots: list[list[int]], column: int, line: int) -> None:
    bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    dots[line // 4][column // 2] |= bits[line % 4][column % 2]


def print_json(record: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Print a JSON object on a line, by default of standard output."""
    import json

    print(json.dumps(record, allow_nan=False), file=file or sys.stdout)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    ink = stderr()
    ink.message(f"{ink('warning:', 'yellow', 'bold')} {message}")


def refused(number: int, first: Sequence[str]) -> str:
    """What a warning says of rows that were skipped, and why the first of them were."""
    were = "was" if number == 1 else "were"
    return f"{counted(number, 'invalid row')} {were} skipped. The first:" + "".join(
        f"\n  {message}" for message in first
    )


def stderr() -> Ink:
    return Ink(sys.stderr)


def stdout() -> Ink:
    return Ink(sys.stdout)
