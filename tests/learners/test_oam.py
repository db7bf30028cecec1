"""OAM: rows worked by hand from the paper's equations, the sample it keeps, and its files."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rarestream import DataError, Model, ModelFileError, Oam, modelfile
from tests.strategies import block_of, random_block


def places(model: Model) -> list[dict[int, float]]:
    """The rows kept, positives first, as dicts."""
    more = model._engine.state.extra
    return [
        dict(zip(more["indices"][i, :k].tolist(), more["values"][i, :k].tolist(), strict=True))
        for i, k in enumerate(more["lengths"])
    ]


def test_four_rows_by_hand_sequential():
    model = Model(Oam(learning_rate=0.5, buffer=2), dtype="float64", scale="none")
    # A positive and another: nothing to compare with.
    model.learn_one([0], [1.0], 1)
    model.learn_one([1], [2.0], 1)
    assert not model.coef.any()
    # A negative x = (1, 1), C_t = 1/2. Against z = (1, 0): x - z = (0, 1), loss 1, tau = min(1/4, 1) = 1/4.
    # Then w = (0, -1/4). Against z = (0, 2): x - z = (1, -1), <w, x - z> = 1/4, loss 1 + 1/4, tau = min(1/4, 5/8).
    model.learn_one([0, 1], [1.0, 1.0], -1)
    assert model.coef.tolist() == [-0.25, 0.0]
    # Another, x = (0, 2): against (1, 0): x - z = (-1, 2), <w, x - z> = 1/4, loss 5/4, tau = min(1/4, 1/4): w = (0, -1/2).
    # Against (0, 2), its equal: nothing moves.
    model.learn_one([1], [2.0], -1)
    assert model.coef.tolist() == [0.0, -0.5]


def test_four_rows_by_hand_gradient():
    model = Model(Oam(update="gradient", learning_rate=0.5, buffer=1), dtype="float64", scale="none")
    model.learn_one([0], [1.0], 1)
    # x = (0, 1): x - z = (-1, 1), missed: w = -C_t / 2 (x - z) with C_t = 1/2.
    model.learn_one([1], [1.0], -1)
    assert model.coef.tolist() == [0.25, -0.25]
    # Two negatives so far, one kept: C_t = 1 for the next positive. Which one is kept does not matter here.
    model.learn_one([1], [1.0], -1)
    assert model.coef.tolist() == [0.5, -0.5]  # <w, x - z> was -1/2 for y = -1
    model.learn_one([0, 1], [1.0, -1.0], 1)  # x - z = (1, -2): <w, x - z> = 3/2, no miss
    assert model.coef.tolist() == [0.5, -0.5]
    model.learn_one([2], [1.0], 1)  # x - z = (0, -1, 1): <w, x - z> = 1/2, a miss
    assert model.coef.tolist() == [0.5, -1.0, 0.5]


def test_a_passive_aggressive_step_corrects_its_pair_and_no_more():
    model = Model(Oam(learning_rate=1e6, buffer=1), dtype="float64", scale="none")
    model.learn(block_of([{0: 1.0}, {0: 0.5, 1: 1.0}], [1, -1]))
    assert np.isclose(model.coef @ [0.5, -1.0], 1.0, rtol=1e-15)


def test_while_the_buffer_has_room_every_earlier_row_of_the_other_class_is_met():
    block = random_block(200, 15, 4)
    models = [Model(Oam(buffer=buffer, seed=seed), dtype="float64") for buffer, seed in [(200, 0), (5000, 3)]]
    scores = [model.learn(block) for model in models]
    assert np.array_equal(*scores)


def test_every_row_is_kept_with_the_same_chance():
    """After 60 positives in 5 places, each stands in one with probability 1/12, the first as the last."""
    n, buffer, seeds = 60, 5, 3000
    block = block_of([{i: 1.0} for i in range(n)], [1] * n)
    found = np.zeros(n)
    for seed in range(seeds):
        model = Model(Oam(buffer=buffer, seed=seed))
        model.learn(block)
        rows = [next(iter(row)) for row in places(model)[:buffer]]
        assert len(set(rows)) == buffer
        found[rows] += 1
    share = buffer / n
    assert abs(found / seeds - share).max() < 4.5 * np.sqrt(share * (1 - share) / seeds)


def test_chance_follows_the_seed_alone():
    block = random_block(300, 15, 4)
    one, again, other = (Model(Oam(buffer=4, seed=seed)) for seed in (5, 5, 6))
    for model in (one, again, other):
        model.learn(block)
    assert one.to_bytes() == again.to_bytes()
    assert places(one) != places(other)


def test_kept_rows_shrink_with_the_measure_of_their_feature():
    model = Model(Oam(), dtype="float64", scale="max")
    model.learn_one([3], [2.0], 1)
    model.learn_one([3, 4], [8.0, 1.0], 1)  # the largest value of feature 3 was 2, now is 8
    assert places(model)[0] == {3: 0.25}


@pytest.mark.parametrize("update", ["sequential", "gradient"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_without_bound_are_refused_even_those_of_empty_rows(update, dtype):
    model = Model(Oam(update=update, learning_rate=1e160), dtype=dtype)
    with pytest.raises(DataError, match="row 0 of the block"):
        model.learn(block_of([{0: 1.0}, {}], [1, -1]))
    model = Model(Oam(update=update), dtype=dtype)
    with pytest.raises(DataError, match="row 1 of the block"):
        model.learn(dataclasses.replace(block_of([{0: 1.0}, {}], [1, -1]), importances=np.array([1.0, 1e160])))
    assert not model.coef.any()


def hostile():
    """What to change in a file's parts, and what is then said."""

    def put(name, change):
        def do(header, arrays):
            arrays[name] = change(arrays[name])

        return do

    def entry(at, value):
        def change(array):
            array = array.copy()
            array[at] = value
            return array

        return change

    return {
        "lengths below zero": (put("more.lengths", entry(0, -1)), "add up"),
        "lengths that overflow": (put("more.lengths", lambda lengths: lengths + np.int32(2**30)), "add up"),
        "lengths of another buffer": (put("more.lengths", lambda lengths: lengths[:-1]), r"'lengths' is int32\[7\]"),
        "lengths that are not whole": (put("more.lengths", lambda lengths: lengths * 1.0), "'lengths' is float64"),
        "an index too large": (put("more.indices", entry(0, 20)), r"within 0 \.\. 19"),
        "an index below zero": (put("more.indices", entry(0, -1)), r"within 0 \.\. 19"),
        "an index twice": (put("more.indices", entry(1, 3)), "ascend"),
        "indices without values": (put("more.values", lambda values: values[:-1]), "'indices' is int32"),
        "values of another kind": (put("more.values", lambda values: values.astype(np.float64)), "'values' is float64"),
        "values in two axes": (put("more.values", lambda values: values[:, None]), "'values' is float32"),
        "a value that is not finite": (put("more.values", entry(0, np.inf)), "NaN or infinity"),
        "a value too large": (put("more.values", entry(0, 1e30)), "longer than any"),
        "a count that is not whole": (put("tally", entry(6, 30.5)), "not counts"),
        "a count below zero": (put("tally", entry(7, -1.0)), "not counts"),
        "rows never seen": (put("tally", entry(6, 2.0)), "more rows than it has seen"),
        "a missing array": (lambda header, arrays: arrays.pop("more.indices"), "'indices' is missing"),
        "a buffer of another size": (
            lambda header, arrays: header["learner"]["settings"].update(buffer=10**6),
            "'lengths' is int32",
        ),
    }


@pytest.mark.parametrize("what", hostile())
def test_a_hostile_file_is_refused(what):
    model = Model(Oam(buffer=4), n_features=20)
    model.learn(block_of([{3: 1.0, 5: 1.0}, {4: 1.0, 6: 1.0}] * 20, [1, -1] * 20))
    header, arrays = modelfile.from_bytes(model.to_bytes())
    do, said = hostile()[what]
    do(header, arrays)
    with pytest.raises(ModelFileError, match=said):
        Model.from_bytes(modelfile.to_bytes(header, arrays))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"Oam: buffer must be a whole number between 1 and 1000000, got 0\."):
        Oam(buffer=0)
    with pytest.raises(ValueError, match=r"Oam: seed must be a whole number >= 0, got -1\."):
        Oam(seed=-1)
    with pytest.raises(ValueError, match="Oam: update must be one of 'sequential', 'gradient', got 'both'"):
        Oam(update="both")
