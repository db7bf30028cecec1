"""What learning in groups costs: the results of groups.py and scaling.py, the model fitted to them, their page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2] / "benchmarks"
LAW = (30.0, 0.7)
SIZES = (12.0, 12.0)  # bytes of a feature


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def scaling():
    pytest.importorskip("scipy")
    import scaling

    return scaling


@pytest.fixture
def constants(scaling):
    return {piece: [1e-3, *[1e-8] * len(names)] for piece, names in scaling.PIECES.items()}


def experiments(scaling, constants):
    found = []
    for bits in (18, 22):
        for rows in (10_000, 40_000, 160_000):
            for groups in (4, 16, 64):
                touched = scaling.distinct(LAW, rows / groups, 1 << bits)
                amounts = {
                    "slots": 1 << bits,
                    "features": rows**0.8,
                    "nonzeros": 15 * rows / groups,
                    "touched": touched,
                }
                amounts |= {
                    "groups": groups,
                    "received": groups * touched,
                    "union": scaling.distinct(LAW, rows, 1 << bits),
                }
                found.append({"amounts": amounts, "seconds": scaling.predicted(constants, amounts)})
    return found


def test_constants_are_found_again(scaling, constants):
    known = experiments(scaling, constants)
    found = scaling.fit(known)
    for piece, numbers in constants.items():
        assert found[piece] == pytest.approx(numbers, rel=1e-2), piece
    for one in known:
        assert scaling.predicted(found, one["amounts"]) == pytest.approx(one["seconds"], rel=1e-4)


def test_features_grow_by_a_law_until_the_slots_are_full(scaling):
    law = scaling.power_law([(1 << power, 30 * (1 << power) ** 0.7) for power in range(12, 20)])
    assert law == pytest.approx(LAW)
    assert scaling.distinct(law, 1000, 2**40) == pytest.approx(30 * 1000**0.7, rel=1e-6)
    assert scaling.distinct(law, 1e12, 1 << 20) == 1 << 20
    assert scaling.distinct(law, 0, 1 << 20) == 0


def test_one_group_sends_nothing(scaling, constants):
    found = scaling.forecast(constants, SIZES, LAW, 15, 1 << 24, 1, scaling.Assumed())
    assert (found.rounds, found.state, found.driver, found.overhead, found.into_driver) == (1, 0, 0, 0, 0)
    assert found.total == found.learn > 0


def test_with_ranges_the_driver_receives_each_feature_once(scaling, constants):
    plain, ranged = (
        scaling.forecast(constants, SIZES, LAW, 15, 1 << 28, 64, scaling.Assumed(), ranges=by) for by in (False, True)
    )
    rows = scaling.Assumed().rows / plain.rounds
    assert plain.into_driver == pytest.approx(12 * 64 * scaling.distinct(LAW, rows / 64, 1 << 28))
    assert ranged.into_driver == pytest.approx(12 * scaling.distinct(LAW, rows, 1 << 28))
    assert ranged.into_driver < plain.into_driver
    assert ranged.driver < plain.driver
    assert ranged.learn == plain.learn


def results(added, sequence=(0.9, 0.8)):
    cells = [{"groups": 16, "rounds": 4, "added": added}, {"groups": 64, "rounds": 16, "added": [None, None]}]
    return [{"set": "one", "learner": "dual-logistic", "rows": 100, "sequence": list(sequence), "cells": cells}]


def test_auc_is_held_against_what_is_required():
    import groups

    assert "kept" in groups.bar_table(results([-0.001, -0.002]))
    assert "BELOW" in groups.bar_table(results([-0.005, -0.002]))
    assert "| one | dual-logistic | 100 | 0.8500 | -0.0015 | - |" in groups.auc_table(results([-0.001, -0.002]))


def test_files_of_the_same_trials_are_joined(tmp_path):
    import groups

    files = []
    for number, (added, rounds) in enumerate((([-0.001, 0.0], 4), ([0.002, 0.0], 8), ([0.003, 0.0], 4))):
        files.append(tmp_path / f"{number}.json")
        written = results(added)
        written[0]["cells"][0]["rounds"] = rounds
        files[-1].write_text(json.dumps({"groups": written}))
    (one,) = groups.load(files)
    found = [(cell["rounds"], cell["added"]) for cell in one["cells"] if cell["groups"] == 16]
    assert found == [(4, [0.003, 0.0]), (8, [0.002, 0.0])]
    files[1].write_text(json.dumps({"groups": results([0.0, 0.0], sequence=(0.9, 0.7))}))
    with pytest.raises(SystemExit, match="other trials"):
        groups.load(files)


def test_pictures_are_drawn(scaling):
    import scaling_page

    found = results([-0.001, -0.002])
    found[0]["cells"].append({"groups": 16, "rounds": 64, "added": [0.001, 0.0]})
    (panel,) = scaling_page.by_rounds(found)
    assert panel == ("dual-logistic, 16 groups", {"one": [(4, pytest.approx(0.0015)), (64, pytest.approx(-0.0005))]})
    picture = ET.fromstring(scaling_page.chart("a < b", [panel], "rounds"))
    assert picture.get("aria-label") == "a < b"
    assert sum(element.tag.endswith("circle") for element in picture) == 2
