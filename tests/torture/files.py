"""Random, odd, hostile and mutated svmlight files: `read` and a textbook parser find the same rows and refusals."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import zstandard

from rarestream import Block, DataError, read
from rarestream.readers.formats import find_format
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream
from tests.readers import svmlight_textbook as textbook

FILES = 40  # in a round
COMPRESSED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: zstandard.ZstdCompressor().compress(text),
}
CODINGS = [(-1, 1), (0, 1), (1,), (-1,), (-1, 0, 1), (1, 2), (2, 4), (-3.5, 7), (0, 2), (3, 5, 9), (7,)]
HOSTILE = [
    *(b"1 1:1e400", b"1 1:-3.5e38", b"1 1:nan", b"1 1:inf", b"1 1:0x10", b"1 7:3e38 7:3e38", b"1 2147483648:1", b"x"),
    *(b"1:1", b"1 1", b"1 :1", b"1 1:", b"1 1:2:3", b"1 -3:1", b"1 +3:1", b"1 1.5:1", b"1 a:1", b"1 cost:-1 1:1"),
    *(b"1 cost:inf", b"1 qid:1.5", b"1 qid:9223372036854775808", b"1 1:1\0", b"\x93NUMPY\x01", b"\xff\xfe1 1:1"),
    *(b"nan 1:1", b"1e400 1:1", b"1,2 1:1", b"1 1:1_0", b"- 1:1", b"1 1:1e", b"1 1:.", b"1 " + b"9" * 300 + b"x:1"),
]
ODD = [
    *(b"", b"  \t ", b"\r", b"# 1 1:1", b"1", b"1 1:1e-400", b"1 1:+1", b"1 1:-0", b"1 2:1 2:-1", b"1 1:007.50"),
    *(b"1 2147483647:1", b"1 qid:9223372036854775807 1:1", b"1 1:3.4028235e38", b"1 00012:1", b"1 cost:0 1:1"),
    *(b"1 1:1 cost:2 qid:3", b"1 1:" + b"1" * 400 + b"e-400", b"\t1\t \t3:1 \t", b"1.0e0 1:1", b"1 1:1  # 3:4"),
]
ANY_COMMENT = [b"1#a:b", b"1#", b"1 1:1#c", b"1 1:1 #\x00\x01", b"#\x00", b"1 1:inf#"]


def run_round(rng: random.Random, folder: Path) -> int:
    for _ in range(FILES):
        coding = rng.choice(CODINGS)
        compare(rng, some_text(rng, coding), coding, folder)
    return FILES


def some_text(rng: random.Random, coding: tuple[float, ...]) -> bytes:
    """A file: plain rows; here and there an odd or a hostile line; sometimes a few bytes changed."""
    share, least = rng.choice([0.0, 0.0, 0.02, 0.3]), rng.choice([0, 1, 1, 1])
    special = rng.choice([ODD, HOSTILE, ODD + HOSTILE, ODD + ANY_COMMENT])
    size = rng.choice([0, 1, 3, 30, 300])
    switch = rng.choice([0, 0, rng.randint(0, size)])  # lines before it have one label only
    lines = []
    for number in range(size):
        known = coding[:1] if number < switch else coding
        lines.append(rng.choice(special) if rng.random() < share else some_line(rng, known, least))
    ends = rng.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n", b"\n\n"]])
    text = b"".join(line + rng.choice(ends) for line in lines)
    if rng.random() < 0.3:
        text = text.rstrip(b"\r\n")
    if rng.random() < 0.2:
        text = textbook.BYTE_ORDER_MARK + text
    if rng.random() < 0.3:
        text = mutated(rng, text)
    return text


def some_line(rng: random.Random, coding: tuple[float, ...], least: int) -> bytes:
    blank = rng.choice([" ", " ", " ", "  ", "\t", " \t "])
    words = [rng.choice([f"{rng.choice(coding):g}", f"{float(rng.choice(coding))}"])]
    if rng.random() < 0.2:
        words.append(f"qid:{rng.choice([0, 7, 2**40])}")
    if rng.random() < 0.2:
        words.append(f"cost:{rng.choice(['0', '0.5', '2', '1e-300', '1e12', '1e30'])}")
    most = rng.choice([5, 60, 2**31 - 2])
    columns = [rng.randint(least, most) for _ in range(rng.choice([0, 1, 4, 20]))]
    if rng.random() < 0.5:
        columns.sort()
    for column in columns:
        exact = f"{rng.randint(-40, 40) / 4:g}"  # duplicates of such values have one sum, whatever their order
        value = exact if columns.count(column) > 1 else rng.choice([exact, some_number(rng)])
        words.append(f"{column}:{value}")
    comment = rng.choice(["", "", "", " # said 3:4", " #"])
    return (blank.join(words) + comment).encode()


def some_number(rng: random.Random) -> str:
    number = rng.choice([rng.gauss(0, 1), rng.uniform(-1, 1) * 10.0 ** rng.randint(-46, 37), 0.0])
    return rng.choice(
        [f"{number:g}", f"{number!r}", f"{number:.17e}", f"{number:.{rng.randint(0, 12)}f}", f"{number:E}"]
    )


def mutated(rng: random.Random, text: bytes) -> bytes:
    changed = bytearray(text)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(changed) + 1)
        byte = rng.choice([rng.randrange(256), rng.choice(b"0123456789:+-.eE# \t\r\n")])
        how = rng.choice(["insert", "delete", "replace", "repeat"])
        if how == "insert":
            changed.insert(at, byte)
        elif how == "delete":
            del changed[at : at + rng.choice([1, 1, 10])]
        elif how == "replace":
            changed[at : at + 1] = bytes([byte])
        else:
            changed[at:at] = changed[at : at + rng.choice([1, 5, 50])]
    return bytes(changed)


def compare(rng: random.Random, text: bytes, coding: tuple[float, ...], folder: Path) -> None:
    """Both parsers on the same bytes, under a random way of reading them."""
    (folder / "text").write_bytes(text)  # what a failure leaves behind
    way = rng.choice(["file", "compressed", "shuffled", "two files", "pipe", "chunks"])
    zero_based, positive = rng.choice([None, False, True]), rng.choice([None, None, coding[-1]])
    # What the first chunk decides depends on what is in it. Where that is not all, it decides nothing, or rows are
    # only counted.
    decided = way in ("file", "compressed", "shuffled") or rng.random() < 0.5
    if decided and way in ("two files", "pipe", "chunks"):
        zero_based = bool(zero_based)
        if not {row.label for row in textbook.parse([("", text)], zero_based).rows} <= {-1, 0, 1}:
            positive = coding[-1]
    cut = text.find(b"\n", len(text) // 2) + 1 if way == "two files" else 0
    pieces = [text[:cut], text[cut:]] if cut else [text]
    suffix = rng.choice(list(COMPRESSED)) if way == "compressed" else ""
    paths = [folder / f"{number}.svm{suffix}" for number in range(len(pieces))]
    options: dict[str, Any] = {"zero_based": zero_based, "positive": positive, "threads": rng.choice([0, 1, 2])}
    options |= {"rows": rng.choice([1, 3, 8192]), "max_bad_rows": rng.choice([0, 0, 1, 5, 10**6])}
    if way == "shuffled":
        options["shuffle"] = rng.randrange(1000)
    for path, piece in zip(paths, pieces, strict=True):
        path.unlink(missing_ok=True)
        if way == "pipe":
            os.mkfifo(path)
            threading.Thread(target=dribble, args=(path, piece, rng.randrange(2**32)), daemon=True).start()
        else:
            path.write_bytes(compressed(rng, suffix, piece) if suffix else piece)
    stream = in_chunks(paths, rng.choice([1, 7, 64, 200, 1000]), options) if way == "chunks" else read(paths, **options)
    blocks, error = [], None
    try:
        for block in stream:
            blocks.append(block)
    except DataError as raised:
        error = str(raised)
    rows, what = rows_of(blocks), f"{way}, {options}"
    found = textbook.parse([(str(path), piece) for path, piece in zip(paths, pieces, strict=True)], zero_based)
    lines = len(found.rows) + len(found.bad)
    assert error or len(rows) + stream.refused == lines, (
        f"{what}: {len(rows)} rows, {stream.refused} refused of {lines}"
    )
    if decided and (len(found.bad) <= options["max_bad_rows"] or None not in (zero_based, positive)):
        agree(found, stream, rows, error, options["max_bad_rows"], what)


def agree(found: textbook.File, stream: Stream, rows: list[str], error: str | None, allowed: int, what: str) -> None:
    """The same rows, up to the first that is one bad row too many; the same refusals."""
    order = {place: number for number, place in enumerate(found.places)}
    signed = textbook.signs(found.rows, stream.settings["positive"])
    bad = sorted({*found.bad, *signed.bad}, key=order.__getitem__)
    if signed.hopeless:
        assert error is not None and not rows, f"{what}: one label only, but {len(rows)} rows"
        return
    stop = order[bad[allowed]] if len(bad) > allowed else len(order)
    bad = bad[: allowed + 1]
    wanted = [row for row in signed.rows if order[row.place] < stop]
    assert (error is None) == (len(bad) <= allowed and bool(wanted)), f"{what}: {error}; bad: {bad}"
    mine = [repr((row.features, row.importance, row.tag, row.sign)) for row in wanted]
    if "shuffle" in what:
        assert error or Counter(rows) == Counter(mine), f"{what}: not a permutation"
    else:
        other = next((pair for pair in itertools.zip_longest(rows, mine) if pair[0] != pair[1]), None)
        assert other is None, f"{what}: {other[0]}, not {other[1]}"
    assert stream.refused == len(bad), f"{what}: {stream.refused} refused, not {bad}; {error}"
    for place, said in zip(bad, stream.refusals, strict=False):
        assert said.startswith(f"{place}:"), f"{what}: {said}, not {place}"


def rows_of(blocks: list[Block]) -> list[str]:
    """Rows as text, like those of the textbook; -0.0 is 0.0."""
    rows = []
    for block in blocks:
        assert block.labels is not None
        for i, label in enumerate(block.labels.tolist()):
            at = slice(int(block.indptr[i]), int(block.indptr[i + 1]))
            features = tuple(zip(block.indices[at].tolist(), (block.values[at] + 0.0).tolist(), strict=True))
            importance = 1.0 if block.importances is None else float(block.importances[i]) + 0.0
            rows.append(repr((features, importance, -1 if block.tags is None else int(block.tags[i]), label)))
    return rows


def compressed(rng: random.Random, suffix: str, text: bytes) -> bytes:
    """One member or several, cut anywhere, empty ones too."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.choice([0, 0, 1, 4])))
    members = [COMPRESSED[suffix](text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)])]
    if suffix == ".zst" and rng.random() < 0.5:
        members.insert(rng.randint(0, len(members)), b"\x50\x2a\x4d\x18\x05\0\0\0hello")
    return b"".join(members)


def in_chunks(paths: list[Path], chunk: int, options: dict[str, Any]) -> Stream:
    """`read` with chunks of any size."""
    reading = {word: options[word] for word in ("zero_based", "positive", "threads", "max_bad_rows")}
    sources = expand(paths)
    format = find_format(None, sources)
    return Stream(sources, format, format.make_options(**reading), rows=options["rows"], chunk=chunk)


def dribble(path: Path, text: bytes, seed: int) -> None:
    """Writes a few bytes at a time."""
    rng = random.Random(seed)
    try:
        with path.open("wb", buffering=0) as pipe:
            while text:
                size = rng.choice([1, 20, 1000, len(text)])
                pipe.write(text[:size])
                text = text[size:]
                time.sleep(rng.choice([0, 0, 0.001]))
    except BrokenPipeError:
        pass  # a refused line ends the reading
