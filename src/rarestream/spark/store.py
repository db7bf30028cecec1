"""Bytes of any length in a small Parquet folder that Spark writes and reads: models and checkpoints of a cluster.

Whatever Spark can write to holds them (HDFS, S3, a volume, a local folder), in classic sessions and in those of Spark
Connect, which know no file system otherwise. The bytes are cut into pieces, one per row. Every row carries the number
of pieces and the checksum of the whole, so what was not written to the end, or has changed since, is recognised.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

PIECE = 1 << 20  # bytes in a row
PORTION = 32  # rows that are written, or read, at once: what a JVM with little memory can hold several times over

SCHEMA = "number int, pieces int, whole long, crc long, about string, data binary"

# Parquet looks at the size of what it holds in memory only after a hundred rows, and tries a dictionary first.
_WRITING = {
    "parquet.block.size": str(PORTION * PIECE),
    "parquet.block.size.row.check.min": "1",
    "parquet.block.size.row.check.max": "1",
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "1",
    "parquet.enable.dictionary": "false",
    "compression": "uncompressed",
}

# A file that cannot be read gives no rows, so pieces are missing, which is found.
_READING = {"ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}


def write_bytes(spark: Any, path: str | os.PathLike[str], data: bytes, about: dict[str, Any]) -> None:
    """Write bytes, and a few words about them, in place of what is there.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    path : str or path-like
        The folder, on any file system that Spark can write to.
    data : bytes
        Of any length.
    about : dict
        What else `read_bytes` returns; anything that JSON has.
    """
    words, pieces = json.dumps(about), max(1, -(-len(data) // PIECE))
    whole = _checksum(data, words)
    view, mode = memoryview(data), "overwrite"
    for first in range(0, pieces, PORTION):
        rows = []
        for number in range(first, min(first + PORTION, pieces)):
            piece = bytes(view[number * PIECE : (number + 1) * PIECE])
            rows.append((number, pieces, whole, zlib.crc32(piece), None if number else words, piece))
        frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
        frame.write.mode(mode).options(**_WRITING).parquet(os.fspath(path))
        mode = "append"


def read_bytes(spark: Any, path: str | os.PathLike[str]) -> tuple[bytes, dict[str, Any]] | None:
    """Read what `write_bytes` has written.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    path : str or path-like
        The folder.

    Returns
    -------
    (bytes, dict) or None
        None if there is nothing, or what is there is incomplete or damaged.
    """
    head: Any = None
    found: list[bytes] = []
    while head is None or len(found) < head["pieces"]:
        rows = _rows(spark, path, len(found))
        for number in range(len(found), len(found) + PORTION):
            row = rows.get(number)
            if number == 0:
                head = row
            if head is None:
                return None
            if number == head["pieces"]:
                break
            if row is None or row["whole"] != head["whole"] or zlib.crc32(row["data"]) != row["crc"]:
                return None
            found.append(bytes(row["data"]))
    data = b"".join(found)
    if _checksum(data, head["about"]) != head["whole"]:
        return None
    return data, json.loads(head["about"])


class TwoSlots:
    """The latest of a series of bytes, and the one before it: a complete one is there at every moment.

    Number n is written to slot n % 2, so the number before it stays while n is written.

    Parameters
    ----------
    spark : SparkSession
        A classic session, or one of Spark Connect.
    folder : str or path-like
        On any file system that Spark can write to. The slots are the folders slot-0 and slot-1 in it.
    """

    def __init__(self, spark: Any, folder: str | os.PathLike[str]) -> None:
        self._spark = spark
        self._folder = os.fspath(folder).rstrip("/")

    def save(self, number: int, data: bytes, about: dict[str, Any]) -> None:
        """Write the bytes of a number, from 0, in place of those of the number two before it."""
        write_bytes(self._spark, self._slot(number), data, {"number": number, "about": about})

    def latest(self) -> tuple[int, bytes, dict[str, Any]] | None:
        """Return the largest number that is there, complete, with its bytes and what is known of them, or None."""
        found = [read for slot in (0, 1) if (read := read_bytes(self._spark, self._slot(slot))) is not None]
        if not found:
            return None
        data, words = max(found, key=lambda read: int(read[1]["number"]))
        return int(words["number"]), data, words["about"]

    def _slot(self, number: int) -> str:
        return f"{self._folder}/slot-{number % 2}"


def _checksum(data: bytes, words: str) -> int:
    return zlib.crc32(words.encode(), zlib.crc32(data))


def _rows(spark: Any, path: str | os.PathLike[str], first: int) -> dict[int, Any]:
    """Return a portion of the rows of a folder by number, from `first` on; no rows if there is no folder."""
    from pyspark.errors import AnalysisException

    try:
        frame = spark.read.schema(SCHEMA).options(**_READING).parquet(os.fspath(path))
        rows = frame.where(f"number >= {first} and number < {first + PORTION}").collect()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return {}
        raise
    return {row["number"]: row for row in rows}
