"""Hostile numbers, threads and files: nothing is lost, nothing is taken for something else, nothing grows without need."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import (
    Block,
    DataError,
    DualAveraging,
    FtrlAuc,
    Model,
    ModelBusyError,
    ModelFileError,
    _native,
    auc_interval,
    learner_names,
    make_learner,
    modelfile,
)
from rarestream.errors import RowError, SortedRowsWarning
from rarestream.learners.registry import learner_class
from tests import children
from tests.strategies import block_of, examples, random_block

STREAM = random_block(200, 20, 4)


# -- numbers that are not finite


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 1e8},
        {"learning_rate": 1e-300},
        {"rate_power": 50},
        {"beta": 1e-300},
        {"beta": 1e300},
        {"l1": 1e300},
    ],
)
def test_a_setting_with_which_states_would_not_stay_finite_is_refused(wrong):
    (word,) = wrong
    with pytest.raises(ValueError, match=rf"DualAveraging: {word} must be between \S+ and \S+, got "):
        DualAveraging(**wrong)


@pytest.mark.parametrize("importance", [1e13, 1e39, 1e60, 1e155, float("inf")])
def test_an_importance_beyond_the_range_is_refused_where_rows_are_made(importance):
    with pytest.raises(DataError, match=r"row 1 has the importance .*; importances lie between 1e-100 and 1e\+12"):
        Block.of(np.ones((2, 1)), [1, 0], [1.0, importance])
    model = Model("dual-auc")
    before = model.to_bytes()
    with pytest.raises(DataError, match="importances lie between"):
        model.learn_one([0], [1.0], 1, importance)
    assert model.to_bytes() == before


@st.composite
def extreme_learners(draw):
    """A learner with settings at the ends of their ranges and in between."""
    cls, preset = learner_class(draw(st.sampled_from(learner_names())))
    chosen = dict(preset)
    for field in dataclasses.fields(cls):
        if field.name in chosen or "range" not in field.metadata or draw(st.booleans()):
            continue
        least, most = field.metadata["range"]
        chosen[field.name] = draw(st.one_of(st.sampled_from([least, most]), st.floats(-12, 6).map(lambda e: 10.0**e)))
    try:
        return cls(**chosen)
    except ValueError:
        return cls(**preset)


@st.composite
def extreme_rows(draw):
    n, d = draw(st.integers(1, 40)), 6
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    low, high = sorted(draw(st.tuples(st.integers(-40, 30), st.integers(-40, 30))))
    sizes = rng.integers(0, d, n)
    indices = np.concatenate([np.sort(rng.permutation(d)[:size]) for size in sizes])
    values = rng.choice([-1, 1], len(indices)) * 10.0 ** rng.uniform(low, high, len(indices))
    weights = None
    if draw(st.booleans()):
        ends = sorted(draw(st.tuples(st.integers(-99, 12), st.integers(-99, 12))))
        weights = np.minimum(10.0 ** rng.uniform(*ends, n), 1e12)
    return Block.of((np.concatenate([[0], np.cumsum(sizes)]), indices, values), rng.choice([-1, 1], n), weights)


@given(
    extreme_learners(),
    extreme_rows(),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(["unit", "max", "none"]),
)
@settings(max_examples=examples(600))
def test_whatever_is_learned_can_be_saved_and_read_and_a_row_that_is_refused_leaves_no_trace(
    learner, rows, dtype, scale
):
    model, refused = Model(learner, dtype=dtype, scale=scale), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SortedRowsWarning)
        try:
            model.learn(rows)
        except RowError as error:
            refused = error.row
        saved = model.to_bytes()
        assert Model.from_bytes(saved).to_bytes() == saved
        Model.from_bytes(model.to_bytes("scoring"))
        if refused is not None:
            before = Model(learner, dtype=dtype, scale=scale)
            before.learn(rows[:refused])
            assert before.rows == model.rows == refused
            width = model.n_features  # that of a slice is that of the block it was cut from
            assert np.array_equal(before.coef[:width], model.coef) and not before.coef[width:].any()
    if scale != "none":
        assert np.isfinite(model.score(rows)).all()


def test_a_refused_row_does_not_make_the_model_wider():
    model = Model("ftrl-auc", scale="none")
    rows = block_of([{0: 1.0}, {3: 1.0}, {700: 3e38, 701: 3e38}, {900: 1.0}], [1, -1, 1, -1])
    with pytest.raises(RowError, match="row 2 of the block") as error:
        model.learn(rows)
    assert (error.value.row, model.rows, model.n_features) == (2, 2, 4)
    alone = Model("ftrl-auc", scale="none")
    alone.learn(block_of([{0: 1.0}, {3: 1.0}], [1, -1]))
    assert alone.to_bytes() == model.to_bytes()


def test_a_score_that_is_no_number_is_refused():
    model = Model(FtrlAuc(), scale="none")
    model.learn(block_of([{j: sign} for _ in range(30) for j in range(8) for sign in (1.0, -1.0)], [1, -1] * 240))
    rows = block_of([{0: 1.0}, dict.fromkeys(range(8), 3e38)])
    for scorer in (model, Model.from_bytes(model.to_bytes("scoring"))):
        scorer.score(rows[:1])
        with pytest.raises(RowError, match="row 1 of the block has values so large that its score is inf") as error:
            scorer.score(rows)
        assert error.value.row == 1


def test_a_state_that_could_not_be_read_back_is_never_written(tmp_path):
    path = tmp_path / "model.rare"
    model = Model("ftrl-auc")
    model.learn(STREAM)
    model.save(path)
    good = path.read_bytes()
    model._engine.state.table[3, 0] = np.nan
    for kind in ("resumable", "scoring"):
        with pytest.raises(ModelFileError, match="holds NaN or infinity.*Nothing was written"):
            model.save(path, kind)
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["model.rare"]


@pytest.mark.parametrize("source", [{2: "a", 10: "b"}, {"a": float("nan")}, {"a": object()}])
def test_notes_of_a_program_that_could_not_be_read_back_are_refused(source, tmp_path):
    model = Model("ftrl-auc")
    model.source = source
    with pytest.raises(ModelFileError, match=r"model\.source"):
        model.save(tmp_path / "model.rare")
    assert not os.listdir(tmp_path)


# -- the same bits


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_budget_holds_and_resumes_in_either_precision(dtype):
    stream = random_block(400, 60, 6, seed=2)
    whole, model = (Model(DualAveraging(budget=5), dtype=dtype) for _ in range(2))
    for start in range(0, 400, 20):
        whole.learn(stream[start : start + 20])
        assert whole.nonzeros <= 5
        model.learn(stream[start : start + 20])
        model = Model.from_bytes(model.to_bytes())
        assert model.to_bytes() == whole.to_bytes()


def test_no_native_function_converts_what_it_is_given():
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.ladder(np.zeros(3), 5)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.ranked([1.0, 2.0])
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.touched(np.zeros((4, 2), np.int64))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.own_rows(np.array([0, 2]), np.arange(4)[::2], np.ones(2), False)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.Kernel("FtrlAuc", [1, 0, 0, 1])
    model = Model("ftrl-auc")
    model.learn(STREAM)
    state, rows = model._engine.state, STREAM
    scores = np.empty(len(rows), np.float32)  # a converted copy would be filled, and thrown away
    with pytest.raises(TypeError, match="incompatible function arguments"):
        model._engine._kernel.score(state, rows, 1, scores)


def test_minus_zero_is_read_back_as_minus_zero():
    model = Model(FtrlAuc())
    model.learn(STREAM)
    model._engine.state.table[7] = [-0.0, 0.0]
    again = Model.from_bytes(model.to_bytes())
    assert np.signbit(again._engine.state.table[7, 0])
    assert again.to_bytes() == model.to_bytes()


# -- threads


def test_nothing_is_read_of_a_state_while_another_thread_learns(tmp_path):
    model = Model("dual-auc")
    model.learn(STREAM)
    path = tmp_path / "model.rare"
    model.save(path)
    before = path.read_bytes()
    assert model._gate.begin_learning()  # as `learn` does, in the middle of its rows
    try:
        for read in (
            model.to_bytes,
            lambda: model.save(path),
            model.weights,
            lambda: model.coef,
            lambda: model.nonzeros,
            lambda: model.prune(nonzeros=3),
            lambda: model.score(STREAM),
        ):
            with pytest.raises(ModelBusyError, match="another thread is learning"):
                read()
    finally:
        model._gate.end_learning()
    assert path.read_bytes() == before
    assert model.to_bytes() == Model.load(path).to_bytes()


def test_what_is_saved_beside_a_thread_that_learns_is_of_one_moment():
    model, stream = Model("dual-auc"), random_block(2000, 200, 20, seed=1)
    moments, done = {model.to_bytes()}, threading.Event()

    def learn() -> None:
        for start in range(0, 2000, 50):
            while True:
                try:
                    model.learn(stream[start : start + 50])
                    break
                except ModelBusyError:
                    continue
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    saved = set()
    while not done.is_set():
        try:
            saved.add(model.to_bytes())
        except ModelBusyError:
            continue
    thread.join()
    model = Model("dual-auc")
    for start in range(0, 2000, 50):
        model.learn(stream[start : start + 50])
        moments.add(model.to_bytes())
    assert saved <= moments


# -- rows sorted by label


def test_rows_sorted_by_label_are_warned_of_once_and_the_model_remembers():
    labels = np.repeat([1, -1], 200)
    rows = block_of([{i % 7: 1.0} for i in range(400)], labels)
    model = Model("dual-auc")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for start in range(0, 400, 40):
            model.learn(rows[start : start + 40])
    assert [one.category for one in told] == [SortedRowsWarning]
    assert "look sorted by label" in str(told[0].message)
    assert told[0].filename == __file__
    again = Model.from_bytes(model.to_bytes())
    assert again.order.suspicious
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.learn(rows[300:])
        mixed = Model("dual-auc")
        mixed.learn(rows.take(np.random.default_rng(0).permutation(400)))
    assert not mixed.order.suspicious


def test_where_rows_are_cut_does_not_matter_to_the_order_of_labels():
    one, many = Model("ftrl-auc"), Model("ftrl-auc")
    one.learn(STREAM)
    for row in range(len(STREAM)):
        many.learn(STREAM[row : row + 1])
    assert one.order.state() == many.order.state()
    assert one.to_bytes() == many.to_bytes()
    one.learn(STREAM, again=True)
    assert one.order.state() == many.order.state()


def test_a_warning_that_is_an_error_leaves_the_model_whole():
    rows = block_of([{i % 7: 1.0} for i in range(400)], np.repeat([1, -1], 200))
    model, quiet = Model("ftrl-auc"), Model("ftrl-auc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SortedRowsWarning):
            model.learn(rows)
        warnings.simplefilter("ignore")
        quiet.learn(rows)
    assert model.to_bytes() == quiet.to_bytes()


# -- memory


def limited(code: str, megabytes: int) -> str:
    """Runs a program that may grow by so much memory over what importing takes; what it prints."""
    program = (
        "import resource, numpy as np\n"
        "from rarestream import Block, Model, learner_names\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000\n"
        "Model('auto').learn_one([0], [1.0], 1)\nbefore = peak()\n"
        f"{code}\nassert peak() - before < {megabytes}, (before, peak())\nprint('fine')\n"
    )
    done = children.run([sys.executable, "-c", program])
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", learner_names())
def test_features_the_model_does_not_know_cost_nothing_when_scoring(name):
    code = f"""
