"""What the records of the log hold. A record is everything that applying it needs, times included: nothing else may
decide what becomes of the state.

Payloads are MessagePack arrays. Fields are only ever added at the end, so that logs of earlier versions can be read.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from rarestream.serve.log import Record

LEARN, STORE, LABEL, TICK, SHADOW, PROMOTE, RULES, HALF_LIFE = range(1, 9)
NAMES = {
    LEARN: "learn",
    STORE: "store",
    LABEL: "label",
    TICK: "tick",
    SHADOW: "shadow",
    PROMOTE: "promote",
    RULES: "rules",
    HALF_LIFE: "half-life",
}


class Learn(Struct, array_like=True):
    """Rows with labels. One entry per row."""

    time: float
    key: str | None  # idempotency key
    print: int  # of the request, to recognise a key that is used for another
    format: str  # of the text
    text: bytes
    labels: bytes | None  # int8; None: the text has them
    importances: bytes | None  # float64


class Store(Struct, array_like=True):
    """Rows that were scored and wait for their labels. One entry per row."""

    time: float
    format: str
    text: bytes  # a row per line
    ids: list[str]


class LabelRows(Struct, array_like=True):
    """Labels of stored rows. One entry per label."""

    time: float
    key: str | None
    print: int
    ids: list[str]
    labels: bytes  # int8


class Tick(Struct, array_like=True):
    """Time has come to this: labels before it are late."""

    time: float


class StartShadow(Struct, array_like=True):
    """A model begins to learn beside the one that answers. Without a file, the shadow is dropped."""

    time: float
    file: bytes | None
    promote: str
    needed_positives: int
    margin: float


class Promote(Struct, array_like=True):
    """The shadow becomes the model that answers."""

    time: float


class ChangeRules(Struct, array_like=True):
    """The rules by which records are applied, from here on."""

    time: float
    label_wait: float  # seconds
    unlabelled: str  # "drop", "negative"
    window: int  # rows of the windowed AUC


class HalfLife(Struct, array_like=True):
    """The model forgets with this half-life, in rows, from here on."""

    time: float
    rows: float


Entry = Learn | Store | LabelRows | Tick | StartShadow | Promote | ChangeRules | HalfLife
_TYPES: dict[int, type[Struct]] = {
    LEARN: Learn,
    STORE: Store,
    LABEL: LabelRows,
    TICK: Tick,
    SHADOW: StartShadow,
    PROMOTE: Promote,
    RULES: ChangeRules,
    HALF_LIFE: HalfLife,
}
_DECODERS = {kind: msgspec.msgpack.Decoder(cls) for kind, cls in _TYPES.items()}
KINDS = {cls: kind for kind, cls in _TYPES.items()}
encode = msgspec.msgpack.Encoder().encode


def decode(record: Record) -> Entry:
    """Return what a record holds.

    Raises
    ------
    msgspec.DecodeError, KeyError
        If it is of a newer version.
    """
    entry: Any = _DECODERS[record.kind].decode(record.payload)
    found: Entry = entry
    return found


def describe(record: Record) -> dict[str, Any]:
    """Return a record ready for JSON, with its rows as text, for people and other programs."""
    entry = decode(record)
    shown: dict[str, Any] = {"sequence": record.sequence, "count": record.count, "kind": NAMES[record.kind]}
    for name in entry.__struct_fields__:
        value = getattr(entry, name)
        if value is None or name == "print":
            continue
        if name == "labels":
            value = np.frombuffer(value, np.int8).tolist()
        elif name == "importances":
            value = np.frombuffer(value, np.float64).tolist()
        elif name == "text":
            name, value = ("rows", _lines(value)) if entry.format != "arrow" else ("bytes", len(value))  # type: ignore[union-attr]
        elif name == "file":
            name, value = "bytes", len(value)
        shown[name] = value
    return shown


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines()
