"""What each method of a client asks, and how it reads the answer. Nothing here sends anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

from rarestream.client import answers
from rarestream.client.encoding import (
    checked_id,
    checked_importance,
    checked_label,
    encoded_row,
    encoded_rows,
    from_json,
    json_list,
)
from rarestream.client.errors import Row
from rarestream.client.http import Answer
from rarestream.errors import DataError

T = TypeVar("T")
Labels = Mapping[str, int] | Iterable[tuple[str, int]]


class Request(Generic[T]):
    """A request.

    Attributes
    ----------
    repeatable
        Whether sending it twice does what sending it once does.
    file
        Whether request or answer is a whole model: the time-out is then one without progress.
    """

    __slots__ = ("body", "file", "key", "line", "media", "read", "repeatable")

    def __init__(
        self,
        method: str,
        path: str,
        read: Callable[[Answer], T],
        body: bytes | None = None,
        *,
        key: str | None = None,
        repeatable: bool = True,
        file: bool = False,
    ) -> None:
        self.line = method, path
        self.read = read
        self.body = body
        self.key = key
        self.repeatable = repeatable
        self.file = file
        self.media = b"application/octet-stream" if file else b"application/json"

    def text(self, prefix: str, head: bytes) -> bytes:
        """Return the request as bytes; `head` has the lines that all requests have."""
        method, path = self.line
        key = "" if self.key is None else f"Idempotency-Key: {self.key}\r\n"
        start = f"{method} {prefix}{path} HTTP/1.1\r\n{key}".encode("ascii")
        if self.body is None:
            length = b"" if method == "GET" else b"Content-Length: 0\r\n"
            return b"%b%b%b\r\n" % (start, head, length)
        return b"%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            start,
            head,
            self.media,
            len(self.body),
            self.body,
        )


def _json(make: Callable[[dict[str, Any]], T]) -> Callable[[Answer], T]:
    return lambda answer: make(from_json(answer.body))


_prediction = _json(answers.prediction)
_row_prediction = _json(answers.row_prediction)
_learned = _json(answers.learned)
_labelled = _json(answers.labelled)
_model = _json(answers.model_info)
_shadow = _json(answers.shadow_info)


def predict(rows: Iterable[Row], ids: Iterable[str] | None, remember: bool) -> Request[answers.Prediction]:
    return predict_encoded(encoded_rows(rows), None if ids is None else [checked_id(id) for id in ids], remember)


def predict_encoded(texts: list[bytes], ids: list[str] | None, remember: bool) -> Request[answers.Prediction]:
    if ids is not None and len(ids) != len(texts):
        raise DataError(f"There must be an id for each row: {len(texts)} rows, {len(ids)} ids.")
    body = b'{"rows":[%b]%b}' % (b",".join(texts), _stored(b"ids", ids, remember))
    return Request("POST", "/predict", _prediction, body)


def predict_one(row: Row, id: str | None, remember: bool) -> Request[answers.RowPrediction]:
    stored = b"" if id is None and not remember else _stored(b"id", None if id is None else checked_id(id), remember)
    return Request("POST", "/predict", _row_prediction, b'{"row":%b%b}' % (encoded_row(row), stored))


def _stored(name: bytes, value: object, remember: bool) -> bytes:
    text = b"" if value is None else b',"%b":%b' % (name, json_list(value))  # type: ignore[arg-type]
    return text + (b',"remember":true' if remember else b"")


def learn(
    rows: Iterable[Row], labels: Iterable[int], importances: Iterable[float] | None, key: str | None
) -> Request[answers.Learned]:
    texts = encoded_rows(rows)
    marks = [checked_label(label) for label in labels]
    weights = None if importances is None else [checked_importance(importance) for importance in importances]
    for name, values in (("label", marks), ("importance", weights)):
        if values is not None and len(values) != len(texts):
            raise DataError(f"There must be one {name} for each row: {len(texts)} rows, {len(values)} {name}s.")
    return learn_encoded(texts, marks, weights, key)


def learn_encoded(
    texts: list[bytes], labels: list[int], importances: list[float] | None, key: str | None
) -> Request[answers.Learned]:
    weights = b"" if importances is None else b',"importances":%b' % json_list(importances)
    body = b'{"rows":[%b],"labels":%b%b}' % (b",".join(texts), json_list(labels), weights)
    return Request("POST", "/learn", _learned, body, key=checked_key(key))


def learn_one(row: Row, label: int, importance: float | None, key: str | None) -> Request[answers.Learned]:
    weight = b"" if importance is None else b',"importance":%b' % repr(checked_importance(importance)).encode()
    body = b'{"row":%b,"label":%d%b}' % (encoded_row(row), checked_label(label), weight)
    return Request("POST", "/learn", _learned, body, key=checked_key(key))


def label(labels: Labels, key: str | None) -> Request[answers.Labelled]:
    if isinstance(labels, str | bytes):
        raise DataError(
            "labels must be a dict of ids and labels, or a list of (id, label); there is label_one for one."
        )
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    checked = []
    for pair in pairs:
        try:
            id, mark = pair
        except (TypeError, ValueError):
            raise DataError(f"Labels must be pairs of an id and a label; got {pair!r:.80}.") from None
        checked.append((checked_id(id), checked_label(mark)))
    return label_checked(checked, key)


def label_checked(labels: list[tuple[str, int]], key: str | None) -> Request[answers.Labelled]:
    body = b'{"labels":%b}' % json_list([{"id": id, "label": mark} for id, mark in labels])
    return Request("POST", "/label", _labelled, body, key=checked_key(key))


def label_one(id: str, label: int, key: str | None) -> Request[answers.Labelled]:
    body = json_list({"id": checked_id(id), "label": checked_label(label)})  # type: ignore[arg-type]
    return Request("POST", "/label", _labelled, body, key=checked_key(key))


def checked_key(key: str | None) -> str:
    """Return an idempotency key; a new one if there is none."""
    if key is None:
        return os.urandom(16).hex()
    if not isinstance(key, str) or not 1 <= len(key) <= 255 or any(not "!" <= letter <= "~" for letter in key):
        raise DataError(f"key must be a text of 1 to 255 printable ASCII characters without spaces; got {key!r:.80}.")
    return key


def model() -> Request[answers.ModelInfo]:
    return Request("GET", "/model", _model)


def statistics() -> Request[dict[str, Any]]:
    return Request("GET", "/statistics", _json(dict))


def model_file() -> Request[bytes]:
    return Request("GET", "/model/file", lambda answer: answer.body, file=True)


def snapshot() -> Request[int]:
    return Request("POST", "/snapshot", _json(lambda found: int(found["sequence"])))


def shadow() -> Request[answers.ShadowInfo]:
    return Request("GET", "/shadow", _shadow)


def start_shadow(
    file: bytes | str | os.PathLike[str],
    promote: Literal["auto", "manual"],
    positives: int | None,
    margin: float | None,
) -> Request[answers.ShadowInfo]:
    if promote not in ("auto", "manual"):
        raise DataError(f'promote must be "auto" or "manual"; got {promote!r:.80}.')
    query = f"promote={promote}"
    if positives is not None:
        query += f"&positives={int(positives)}"
    if margin is not None:
        query += f"&margin={float(margin)!r}"
    if isinstance(file, bytes | bytearray | memoryview):
        body = bytes(file)
    else:
        with open(file, "rb") as opened:
            body = opened.read()
    return Request("POST", f"/shadow?{query}", _shadow, body, repeatable=False, file=True)


def stop_shadow() -> Request[None]:
    return Request("DELETE", "/shadow", lambda answer: None, repeatable=False)


def promote() -> Request[answers.ModelInfo]:
    return Request("POST", "/shadow/promote", _model, repeatable=False)


def health(path: str) -> Request[bool]:
    return Request("GET", path, lambda answer: True)
