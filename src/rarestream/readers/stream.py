"""`read`: files to a Stream of Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Literal, cast

from rarestream.blocks import Block
from rarestream.errors import DataError, advice
from rarestream.readers.cut import cut
from rarestream.readers.formats import Format, Options, Reading, chosen
from rarestream.readers.heads import Described, described
from rarestream.readers.labels import positive_number, two_labels
from rarestream.readers.places import Places
from rarestream.readers.refusals import Refusals
from rarestream.readers.shuffle import LEAST, Keys, default_memory, keys, row_of, shuffled
from rarestream.readers.sources import Source, StoppedError, Where, expand


def read(
    source: Where | Iterable[Where],
    format: str | None = None,
    rows: int = 8192,
    *,
    zero_based: bool | None = None,
    positive: float | str | None = None,
    classes: Sequence[float | None] | None = None,
    max_bad_rows: int = 0,
    labels: Literal["required", "optional"] = "required",
    shuffle: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    finished: bool = True,
) -> Stream:
    """The Blocks of a file, of several, of a glob, of standard input ("-") or of an open binary file.

    Files ending in .gz, .bz2, .xz and .zst are read through. Memory stays constant on any size of file.

    format        None: by the suffix; "svmlight"
    rows          in a Block at most; a Block also ends where a chunk of the file does
    zero_based    whether feature indices count from 0; None: they do if the first chunk has an index 0
    positive      the label that counts as +1, every other being -1; None: see `rarestream.readers.labels`
    classes       the two labels, (negative, positive), as an earlier stream's `settings` tell them; negative may be
                  None for -1 or 0. None: they are found. Where `positive` is given it rules
    max_bad_rows  rows that break a rule to skip and count before giving up
    labels        "optional": rows may have no label, or any; blocks with such rows have labels None
    shuffle       a seed: rows come in an order that depends on it and on nothing else
    threads       that parse ahead; None: two, or none on a single core; 0: none
    memory        bytes that a shuffle may hold; beyond that it goes through temporary files.
                  None: a quarter of what the machine has free
    finished      False: data may still be being written, so a last line without line end is left out, and
                  `Stream.unfinished` tells. Pipes, compressed files and all files but the last are finished
    """
    if rows < 1:
        raise DataError(f"read: rows must be >= 1, got {rows}.")
    if max_bad_rows < 0:
        raise DataError(f"read: max_bad_rows must be >= 0, got {max_bad_rows}.")
    if labels not in ("required", "optional"):
        raise DataError(f"read: labels must be 'required' or 'optional', got {labels!r}.")
    if threads is not None and threads < 0:
        raise DataError(f"read: threads must be >= 0, got {threads}.")
    if memory is not None and memory < 1:
        raise DataError(f"read: memory must be >= 1 byte, got {memory}.")
    sources = expand(source)
    options = Options(
        zero_based=zero_based,
        positive=positive_number(positive),
        classes=two_labels(classes),
        finished=finished,
        labels_optional=labels == "optional",
        threads=_spare_threads() if threads is None else threads,
    )
    return Stream(
        sources,
        chosen(format, sources),
        options,
        rows=rows,
        max_bad_rows=max_bad_rows,
        shuffle=shuffle,
        memory=memory,
        named=format,
    )


def _spare_threads() -> int:
    """Threads that parse ahead, given the cores this process may use: on one, they would only get in the way."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 if cores > 1 else 0


