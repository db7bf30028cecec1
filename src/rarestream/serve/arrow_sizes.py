"""How large the messages of an Arrow IPC stream are when they have been decompressed, without doing so.

A message names its buffers in a flatbuffer (Message.fbs of Arrow); a compressed buffer starts with its length. A few
bytes may stand for gigabytes, so this is asked before pyarrow reads them.
"""

from __future__ import annotations

import struct
from typing import Any

HEADER_TYPE, HEADER = 1, 2  # fields of a Message
RECORD_BATCH, DICTIONARY_BATCH = 3, 2  # types of its header
DATA = 1  # field of a DictionaryBatch: a RecordBatch
BUFFERS, COMPRESSION = 2, 3  # fields of a RecordBatch
NOT_COMPRESSED = -1  # in place of the length of a buffer


def unpacked_size(message: Any) -> int:
    """Return the bytes of a message's buffers.

    Parameters
    ----------
    message : pyarrow.ipc.Message
        The message.

    Raises
    ------
    struct.error, IndexError
        If it is damaged.
    """
    if message.body is None:
        return 0
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    table = _pointed(metadata, 0)
    kind_at = _field(metadata, table, HEADER_TYPE)
    kind = metadata[kind_at] if kind_at else 0
    batch_at = _field(metadata, table, HEADER)
    if kind == DICTIONARY_BATCH and batch_at:
        batch_at = _field(metadata, _pointed(metadata, batch_at), DATA)
    elif kind != RECORD_BATCH:
        return len(body)
    if not batch_at:
        return len(body)
    batch = _pointed(metadata, batch_at)
    buffers_at = _field(metadata, batch, BUFFERS)
    if not _field(metadata, batch, COMPRESSION) or not buffers_at:
        return len(body)
    vector = _pointed(metadata, buffers_at)
    (count,) = struct.unpack_from("<I", metadata, vector)
    size = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * number)
        if length:
            (unpacked,) = struct.unpack_from("<q", body, offset)
            size += length if unpacked == NOT_COMPRESSED else max(unpacked, length)
    return size


def _pointed(buffer: memoryview, at: int) -> int:
    """Return where the table or vector is whose offset is at this place."""
    (offset,) = struct.unpack_from("<I", buffer, at)
    return int(at + offset)


def _field(buffer: memoryview, table: int, number: int) -> int:
    """Return where a field of a table is; 0 if the table does not have it."""
    (back,) = struct.unpack_from("<i", buffer, table)
    (size,) = struct.unpack_from("<H", buffer, table - back)
    entry = 4 + 2 * number
    if entry + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", buffer, table - back + entry)
    return table + offset if offset else 0
