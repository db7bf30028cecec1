"""AUC on streams that drift: learners with several half-lives, and auto.

    python benchmarks/drift.py [--rows 1000000] [--turns 0,2,8] [--json FILE]

The stream is that of `rarestream demo`; its planted weights turn over so many times while it is learned (`Planted` in
rarestream.evaluate.synthetic). One pass, each row scored before it is learned; AUC of the last fifth of the rows. Best
possible: that of the true log odds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from rarestream import Auto, Block, Model, auc, make_learner
from rarestream.evaluate.synthetic import Planted
from rarestream.race.fitting import ManyFits

LEARNERS = ("dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal")
HALF_LIVES = (0, 2**12, 2**14, 2**16, 2**18)
AUTOS = {"auto": Auto(), "auto, keep=8": Auto(keep=8)}


def key(name: str, half_life: int) -> str:
    return f"{name} {half_life or 'none'}"


def stream(rows: int, turns: int) -> tuple[list[Block], float]:
    """The rows, and the best possible AUC on the last fifth."""
    planted = Planted.plant(drift=rows // turns if turns else 0)
    parts = list(planted.rows(rows))
    log_odds = np.concatenate([part.log_odds for part in parts])
    blocks = [part.block for part in parts]
    return blocks, last(blocks, log_odds)


def last(blocks: list[Block], scores: np.ndarray) -> float:
    """AUC of the last fifth of the rows."""
    labels = np.concatenate([block.labels for block in blocks if block.labels is not None])
    fifth = len(labels) // 5
    return float(auc(labels[-fifth:], scores[-fifth:].astype(np.float64)))


def measured(rows: int, turns: int) -> dict[str, float]:
    blocks, best = stream(rows, turns)
    settings = {
        key(name, half_life): replace(make_learner(name), half_life=float(half_life))
        for name in LEARNERS
        for half_life in HALF_LIVES
    }
    fits = ManyFits(list(settings.values()))
    fits.reserve(max(block.width for block in blocks))
    scores = np.concatenate([fits.learn(block) for block in blocks])
    found = {name: last(blocks, scores[:, number]) for number, name in enumerate(settings)}
    for name, learner in AUTOS.items():
        model = Model(learner)
        found[name] = last(blocks, np.concatenate([model.learn(block) for block in blocks]))
    return {**found, "best possible": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", default="0,2,8", help="how many times the weights turn over")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {}
    for turns in map(int, given.turns.split(",")):
        found = results[str(turns)] = measured(given.rows, turns)
        print(
            f"\n{given.rows:,} rows, weights turn over {turns} times" if turns else f"\n{given.rows:,} rows, no drift"
        )
        print(f"{'half-life':16}" + "".join(f"{half_life or 'none':>10}" for half_life in HALF_LIVES))
        for name in LEARNERS:
            cells = "".join(f"{found[key(name, half_life)]:10.4f}" for half_life in HALF_LIVES)
            print(f"{name:16}{cells}")
        for name in (*AUTOS, "best possible"):
            print(f"{name:16}{found[name]:10.4f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
