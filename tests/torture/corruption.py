"""Damaged and forged model files: each is refused with a ModelFileError, or is a model that works."""

from __future__ import annotations

import contextlib
import copy
import functools
import random
import re
from pathlib import Path
from typing import Any

import numpy as np

from rarestream import Block, DataError, Model, ModelFileError, learner_names, make_learner, modelfile
from rarestream.errors import RarestreamError
from tests.strategies import random_block

FILES = 150  # in a round
DAMAGE = ["flipped", "cut", "extended", "swapped", "duplicated", "zeroed", "respelled"]
NUMBERS = [0, -1, 1, 2, 3, 0.5, -0.0, 100, 2**16, 2**31 - 1, 2**31]
# No accident, and beyond what can be learned: with these a model may refuse to score, but never crash or hang.
ABSURD = [1e308, -1e308, 1e38, -1e38, 1e-320, 1e-45, 2**40, 2**53, 2**62, 2**63, 10**30]
OTHERS = [None, True, "", "unit", "float64", "scoring", "auto", "\x1b[2J", [], [1], {}, {"a": 1}, "nan", 10**400]


def run_round(rng: random.Random, folder: Path) -> int:
    name = rng.choice(learner_names())
    scale, dtype = rng.choice(["none", "unit", "max"]), rng.choice(["float32", "float64"])
    whole = trained(name, scale, dtype).to_bytes(rng.choice(["resumable", "resumable", "scoring"]))
    other = trained(rng.choice(learner_names()), scale, dtype).to_bytes()
    for number in range(FILES):
        how = rng.choice([*DAMAGE, *["forged"] * 4])
        numbers = rng.choice([NUMBERS, NUMBERS, NUMBERS + ABSURD])
        data = forged(rng, numbers, whole, other) if how == "forged" else damaged(rng, how, whole, other)
        path = folder / f"{number}.rare"
        path.write_bytes(data)  # what a failure, or a crash, leaves behind
        try:
            model = Model.load(path)
        except ModelFileError:
            assert data != whole, f"{path}: an undamaged file was refused"
        else:
            with contextlib.suppress(*(RarestreamError, AssertionError) if numbers is not NUMBERS else ()):
                use(model, f"{name}, {scale}, {dtype}, {how}: {path}")
        path.unlink()
    return FILES


@functools.cache
def trained(name: str, scale: str, dtype: str) -> Model:
    model = Model(make_learner(name), scale=scale, dtype=dtype)
    model.learn(rows())
    return model


@functools.cache
def rows() -> Block:
    return random_block(60, 20, 4)


def use(model: Model, what: str) -> None:
    """Scores, saves, loads and learns with what was loaded."""
    assert 0 <= model.positives <= model.rows, f"{what}: {model.positives} positives of {model.rows} rows"
    kind, scores = model.kind, model.score(rows())
    assert np.isfinite(scores).all(), f"{what}: scores that are not finite"
    data = model.to_bytes(kind)
    again = Model.from_bytes(data)
    assert again.to_bytes(kind) == data, f"{what}: saved and loaded, it is another"
    assert np.array_equal(again.score(rows()), scores), f"{what}: saved and loaded, it scores otherwise"
    repr(model), model.nonzeros, model.threshold, model.metrics, model.progress.auc
    if kind == "resumable":
        with contextlib.suppress(DataError):  # for numbers so large that a step overflows
            model.learn(rows())
        assert np.isfinite(model.score(rows())).all(), f"{what}: after learning, scores that are not finite"
        Model.from_bytes(model.to_bytes(kind))