model = Model({name!r})
model.learn(Block.of(np.eye(4), [1, -1, 1, -1]))
size = model.state_bytes
for model in (model, Model.from_bytes(model.to_bytes("scoring"))):
    size = model.state_bytes
    near = model.score_one([0, 4], [1.0, 2.0])
    assert model.score_one([0, 900_000_000], [1.0, 2.0]) == near
    assert model.state_bytes == size
"""
    assert limited(code, 100) == "fine\n"


def test_learning_a_huge_index_costs_what_is_touched():
    code = """
model = Model("dual-auc")
for j in (10, 300_000_000, 500_000_000, 900_000_000):
    for i in range(200):
        model.learn_one([i, j + 100_000 * i], [1.0, 1.0], i % 2)
assert model.n_features > 900_000_000
"""
    assert limited(code, 300) == "fine\n"


def test_a_race_on_hashed_features_costs_what_is_touched():
    code = """
from dataclasses import replace
from rarestream import Hashed
slots = np.random.default_rng(0).integers(0, 1 << 22, 3000)
model = Model("auto")
model.learn(replace(Block.of((np.arange(0, 3001, 10), slots, np.ones(3000)), np.arange(300) % 2), space=Hashed()))
assert model.state_bytes > 800e6
again = Model.from_bytes(model.to_bytes())
again.finish_race()
"""
    assert limited(code, 150) == "fine\n"


@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize("name", learner_names())
def test_scores_with_unknown_features_are_those_of_a_model_with_room_for_them(name, scale):
    small, large = Model(make_learner(name), scale=scale), Model(make_learner(name), scale=scale, n_features=600)
    for model in (small, large):
        model.learn(STREAM[:40])
    rows = random_block(50, 500, 6, seed=4)
    assert np.array_equal(small.score(rows), large.score(rows))


# -- files


def test_a_file_that_is_no_model_is_not_read(tmp_path):
    sparse = tmp_path / "sparse.rare"
    with sparse.open("wb") as file:
        file.truncate(6 << 30)
    code = f"""
