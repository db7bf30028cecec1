"""Every learner gives the same bits as when tests/golden/bits.json was written: no change of the code changed a number.

python -m tests.learners.test_same_bits    writes what is missing; what was once written stays
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rarestream import Block, Learner, Model, learner_names, make_learner
from rarestream.race import Racing, grid
from tests.strategies import random_block

FILE = Path(__file__).parents[1] / "golden" / "bits.json"
FEW, ROWS, FEATURES = 350, 700, 90

# Settings beside a learner's defaults: every branch of its step.
VARIANTS: dict[str, list[dict[str, object]]] = {
    "adagrad": [{"l1": 1e-3}],
    "auto": [{"rows": 600}],
    "dual-auc": [
        {"l1": 0.05},
        {"rate_power": 1.0},
        {"rate_power": 0.5},
        {"rate_power": 1.3},
        {"budget": 30},
        {"power": 1.0},
        {"evidence": 0.5, "proximal": 0.5},
        {"evidence": 1.0},
        {"half_life": 100},
        {"half_life": 100, "power": 1.0, "l1": 0.01},
    ],
    "dual-logistic": [
        {"l1": 0.05},
        {"rate_power": 2.0, "beta": 1e-8},
        {"budget": 30},
        {"power": 0.5, "proximal": 0.5},
        {"power": 0.3, "l1": 0.01},
        {"power": 1.0, "proximal": 0.5, "budget": 30},
        {"evidence": 0.5, "proximal": 0.5},
        {"evidence": 1.0, "l1": 0.05},
        {"evidence": 0.3, "power": 0.5},
        {"evidence": 0.5, "half_life": 100},
        {"half_life": 100, "l1": 0.05},
        {"half_life": 100, "power": 0.5, "proximal": 0.5},
    ],
    "ftrl-auc": [{"l1": 0.0}, {"l2": 0.5}, {"means": "exact"}, {"half_life": 100, "l1": 0.05}],
    "ftrl-proximal": [{"l1": 0.1, "l2": 0.5}, {"intercept": False}, {"half_life": 100, "l2": 0.5}],
    "rda": [{"l1": 0.01}],
    "spam": [{"l1": 0.01}],
    "spauc": [{"l1": 0.01}],
}


def stream() -> Block:
    """Rows of which some weigh more and some nothing, in no particular scale."""
    rows = random_block(ROWS, FEATURES, 11, seed=5, share=0.2)
    draw = np.random.default_rng(8)
    weights = np.where(draw.random(ROWS) < 0.1, 0.0, draw.choice([1.0, 1.0, 0.5, 3.0], ROWS))
    values = rows.values * draw.choice([0.01, 1.0, 3.0], FEATURES)[rows.indices].astype(np.float32)
    return Block.of((rows.indptr, rows.indices, values), rows.labels, weights)


def cases() -> list[str]:
    found = []
    for name in learner_names():
        for settings in [{}, *VARIANTS.get(name, [])]:
            for dtype in ("float32", "float64"):
                for scale in ("unit", "max", "none"):
                    found.append(json.dumps([name, settings, dtype, scale]))
    return found


def learned(case: str) -> str:
    """The hash of all numbers a model gives: scores before and after, weights, class means. Probabilities are apart."""
    name, settings, dtype, scale = json.loads(case)
    block = stream()
    if scale == "none":
        block = replace(block, values=block.values * np.float32(0.05))
    model = Model(make_learner(name, **settings), dtype=dtype, scale=scale, calibrate=False)
    parts = [model.learn(block[:FEW])]
    model = Model.from_bytes(model.to_bytes())
    parts += [model.learn(block[FEW:]), model.score(block), model.coef.astype(np.float64)]
    parts.append(np.array([*model.class_means, model.intercept, model.threshold, float(model.progress.auc)]))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:32]


def raced(kind: str) -> str:
    """The hash of a race's outcome: who won, by how much, and what the winner gives."""
    block = stream()
    rows = [block, block.take(np.random.default_rng(1).permutation(ROWS))] * 4
    settings = "auto" if kind == "auto" else [*grid("ftrl-auc", learning_rate=[0.1, 1.0, 5.0], l1=[0.0, 0.01]), "spam"]
    racing = Racing(settings, holdout=0.2 if kind == "held out" else 0.0, threads=1)
    scores = [racing.learn(part) for part in rows]
    found = racing.finish()
    parts = [*scores, found.model.score(block), found.model.coef.astype(np.float64)]
    said = [(_said(one.learner), one.auc, one.behind, one.error, one.retired_after) for one in found.entrants]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts) + repr(said).encode()).hexdigest()[:32]


def _said(learner: Learner) -> str:
    """A learner as it was printed when the hashes were recorded, without settings that came later."""
    later = (", half_life=0.0", "power=0.0, proximal=0.0, evidence=0.0, ")
    return functools.reduce(lambda text, word: text.replace(word, ""), later, repr(learner))


def known() -> dict[str, str]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def recorded() -> set[str]:
    """The learners in the file; a new one is recorded when it is released."""
    return {json.loads(case)[0] for case in known() if case.startswith("[")}


@pytest.mark.parametrize("case", cases())
def test_a_learner_gives_the_same_bits_as_ever(case):
    if json.loads(case)[0] not in recorded():
        pytest.skip("not recorded yet: python -m tests.learners.test_same_bits")
    assert learned(case) == known()[case]


@pytest.mark.parametrize("kind", ["auto", "a list", "held out"])
def test_a_race_gives_the_same_bits_as_ever(kind):
    assert raced(kind) == known()[f"race: {kind}"]


def main() -> None:
    found = known()
    for case in cases():
        if case not in found:
            found[case] = learned(case)
    for kind in ("auto", "a list", "held out"):
        if f"race: {kind}" not in found:
            found[f"race: {kind}"] = raced(kind)
    FILE.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
