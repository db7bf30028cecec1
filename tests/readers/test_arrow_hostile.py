"""Arrow data that is not as the interface prescribes: an error, no crash, and everything is released exactly once."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from rarestream import _native

RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exported:
    """A record batch of pyarrow in structs of our own. Releases are counted, and undo what a test has spoilt."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.schema, self.array = Schema(), Array()
        batch._export_to_c(ctypes.addressof(self.array), ctypes.addressof(self.schema))
        self.released: list[str] = []
        self._saved = [
            (ctypes.addressof(struct), bytes(struct))
            for i in range(batch.num_columns)
            for struct in (self.schema.children[i].contents, self.array.children[i].contents)
        ]
        self._callbacks = [self._counted(self.schema, "schema"), self._counted(self.array, "array")]

    def _counted(self, struct: Any, name: str) -> Any:
        original, saved = RELEASE(struct.release), bytes(struct)

        def release(address: int) -> None:
            self.released.append(name)
            if len(self.released) == 1:
                for column, content in self._saved:
                    ctypes.memmove(column, content, len(content))
            ctypes.memmove(address, saved, len(saved))
            original(address)

        callback = RELEASE(release)
        struct.release = ctypes.cast(callback, ctypes.c_void_p).value
        return callback

    def capsules(self) -> tuple[Any, Any]:
        return (
            new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )

    def column(self, i: int) -> Array:
        found: Array = self.array.children[i].contents
        return found




def fresh_batch() -> pa.RecordBatch:
    """A batch with memory of its own: tests write to it."""
    return pa.record_batch(
        {
            "x": pa.array(["a", "b", None]),
            "d": pa.array(["u", "v", "u"]).dictionary_encode(),
            "l": pa.array([[1, 2], [], [3]]),
            "s": pa.array([{"k": 1}, None, {"k": 2}]),
            "v": pa.array(["a", "b" * 20, None], pa.string_view()),
            "m": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "f": pa.array([[1.5], [2.5], None], pa.list_(pa.float64(), 1)),
        }
    )


BATCH = fresh_batch()
COLUMNS = BATCH.schema.names


def encode(batch: _native.ArrowBatch) -> Any:
    parser = _native.TableParser(
        bits=10, names=True, columns=[(name, 16, 0) for name in COLUMNS], crosses=[], missing=[], raw=False,
        counts=False, open=False, characters=False, shortest=1, longest=1,
    )  # fmt: skip
    return parser.parse_arrow(batch, columns=list(range(len(COLUMNS))), start=0, stop=len(batch), stop_after=1)


def survey(batch: _native.ArrowBatch) -> Any:
    return _native.survey_arrow([batch], wanted=[True] * len(COLUMNS), missing=[], rows=10)


def test_a_batch_that_is_as_it_should_be_is_released_once() -> None:
    exported = Exported(BATCH)
    batch = _native.ArrowBatch(*exported.capsules())
    assert [name for name, _ in batch.columns] == COLUMNS
    assert [word for _, word in batch.columns] == ["text", "categories", "list", "struct", "text", "map", "list"]
    assert survey(batch)[0] == 3
    assert len(encode(batch)[4]) == 3
    assert exported.released == []
    assert exported.schema.release is None and exported.array.release is None  # moved, as the interface prescribes
    del batch
    gc.collect()
    assert sorted(exported.released) == ["array", "schema"]


def change(**fields: Any) -> Callable[[Exported], None]:
    def changed(exported: Exported) -> None:
        for name, value in fields.items():
            setattr(exported.array, name, value)

    return changed


def of_column(i: int, **fields: Any) -> Callable[[Exported], None]:
    def changed(exported: Exported) -> None:
        for name, value in fields.items():
            setattr(exported.column(i), name, value)

    return changed


def of_schema(i: int, **fields: Any) -> Callable[[Exported], None]:
    def changed(exported: Exported) -> None:
        for name, value in fields.items():
            setattr(exported.schema.children[i].contents, name, value)

    return changed


def no_buffer(column: int, buffer: int) -> Callable[[Exported], None]:
    def changed(exported: Exported) -> None:
        exported.column(column).buffers[buffer] = None

    return changed


def wrong_index(exported: Exported) -> None:
    indices = ctypes.cast(exported.column(1).buffers[1], ctypes.POINTER(ctypes.c_int32))
    indices[1] = 77


