"""Writes the golden model files of the current format that are missing: of new learners, or of a new format.

python -m tests.model.write_golden
"""

from __future__ import annotations

import json
from pathlib import Path

from rarestream import Block, Model, learner_names, make_learner
from rarestream.features import ColumnPlan, TablePlan
from tests.strategies import hashed_block, random_block

FOLDER = Path(__file__).parent / "golden"
KINDS = (("unit", "float32", "resumable"), ("max", "float64", "scoring"))


def main() -> None:
    for name in learner_names():  # of format 1: the features are column numbers
        for scale, dtype, kind in KINDS:
            l1 = {"l1": 0.05} if "l1" in make_learner(name).settings else {}
            write(f"format1-{name}", Model(make_learner(name, **l1), scale=scale, dtype=dtype), kind)
    for scale, dtype, kind in KINDS:  # of format 2: they are hashed; learners are written as in format 1
        write("format2-hashed", Model(make_learner("dual-auc", l1=0.05), scale=scale, dtype=dtype), kind)


def write(name: str, model: Model, kind: str) -> None:
    path = FOLDER / f"{name}-{kind}.rare"
    if path.exists():  # what was once written stays readable: never rewrite it
        return
    learned = golden_rows(path, 60, 0)
    if learned.space is not None:
        learned.space.plan = TablePlan((ColumnPlan("site", 1),), label="clicked")
    model.learn(learned)
    model.source = {"files": [], "shuffle": None, "pass": 0, "rows": 60}
    model.save(path, kind)
    model = Model.load(path)
    facts = {"learner": model.learner.name, "scores": model.score(golden_rows(path, 10, 1)).tolist()}
    if learned.space is not None:
        facts["names"] = model.feature_names(range(learned.space.slots))
    path.with_suffix(".json").write_text(json.dumps(facts) + "\n")


def golden_rows(path: Path, n: int, seed: int) -> Block:
    """The rows that a golden file has learned (seed 0) or is tested with (seed 1)."""
    return hashed_block(n, 5, seed=seed) if path.name.startswith("format2") else random_block(n, 20, 4, seed=seed)


if __name__ == "__main__":
    main()
