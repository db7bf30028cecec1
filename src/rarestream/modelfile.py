"""The model file: a header and named arrays, to bytes and back. Knows no learner.

A `.rare` file is a safetensors file. Its metadata holds one entry, `rarestream`: the
header as JSON with sorted keys. `header["checksum"]` is the SHA-256 of the header
without it and of every array, so a flipped bit anywhere is noticed. The same header and
arrays give the same bytes. The format is specified in docs/model-file.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import ModelFileError, OutputError, plain
from rarestream.system import write_whole

FORMAT = 1
KEY = "rarestream"
LONGEST_HEADER = 1 << 26  # bytes that `peek` reads
DTYPES = ("<f4", "<f8", "<i4", "<i8", "|i1", "|u1")

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """The file of a header and arrays, whole or not at all."""
    try:
        write_whole(path, to_bytes(header, arrays))
    except OutputError as error:
        raise ModelFileError(str(error)) from error


def peek(path: str | os.PathLike[str]) -> Header | None:
    """The header of a model file; None if the file is none. Reads no arrays and checks nothing else: it tells a model
    from other files by what is in it, whatever its name."""
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
    """The header and the arrays of a file; ModelFileError if anything about it is not as it should be."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{plain(path)}: cannot be read ({error.strerror}).") from error
    return from_bytes(data, plain(path))


def to_bytes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in whole.items():
        if array.dtype.str not in DTYPES:
            raise ModelFileError(f"array {name!r} has dtype {array.dtype}; a model file holds {', '.join(DTYPES)}.")
    full = {**header, "format": FORMAT}
    full["checksum"] = _checksum(full, whole)
    return bytes(save(whole, metadata={KEY: _json(full)}))


def from_bytes(data: bytes, name: str = "model") -> tuple[Header, Arrays]:
    if not data:
        raise ModelFileError(f"{name}: the file is empty. It was never a model, or its writing was cut short.")
    metadata, arrays = _opened(data, name)
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
    written = _as_written(header, metadata[KEY])
    checksum = header.pop("checksum", None)
    if not written or checksum != _checksum(header, arrays):
        raise ModelFileError(f"{name}: the checksum does not match; the file is damaged. Use another copy.")
    return header, arrays


def _opened(data: bytes, name: str) -> tuple[dict[str, str], Arrays]:
    """Every check of the container happens here, before any array is made."""
    from safetensors import SafetensorError, deserialize

    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8 or size < 2 or data[8:9] != b"{":
        raise ModelFileError(f"{name}: not a rarestream model, or cut short ({len(data)} bytes).")
    try:
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
        entries = deserialize(data)  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{name}: not a rarestream model, or damaged ({error}).") from None
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "I8": "|i1", "U8": "|u1"}
    arrays: Arrays = {}
    for key, entry in entries:
        if entry["dtype"] not in kinds:
            raise ModelFileError(f"{name}: array {key!r} has the type {entry['dtype']}; a model has none such.")
        array = np.frombuffer(bytes(entry["data"]), dtype=kinds[entry["dtype"]])
        arrays[key] = array.reshape(entry["shape"])
    return metadata, arrays


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    import hashlib

    digest = hashlib.sha256(_json({key: value for key, value in header.items() if key != "checksum"}).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def _as_written(header: Header, text: str) -> bool:
    """0E0 for 0.0 is the same number, but not what was written; 9e999 is a float no file of ours holds."""
    try:
        return _json(header) == text
    except ValueError:
        return False


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