def damaged(rng: random.Random, how: str, whole: bytes, other: bytes) -> bytes:
    """The bytes of a model after an accident."""
    a, b = sorted((place(rng, whole), place(rng, whole)))
    if how == "flipped":
        changed = bytearray(whole)
        for at in {a, rng.choice([a, b])}:
            changed[at] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if how == "cut":
        return whole[: rng.choice([a, len(whole) - rng.randint(1, 16)])]
    if how == "extended":
        more = rng.choice([rng.randbytes(rng.randint(1, 100)), bytes(4096), other, whole])
        return rng.choice([whole + more, more + whole])
    if how == "swapped":
        c = rng.randint(b, len(whole))
        return rng.choice([whole[:a] + whole[b:c] + whole[a:b] + whole[c:], whole[:b] + other[b:]])
    if how == "duplicated":
        return whole[:b] + whole[a:b] + whole[b:]
    if how == "respelled":  # a number of the container's header: a shape, a place
        header = whole[8 : 8 + int.from_bytes(whole[:8], "little")]
        at = rng.choice(list(re.finditer(rb"\d+", header)))
        number = rng.choice(
            [b"0", b"1", b"-1", b"0.5", b"2147483648", b"4611686018427387904", b"1e9", b"0,4611686018427387904"]
        )
        changed = bytearray(header[: at.start()] + number + header[at.end() :])
        return len(changed).to_bytes(8, "little") + bytes(changed) + whole[8 + len(header) :]
    size = rng.choice([1, 16, 512, 4096])  # zeroed
    start = a // size * size
    return whole[:start] + bytes(min(size, len(whole) - start)) + whole[start + size :]


def place(rng: random.Random, whole: bytes) -> int:
    """Anywhere; as often in the few bytes of the header as in the many of the arrays."""
    header = 8 + int.from_bytes(whole[:8], "little")
    return rng.randrange(rng.choice([9, min(header, len(whole)), len(whole)]))


def forged(rng: random.Random, numbers: list[float], whole: bytes, other: bytes) -> bytes:
    """A right checksum over changed numbers."""
    header, arrays = modelfile.from_bytes(whole)
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.choice([1, 1, 1, 3])):
        if rng.random() < 0.5:
            forge_header(rng, numbers, header)
        elif arrays:
            forge_array(rng, numbers, arrays, modelfile.from_bytes(other)[1])
    try:
        return modelfile.to_bytes(header, arrays)
    except (ModelFileError, ValueError, OverflowError):  # what no file can hold
        return whole


def forge_header(rng: random.Random, numbers: list[float], header: dict[str, Any]) -> None:
    inner = header
    while True:
        key = rng.choice(sorted(inner))
        if not isinstance(inner[key], dict) or not inner[key] or rng.random() < 0.1:
            break
        inner = inner[key]
    how = rng.random()
    if how < 0.1:
        del inner[key]
    elif how < 0.2:
        inner[rng.choice(["rows", "l1", "seed", "more"])] = rng.choice(numbers)
    else:
        inner[key] = rng.choice(numbers) if rng.random() < 0.7 else rng.choice(OTHERS)


def forge_array(rng: random.Random, numbers: list[float], arrays: dict[str, Any], others: dict[str, Any]) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    how = rng.choice(["number", "number", "number", "cut", "shape", "type", "order", "gone", "other", "more", "name"])
    if how == "gone":
        del arrays[name]
    elif how == "name":
        arrays[rng.choice(["more.x", "progress.x", "weight", "z"])] = array
    elif how == "number" and array.size:
        with np.errstate(all="ignore"):
            some = np.array([*numbers, np.nan, np.inf, -np.inf], np.float64).astype(array.dtype)
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice(list(some))
    elif how == "type":
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(modelfile.DTYPES))
    elif how == "shape":
        empty = np.zeros((0, *array.shape), array.dtype)
        arrays[name] = rng.choice([array[None], array.reshape(-1), array[..., None], empty])
    elif how == "other" and others:
        arrays[name] = others[rng.choice(sorted(others))].copy()
    elif array.ndim:
        half = array[: rng.randint(0, len(array))]
        arrays[name] = {"cut": half, "order": array[::-1].copy()}.get(how, np.concatenate([array, half]))
