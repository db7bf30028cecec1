"""Learners at the edges of their settings, on rows at the edges of float32: learned, or refused and unchanged."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
from pathlib import Path
from typing import Any

import numpy as np

from rarestream import Block, Learner, Model, learner_names, make_learner
from rarestream.errors import DataError, ModelFileError
from rarestream.learners.registry import learner_class

STREAMS = 60  # in a round
REALS = [0.0, 1e-300, 1e-8, 1e-3, 0.1, 0.5, 1.0, 1.0, 3.0, 50.0, 1e4, 1e8, 1e300]
LEARNED_BEFORE = re.compile(r"The (\d+) rows before it were learned, it was not")


def run_round(rng: random.Random, folder: Path) -> int:
    for _ in range(STREAMS):
        model = some_model(rng)
        (folder / "model").write_text(repr(model))  # what a crash leaves behind
        if model is not None:
            for block in some_blocks(rng):
                check(model, block)
    return STREAMS


def some_model(rng: random.Random) -> Model | None:
    """None: settings that the learner refuses."""
    name = rng.choice(learner_names())
    cls, preset = learner_class(name)
    settings: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name not in preset and rng.random() < 0.5:
            settings[field.name] = some_setting(rng, field)
    try:
        learner = make_learner(name, **settings)
    except ValueError:
        return None
    assert isinstance(learner, Learner)
    return Model(learner, dtype=rng.choice(["float32", "float64"]), scale=rng.choice(["none", "unit", "max"]))


def some_setting(rng: random.Random, field: dataclasses.Field[Any]) -> Any:
    rules = field.metadata
    if "choices" in rules:
        return rng.choice(rules["choices"])
    if "least" in rules:
        small = [rules["least"], rules["least"] + 1, 7, 100]
        return rng.choice([*small, rules["most"]] if rules["most"] <= 10_000 else small)
    if isinstance(field.default, bool):
        return rng.random() < 0.5
    return rng.choice([*REALS, *rules.get("range", ()) * 2])  # the ends of its range, where it has one


def some_blocks(rng: random.Random) -> list[Block]:
    numbers = np.random.default_rng(rng.getrandbits(32))
    blocks = []
    for _ in range(rng.choice([1, 2, 4])):
        with contextlib.suppress(DataError):  # importances that no Block may have
            blocks.append(some_block(rng, numbers))
    return blocks


def some_block(rng: random.Random, numbers: np.random.Generator) -> Block:
    n, features = rng.choice([1, 5, 80]), rng.choice([3, 40, 2000])
    sizes = numbers.integers(0, min(6, features + 1), n)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.concatenate([numbers.choice(features, size, replace=False) for size in sizes] or [[]])
    kind = rng.choice(["plain", "plain", "huge", "tiny", "spread"])
    values = numbers.choice([0.5, 1.0, -2.0, 0.0, -0.0], len(indices))
    if kind == "huge":
        values *= 1e38
    elif kind == "tiny":
        values = numbers.choice([1e-45, -1e-42, 1e-38, 1e-30], len(indices))
    elif kind == "spread":
        values = numbers.choice([-1, 1], len(indices)) * 10.0 ** numbers.uniform(-45, 36, len(indices))
    labels = np.where(numbers.random(n) < rng.choice([0.5, 0.1, 1.0, 0.0]), 1, -1)
    if rng.random() < 0.3:
        labels.sort()
    importances = None
    if rng.random() < 0.4:
        importances = numbers.choice(rng.choice([[0, 1, 2], [1e-300, 1.0], [1e30, 1.0], [1e155], [5e-324, 1e300]]), n)
    return Block.of((indptr, indices.astype(np.int64), values.clip(-3e38, 3e38)), labels, importances)


def check(model: Model, block: Block) -> None:
    before = model.to_bytes()
    what = f"{model!r}, learning {block!r}"
    refused = None
    try:
        scores = model.learn(block)
    except (DataError, ValueError) as error:
        refused = str(error)
    if refused is not None:
        if learned := LEARNED_BEFORE.search(refused):
            until = Model.from_bytes(before)
            part = block[: int(learned[1].replace(",", ""))]  # made anew: as wide as its own rows are
            until.learn(Block.of((part.indptr, part.indices, part.values), part.labels, part.importances))
            before = until.to_bytes()
        assert model.to_bytes() == before, f"{what}: refused ({refused}), but the model has changed"
        return
    assert np.isfinite(scores).all(), f"{what}: scores that are not finite: {scores}"
    try:
        data = model.to_bytes()
        again = Model.from_bytes(data)
    except ModelFileError as error:
        raise AssertionError(f"{what}: cannot be saved and loaded") from error
    assert again.to_bytes() == data, f"{what}: saved and loaded, it is another"
    after = model.score(block)
    assert np.isfinite(after).all(), f"{what}: afterwards, scores that are not finite: {after}"
    assert np.array_equal(after, again.score(block)), f"{what}: saved and loaded, it scores otherwise"
    assert np.isfinite(model.coef).all(), f"{what}: weights that are not finite"