class Stream:
    """An iterable of Blocks. Each `for` over files reads them anew; standard input is read once.

    `fraction`, `refused` and `refusals` tell of the pass that is running, or of the last.
    """

    def __init__(
        self,
        sources: list[Source],
        format: Format,
        options: Options,
        *,
        rows: int,
        max_bad_rows: int = 0,
        shuffle: int | None = None,
        memory: int | None = None,
        named: str | None = None,
    ) -> None:
        self._named = named
        self._sources = sources
        self._format = format
        self._options = options
        self._rows = rows
        self._max_bad_rows = max_bad_rows
        self._shuffle = shuffle
        self._memory = memory
        self._skip = 0
        self._passes = 0
        self._reading = Reading(sources, options, Refusals(max_bad_rows))
        self._delivered = 0
        self._block = 0  # the number of the first row of the block given out last
        self._places = Places(everything=shuffle is not None)
        self._keys, self._keyed = keys(0, 0, 0), 0  # of the shuffled piece at hand, and the number of its first row
        self._described: list[Described] | None = None
        self._known_rows: int | None = None  # once a shuffle has seen them all

    @property
    def sources(self) -> list[Described]:
        """Name, size and a checksum of the head of each input: enough to know the same data again."""
        if self._described is None:
            self._described = [described(source) for source in self._sources]
        return [cast(Described, dict(one)) for one in self._described]

    @property
    def settings(self) -> dict[str, Any]:
        """What `read` needs to read the same rows in the same order again.

        Base and labels are as found, once a block is out; `finished` is False if a last line was left out.
        """
        zero_based, classes = self._reading.zero_based, self._reading.classes
        classes = self._options.classes if classes is None else classes
        return {
            "format": self._named,
            "zero_based": self._options.zero_based if zero_based is None else zero_based,
            "positive": self._options.positive,
            "classes": None if classes is None or self._options.positive is not None else list(classes),
            "max_bad_rows": self._max_bad_rows,
            "shuffle": self._shuffle,
            "finished": self.unfinished is None,
        }

    @property
    def size(self) -> int | None:
        """Stored bytes of all sources, or None if some source does not say."""
        sizes = [source.size for source in self._sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def replayable(self) -> bool:
        """Whether there can be more than one pass: not over standard input."""
        return all(source.replayable for source in self._sources)

    @property
    def fraction(self) -> float | None:
        """How much has come, 0 to 1, by stored bytes, or by rows when shuffling; None if nobody can know."""
        if self._shuffle is not None:
            return min(1.0, self._delivered / self._known_rows) if self._known_rows else 0.0
        if self.size is None:
            return None
        return min(1.0, self._reading.position / self.size) if self.size else 1.0

    @property
    def refused(self) -> int:
        """Bad rows so far."""
        return self._reading.refusals.count

    @property
    def refusals(self) -> list[str]:
        """What was wrong with the first few of them."""
        return list(self._reading.refusals.first)

    @property
    def unfinished(self) -> str | None:
        """File and line of a last line that was left out, as it has no line end; None if there was none."""
        return self._reading.unfinished

    def skip(self, rows: int) -> Stream:
        """Leaves out that many rows at the start of the next pass, in the order in which they would come."""
        if rows < 0:
            raise DataError(f"Stream: rows to skip must be >= 0, got {rows}.")
        self._skip = rows
        return self

    def where(self, row: int) -> str | None:
        """File and line of a row of the block given out last, as ads.svm:1043; None if there is no such row."""
        number = self._block + row
        if not self._block <= number < self._delivered:
            return None
        if self._shuffle is not None:
            number = row_of(self._shuffle, int(self._keys[number - self._keyed]))
        return self._places.of(number)

    def stop(self) -> None:
        """Ends the pass that is running. Meant for signal handlers.

        A pipe ends where it is: whole lines that have come are still given out. Of data that can be read again
        nothing more is given out.
        """
        self._reading.stop()

    def __iter__(self) -> Iterator[Block]:
        if self._passes and not self.replayable:
            name = next(source.name for source in self._sources if not source.replayable)
            raise DataError(f"{name}: can be read only once. For several passes, save it to a file first.")
        if any(source.start is not None for source in self._sources):
            self.sources  # noqa: B018  a caller's own file is looked at before it is read, never meanwhile
        self._passes += 1
        self._reading = Reading(self._sources, self._options, Refusals(self._max_bad_rows))
        self._delivered, self._known_rows = 0, None
        self._block, self._places = 0, Places(everything=self._shuffle is not None)
        self._keys, self._keyed = keys(0, 0, 0), 0
        skip, self._skip = self._skip, 0
        return self._blocks(skip)

    def _blocks(self, skip: int) -> Iterator[Block]:
        seen = 0

        def counted(pieces: Iterator[Block]) -> Iterator[Block]:
            nonlocal seen
            for piece in pieces:
                if self._reading.stopped and self.replayable:
                    raise StoppedError
                if self._reading.piece is not None:
                    self._places.add(seen, self._reading.piece)
                seen += len(piece)
                yield piece
            if self._reading.stopped and self.replayable:
                raise StoppedError  # a shuffle must not take these rows for all

        with suppress(StoppedError), closing(_generator(self._format(self._reading))) as pieces:
            rows: Iterator[Block] = counted(pieces)
            if self._shuffle is not None:
                memory = max(self._memory or default_memory(), LEAST)
                rows = shuffled(rows, self._shuffle, memory, self._learn_total, self._learn_keys)
            self._delivered = skip
            with closing(_generator(cut(rows, self._rows, skip))) as blocks:
                for block in blocks:
                    self._block = self._delivered
                    self._delivered += len(block)
                    yield block
        if self._reading.stopped:
            return
        if seen == 0 and self.unfinished is not None:
            raise DataError(
                f"{self.unfinished}: has no line end, so it may still be being written, and there is no other row. "
                f"Once the file is complete, pass {advice('finished=True', '--finished')}."
            )
        if seen == 0:
            names = ", ".join(source.name for source in self._sources[:3])
            refused = f" that could be read; {self.refused} were refused" if self.refused else ""
            raise DataError(f"{names}: no rows{refused}.")
        if seen < skip:
            way_on = ""
            if self.unfinished is not None:
                finished = advice("finished=True", "--finished")
                way_on = f" {self.unfinished} has no line end: if the file is complete, pass {finished}."
            raise DataError(
                f"{self._sources[0].name}: cannot continue after row {skip}: there are only {seen} rows.{way_on}"
            )

    def _learn_total(self, rows: int) -> None:
        self._known_rows = rows

    def _learn_keys(self, keys: Keys) -> None:
        self._keyed += len(self._keys)
        self._keys = keys


def _generator(blocks: Iterator[Block]) -> Any:
    return blocks  # every format is a generator: closing it stops its threads and closes its files
