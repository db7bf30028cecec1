"""FSAUC: rows worked by hand, the stages, which are longer than the streams of the contract, and what is kept up."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, Fsauc, Model, ModelFileError, modelfile
from rarestream._native import isa, set_isa
from rarestream.learners import TALLY
from tests.learners.textbook import textbook
from tests.strategies import block_of, random_block

D = 30
# Slack bounds, a binding l1 ball with many weights and with few, and steps so long that the l2 ball binds too.
SETTINGS = [
    {"radius": 50.0},
    {"radius": 3.0, "learning_rate": 0.1},
    {"radius": 0.2, "learning_rate": 1.0},
    {"radius": 2.0, "learning_rate": 60.0},
]
EVERY = pytest.mark.parametrize("settings", SETTINGS, ids=str)


def numbers(model: Model) -> dict[str, float]:
    return dict(zip(Fsauc().layout.numbers, model._engine.state.tally[len(TALLY) :], strict=True))


def iterate(model: Model) -> np.ndarray:
    """The current weights, of which the model is the mean."""
    u = model._engine.state.table[: model.n_features, 0].astype(np.float64)
    return np.sign(u) * (abs(u) - numbers(model)["theta"]) * (u != 0)


def stream(rows: int = 700) -> Block:
    """Values grow, so that scale="max" measures anew, and importances differ."""
    block = random_block(rows, D, 5)
    values = block.values * np.linspace(0.2, 1, block.nonzeros)
    importances = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 1.0, 2.0], size=rows)
    return Block.of((block.indptr, block.indices, values), block.labels, importances)


def test_three_rows_by_hand():
    model = Model(Fsauc(learning_rate=1.0, radius=1.0), dtype="float64", scale="none")
    # Row 1, a positive: p = 1, so 1 - p = 0 and nothing moves.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative: p = 1/2, s = a = b = alpha = 0: g_w = x / 2, so w = (-1/2, -1); in the l1 ball (-1/4, -3/4).
    assert model.learn_one([0, 1], [1.0, 2.0], -1) == 0
    assert np.allclose(iterate(model), [-1 / 4, -3 / 4], rtol=0, atol=1e-15)
    assert np.allclose(model.coef, [-1 / 8, -3 / 8], rtol=0, atol=1e-15)  # the mean of two rows
    # Row 3, a positive: p = 2/3, s = -1/4: g_w = (s - 1) / 3 = -5/12, g_a = -s / 3, g_alpha = -s / 3; within the ball.
    assert np.isclose(model.learn_one([0], [1.0], 1), -1 / 8)
    assert np.allclose(iterate(model), [-1 / 4 + 5 / 12, -3 / 4], rtol=0, atol=1e-15)
    assert np.isclose(numbers(model)["saddle_a"], -1 / 12)
    assert np.isclose(numbers(model)["alpha"], 1 / 12)
    assert np.allclose(model.coef, [(-1 / 4 + 1 / 6) / 3, -2 * 3 / 4 / 3], rtol=0, atol=1e-15)


@EVERY
@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize("expected", [44, 256, 5000])
def test_the_stages_agree_with_the_textbook(settings, scale, expected):
    learner, block = Fsauc(**settings, expected_rows=expected), stream()
    model = Model(learner, dtype="float64", scale=scale, n_features=D)
    scores = model.learn(block)
    expected_scores, weights, _, largest = textbook(learner, block, D, scale)
    if scale == "max":
        weights = np.divide(weights, largest, out=np.zeros(D), where=largest > 0)
    assert numbers(model)["stage"] == {44: 1, 256: 2, 5000: 0}[expected]
    assert abs(scores - expected_scores).max() <= 1e-9 * (1 + abs(expected_scores).max())
    assert abs(model.coef - weights).max() <= 1e-9 * (1 + abs(weights).max())
    assert model.nonzeros == np.count_nonzero(weights)


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cuts_files_and_machines_do_not_matter_across_stages(settings, dtype):
    learner, block, chosen = Fsauc(**settings, expected_rows=256), stream(), isa()
    whole, parts = (Model(learner, dtype=dtype, scale="max") for _ in range(2))
    whole.learn(block)
    try:
        for n, start in enumerate(range(0, len(block), 100)):
            set_isa("portable" if n % 2 else chosen)
            parts = Model.from_bytes(parts.to_bytes())
            parts.learn(block[start : start + 100])
    finally:
        set_isa(chosen)
    assert whole.to_bytes() == parts.to_bytes()


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_kept_up_is_what_it_stands_for(settings, dtype):
    model = Model(Fsauc(**settings, expected_rows=256), dtype=dtype, scale="max", n_features=D)
    r = model.learner.radius
    for start in range(0, 700, 70):
        model.learn(stream()[start : start + 70])
        now, w, centre = (
            numbers(model),
            iterate(model),
            model._engine.state.table[: model.n_features, 2].astype(np.float64),
        )
        living = model._engine.state.extra["living"][: int(now["living"])]
        assert set(living) == set(np.flatnonzero(w))
        assert np.array_equal(model._engine.state.extra["place"][living], 1 + np.arange(len(living)))
        assert np.array_equal(
            model._engine.state.extra["size"][: len(living)], abs(model._engine.state.table[living, 0])
        )
        assert np.isclose(now["sizes"], abs(model._engine.state.table[:, 0].astype(np.float64)).sum(), rtol=1e-12)
        assert np.isclose(now["near"] + now["far"], ((w - centre) ** 2).sum(), rtol=1e-9, atol=1e-9 * r**2)
        assert np.isclose(now["along"], np.sign(w) @ centre, rtol=1e-9, atol=1e-9 * r)
        assert abs(w).sum() <= r * (1 + 1e-5 if dtype == "float32" else 1 + 1e-12)
        away = w - centre, now["saddle_a"] - now["a_centre"], now["saddle_b"] - now["b_centre"]
        assert np.linalg.norm(np.concatenate([away[0], away[1:]])) <= now["width"] * (1 + 1e-5)


def test_a_stage_starts_from_the_mean_of_the_one_before():
    model, block = Model(Fsauc(expected_rows=44), dtype="float64"), random_block(45, 12, 4)
    model.learn(block[:44])
    mean = model.coef
    assert numbers(model)["n"] == 0
    assert np.array_equal(iterate(model), mean)
    model.learn(block[44:])
    assert np.allclose(model.coef, iterate(model), rtol=0, atol=1e-15)  # the mean of one


def test_rows_beyond_those_expected_are_of_the_last_stage():
    model = Model(Fsauc(expected_rows=256))
    model.learn(random_block(3000, 30, 5))
    assert numbers(model)["stage"] == 2
    assert numbers(model)["n"] == 3000 - 256
    assert model.progress.auc > 0.8


def test_too_few_rows_for_a_stage_are_refused():
    with pytest.raises(ValueError, match="Fsauc: expected_rows must be a whole number >= 44, got 43"):
        Fsauc(expected_rows=43)
    assert Fsauc(expected_rows=44).stages == 1


def test_steps_far_beyond_the_radius_leave_finite_numbers():
    model = Model(Fsauc(learning_rate=1e9, radius=1e-3), scale="none")
    model.learn(block_of([{0: 1.0, 2: 3.0}, {1: 1e3}, {0: 2.0, 1: 1.0}, {0: 1.0}, {2: 5.0}] * 3, [1, -1, 1, -1, 1] * 3))
    assert np.isfinite(model._engine.state.table).all()
    assert np.isfinite(model._engine.state.tally).all()
    assert abs(iterate(model)).sum() <= 1e-3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda living: living[:-1],
        lambda living: np.append(living[:-1], living[:1]),
        lambda living: living.astype(np.int64),
        lambda living: np.append(living, np.int32(29)),
    ],
    ids=["one is missing", "one is there twice", "wrong type", "one is not in the model"],
)
def test_a_file_whose_list_of_living_weights_is_wrong_is_refused(wrong, tmp_path):
    model = Model(Fsauc())
    model.learn(random_block(50, 12, 4))
    header, arrays = model._file_parts("resumable")
    arrays["more.living"] = wrong(arrays["more.living"])
    with pytest.raises(ModelFileError, match="living"):
        Model.from_bytes(modelfile.to_bytes(header, arrays))
