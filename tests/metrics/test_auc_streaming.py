"""What StreamingAuc promises: within its bound of the exact AUC for certain, however the rows arrive."""

from __future__ import annotations

import math
import pickle
import threading

import numpy as np
import pytest
from auc_textbook import auc_by_sorting
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream.errors import DataError
from rarestream.metrics import StreamingAuc, auc, auc_interval

RAW, RUN, FAN = 32768, 8192, 8  # as docs/metrics.md states them


def sketch_of(labels, scores, importances=None, cuts=()):
    sketch = StreamingAuc()
    for piece in np.split(np.arange(len(labels)), cuts):
        sketch.add(labels[piece], scores[piece], None if importances is None else importances[piece])
    return sketch


def same_state(a, b):
    a, b = a.state(), b.state()
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


def levels(rows):
    """Levels of a sketch that has seen so many rows of one class."""
    count = 0
    while rows >= RAW * FAN**count:
        count += 1
    return count


# Streams meant to hurt, of the labels y, scores s without malice, and the time t of each row.
STREAMS = {
    "normal": lambda y, s, t: s,
    "sorted": lambda y, s, t: np.sort(s),
    "reversed": lambda y, s, t: np.sort(s)[::-1],
    "zig-zag": lambda y, s, t: np.where(t % 2, 1.0, -1.0) * t,
    "outside in": lambda y, s, t: np.where(t % 2, 1.0, -1.0) * (len(t) - t),
    "clustered": lambda y, s, t: 1e6 + 1e-9 * s,
    "denormals": lambda y, s, t: np.round(s * 1e4) * 5e-324,
    "all equal": lambda y, s, t: np.full(len(t), 0.5),
    "three values": lambda y, s, t: np.clip(np.round(s), -1, 1),
    "scales that swing": lambda y, s, t: s * 10.0 ** (20 * np.sin(t / 40_000)),
    "scales that grow with every run": lambda y, s, t: s * 10.0 ** (t // RAW),
    "drift": lambda y, s, t: s + t / 50_000,
    "infinite ends": lambda y, s, t: np.where(np.abs(s) > 1.5, np.copysign(np.inf, s), s),
    "perfect": lambda y, s, t: y + 0.1 * np.tanh(s),
    "hopeless": lambda y, s, t: -y + 0.1 * np.tanh(s),
    # Negatives between the members of every group: all pairs within a group hang on which one is chosen.
    "negatives in the gaps": lambda y, s, t: np.floor(t / 3) + np.where(y > 0, 0.0, 0.5),
}


def stream(name, rows=420_000):
    """So many rows that the negatives, at least, have collapsed twice."""
    rng = np.random.default_rng(11)
    labels = np.where(rng.random(rows) < 0.3, 1, -1).astype(np.int8)
    return labels, STREAMS[name](labels, rng.normal(size=rows) + 0.5 * labels, np.arange(rows))


@pytest.mark.parametrize("first", ["mixed", "positives first", "negatives first"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_certified_bound_holds_on_streams_meant_to_break_it(name, first):
    labels, scores = stream(name)
    if first != "mixed":
        order = np.argsort(-labels if first == "positives first" else labels, kind="stable")
        labels, scores = labels[order], scores[order]
    sketch = sketch_of(labels, scores)
    found = sketch.auc
    assert abs(found - auc_by_sorting(labels, scores)) <= found.bound + 1e-15
    assert found.bound <= (levels(sketch.n_pos) + levels(sketch.n_neg)) / (2 * RUN)
    assert found.low <= found - found.bound or found.low == 0
    assert found.high >= found + found.bound or found.high == 1


def test_scores_that_are_all_alike_cost_no_accuracy():
    for name in ("all equal", "three values"):
        labels, scores = stream(name)
        found = sketch_of(labels, scores).auc
        assert found.bound < 1e-4
        assert name != "all equal" or (found, found.bound) == (0.5, 0)


@pytest.mark.parametrize("name", ["normal", "zig-zag", "denormals", "scales that swing", "infinite ends"])
@pytest.mark.parametrize("kind", ["uniform", "heavy", "one giant"])
def test_the_bound_holds_for_unequal_importances(name, kind):
    rng = np.random.default_rng(5)
    n = 300_000
    labels, scores = stream(name, n)
    importances = {
        "uniform": rng.random(n),
        "heavy": np.exp(4 * rng.normal(size=n)),
        "one giant": np.where(np.arange(n) == 1000, 1e12, 1.0),
    }[kind]
    importances[::17] = 0
    sketch = sketch_of(labels, scores, importances)
    found = sketch.auc
    assert abs(found - auc(labels, scores, importances)) <= found.bound + 1e-12
    assert found.bound <= (levels(sketch.n_pos) + levels(sketch.n_neg)) / RUN


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.floats(allow_nan=False)), min_size=1, max_size=200))
def test_exact_while_rows_are_few(rows):
    labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    found = sketch_of(labels, scores).auc
    if len(set(labels)) == 2:
        assert float(found) == auc(labels, scores)
        assert found.bound == 0
        assert found.low == pytest.approx(auc_interval(labels, scores).low)
        assert found.high == pytest.approx(auc_interval(labels, scores).high)
    else:
        assert math.isnan(found)
        assert (found.low, found.high) == (0, 1)


