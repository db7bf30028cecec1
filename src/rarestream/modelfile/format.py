"""The model file: a header and named arrays, to bytes and back. Knows no learner.

A `.rare` file is a safetensors file. Its metadata holds one entry, `rarestream`: the
header as JSON with sorted keys. `header["checksum"]` is the SHA-256 of the header
without it and of every array, so a flipped bit anywhere is noticed. The same header and
arrays give the same bytes. The format is specified in docs/model-file.md.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import stat
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import ModelFileError, OutputError, plain
from rarestream.system import whole

FORMAT = 3  # the newest; a header states the lowest one that can hold it
KEY = "rarestream"
LONGEST_HEADER = 100 << 20  # bytes; safetensors reads no longer one
# The types of arrays, by the names that safetensors has for them, in the order in which it has arrays in a file.
KINDS = {"I64": "<i8", "F64": "<f8", "F32": "<f4", "I32": "<i4", "I8": "|i1", "U8": "|u1"}
DTYPES = tuple(sorted(KINDS.values()))

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header and arrays to a file, completely or not at all; ModelFileError if that fails."""
    try:
        pieces = _pieces(header, arrays)
        with whole(path) as file:
            for piece in pieces:
                file.write(piece)
    except OutputError as error:
        raise ModelFileError(str(error)) from error


def peek(path: str | os.PathLike[str]) -> Header | None:
    """Return the header of a model file; None if it is not a model file.

    It is recognised by its contents, whatever its name. No arrays are read, and nothing else is checked.
    """
    import json

    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if not 2 <= size <= min(LONGEST_HEADER, os.fstat(file.fileno()).st_size - 8):
                return None
            header = json.loads(json.loads(file.read(size))["__metadata__"][KEY])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return header if isinstance(header, dict) and "format" in header else None


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """Return the header and the arrays of a file; ModelFileError if it is not a valid model file.

    The header is checked first. The arrays of a regular file are mapped into memory once they are known to lie in it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return _parsed(file, None, plain(path))
            return _parsed(file, status.st_size, plain(path), mapped=os.name != "nt")  # Windows replaces no mapped file
    except OSError as error:
        raise ModelFileError(f"{plain(path)}: cannot be read ({error.strerror}).") from error


def to_bytes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of the file of a header and arrays; ModelFileError if they cannot be stored."""
    return b"".join(_pieces(header, arrays))


