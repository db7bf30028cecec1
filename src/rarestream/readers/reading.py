"""Reading: one pass over the sources, what to read and how, and what was found so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rarestream.readers.chunks import CHUNK, LONGEST_LINE
from rarestream.readers.locations import PieceLines
from rarestream.readers.options import Classes
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RawText(NamedTuple):
    """The text of a piece, for whoever wants its rows as they are written."""

    text: NDArray[np.uint8]
    lines: NDArray[np.int64]  # where a row starts, from 1, also one that is invalid
    begins: bool  # whether it is the start of its source
    multiline: bool  # whether a row may have several lines
    context: Any  # what the parser knows of the source, such as its heading


@dataclass
class Reading:
    """One pass over the sources: what to read, how, and what was found so far."""

    sources: Sequence[Source]
    options: Any  # of the format's class of options
    refusals: Refusals
    features: Any = None  # the feature space that rows are wanted in; None: the format's own
    threads: int = 1  # 0: parse in the thread that consumes the rows
    chunk: int = CHUNK
    longest_line: int = LONGEST_LINE
    rows: int = 8192  # maximum number of rows in a Block
    position: int = 0  # stored bytes of the pieces yielded so far
    found: dict[str, Any] = field(default_factory=dict)  # options that the data decided, such as zero_based
    classes: Classes | None = None  # likewise
    facts: dict[str, str] = field(default_factory=dict)  # what else the data are, such as the delimiter, for reports
    notes: list[str] = field(default_factory=list)  # what a user should know of these decisions, a sentence each
    cache_notes: list[str] = field(default_factory=list)  # what became of the cache, in all passes
    on_names: Callable[[Any], None] | None = None  # given the names that come with rows, beside their space
    names_known: bool = False  # whether the space has all names of these sources, from an earlier pass
    unlabelled: int = 0  # rows that were left out because they have no label
    unfinished: str | None = None  # file and line of a last line that was left out, having no line end
    piece: PieceLines | None = None  # the lines of the piece yielded last
    keep_text: bool = False  # whether its text is wanted, too
    raw: RawText | None = None  # that text
    stopped: bool = False
    _end: Callable[[], None] | None = None

    def stop(self) -> None:
        """Stop reading. Safe to call from a signal handler."""
        self.stopped = True
        if self._end is not None:
            self._end()

    def when_stopped(self, end: Callable[[], None]) -> None:
        """Register what the format does on `stop`; it is done at once if `stop` was called before."""
        self._end = end
        if self.stopped:
            end()
