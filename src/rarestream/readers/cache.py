"""Keeps the rows of files in a `.blocks` file, so that they need not be parsed a second time.

A pass over files yields the pieces that their format yields, and writes them aside. The cache is there once the pass
has ended: one that was interrupted or failed leaves nothing. Each later pass, of this stream or of another, yields the
rows of the cache instead, with all else that the format would have found: labels, names, notes, and the lines of rows.

A cache is used only if it has the rows that would be read now. It says what its files were, by size, time of change and
a checksum of parts of them, and which options they were read with. Anything that differs is told in a note, and the
cache is made again; what cannot be written is told, too, and does no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from glob import escape, glob
from typing import Any

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import DataError, OutputError, RarestreamError, advice, plain
from rarestream.features import Hashed
from rarestream.readers.blocksfile import MAKE_AGAIN, BlocksFile
from rarestream.readers.formats import Format
from rarestream.readers.labels import label_note
from rarestream.readers.options import as_json, options_of
from rarestream.readers.reading import Reading
from rarestream.readers.sources import Source
from rarestream.readers.tables import HashedOptions, hashed_space
from rarestream.writers.blocks import BlocksWriter, Lines, import_pyarrow

SUFFIX = ".blocks"
HEAD = 1 << 16  # bytes at the start and at the end of a file that the checksum covers
PLACES, PLACE = 64, 1 << 12  # evenly spaced places between, and their bytes
# Nanoseconds: a file that was changed so lately may change again without a later time. Some file systems keep whole or
# even seconds only, others the time of the last tick of the clock.
RECENT_SECONDS, RECENT_TICKS = 2_000_000_000, 100_000_000
LONGEST_NAME = 100  # characters of a file's name that the name of its cache begins with
MADE = "cache made"

# Options that change no row of the cache, or are compared in a way of their own.
NOT_COMPARED = {"threads", "memory", "shuffle", "max_bad_rows", "cache", "cache_dir", "bits", "names", "finished"}


def check_cacheable(sources: Sequence[Source], format: str) -> None:
    """Raise DataError unless the sources are files, which can be recognised when they are read again."""
    for source in sources:
        if source.path is None or source.size is None:
            what = "rows in memory are" if source.data is not None else "standard input and pipes are"
            what = "an open file is" if source.file is not None and source.start is not None else what
            raise DataError(
                f"{source.name}: cannot be cached: {what} not recognised when it comes again. "
                f"Save the rows to a file, or drop {advice('cache', '--cache')}."
            )
    if format == SUFFIX[1:]:
        raise DataError(
            f"{sources[0].name}: holds the rows as a cache does: it is not cached again. "
            f"Drop {advice('cache', '--cache')}."
        )


def read_cached(format: Format, reading: Reading, wanted: Any) -> Iterator[Block]:
    """Yield the pieces of a pass from a cache, or as the format yields them, and make a cache of them.

    Parameters
    ----------
    format : Format
        Of the sources.
    reading : Reading
        The pass.
    wanted : feature space or None
        The space that the rows were wanted in before the first pass.
    """
    import_pyarrow()
    if isinstance(reading.options, HashedOptions):
        hashed_space(reading)  # the space of the rows, or what is wrong with the one that is wanted
    cache = _Cache(format, reading, wanted)
    found = cache.find()
    if found is not None:
        with closing(found):
            if not any(note.startswith(f"{found.name}: {MADE}") for note in reading.cache_notes):
                reading.cache_notes.append(f"{found.name}: the rows were read from this cache.")
            try:
                yield from _from_cache(found, reading)
            except DataError as error:  # some rows have been used already, so it is too late to read the files instead
                with suppress(OSError):
                    os.unlink(found.path)
                reason = str(error).removesuffix(f" {MAKE_AGAIN}")
                raise DataError(f"{reason} This cache was removed: run again to read the files.") from None
        return
    yield from cache.make(format.read(reading))


# -- what a file is


def describe_file(source: Source) -> dict[str, Any]:
    """Return what a cache keeps about a file, to recognise it.

    The time of change does not tell all of a file that has only just been changed: its next change may have the same
    time. Of such a file the checksum of all its bytes is kept, too, as git does it.
    """
    assert source.path is not None
    try:
        with open(source.path, "rb", buffering=0) as file:
            about = os.fstat(file.fileno())
            facts = {"name": source.name, "path": os.path.realpath(source.path), **_times(about)}
            facts["checksum"] = _sampled(file, about.st_size)
            if time.time_ns() - about.st_mtime_ns < (RECENT_TICKS if about.st_mtime_ns % 10**9 else RECENT_SECONDS):
                facts["whole"] = _whole(file)
    except OSError as error:
        raise DataError(f"{source.name}: cannot be read: {(error.strerror or str(error)).lower()}.") from None
    return facts


def _times(about: os.stat_result) -> dict[str, int]:
    return {"size": about.st_size, "changed": about.st_mtime_ns}


def _sampled(file: Any, size: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    between = max(0, size - 2 * HEAD)
    places = [
        (0, HEAD),
        *((HEAD + between * n // PLACES, PLACE) for n in range(PLACES)),
        (max(HEAD, size - HEAD), HEAD),
    ]
    for place, length in places if between else [(0, size)]:
        file.seek(place)
        digest.update(file.read(length))
    return digest.hexdigest()


def _whole(file: Any) -> int:
    file.seek(0)
    checksum = 0
    while part := file.read(1 << 20):
        checksum = zlib.crc32(part, checksum)  # several times faster than a cryptographic one, and few files need it
    return checksum


def _difference(kept: Mapping[str, Any], now: Mapping[str, Any], source: Source) -> str | None:
    """Return how a file differs from what a cache keeps about it; None if it does not."""
    for word, said in (("size", "its size"), ("changed", "its time of change"), ("checksum", "its content")):
        if kept.get(word) != now[word]:
            return f"{said} is another"
    if kept.get("whole") is not None:
        assert source.path is not None
        with open(source.path, "rb", buffering=0) as file:
            if _whole(file) != kept["whole"]:
                return "its content is another"
    return None


# -- the cache of a pass


class _Cache:
    """Where the cache of a pass is, and what it must hold."""

    def __init__(self, format: Format, reading: Reading, wanted: Any) -> None:
        self.reading, options = reading, reading.options
        self.files = [describe_file(source) for source in reading.sources]
        space = wanted if isinstance(wanted, Hashed) else None
        self.knows_names = space is not None and space.names is not None and len(space.names) > 0
        planned = space is not None and space.plan is not None
        target = reading.features if isinstance(reading.features, Hashed) else None
        self.asked = {
            "format": format.name,
            "options": {
                name: as_json(getattr(options, name)) for name in options_of(type(options)) if name not in NOT_COMPARED
            },
            "finished": options.finished,
            "bits": None if target is None else target.bits,
            "name_bytes": None if target is None or target.names is None else target.name_bytes,
            "plan": space.fingerprint if space is not None and planned else None,  # that the rows had to follow
            "chunk": reading.chunk,
        }
        first = self.files[0]["path"]
        self.folder = options.cache_dir or os.path.dirname(first)
        self.stem = f"{os.path.basename(first)[:LONGEST_NAME]}-{_short([file['path'] for file in self.files])}-"
        self.path = os.path.join(self.folder, f"{self.stem}{_short(self.asked)}{SUFFIX}")
        near = os.path.dirname(reading.sources[0].path or "")
        beside = options.cache_dir is None and os.path.realpath(near) == self.folder
        self._shown = near if beside else self.folder  # as the user has named it

    def shown(self, path: str) -> str:
        """Return what messages call a cache."""
        return plain(os.path.join(self._shown, os.path.basename(path)))

    # -- using one

    def find(self) -> BlocksFile | None:
        """Return a cache that has the rows of this pass. What is wrong with others is noted."""
        others = sorted(glob(os.path.join(escape(self.folder), f"{escape(self.stem)}*{SUFFIX}")))
        problem = None
        for path in dict.fromkeys([self.path, *others]):
            if not os.path.exists(path):
                continue
            try:
                found = BlocksFile(path, self.shown(path))
                reason = found.guarded(partial(self._problem, found))
                suits = reason is None and found.guarded(partial(self._suits, found))
            except DataError as error:
                problem = problem or str(error).removesuffix(f" {MAKE_AGAIN}") + " It is made again."
                continue
            if suits:
                return found
            found.close()
            if reason is None and path == self.path:
                if found.end["refused"] > self.reading.refusals.allowed:
                    continue
                reason = "made with other options or of another feature space"
            if reason is not None:
                problem = problem or f"{self.shown(path)}: {reason}. It is made again."
        if problem is not None:
            self.reading.cache_notes.append(problem)
        return None

    def _problem(self, found: BlocksFile) -> str | None:
        """Return why a file cannot be a cache of these sources as they are; None if it can."""
        kept = found.about.get("sources")
        if not isinstance(kept, list) or [_get(file, "path") for file in kept] != [file["path"] for file in self.files]:
            return "it is not the cache of these files"
        if not isinstance(found.about.get("asked"), dict) or "rows" not in found.end:
            return "it does not say how its rows were read"
        for before, now, source in zip(kept, self.files, self.reading.sources, strict=True):
            different = _difference(before, now, source)
            if different is not None:
                return f"{source.name} has changed since it was made ({different})"
        return None

    def _suits(self, found: BlocksFile) -> bool:
        """Return whether the rows of a cache are those that the options of this pass give."""
        end, before, now = found.end, found.about["asked"], self.asked
        if any(before.get(word) != now[word] for word in ("format", "bits", "chunk")):
            return False
        if end["refused"] > self.reading.refusals.allowed:
            return False
        if not (before.get("finished") == now["finished"] or (end["unfinished"] is None and self._complete(before))):
            return False
        if now["plan"] is not None:
            if found.about.get("space") is None or found.about["space"]["fingerprint"] != now["plan"]:
                return False
        elif before.get("plan") is not None:
            return False
        if now["name_bytes"] is not None:
            if before.get("name_bytes") != now["name_bytes"]:
                return False
            if end["names_full"] and self.knows_names:  # which of them would have found room is not known
                return False
        for name, value in now["options"].items():
            same = before["options"].get(name, _MISSING) == value or end["found"].get(name, _MISSING) == value
            if not same and not (name == "classes" and self._same_labels(found, value)):
                return False
        return True

    def _complete(self, before: Mapping[str, Any]) -> bool:
        """Return whether the last line of the files has a line end, so that it does not matter if one must."""
        if not before.get("finished"):
            return True  # none was left out
        with open(self.files[-1]["path"], "rb") as file:
            file.seek(max(0, self.files[-1]["size"] - 1))
            return file.read(1) == b"\n"

    def _same_labels(self, found: BlocksFile, classes: Any) -> bool:
        """Return whether the labels that the data decided are those that are given now, as by a model."""
        kept = found.end["classes"]
        if found.about["asked"]["options"].get("classes") is not None or found.end["refused"] or kept is None:
            return False
        if not isinstance(classes, list) or classes[1] != kept[1]:
            return False
        low, high = kept
        return classes[0] == low or (classes[0] is None and high == 1 and low in (-1, 0, None))

    # -- making one

    def make(self, pieces: Iterator[Block]) -> Iterator[Block]:
        """Yield the pieces, and write them to the cache."""
        making = _Making(self)
        try:
            with closing(pieces):  # type: ignore[type-var]
                for piece in pieces:
                    making.add(piece)
                    yield piece
            making.finish()
        except BaseException:
            making.abandon()
            raise


_MISSING = object()


def _get(entry: Any, word: str) -> Any:
    return entry.get(word) if isinstance(entry, dict) else None


def _short(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


class _Making:
    """A cache that is being written. Whatever goes wrong with it is noted, and the pass goes on without."""

    def __init__(self, cache: _Cache) -> None:
        self.cache, self.reading = cache, cache.reading
        self.writer: BlocksWriter | None = None
        self.given_up = False
        self.names: _native.NameTable | None = None
        space = self._space
        if space is not None and space.names is not None:
            self.names = _native.NameTable(space.bits, space.name_bytes, recording=True)
            self.reading.on_names = self.names.add

    @property
    def _space(self) -> Hashed | None:
        return self.reading.features if isinstance(self.reading.features, Hashed) else None

    def add(self, piece: Block) -> None:
        if self.given_up:
            return
        reading = self.reading
        try:
            if self.writer is None:
                self.writer = self._open(piece)
            lines = None
            if reading.piece is not None:
                source = next(n for n, one in enumerate(reading.sources) if one.name == reading.piece.name)
                lines = Lines(source, reading.piece.between, reading.piece.lines + reading.piece.before)
            names = None if self.names is None else self.names.take_changes()
            self.writer.write(piece, lines, names, _state(reading))
        except (OSError, ValueError, RarestreamError) as error:
            self._give_up(error)

    def _open(self, first: Block) -> BlocksWriter:
        space, options, cache = first.space, self.reading.options, self.cache
        columns = ["importance", "tag"]
        if space is not None and space.plan is not None:  # which tells whether rows have them
            columns = [role for role in columns if getattr(space.plan, role) or getattr(options, role, None)]
        if self.names is not None:
            columns.append("names")
        about = {
            "space": None if space is None else space.settings(),
            "sources": cache.files,
            "asked": cache.asked,
        }
        os.makedirs(cache.folder, exist_ok=True)
        return BlocksWriter(cache.path, about, columns)

    def finish(self) -> None:
        reading, cache = self.reading, self.cache
        if self.writer is None or self.given_up:
            return
        for file in cache.files:
            try:
                same = _times(os.stat(file["path"])) == {word: file[word] for word in ("size", "changed")}
            except OSError:
                same = False
            if not same:
                reading.cache_notes.append(f"{file['name']}: changed while it was read, so no cache was made.")
                self.abandon()
        if reading.stopped:
            self.abandon()
        if self.given_up:
            return
        full = self.names is not None and self.names.full
        end = {**_state(reading), "unfinished": reading.unfinished, "names_full": full}
        try:
            self.writer.close(end)
        except (OSError, RarestreamError) as error:
            self._give_up(error)
            return
        size = os.path.getsize(cache.path)
        reading.cache_notes.append(f"{cache.shown(cache.path)}: {MADE}, {_bytes(size)}; it is read the next time.")

    def _give_up(self, error: Exception) -> None:
        reason = str(error)
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            reason = f"{self.cache.shown(self.cache.path)}: {(error.strerror or reason).lower()}"
        self.reading.cache_notes.append(f"No cache was made: {reason}".removesuffix(".") + ". The rows were read.")
        self.abandon()

    def abandon(self) -> None:
        self.given_up = True
        self.reading.on_names = None
        writer, self.writer = self.writer, None
        if writer is not None:
            with suppress(OSError):
                writer.abandon()


def _bytes(size: int) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} {unit}" if unit != "bytes" else f"{size} bytes"


# -- what a pass has found


def _state(reading: Reading) -> dict[str, Any]:
    """Return what is known of a pass so far, ready for JSON."""
    return {
        "position": reading.position,
        "found": {name: as_json(value) for name, value in reading.found.items()},
        "classes": None if reading.classes is None else list(reading.classes),
        "facts": dict(reading.facts),
        "notes": list(reading.notes),
        "unlabelled": reading.unlabelled,
        "refused": reading.refusals.count,
        "refusals": list(reading.refusals.first),
    }


def _from_cache(found: BlocksFile, reading: Reading) -> Iterator[Block]:
    """Yield the pieces of a cache; the pass finds what it found when the cache was made."""
    space = reading.features if found.about.get("space") is not None else None
    if isinstance(space, Hashed) and space.plan is None:
        kept = found.space()
        space.plan = None if kept is None else kept.plan
    names = _Renamed(found.about["sources"], reading.sources)
    noted = None
    if reading.options.classes is not None and found.about["asked"]["options"].get("classes") is None:
        noted = label_note(*(found.end["classes"] or (None, None)))  # what is given is not told
    for piece in found.pieces(space, reading.threads):
        if reading.stopped:
            return
        if not reading.names_known:
            found.add_names(space, piece)
        found.guarded(partial(_restore, reading, piece.state, names, noted))
        reading.piece = piece.lines._replace(name=names.of(piece.lines.name))
        yield piece.block
    found.guarded(partial(_restore, reading, found.end, names, noted))


def _restore(reading: Reading, state: Mapping[str, Any], names: _Renamed, noted: str | None) -> None:
    """Set what a pass has found to what it had found when the cache was made; `noted`: a note that is not told."""
    reading.position = int(state.get("position", reading.position))
    reading.found |= state.get("found", {})
    if state.get("classes") is not None:
        low, high = state["classes"]
        reading.classes = low, high
    reading.facts |= state.get("facts", {})
    for note in state.get("notes", ()):
        if note != noted and names(note) not in reading.notes:
            reading.notes.append(names(note))
    reading.unlabelled = int(state.get("unlabelled", reading.unlabelled))
    reading.refusals.count = int(state.get("refused", reading.refusals.count))
    if "refusals" in state:
        reading.refusals.first = [names(text) for text in state["refusals"]]
    if state.get("unfinished") is not None:
        reading.unfinished = names(state["unfinished"])


class _Renamed:
    """Messages that name the files as they are called now."""

    def __init__(self, before: Sequence[Mapping[str, Any]], now: Sequence[Source]) -> None:
        pairs = {str(file["name"]): source.name for file, source in zip(before, now, strict=True)}
        self._names = {old: pairs[old] for old in sorted(pairs, key=len, reverse=True)}

    def of(self, name: str) -> str:
        return self._names.get(name, name)

    def __call__(self, message: str) -> str:
        for old, new in self._names.items():
            if message.startswith(old + ":"):
                return new + message[len(old) :]
        return message