def test_an_empty_sketch_knows_nothing_and_says_so():
    sketch = StreamingAuc()
    assert math.isnan(sketch.auc)
    assert "nan" in repr(sketch)
    sketch.add([], [])
    assert (sketch.n_pos, sketch.n_neg) == (0, 0)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 150_000), max_size=6).map(sorted),
    st.sampled_from(["none", "some", "all"]),
)
def test_where_a_block_is_cut_does_not_matter(cuts, importances):
    rng = np.random.default_rng(2)
    n = 150_000
    labels, scores = rng.choice([-1, 1], n).astype(np.int8), rng.normal(size=n)
    weights = {
        "none": None,
        "some": np.where(np.arange(n) // 40_000 % 2, rng.random(n), 1.0),
        "all": rng.random(n),
    }[importances]
    assert same_state(sketch_of(labels, scores, weights, cuts), sketch_of(labels, scores, weights))


def test_importances_of_one_are_no_importances():
    rng = np.random.default_rng(4)
    labels, scores = rng.choice([-1, 1], 100_000), rng.normal(size=100_000)
    assert same_state(sketch_of(labels, scores, np.ones(100_000)), sketch_of(labels, scores))


def test_rows_of_importance_zero_leave_no_trace():
    rng = np.random.default_rng(4)
    labels, scores = rng.choice([-1, 1], 90_000), rng.normal(size=90_000)
    importances = np.where(rng.random(90_000) < 0.3, 0.0, 1.0)
    kept = importances > 0
    assert same_state(sketch_of(labels, scores, importances), sketch_of(labels[kept], scores[kept]))


def test_only_the_order_of_scores_matters():
    rng = np.random.default_rng(8)
    labels, ranks = rng.choice([-1, 1], 200_000), rng.permutation(200_000)
    plain = sketch_of(labels, ranks).auc
    squeezed = sketch_of(labels, 1 + ranks * 2.0**-52).auc
    assert (float(squeezed), squeezed.bound) == (float(plain), plain.bound)


@pytest.mark.parametrize("weighted", [False, True])
def test_merging_counts_all_rows_within_the_bound(weighted):
    rng = np.random.default_rng(6)
    n = 400_000
    labels = np.where(rng.random(n) < 0.2, 1, -1)
    scores = (rng.normal(size=n) + labels) * np.where(np.arange(n) < n // 2, 1, 50)
    importances = rng.random(n) if weighted else None
    pieces = np.array_split(np.arange(n), 7)
    merged = StreamingAuc()
    for piece in pieces:
        merged.merge(sketch_of(labels[piece], scores[piece], None if importances is None else importances[piece]))
    found = merged.auc
    assert abs(found - auc(labels, scores, importances)) <= found.bound + 1e-12
    assert (merged.n_pos, merged.n_neg) == ((labels > 0).sum(), (labels < 0).sum())
    share = RUN if weighted else 2 * RUN
    assert found.bound <= (levels(merged.n_pos) + levels(merged.n_neg)) / share


def test_merging_few_rows_equals_adding_them():
    rng = np.random.default_rng(6)
    labels, scores = rng.choice([-1, 1], 5000), rng.normal(size=5000)
    merged = sketch_of(labels[:2000], scores[:2000])
    merged.merge(sketch_of(labels[2000:], scores[2000:]))
    assert same_state(merged, sketch_of(labels, scores))


def test_merging_with_itself_counts_every_row_twice():
    rng = np.random.default_rng(6)
    labels, scores = rng.choice([-1, 1], 100_000), rng.normal(size=100_000)
    sketch = sketch_of(labels, scores)
    sketch.merge(sketch)
    assert sketch.n_pos == 2 * (labels > 0).sum()
    assert abs(sketch.auc - auc(labels, scores)) <= sketch.auc.bound


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 10, 5_000, 350_000])
def test_save_load_continue_equals_continue(rows, weighted):
    rng = np.random.default_rng(rows)
    n = rows + 120_000
    labels, scores = rng.choice([-1, 1], n), rng.normal(size=n)
    importances = rng.random(n) if weighted else None
    first, rest = slice(rows), slice(rows, n)
    part = [None if importances is None else importances[s] for s in (first, rest)]
    going_on = sketch_of(labels[first], scores[first], part[0])
    for restored in (StreamingAuc.from_state(going_on.state()), pickle.loads(pickle.dumps(going_on))):
        assert same_state(restored, going_on)
        assert restored.auc == going_on.auc or rows < 2
        restored.add(labels[rest], scores[rest], part[1])
        straight = sketch_of(labels, scores, importances)
        assert same_state(restored, straight)


