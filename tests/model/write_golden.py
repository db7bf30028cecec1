"""Writes the golden model files of the current format that are missing: of new learners, or of a new format.

python -m tests.model.write_golden
"""

from __future__ import annotations

import json
from pathlib import Path

from rarestream import Model, learner_names, make_learner
from rarestream.modelfile import FORMAT
from tests.strategies import random_block

FOLDER = Path(__file__).parent / "golden"


def main() -> None:
    for name in learner_names():
        for scale, dtype, kind in (("unit", "float32", "resumable"), ("max", "float64", "scoring")):
            path = FOLDER / f"format{FORMAT}-{name}-{kind}.rare"
            if path.exists():  # what was once written stays readable: never rewrite it
                continue
            l1 = {"l1": 0.05} if "l1" in make_learner(name).settings else {}
            model = Model(make_learner(name, **l1), scale=scale, dtype=dtype)
            model.learn(random_block(60, 20, 4))
            model.source = {"files": [], "shuffle": None, "pass": 0, "rows": 60}
            model.save(path, kind)
            model = Model.load(path)
            scores = model.score(random_block(10, 20, 4, seed=1)).tolist()
            path.with_suffix(".json").write_text(json.dumps({"learner": model.learner.name, "scores": scores}) + "\n")


if __name__ == "__main__":
    main()
