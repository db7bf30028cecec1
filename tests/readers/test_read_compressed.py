"""Compressed files are read through, and damage is called damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from svm_rows import same

from rarestream.errors import DataError
from rarestream.readers import read
from tests import children

TEXT = b"".join(b"%d %d:0.5 %d:%d\n" % (i % 2, i % 50 + 1, i % 97 + 60, i) for i in range(40_000))
METHODS: list[tuple[str, Callable[[bytes], bytes]]] = [
    (".gz", gzip.compress),
    (".bz2", bz2.compress),
    (".xz", lzma.compress),
    (".zst", zstandard.ZstdCompressor().compress),
]
each_method = pytest.mark.parametrize(("suffix", "compress"), METHODS, ids=[suffix for suffix, _ in METHODS])


@each_method
def test_a_compressed_file_gives_the_rows_of_the_plain_one(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    expected = list(read(io.BytesIO(TEXT)))
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(compress(TEXT))
    stream = read(path)
    assert same(expected, list(stream))
    assert stream.fraction == 1
    path.write_bytes(compress(TEXT[:10_000]) + compress(TEXT[10_000:]))  # two members
    assert same(expected, list(read(path)))
    plain_name = tmp_path / "data"  # no suffix: the first bytes tell
    plain_name.write_bytes(compress(TEXT))
    assert same(expected, list(read(plain_name)))


@each_method
def test_a_file_cut_anywhere_is_called_cut_short(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    data = compress(TEXT)
    path = tmp_path / f"a.svm{suffix}"
    for size in (7, 12, len(data) // 3, len(data) // 2, len(data) - 9, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(DataError, match=r"a\.svm\..*data are truncated near byte .*Fetch the file again"):
            list(read(path))


@each_method
def test_damage_is_noticed(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    data = bytearray(compress(TEXT))
    for at in range(len(data) // 2, len(data) // 2 + 64):
        data[at] ^= 0x5A
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(data)
    with pytest.raises(DataError):
        list(read(path))


@each_method
def test_a_suffix_without_its_bytes_is_refused(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(DataError, match=rf"named \{suffix}, but its first bytes are not"):
        list(read(path))


def skippable(first: int, data: bytes) -> bytes:
    """A frame of zstd that holds something else."""
    return bytes([first]) + b"\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data


def test_frames_to_skip_are_skipped_wherever_they_stand(tmp_path: Path) -> None:
    compress = zstandard.ZstdCompressor().compress
    expected = list(read(io.BytesIO(TEXT)))
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    for name in ("a.svm.zst", "data"):
        for first in (0x50, 0x5F):
            for skipped in (b"", b"an index", bytes(200_000)):
                some = skippable(first, skipped)
                path = tmp_path / name
                path.write_bytes(some + some + compress(TEXT[:half]) + some + compress(TEXT[half:]) + some)
                assert same(expected, list(read(path)))


def test_a_frame_to_skip_that_is_cut_short_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"1 1:1\n") + skippable(0x51, b"12345678")[:-1])
    with pytest.raises(DataError, match="the zstd data are truncated"):
        list(read(path))


def test_rubbish_after_a_member_is_damage_but_padding_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n") + bytes(100_000))
    assert sum(len(block) for block in read(path)) == 1
    path.write_bytes(gzip.compress(b"1 1:1\n") + b"rubbish")
    with pytest.raises(DataError, match="the gzip data are damaged"):
        list(read(path))


def test_text_that_looks_compressed_inside_is_read_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "bomb.svm.gz"
    path.write_bytes(gzip.compress(b"\n" * (200 << 20), compresslevel=1))
    program = (
        "import resource, sys; from rarestream.errors import DataError; from rarestream.readers import read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: list(read(sys.argv[1]))\n"
        "except DataError as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)"
    )
    made = children.run([sys.executable, "-c", program, path], check=True)
    message, megabytes = made.stdout.strip().split("\n")
    assert message.endswith("no rows.")
    assert int(megabytes) < 40


def test_without_zstandard_the_extra_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"1 1:1\n"))
    program = (
        "import sys; sys.modules['zstandard'] = sys.modules['compression'] = None\n"
        "from rarestream.errors import MissingExtraError; from rarestream.readers import read\n"
        "try: list(read(sys.argv[1]))\n"
        "except MissingExtraError as error: print(error)"
    )
    made = children.run([sys.executable, "-c", program, path], check=True)
    assert 'pip install "rarestream[zstd]"' in made.stdout
