"""Bodies of requests, decoded. What is wrong with one is said with its field, the rule and the value that broke it.

A body is decoded once, as the message that it should be. Only if that fails is it read again, field by field, to say
why: that costs time, but only for requests that fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from rarestream.errors import nearest, plain
from rarestream.serve.errors import RequestError
from rarestream.serve.messages import IdLabel, LabelMany, LearnMany, LearnOne, PredictMany, PredictOne

LONGEST_VALUE = 60  # characters of a value that a message quotes
DECODING_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Check = Callable[[str, Raw], None]


class _Shape:
    """The fields that a body may have, with what is checked of each."""

    def __init__(self, example: str, required: Mapping[str, Check], optional: Mapping[str, Check]) -> None:
        self.example, self.required, self.fields = example, required, {**required, **optional}


predict_one = msgspec.json.Decoder(PredictOne).decode
learn_one = msgspec.json.Decoder(LearnOne).decode
label_one = msgspec.json.Decoder(IdLabel).decode
_predict_many = msgspec.json.Decoder(PredictMany).decode
_learn_many = msgspec.json.Decoder(LearnMany).decode
_label_many = msgspec.json.Decoder(LabelMany).decode
_learn_lines = msgspec.json.Decoder(LearnOne).decode_lines
_label_lines = msgspec.json.Decoder(IdLabel).decode_lines
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_any = msgspec.json.Decoder().decode


def predict_many(body: bytes) -> PredictMany:
    """Decode the rows of a body that is not one row."""
    try:
        return _predict_many(body)
    except DECODING_ERRORS as error:
        raise _blame(body, "row", _PREDICT_ONE, "rows", _PREDICT_MANY, error) from None


def learn_many(body: bytes) -> LearnMany:
    """Decode the rows and labels of a body that is not one row."""
    try:
        return _learn_many(body)
    except DECODING_ERRORS as error:
        raise _blame(body, "row", _LEARN_ONE, "rows", _LEARN_MANY, error) from None


def label_many(body: bytes) -> LabelMany:
    """Decode the labels of a body that is not one label."""
    try:
        return _label_many(body)
    except DECODING_ERRORS as error:
        raise _blame(body, "id", _LABEL_ONE, "labels", _LABEL_MANY, error) from None


def learn_lines(body: bytes) -> list[LearnOne]:
    """Decode one row with its label from each line."""
    try:
        return _learn_lines(body)
    except DECODING_ERRORS as error:
        raise _blame_line(body, learn_one, _LEARN_ONE, error) from None


def label_lines(body: bytes) -> list[IdLabel]:
    """Decode one label from each line."""
    try:
        return _label_lines(body)
    except DECODING_ERRORS as error:
        raise _blame_line(body, label_one, _LABEL_ONE, error) from None


def same_length(name: str, values: Sequence[object] | None, rows: int) -> None:
    """Raise unless there is one value per row."""
    if values is not None and len(values) != rows:
        raise _bad(f'"{name}" has {len(values)} values for {rows} rows; it needs one per row.')


# -- why a body could not be decoded


def _blame(body: bytes, one: str, shape_one: _Shape, many: str, shape_many: _Shape, error: Exception) -> RequestError:
    fields = _fields(body, f"{shape_one.example} or {shape_many.example}")
    if isinstance(fields, RequestError):
        return fields
    if one in fields and many in fields:
        return _bad(f'The body has both "{one}" and "{many}"; give one of them.')
    if one not in fields and many not in fields:
        near = _meant(next(iter(fields), None), [one, many])
        came = f"it has {_names(fields)}{near}" if fields else "it is empty"
        return _bad(f'The body needs "{one}" or "{many}", as in {shape_one.example}; {came}.')
    return _blame_fields(fields, shape_many if many in fields else shape_one) or _other(error)


def _blame_line(body: bytes, decode: Callable[[bytes], object], shape: _Shape, error: Exception) -> RequestError:
    row = 0
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            decode(line)
        except DECODING_ERRORS as wrong:
            fields = _fields(line, shape.example)
            found = fields if isinstance(fields, RequestError) else _blame_fields(fields, shape) or _other(wrong)
            return RequestError(found.status, found.code, f"Line {number}: {found}", row=row)
        row += 1
    return _other(error)


def _fields(body: bytes, example: str) -> dict[str, Raw] | RequestError:
    try:
        body.decode()
        return _object(body)
    except msgspec.ValidationError:
        return _bad(f"The body must be an object such as {example}, not {_value(Raw(body))}.")
    except DECODING_ERRORS as error:
        return malformed(body, error)


def malformed(body: bytes, error: Exception) -> RequestError:
    """The answer to a body that is not JSON, with the place."""
    if isinstance(error, RecursionError):
        return RequestError(400, "bad_json", "The body is nested too deeply.")
    try:
        text = body.decode()
    except UnicodeDecodeError as wrong:
        place = f"byte {wrong.start} of the body is 0x{body[wrong.start]:02x}"
        return RequestError(400, "bad_json", f"The body is not UTF-8: {place}, where no character can be.")
    if not text.strip():
        return RequestError(400, "bad_json", "The body is empty; JSON is needed.")
    reason, _, place = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    if place.endswith(")") and place[:-1].isdigit():
        at = int(place[:-1])
    else:  # it ends too early, or this decoder says nothing of the place
        reason, at = "the text ends too early", len(body)
        try:
            json.loads(text)
        except json.JSONDecodeError as wrong:
            if wrong.pos < len(text):
                reason, at = wrong.msg[0].lower() + wrong.msg[1:], len(text[: wrong.pos].encode())
        except (RecursionError, ValueError):
            pass
        else:
            reason, at = "an escape such as \\ud800 is half a character", len(body)
    before = body[:at]
    line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
    return RequestError(400, "bad_json", f"Malformed JSON at line {line}, column {column} (byte {at}): {reason}.")


def _blame_fields(fields: Mapping[str, Raw], shape: _Shape, place: str = "") -> RequestError | None:
    where = f"{place}: " if place else ""
    for name in fields:
        if name not in shape.fields:
            known = ", ".join(f'"{field}"' for field in shape.fields)
            return _bad(f"{where}unknown field {_quoted(name)}{_meant(name, shape.fields)}. The fields are {known}.")
    for name in shape.required:
        if name not in fields:
            return _bad(f'{where}the field "{name}" is missing, as in {shape.example}.')
    try:
        for name, raw in fields.items():
            shape.fields[name](f"{place}.{name}" if place else name, raw)
    except RequestError as found:
        return found
    return None


def _bad(message: str) -> RequestError:
    return RequestError(422, "bad_request", message[0].upper() + message[1:])


def _other(error: Exception) -> RequestError:
    if isinstance(error, msgspec.ValidationError):
        return _bad(f"The body breaks a rule of its schema, see /docs: {str(error).partition(' - at ')[0]}.")
    return RequestError(400, "bad_json", f"Malformed JSON: {plain(error)}.")


def _quoted(name: str) -> str:
    return json.dumps(plain(name if len(name) <= LONGEST_VALUE else name[:LONGEST_VALUE] + "..."), ensure_ascii=False)


def _names(fields: Mapping[str, Raw]) -> str:
    shown = [_quoted(name) for name in list(fields)[:5]]
    return ", ".join(shown) + (", ..." if len(fields) > 5 else "")


def _meant(name: str | None, known: Any) -> str:
    near = None if name is None else nearest(name[:LONGEST_VALUE], known)
    return "" if near is None else f' (did you mean "{near}"?)'


def _value(raw: Raw) -> str:
    """A value for a message: its kind and, if it is short, its text."""
    text = bytes(raw).strip()
    kinds = {b"{": "an object", b"[": "a list", b'"': "text", b"t": "true", b"f": "false", b"n": "null"}
    kind = kinds.get(text[:1], "the number")
    if text[:1] in b"tfn" and text:
        return kind
    if len(text) > LONGEST_VALUE:
        return kind if kind != "the number" else "a number of many digits"
    return f"{kind} {plain(text.decode(errors='replace'))}"


# -- what is checked of each field


def _row(place: str, raw: Raw) -> None:
    if bytes(raw).lstrip()[:1] not in (b"{", b"["):
        raise _bad(f"{place} must be an object of named values or a list of [index, value], not {_value(raw)}.")


def _id(place: str, raw: Raw) -> None:
    try:
        value = _any(raw)
    except msgspec.DecodeError:  # the syntax was checked before; only escapes were not
        reason = f"The text of {place} has an escape such as \\ud800, which is half a character."
        raise RequestError(400, "bad_json", reason) from None
    if not isinstance(value, str) or not 1 <= len(value) <= 256:
        raise _bad(f"{place} must be text of 1 to 256 characters, not {_value(raw)}.")


def _boolean(place: str, raw: Raw) -> None:
    if bytes(raw).strip() not in (b"true", b"false"):
        raise _bad(f"{place} must be true or false, not {_value(raw)}.")


def _label(place: str, raw: Raw) -> None:
    if bytes(raw).strip() not in (b"1", b"0", b"-1"):
        raise _bad(f"{place} must be 1 (positive), 0 or -1 (negative), not {_value(raw)}.")


def _importance(place: str, raw: Raw) -> None:
    try:
        value = _any(raw)
    except DECODING_ERRORS:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e12:
        raise _bad(f"{place} must be a number from 0 to 1e12, not {_value(raw)}.")


def _or_null(check: Check) -> Check:
    def checked(place: str, raw: Raw) -> None:
        if bytes(raw).strip() != b"null":
            check(place, raw)

    return checked


def _items(check: Check) -> Check:
    def checked(place: str, raw: Raw) -> None:
        try:
            values = _list(raw)
        except msgspec.ValidationError:
            raise _bad(f"{place} must be a list, not {_value(raw)}.") from None
        for i, value in enumerate(values):
            check(f"{place}[{i}]", value)

    return checked


def _label_object(place: str, raw: Raw) -> None:
    try:
        fields = _object(raw)
    except msgspec.ValidationError:
        raise _bad(f"{place} must be an object such as {_LABEL_ONE.example}, not {_value(raw)}.") from None
    if (found := _blame_fields(fields, _LABEL_ONE, place)) is not None:
        raise found


_PREDICT_ONE = _Shape('{"row": {"site": "a.com"}}', {"row": _row}, {"id": _or_null(_id), "remember": _boolean})
_PREDICT_MANY = _Shape(
    '{"rows": [{"site": "a.com"}]}', {"rows": _items(_row)}, {"ids": _or_null(_items(_id)), "remember": _boolean}
)
_LEARN_ONE = _Shape(
    '{"row": {"site": "a.com"}, "label": 1}', {"row": _row, "label": _label}, {"importance": _or_null(_importance)}
)
_LEARN_MANY = _Shape(
    '{"rows": [{"site": "a.com"}], "labels": [1]}',
    {"rows": _items(_row), "labels": _items(_label)},
    {"importances": _or_null(_items(_importance))},
)
_LABEL_ONE = _Shape('{"id": "42", "label": 1}', {"id": _id, "label": _label}, {})
_LABEL_MANY = _Shape('{"labels": [{"id": "42", "label": 1}]}', {"labels": _items(_label_object)}, {})