HOSTILE: dict[str, tuple[Callable[[Exported], None], str]] = {
    "negative length": (change(length=-1), "not as its schema says"),
    "negative offset": (change(offset=-1), "not as its schema says"),
    "too few columns": (change(n_children=2), "not as its schema says"),
    "no columns": (change(children=None), "not as its schema says"),
    "longer than its columns": (change(length=10**6), "too short"),
    "beyond its columns": (change(offset=2), "too short"),
    "negative length of a column": (of_column(0, length=-5), "negative or absurd length"),
    "absurd length of a column": (of_column(0, offset=2**62), "negative or absurd length"),
    "too few buffers": (of_column(0, n_buffers=1), "lacks buffers"),
    "no buffers": (of_column(0, buffers=None), "lacks buffers"),
    "no offsets": (no_buffer(0, 1), "lacks its data"),
    "no indices": (no_buffer(1, 1), "lacks its data"),
    "no dictionary": (of_column(1, dictionary=None), "lacks its dictionary"),
    "no elements": (of_column(2, n_children=0), "lacks children"),
    "no children of a list": (of_column(2, children=None), "lacks children"),
    "no children of a struct": (of_column(3, n_children=0), "lacks children"),
    "another type": (of_schema(0, format=b"+l"), "lacks children"),
    "no such type": (of_schema(0, format=b"?"), "Arrow type '\\?' cannot be a feature"),
    "no type": (of_schema(0, format=None), "Arrow type '' cannot be a feature"),
    "a decimal without digits": (of_schema(0, format=b"d:"), "Arrow type 'd:' cannot"),
    "a decimal with too many": (of_schema(0, format=b"d:9,999999"), "cannot be a feature"),
    "a negative width": (of_schema(0, format=b"w:-3"), "cannot be a feature"),
    "a number that is none": (of_schema(6, format=b"+w:x"), "cannot be a feature"),
    "a list that is too wide": (of_schema(6, format=b"+w:1000"), "too short"),
    "a dictionary without integers": (of_schema(1, format=b"g"), "indices of the Arrow dictionary are not integers"),
    "an index out of range": (wrong_index, "an index of the Arrow dictionary is out of range"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_an_error_and_is_released_once(name: str) -> None:
    spoil, message = HOSTILE[name]
    exported = Exported(fresh_batch())
    spoil(exported)
    with pytest.raises(ValueError, match=message):
        batch = _native.ArrowBatch(*exported.capsules())
        survey(batch)
        encode(batch)
    batch = None
    gc.collect()
    assert sorted(exported.released) == ["array", "schema"]


def test_a_capsule_of_another_name_is_refused() -> None:
    exported = Exported(BATCH)
    schema, array = exported.capsules()
    for wrong in ((array, schema), (schema, schema), (1, array), (schema, "text")):
        with pytest.raises(TypeError, match="expected a capsule named arrow_"):
            _native.ArrowBatch(*wrong)
    for wrong_stream in (schema, "text", 3):
        with pytest.raises(TypeError, match="expected a capsule named arrow_array_stream"):
            _native.ArrowStream(wrong_stream)
    assert exported.released == []
    _native.ArrowBatch(schema, array)
    gc.collect()
    assert sorted(exported.released) == ["array", "schema"]


def test_what_was_consumed_is_refused() -> None:
    schema, array = BATCH.__arrow_c_array__()
    _native.ArrowBatch(schema, array)
    with pytest.raises(ValueError, match="arrow_schema: was consumed before"):
        _native.ArrowBatch(schema, array)
    capsule = pa.table({"a": [1]}).__arrow_c_stream__()
    _native.ArrowStream(capsule)
    with pytest.raises(ValueError, match="arrow_array_stream: was consumed before"):
        _native.ArrowStream(capsule)


def test_a_stream_that_has_ended_stays_so() -> None:
    stream = _native.ArrowStream(pa.table({"a": [1, 2]}).__arrow_c_stream__())
    batch = stream.next()
    assert batch is not None and len(batch) == 2
    del stream  # the batch does not need it
    assert batch.columns == [("a", "int64")]
    stream = _native.ArrowStream(pa.table({"a": [1, 2]}).__arrow_c_stream__())
    assert [stream.next() is None for _ in range(4)] == [False, True, True, True]


def test_rows_that_are_not_there_are_refused() -> None:
    batch = _native.ArrowBatch(*pa.record_batch({name: [1] for name in COLUMNS}).__arrow_c_array__())
    parser = _native.TableParser(
        bits=10, names=True, columns=[("x", 16, 0)], crosses=[], missing=[], raw=False, counts=False, open=False,
        characters=False, shortest=1, longest=1,
    )  # fmt: skip
    for start, stop in ((-1, 1), (0, 2), (1, 0)):
        with pytest.raises(ValueError, match="no such rows"):
            parser.parse_arrow(batch, columns=[0] * 7, start=start, stop=stop, stop_after=1)
    with pytest.raises(ValueError, match="no such column"):
        parser.parse_arrow(batch, columns=[1] * 7, start=0, stop=1, stop_after=1)
    with pytest.raises(ValueError, match="other columns"):
        parser.parse_arrow(batch, columns=[0], start=0, stop=1, stop_after=1)