from rarestream import ModelFileError
for name in ({str(sparse)!r}, "/dev/zero", "/dev/null"):
    try:
        Model.load(name)
    except ModelFileError as error:
        assert "not a rarestream model" in str(error), error
    else:
        raise AssertionError(name)
"""
    assert limited(code, 30) == "fine\n"


def crafted(header: dict, data: bytes = b"") -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "shape", [[0, 2**62], [2**62, 0], [2**33, 2**33], [-1], [1.0], ["1"], [True], None, [1] * 70, [2**64]]
)
def test_a_shape_that_no_array_has_is_refused(shape):
    whole = crafted(
        {"__metadata__": {"rarestream": "{}"}, "z": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
    )
    with pytest.raises(ModelFileError):
        Model.from_bytes(whole)


def test_a_header_that_tells_of_more_than_the_file_holds_is_refused_before_anything_is_read(tmp_path):
    path = tmp_path / "short.rare"
    entry = {"dtype": "F32", "shape": [2**32], "data_offsets": [0, 2**34]}
    path.write_bytes(crafted({"__metadata__": {"rarestream": '{"format":1}'}, "z": entry}))
    with pytest.raises(ModelFileError, match="its header requires 17,179,869,"):
        Model.load(path)


def test_a_model_may_come_through_a_pipe(tmp_path):
    model = Model("dual-auc")
    model.learn(STREAM)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for data, fine in ((model.to_bytes(), True), (model.to_bytes() + b"x", False), (model.to_bytes()[:-1], False)):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        if fine:
            assert Model.load(pipe).to_bytes() == data
        else:
            with pytest.raises(ModelFileError, match="longer or shorter"):
                Model.load(pipe)
        writer.join()


@pytest.mark.parametrize(
    "change",
    [
        {"positives": 10**6},
        {"features": {"space": "columns", "count": 2**62}},
        {"features": {"space": "columns", "count": 2**31}},
        {"features": {"space": "columns", "count": -1}},
        {"features": {"space": "columns", "count": True}},
        {"features": {"space": "columns", "count": 3.0}},
        {"features": {"space": "words", "count": 3}},
        {"scale": "large"},
        {"scale": ["unit"]},
        {"dtype": "float16"},
        {"label_order": [1, 2, 3]},
        {"label_order": [1, 2, 9, 1]},
        {"label_order": [1, 2, -1, 1]},
        {"label_order": "word"},
        {"label_order": [1.5, 2, 1, 1]},
    ],
)
@pytest.mark.parametrize("name", ["dual-auc", "auto"])  # a race reserves no memory for features beyond its limit
def test_headers_that_no_model_writes_are_refused(name, change):
    model = Model(name)
    model.learn(STREAM)
    header, arrays = modelfile.from_bytes(model.to_bytes())
    with pytest.raises(ModelFileError):
        Model.from_bytes(modelfile.to_bytes({**header, **change}, arrays))


def test_a_file_with_fewer_features_than_its_learner_starts_with_gets_room_for_them():
    model = Model(make_learner("solam", expected_features=10), scale="unit")
    model.learn(block_of([{0: 1.0}, {3: 1.0}] * 20, [1, -1] * 20))
    header, arrays = modelfile.from_bytes(model.to_bytes())
    header["learner"]["settings"]["expected_features"] = 1000
    wider = Model.from_bytes(modelfile.to_bytes(header, arrays))
    assert wider.n_features == 1000
    assert len(wider.coef) == 1000
    assert Model.from_bytes(wider.to_bytes()).to_bytes() == wider.to_bytes()


# -- smaller things


def test_the_weight_of_a_tiny_column_is_large_but_finite():
    model = Model("ftrl-auc", scale="max")
    rows = block_of([{0: 1e-42, 1: 1.0}, {0: -1e-42, 1: 1.0}] * 50, [1, -1] * 50)
    model.learn(rows)
    assert np.isfinite(model.coef).all()
    assert abs(model.coef[0]) > 1e38
    slim = Model.from_bytes(model.to_bytes("scoring"))
    assert np.array_equal(slim.coef, model.coef)


@pytest.mark.parametrize("tiny", [1e-170, 1e-300, 5e-324])
def test_an_interval_survives_importances_next_to_nothing(tiny):
    labels, scores = [1, 0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 0.5, 2.5, 0.1]
    for weights in ([tiny] * 6, [1, 1, tiny, 1, 1, tiny], [1, tiny, 1, 1, 1, 1], [tiny, 1, 1, 1, tiny, tiny]):
        found = auc_interval(labels, scores, weights)
        assert 0 <= found.low <= found <= found.high <= 1


def test_without_a_learner_it_is_auto():
    assert Model().learner == make_learner("auto")


@pytest.mark.parametrize("call", ["learn", "score"])
def test_what_is_no_block_is_refused_with_the_way_to_one(call):
    with pytest.raises(TypeError, match=rf"Model\.{call}: takes a Block, got ndarray. Block\.of"):
        getattr(Model(), call)(np.eye(3))
