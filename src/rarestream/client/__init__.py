"""Clients of `rarestream serve`.

    from rarestream.client import Client

    with Client("http://localhost:8080", token="...") as client:
        answer = client.predict_one({"site": "a.com", "price": 3.5}, id="click-17")
        client.label_one("click-17", 1)

They need nothing beyond the standard library; msgspec, where it is installed, encodes rows faster. `AsyncClient` has
the same methods for asyncio, which is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rarestream.client.answers import (
    AucInterval,
    Labelled,
    Learned,
    ModelInfo,
    Prediction,
    RefusedRow,
    RowPrediction,
    ShadowInfo,
)
from rarestream.client.blocking import Batch, Client
from rarestream.client.errors import BatchError, FailedRow, QueueFullError, ServiceError, ServiceUnavailableError

if TYPE_CHECKING:
    from rarestream.client.asynchronous import AsyncBatch, AsyncClient

__all__ = [
    "AsyncBatch",
    "AsyncClient",
    "AucInterval",
    "Batch",
    "BatchError",
    "Client",
    "FailedRow",
    "Labelled",
    "Learned",
    "ModelInfo",
    "Prediction",
    "QueueFullError",
    "RefusedRow",
    "RowPrediction",
    "ServiceError",
    "ServiceUnavailableError",
    "ShadowInfo",
]


def __getattr__(name: str) -> object:
    if name in ("AsyncBatch", "AsyncClient"):
        from rarestream.client import asynchronous

        return getattr(asynchronous, name)
    raise AttributeError(f"module 'rarestream.client' has no attribute {name!r}")
