"""`read` opens files and other sources as a Stream of Blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, cast

from rarestream.blocks import Block
from rarestream.errors import DataError, advice
from rarestream.features import Space
from rarestream.readers.chunks import CHUNK, LONGEST_LINE
from rarestream.readers.fingerprints import Fingerprint, fingerprint
from rarestream.readers.formats import Format, find_format
from rarestream.readers.locations import RowLocations
from rarestream.readers.options import FormatOptions
from rarestream.readers.reading import Reading
from rarestream.readers.refusals import Refusals
from rarestream.readers.shuffle import LEAST, Keys, default_memory, keys, row_of, shuffled
from rarestream.readers.sources import Source, SourceLike, StoppedError, expand
from rarestream.readers.split import split_blocks
from rarestream.system import cores


def read(
    source: SourceLike | Iterable[SourceLike] | Iterable[Mapping[str, Any]],
    format: str | None = None,
    rows: int = 8192,
    *,
    features: Any = None,
    **options: Any,
) -> Stream:
    """Open data as a stream of Blocks.

    Memory stays constant whatever the size of the data. Files compressed with gzip, bzip2, xz or zstd are decompressed
    automatically.

    Parameters
    ----------
    source : path, glob pattern, "-", binary file, or iterable of these; or iterable of dicts
        What to read. "-" is standard input. Dicts are rows: column names and values.
    format : str, optional
        Format of the data, such as "svmlight". By default it follows from the suffix of the first file, and is
        svmlight if that has none.
    rows : int, >= 1, default 8192
        Maximum number of rows in a Block. A Block also ends where a chunk of the file ends.
    features : feature space, optional
        The space that the features of the rows belong to, such as that of a model. By default the format's own.
    positive : float or str, optional
        The label that counts as +1; every other label is -1. By default 1, true or yes is +1; of two other numbers
        the larger, and of two other texts the rarer one, if both occur in the first chunk, about 1 MB of text. Labels
        that are text are described by `Stream.notes`.
    classes : "all" or (negative, positive), optional
        "all": every label is a class, and there may be any number of them; a Block then has `classes`, and no `labels`.
        Or the two labels, as in `Stream.settings` of an earlier stream; negative may be None for -1 or 0. Ignored if
        `positive` is given. By default they are found in the data.
    max_bad_rows : int, >= 0, default 0
        Maximum number of invalid rows to skip. One more is an error.
    labels : {"required", "missing", "optional"}, default "required"
        With "optional", rows may have any label or none; Blocks with such rows have `labels` None. With "missing", rows
        without a label are kept in the same way, and any other label than two is invalid. With "required", a row
        without a label is invalid in svmlight; in other formats it is left out, and `Stream.unlabelled` counts it.
    shuffle : int, optional
        Seed of a random order of the rows, which depends only on the seed. By default rows come in the order of the
        data.
    threads : int, >= 0, optional
        Number of threads that parse ahead; the rows do not depend on it. By default 0 on a single core, else one for
        every core but one, at least 2 and at most 8.
    memory : int, >= 1, optional
        Bytes of memory for a shuffle; temporary files are used beyond that. By default a quarter of the free memory.
    finished : bool, default True
        Whether the data are complete. With False, a last line without line end is left out, as it may be incomplete,
        and `Stream.unfinished` names it. Pipes, compressed files and all files but the last count as complete.
    cache : bool, default False
        Whether to keep the rows of files in a `.blocks` file beside the first of them, made in the first pass. Later
        passes, of other streams too, read that instead, which is many times faster, as long as the files and the
        options that matter stay the same. `Stream.cache_notes` tell what became of it. Needs the extra [arrow].
    cache_dir : path, optional
        As `cache`, with the file in this folder.
    zero_based : bool, optional
        svmlight: whether feature indices count from 0. By default they do if the first chunk has an index 0.
    **options
        The other options of the format. They are those of the command line, where "Reading NAME" of a help page
        lists them, and are documented with the format.

    Returns
    -------
    Stream
        An iterable of Blocks.

    Raises
    ------
    DataError
        If a file cannot be opened, an option is unknown, or a value is out of range. Invalid rows raise it during
        iteration.
    """
    if rows < 1:
        raise DataError(f"read: rows must be >= 1, got {rows}.")
    sources = expand(source)
    found = find_format(format, sources)
    return Stream(sources, found, found.make_options(**options), rows=rows, named=format, features=features)


MOST_THREADS = 8  # that parse by default: each holds a chunk, and more than this are waiting for whoever learns


def spare_threads() -> int:
    """Return the default number of threads: on a single core a thread that parses ahead gains nothing, and of many one
    is left to whoever uses the rows."""
    there = cores()
    return 0 if there < 2 else min(max(2, there - 1), MOST_THREADS)


class Stream:
    """An iterable of Blocks, made by `read`.

    Each iteration over files is a new pass that reads them again; standard input can be read only once. `fraction`,
    `refused` and `refusals` describe the current pass, or the last one.
    """

    def __init__(
        self,
        sources: list[Source],
        format: Format,
        options: FormatOptions,
        *,
        rows: int,
        named: str | None = None,
        features: Any = None,
        chunk: int = CHUNK,
        longest_line: int = LONGEST_LINE,
        refusals: Refusals | None = None,  # that count the invalid rows of several streams
        may_be_empty: bool = False,  # whether data without rows are no error
    ) -> None:
        if options.cached:
            from rarestream.readers.cache import check_cacheable

            check_cacheable(sources, format.name)
        self._named = named
        self._sources = sources
        self._format = format
        self._options = options
        self._rows = rows
        self._features = features
        self._chunk, self._longest_line = chunk, longest_line
        self._refusals, self._may_be_empty = refusals, may_be_empty
        self._shuffle = options.shuffle
        self._skip = 0
        self._passes = 0
        self._cache_notes: list[str] = []
        self._names_known = False  # whether a pass has ended
        self._reading = self._new_reading()
        self._delivered = 0
        self._block = 0  # the number of the first row of the block yielded last
        self._locations = RowLocations(everything=self._shuffle is not None)
        self._keys, self._keyed = keys(0, 0, 0), 0  # of the current shuffled piece, and the number of its first row
        self._fingerprints: list[Fingerprint] | None = None
        self._known_rows: int | None = None  # known once a shuffle has read them all

    def _new_reading(self) -> Reading:
        options = self._options
        return Reading(
            self._sources,
            options,
            self._refusals or Refusals(options.max_bad_rows),
            self._features if self._passes == 0 else self._reading.features,  # one space for all passes
            spare_threads() if options.threads is None else options.threads,
            self._chunk,
            self._longest_line,
            self._rows,
            cache_notes=self._cache_notes,
            names_known=self._names_known,
        )

    @property
    def sources(self) -> list[Fingerprint]:
        """Name, size and a checksum of the first text of each input: enough to recognise the same data."""
        if self._fingerprints is None:
            self._fingerprints = [fingerprint(source) for source in self._sources]
        return [cast(Fingerprint, dict(entry)) for entry in self._fingerprints]

    @property
    def paths(self) -> list[str]:
        """Paths of the files that are read; standard input and rows in memory have none."""
        return [source.path for source in self._sources if source.path is not None]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `read` that give the same rows in the same order again.

        What the data decided, such as `zero_based` and `classes`, is as found, once a Block has been yielded;
        `finished` is False if a last line was left out.
        """
        options, reading = self._options, self._reading
        classes = options.classes if reading.classes is None else reading.classes
        found = {**reading.found, "classes": None if options.positive is not None else classes}
        return {
            "format": self._named,
            **replace(options, **found).settings(),
            "finished": self.unfinished is None,
        }

    @property
    def features(self) -> Space | None:
        """The feature space of the rows, once a Block has been yielded; before that, the one that is wanted."""
        features: Space | None = self._reading.features
        return features

    @property
    def format(self) -> str:
        """Name of the format."""
        return self._format.name

    @property
    def size(self) -> int | None:
        """Stored bytes of all sources; None if the size of one is not known."""
        sizes = [source.size for source in self._sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def replayable(self) -> bool:
        """Whether there can be more than one pass. Standard input and pipes allow only one."""
        return all(source.replayable for source in self._sources)

    @property
    def fraction(self) -> float | None:
        """Share of the data read so far, 0 to 1, by bytes, or by rows when shuffling; None if the size is not known."""
        if self._shuffle is not None:
            return min(1.0, self._delivered / self._known_rows) if self._known_rows else 0.0
        if self.size is None:
            return None
        return min(1.0, self._reading.position / self.size) if self.size else 1.0

    @property
    def refused(self) -> int:
        """Number of invalid rows skipped so far."""
        return self._reading.refusals.count

    @property
    def refusals(self) -> list[str]:
        """Messages for the first few invalid rows."""
        return list(self._reading.refusals.first)

    @property
    def unlabelled(self) -> int:
        """Number of rows left out so far because they have no label."""
        return self._reading.unlabelled

    @property
    def notes(self) -> list[str]:
        """What was decided by the first rows and a user should know, such as which label counts as +1."""
        return list(self._reading.notes)

    @property
    def cache_notes(self) -> list[str]:
        """What became of the cache: that it was made or used, or why it was not, a sentence each."""
        return list(dict.fromkeys(self._cache_notes))

    @property
    def facts(self) -> dict[str, str]:
        """What the first rows showed of the data and no option remembers, such as the delimiter of CSV text."""
        return dict(self._reading.facts)

    @property
    def unfinished(self) -> str | None:
        """File and line of a last line that was left out because it has no line end; None if there is none."""
        return self._reading.unfinished

    def skip(self, rows: int) -> Stream:
        """Leave out rows at the start of the next pass, in the order in which they would come.

        Parameters
        ----------
        rows : int, >= 0
            Number of rows to leave out.

        Returns
        -------
        Stream
            This stream.

        Raises
        ------
        DataError
            If `rows` is negative. Iterating raises it if there are fewer rows.
        """
        if rows < 0:
            raise DataError(f"Stream: rows to skip must be >= 0, got {rows}.")
        self._skip = rows
        return self

    def where(self, row: int) -> str | None:
        """Return file and line of a row of the Block yielded last, such as "ads.svm:1043".

        Parameters
        ----------
        row : int
            Number of the row within that Block, from 0.

        Returns
        -------
        str or None
            None if there is no such row.
        """
        number = self._block + row
        if not self._block <= number < self._delivered:
            return None
        if self._shuffle is not None:
            number = row_of(self._shuffle, int(self._keys[number - self._keyed]))
        return self._locations.find(number)

    def stop(self) -> None:
        """End the current pass. Safe to call from a signal handler.

        Whole lines that have arrived from a pipe are still yielded. Of data that can be read again, nothing more is.
        """
        self._reading.stop()

    def __iter__(self) -> Iterator[Block]:
        return self._new_pass(unknown=False)

    def partly_labelled(self) -> Iterator[Block]:
        """Iterate over a new pass in which a Block may have rows without a label: their label is 0.

        Returns
        -------
        iterator of Blocks
            For writers: no model learns the label 0.
        """
        return self._new_pass(unknown=True)

    def _new_pass(self, unknown: bool) -> Iterator[Block]:
        if self._passes and not self.replayable:
            name = next(source.name for source in self._sources if not source.replayable)
            raise DataError(f"{name}: can be read only once. For several passes, save it to a file first.")
        if any(source.start is not None for source in self._sources):
            self.sources  # noqa: B018  fingerprints of a caller's file are taken before the pass, as they move its position
        self._passes += 1
        self._reading = self._new_reading()
        self._delivered, self._known_rows = 0, None
        self._block, self._locations = 0, RowLocations(everything=self._shuffle is not None)
        self._keys, self._keyed = keys(0, 0, 0), 0
        skip, self._skip = self._skip, 0
        return self._blocks(skip, unknown)

    def _blocks(self, skip: int, unknown: bool) -> Iterator[Block]:
        seen = 0

        def counted(pieces: Iterator[Block]) -> Iterator[Block]:
            nonlocal seen
            for piece in pieces:
                if self._reading.stopped and self.replayable:
                    raise StoppedError
                if self._reading.piece is not None:
                    self._locations.add(seen, self._reading.piece)
                seen += len(piece)
                yield piece
            if self._reading.stopped and self.replayable:
                raise StoppedError  # a shuffle must not take these rows for all rows

        with suppress(StoppedError), closing(_generator(self._pieces())) as pieces:
            rows: Iterator[Block] = counted(pieces)
            if self._shuffle is not None:
                memory = max(self._options.memory or default_memory(), LEAST)
                rows = shuffled(rows, self._shuffle, memory, self._learn_total, self._learn_keys)
            self._delivered = skip
            with closing(_generator(split_blocks(rows, self._rows, skip, unknown))) as blocks:
                for block in blocks:
                    self._block = self._delivered
                    self._delivered += len(block)
                    yield block
        if self._reading.stopped:
            return
        self._names_known = True
        if seen == 0 and self._may_be_empty:
            return
        if seen == 0 and self.unfinished is not None:
            raise DataError(
                f"{self.unfinished}: has no line end, so it may be incomplete, and there is no other row. "
                f"If the file is complete, pass {advice('finished=True', '--finished')}."
            )
        if seen == 0:
            names = ", ".join(source.name for source in self._sources[:3])
            valid = f"valid rows; {self.refused} invalid rows were skipped" if self.refused else "rows"
            if self.unlabelled:
                valid = f"rows with a label; {self.unlabelled:,} have none"
            raise DataError(f"{names}: no {valid}.")
        if seen < skip:
            remedy = ""
            if self.unfinished is not None:
                finished = advice("finished=True", "--finished")
                remedy = f" {self.unfinished} has no line end: if the file is complete, pass {finished}."
            raise DataError(
                f"{self._sources[0].name}: cannot continue after row {skip}: there are only {seen} rows.{remedy}"
            )

    def _pieces(self) -> Iterator[Block]:
        """Yield what the format yields, or a cache of it."""
        if not self._options.cached:
            return self._format.read(self._reading)
        from rarestream.readers.cache import read_cached

        return read_cached(self._format, self._reading, self._features)

    def _learn_total(self, rows: int) -> None:
        self._known_rows = rows

    def _learn_keys(self, keys: Keys) -> None:
        self._keyed += len(self._keys)
        self._keys = keys


def _generator(blocks: Iterator[Block]) -> Any:
    return blocks  # formats are generators: closing one stops its threads and closes its files
