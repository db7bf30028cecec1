"""The simulation of alarms runs, on short streams, and finds what the long one does."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def simulation(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    import drift_alarms

    return drift_alarms


@pytest.mark.parametrize("kind", ["normal", "skewed", "rounded", "bursts", "wandering"])
def test_alarms_are_as_rare_as_stated(simulation, kind):
    count, positives = simulation.measured_alarms(simulation.Stream(0.8, 2, kind), 1000, 60)
    assert 1000 * count <= positives
    assert positives == pytest.approx(60_000, rel=0.1)


def test_a_fall_is_found_the_sooner_the_larger_it_is(simulation):
    small, large = (np.median(simulation.delays(simulation.Stream(0.8), drop, 3000, 1000, 9)) for drop in (0.05, 0.2))
    assert large < 100 < small < math.inf


@pytest.mark.parametrize("auc", [0.6, 0.9])
def test_the_mean_placement_is_the_auc(simulation, auc):
    for kind in ("normal", "skewed"):
        labels, scores = simulation.Stream(auc, 3, kind).rows(np.random.default_rng(0), 40_000)
        placed = simulation.placements(labels, scores)
        assert np.mean(placed) == pytest.approx(auc, abs=0.02)
        assert len(placed) > 5000


def test_models_that_learn_are_simulated_too(simulation):
    rows = list(simulation.learned("ftrl-proximal", 0, 5000, 0.2))
    assert sum(len(labels) for labels, _ in rows) == 5000