def _pieces(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[bytes | memoryview]:
    """Return what the file consists of; the numbers of large arrays are not copied."""
    import json

    found = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in found.items():
        if array.dtype.str not in DTYPES:
            raise ModelFileError(f"array {name!r} has dtype {array.dtype}; a model file holds {', '.join(DTYPES)}.")
    full = {"format": FORMAT, **header}
    try:
        full["checksum"] = _checksum(full, found)
        text = _json(full)
        sound = _as_written(json.loads(text), text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"the header cannot be written as JSON ({error}). What does model.source hold?") from None
    if not sound:
        raise ModelFileError("the header would be read back as another one: keys of model.source must be text.")
    names = {dtype: name for name, dtype in KINDS.items()}
    order = list(names)
    container: dict[str, Any] = {"__metadata__": {KEY: text}}
    numbers: list[bytes | memoryview] = []
    end = 0
    for name, array in sorted(found.items(), key=lambda one: (order.index(one[1].dtype.str), one[0])):
        begin, end = end, end + array.nbytes
        kind = names[array.dtype.str]
        container[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
        numbers.append(_bytes_of(array))
    start = _spelled(container)
    start += b" " * (-len(start) % 8)
    return [len(start).to_bytes(8, "little"), start, *numbers]


def _spelled(container: Mapping[str, Any]) -> bytes:
    """Return the header of a container as safetensors spells it, but for blanks at its end."""
    import json

    return json.dumps(container, separators=(",", ":"), ensure_ascii=False).encode()


def _bytes_of(array: NDArray[Any]) -> bytes | memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else b""


def from_bytes(data: bytes, name: str = "model") -> tuple[Header, Arrays]:
    """Return the header and the arrays of the bytes of a file; error messages start with `name`."""
    return _parsed(io.BytesIO(data), len(data), name)


def _parsed(file: IO[bytes], size: int | None, name: str, mapped: bool = False) -> tuple[Header, Arrays]:
    """Return the header and the arrays of a file of `size` bytes; None: a pipe, of unknown size."""
    import json

    text = _container(file, size, name)
    metadata, entries = _entries(text, name)
    try:
        header = json.loads(metadata[KEY])
        version = header["format"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ModelFileError(f"{name}: a safetensors file, but not a rarestream model.") from None
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{name}: has the format {version!r}; formats are numbers from 1.")
    if version > FORMAT:
        raise ModelFileError(
            f"{name}: written by format {version}; this version reads up to {FORMAT}. Upgrade rarestream."
        )
    start, length = 8 + len(text), sum(entry.size for entry in entries)
    if size is not None and size != start + length:
        raise ModelFileError(
            f"{name}: {size:,} bytes long, but its header requires {start + length:,}: truncated or damaged. "
            "Use another copy."
        )
    if mapped and length:
        data: Any = mmap.mmap(file.fileno(), start + length, access=mmap.ACCESS_READ)
    else:
        data, start = _exactly(file, length), 0
        if len(data) < length or file.read(1):
            raise ModelFileError(f"{name}: longer or shorter than its header requires: damaged. Use another copy.")
    arrays: Arrays = {}
    for entry in entries:
        array = np.frombuffer(data, entry.dtype, entry.items, start)
        arrays[entry.name] = array.reshape(entry.shape)
        start += entry.size
    written = _as_written(header, metadata[KEY])
    checksum = header.pop("checksum", None)
    if not written or checksum != _checksum(header, arrays):
        raise ModelFileError(f"{name}: the checksum does not match; the file is damaged. Use another copy.")
    return header, arrays


class _Entry(NamedTuple):
    """An array as the container describes it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def items(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        return self.items * self.dtype.itemsize


def _container(file: IO[bytes], size: int | None, name: str) -> bytes:
    """Return the text of the container's header, whose length is in the first bytes of the file."""
    if size == 0:
        raise ModelFileError(f"{name}: the file is empty. It was never a model, or its writing was cut short.")
    start = _exactly(file, 8)
    length = int.from_bytes(start, "little")
    room = LONGEST_HEADER if size is None else min(LONGEST_HEADER, size - 8)
    text = _exactly(file, length) if len(start) == 8 and 2 <= length <= room else b""
    if not text.startswith(b"{") or len(text) < length:
        raise ModelFileError(f"{name}: not a rarestream model, or cut short.")
    return text


def _entries(text: bytes, name: str) -> tuple[dict[str, str], list[_Entry]]:
    """Return the metadata, and the entries of the arrays, which follow each other without a gap."""
    import json

    try:
        container = json.loads(text)
        if _spelled(container).ljust(len(text)) != text:
            raise ValueError("its header is spelled otherwise")
        metadata = dict(container.pop("__metadata__"))
        entries: list[_Entry] = []
        end = 0
        for key, entry in container.items():
            if entry["dtype"] not in KINDS:
                raise ValueError(f"array {key!r} has the type {entry['dtype']!r}, which no model file has")
            shape = tuple(entry["shape"])
            if len(shape) > 4 or not all(type(axis) is int and 0 <= axis < 1 << 40 for axis in shape):
                raise ValueError(f"array {key!r} has the shape {list(shape)}")
            entries.append(_Entry(key, np.dtype(KINDS[entry["dtype"]]), shape))
            begin, end = end, end + entries[-1].size
            if entry["data_offsets"] != [begin, end]:
                raise ValueError(f"array {key!r} is not at the offset that the arrays before it require")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{name}: not a rarestream model, or damaged ({error}).") from None
    return metadata, entries


def _exactly(file: IO[bytes], size: int) -> bytes:
    """Read up to `size` bytes in pieces, so that a false size does not allocate memory."""
    parts, left = [], size
    while left and (part := file.read(min(left, 1 << 24))):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    import hashlib

    digest = hashlib.sha256(_json({key: value for key, value in header.items() if key != "checksum"}).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _as_written(header: Header, text: str) -> bool:
    """Return whether the header is spelled as `to_bytes` spells it: not 0E0 for 0.0, and no infinity such as 9e999."""
    try:
        return _json(header) == text
    except ValueError:
        return False


def _json(value: Any) -> str:
    import json

    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