def test_state_is_small_while_rows_are_few_and_bounded_for_ever():
    few = sketch_of(np.array([1, -1, -1]), np.array([1.0, 2.0, 3.0]))
    assert sum(array.nbytes for array in few.state().values()) < 400
    rng = np.random.default_rng(1)
    many = StreamingAuc()
    for _ in range(20):
        many.add(rng.choice([-1, 1], 200_000), rng.normal(size=200_000))
    most = 8 * (RAW + (FAN - 1) * RUN * levels(4_000_000)) * 2 + 2000
    assert sum(array.nbytes for array in many.state().values()) < most


def hostile_states():
    rng = np.random.default_rng(1)
    labels, scores = rng.choice([-1, 1], 80_000), rng.normal(size=80_000)
    for weights in (None, rng.random(80_000)):
        state = sketch_of(labels, scores, weights).state()
        for name, array in state.items():
            yield f"without {name}", {k: v for k, v in state.items() if k != name}
            yield f"{name} of another dtype", {**state, name: array.astype(np.float32)}
            yield f"{name} in two dimensions", {**state, name: array[None]}
            yield (
                f"{name} longer",
                {**state, name: np.concatenate([array, array[-1:], array[-1:], [1]]).astype(array.dtype)},
            )
            if len(array):
                yield f"{name} shorter", {**state, name: array[:-1]}
            for at in {0, len(array) // 2, len(array) - 1} if len(array) else ():
                for value in (-1, 2**62, np.nan, -np.inf):
                    if array.dtype == np.int64 and not np.isfinite(value):
                        continue
                    changed = array.copy()
                    changed[at] = value
                    legal = {
                        ("counts", 2),
                        ("scores", 0),
                        ("scores", len(array) // 2),
                        ("scores", len(array) - 1),
                    }
                    if (name[4:], at) in legal and value in (-1, 2**62, -np.inf):
                        continue  # another order, other turns: odd, but nothing a sketch could not hold
                    yield f"{name}[{at}] = {value}", {**state, name: changed}


@pytest.mark.parametrize("state", [pytest.param(state, id=name) for name, state in hostile_states()])
def test_a_state_that_was_never_written_is_refused(state):
    with pytest.raises(DataError, match=r"StreamingAuc\.from_state: .*Pass what state"):
        StreamingAuc.from_state(state)


@pytest.mark.parametrize(
    ("labels", "scores", "importances", "message"),
    [
        ([1, -1], [0.0, math.nan], None, "row 1 has the score nan"),
        ([1, 5], [0.0, 1.0], None, "row 1 has the label 5"),
        ([1, 0], [0.0, 1.0], [1.0, -1.0], "row 1 has the importance -1.0"),
        ([1, 0], [0.0, 1.0], [1e200, 1.0], "importances in a stream lie between 1e-100 and"),
        ([1, 0, 1], [0.0, 1.0], None, "3 labels but 2 scores"),
    ],
)
def test_nothing_is_counted_of_a_block_that_is_refused(labels, scores, importances, message):
    sketch = sketch_of(np.array([1, -1]), np.array([2.0, 1.0]))
    before = sketch.state()
    with pytest.raises(DataError, match=f"StreamingAuc.add: .*{message}"):
        sketch.add(labels, scores, importances)
    assert all(np.array_equal(before[name], array) for name, array in sketch.state().items())


def test_threads_may_add_at_once():
    rng = np.random.default_rng(9)
    labels, scores = rng.choice([-1, 1], 200_000), rng.normal(size=200_000)
    sketch = StreamingAuc()

    def work(part):
        for piece in np.array_split(part, 50):
            sketch.add(labels[piece], scores[piece])

    threads = [threading.Thread(target=work, args=(part,)) for part in np.array_split(np.arange(200_000), 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sketch.n_pos + sketch.n_neg == 200_000
    assert abs(sketch.auc - auc(labels, scores)) <= sketch.auc.bound
