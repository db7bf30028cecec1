"""The state of a Monitor is a function of the rows alone, and its message is what the metrics say of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, Model
from rarestream.errors import DataError
from rarestream.metrics import StreamingAuc, auc_interval, reliability, score_histogram
from rarestream.monitor import Latencies, Monitor
from rarestream.monitor import monitor as module
from rarestream.monitor.latencies import Rate


def rows(n, seed=0, importances=False):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.2, 1, -1).astype(np.int8)
    scores = np.round(rng.normal(size=n) + (labels > 0), 2)
    weights = rng.integers(0, 4, n).astype(np.float64) if importances else None
    return labels, scores, 1 / (1 + np.exp(-scores)), weights


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes(), name


def part(given, start, stop):
    return [None if array is None else array[start:stop] for array in given]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 1500),
    cuts=st.lists(st.integers(0, 1500), max_size=12),
    seed=st.integers(0, 5),
    weighted=st.booleans(),
    window=st.integers(2, 700),
    looks=st.lists(st.booleans(), min_size=13, max_size=13),
)
def test_where_rows_are_cut_and_who_looks_meanwhile_does_not_matter(n, cuts, seed, weighted, window, looks):
    given = rows(n, seed, weighted)
    whole, pieces = Monitor(window), Monitor(window)
    whole.count(*given)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for start, stop, look in zip(edges, edges[1:], looks, strict=False):
        pieces.count(*part(given, start, stop))
        if look:
            pieces.work()
    same(whole.state(), pieces.state())


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 1500), at=st.integers(0, 1500), window=st.integers(2, 700), weighted=st.booleans())
def test_a_restored_monitor_continues_bit_for_bit(n, at, window, weighted):
    given = rows(n, 1, weighted)
    at = min(at, n)
    first = Monitor(window)
    first.count(*part(given, 0, at))
    restored = Monitor.from_state(first.state())
    same(first.state(), restored.state())
    for monitor in (first, restored):
        monitor.count(*part(given, at, n))
    same(first.state(), restored.state())


def test_rows_one_by_one_are_the_same_as_a_block():
    labels, scores, probabilities, _ = rows(3000)
    block, single, alone = Monitor(500), Monitor(500), Monitor(500)
    block.count(labels, scores, probabilities)
    for i in range(3000):
        single.count(labels[i : i + 1], scores[i : i + 1], probabilities[i : i + 1])
        alone.count_one(int(labels[i]), float(scores[i]), float(probabilities[i]))
    same(single.state(), alone.state())
    # Importances that are 1 are stored where rows came alone.
    assert {name: array.tobytes() for name, array in block.state().items()} == {
        name: array.tobytes() for name, array in single.state().items()
    }


def test_rows_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "WAITING", 100)
    monkeypatch.setattr(module, "SINGLES", 10)
    labels, scores, *_ = rows(60)
    monitor = Monitor()
    for _ in range(20):
        monitor.count(labels, scores)
        assert monitor._given - monitor._taken <= 160
    for _ in range(100):
        monitor.count_one(1, 0.5)
        assert len(monitor._waiting) <= 11


def test_the_history_is_bounded_and_its_points_are_exact(monkeypatch):
    monkeypatch.setattr(module, "POINTS", 20)
    monkeypatch.setattr(module, "RECENT", 7)
    labels, scores, *_ = rows(40_000)
    monitor = Monitor(100)
    monitor.count(labels, scores)
    message = monitor.message(Model("ftrl-auc"))
    history, recent = message["history"], message["recent"]
    assert len(history["rows"]) <= 22 and history["rows"][-1] == 40_000
    assert recent["rows"] == list(range(39_400, 40_001, 100))
    for at, n in enumerate(history["rows"]):
        n = int(n)
        so_far = StreamingAuc()
        so_far.add(labels[:n], scores[:n])
        window = auc_interval(labels[n - 100 : n], scores[n - 100 : n])
        assert history["auc"][at] == float(so_far.auc) and history["high"][at] == so_far.auc.high
        assert history["window"][at] == float(window) and history["window_low"][at] == window.low


def model_and_rows(n=3000):
    rng = np.random.default_rng(3)
    labels = np.where(rng.random(n) < 0.1, 1, -1).astype(np.int8)
    values = np.where(rng.random((n, 20)) < 0.3, 1.0, 0.0) * (1 + 0.5 * (labels[:, None] > 0) * (np.arange(20) < 3))
    return Model("ftrl-auc"), Block.of(values, labels)


def test_the_message_is_what_the_metrics_say():
    model, block = model_and_rows()
    monitor = Monitor.of(model, 1000)
    scores, probabilities = [], []
    for start in range(0, 3000, 500):
        piece = block[start : start + 500]
        known = model.calibration.copy()
        scores.append(model.learn(piece))
        probabilities.append(known.probability(scores[-1]))
        monitor.count(piece.labels, scores[-1], probabilities[-1])
    message = monitor.message(model)
    json.dumps(message, allow_nan=False)
    scores, probabilities = np.concatenate(scores), np.concatenate(probabilities)
    assert message["auc"]["value"] == float(model.progress.auc)
    assert message["window_auc"]["value"] == float(auc_interval(block.labels[-1000:], scores[-1000:]))
    histogram = score_histogram(block.labels[-1000:], scores[-1000:], bins=40)
    assert message["scores"]["positives"] == histogram.positives.tolist()
    bins = reliability(block.labels[-1000:], probabilities[-1000:], bins=12)
    assert message["calibration"]["observed"] == bins.share.tolist()
    assert message["rows"] == 3000 and message["nonzeros"] == model.nonzeros
    order = np.argsort(-np.abs(model.coef), kind="stable")[:15]
    assert [weight["weight"] for weight in message["top"]] == model.coef[order].tolist()
    assert message["top"][0]["change"] is None  # nothing is known of the past yet
    monitor.weights._rest_until = 0.0
    before = model.coef
    scores = model.learn(block)
    monitor.count(block.labels, scores)
    after = monitor.message(model)["top"]
    feature = int(np.flatnonzero(model.coef == after[0]["weight"])[0])
    assert after[0]["change"] == pytest.approx(float(model.coef[feature]) - float(before[feature]))
    assert len(after[0]["trail"]) == 2


def test_an_empty_monitor_has_a_message():
    message = Monitor().message(Model("ftrl-auc"))
    json.dumps(message, allow_nan=False)
    assert message["auc"] == {"value": None, "low": 0.0, "high": 1.0}
    assert message["scores"] is None and message["calibration"] is None and message["top"] == []


def test_the_weights_of_large_models_are_read_in_parts():
    model = Model("ftrl-auc", n_features=1_000_000)
    model.learn_one([0, 999_999], [1.0, 1.0], 1)
    model.learn_one([5, 999_999], [1.0, 2.0], -1)
    monitor = Monitor()
    looks = 0
    while monitor.weights.nonzeros is None:
        monitor.weights._rest_until = 0.0
        monitor.look(model)
        looks += 1
    assert looks == 4
    assert monitor.weights.nonzeros == model.nonzeros
    assert {weight.weight for weight in monitor.weights.top} == set(model.coef[model.coef != 0].tolist())


def test_invalid_states_are_refused():
    monitor = Monitor(10)
    monitor.count(*rows(20))
    good = monitor.state()
    for name in good:
        with pytest.raises(DataError):
            Monitor.from_state({key: array for key, array in good.items() if key != name})
    with pytest.raises(DataError):
        Monitor.from_state({**good, "counts": good["counts"] - 100})
    with pytest.raises(DataError):
        Monitor.from_state({**good, "history": np.zeros((2, 3))})


def test_a_race_that_ends_gives_its_progressive_auc():
    monitor, progress = Monitor(), StreamingAuc()
    labels, scores, *_ = rows(100)
    monitor.count(labels, scores)
    progress.add(labels, -scores)
    monitor.adopt(progress)
    assert monitor.message(Model("ftrl-auc"))["auc"]["value"] == float(progress.auc)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-6, 100), min_size=1, max_size=200))
def test_percentiles_are_at_most_a_bucket_too_high(seconds):
    latencies = Latencies()
    for value in seconds:
        latencies.add(value, now=5.0)
    found = latencies.percentiles(now=6.0)
    ordered = sorted(seconds)
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        exact = ordered[math.ceil(share * len(ordered)) - 1]
        assert exact / 1.0000001 <= found[name] <= exact * 2 ** (1 / 8) * 1.0000001


def test_latencies_are_those_of_the_last_minute():
    latencies = Latencies()
    assert latencies.percentiles(now=0.0) is None
    latencies.add(1.0, now=0.0)
    latencies.add(0.001, now=30.0)
    assert latencies.percentiles(now=40.0)["count"] == 2
    assert latencies.percentiles(now=70.0)["count"] == 1
    assert latencies.percentiles(now=200.0) is None
    assert latencies.total == 2


def test_a_rate_is_that_of_the_last_seconds():
    rate = Rate(5.0)
    assert rate.per_second is None
    for second in range(20):
        rate.sample(100 * second if second < 10 else 1000, float(second))
    assert rate.per_second == 0.0
    rate.sample(1600, 20.0)
    assert rate.per_second == pytest.approx(120.0)
