"""How a model runs: `Single` has one learner, `Race` many settings until one is chosen, `Frozen` only weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarestream.engines.arrays import Arrays
from rarestream.engines.base import DTYPES, SCALES, Engine, Learned, Weights, check_arguments, overflow
from rarestream.engines.frozen import Frozen
from rarestream.engines.single import Single
from rarestream.learners import Learner
from rarestream.learners.base import RacePlan
from rarestream.learners.registry import make_learner

__all__ = [
    "DTYPES",
    "SCALES",
    "Engine",
    "Frozen",
    "Learned",
    "Single",
    "Weights",
    "check_arguments",
    "load_engine",
    "overflow",
    "start_engine",
]


def start_engine(learner: Learner, scale: str, n_features: int, dtype: str) -> Engine:
    """Return the engine that a learner starts with."""
    plan = learner.race_plan()
    if plan is None:
        return Single.start(learner, scale, n_features, dtype)
    return _race(learner, plan, scale, n_features, dtype)


def load_engine(header: Mapping[str, Any], learner: Learner, arrays: Arrays, n_features: int) -> Engine:
    """Return the engine of a file; ValueError, KeyError or TypeError if its header or arrays are invalid."""
    scale, dtype = header["scale"], header["dtype"]
    plan = learner.race_plan()
    engine: Engine
    if header["kind"] == "scoring":
        if plan is not None:
            raise ValueError(f"{learner.name} has no weights of its own")
        engine = Frozen(learner, scale, dtype, n_features)
    elif header["kind"] != "resumable":
        raise ValueError(f"its kind is {header['kind']!r}")
    elif plan is None:
        engine = Single.start(learner, scale, n_features, dtype)
    else:  # a race continues with the settings of its file, whatever this version would race
        plan = plan._replace(candidates=_saved_candidates(header))
        hashed = header["features"]["space"] == "hashed"
        engine = _race(learner, plan, scale, 0 if hashed else n_features, dtype)
        if hashed:
            engine.reserve(n_features, exactly=True)
    engine.load(arrays, n_features)
    return engine


def _race(learner: Learner, plan: RacePlan, scale: str, n_features: int, dtype: str) -> Engine:
    """Return the engine of a race: in lanes if all settings can share a pass."""
    # Not imported above: many programs never race.
    if any(candidate.lane() is None for candidate in plan.candidates):
        from rarestream.engines.separate import SeparateRace

        return SeparateRace(learner, plan, scale, n_features, dtype)
    from rarestream.engines.race import Race

    return Race(learner, plan, scale, n_features, dtype)


def _saved_candidates(header: Mapping[str, Any]) -> list[Learner]:
    """Return the settings that the file of a race lists; ValueError, KeyError or TypeError if they cannot race."""
    entries = header.get("candidates")
    if entries is None:  # the first version wrote no list
        from rarestream.learners.auto import Auto

        return Auto.first_candidates()
    candidates = [make_learner(entry["name"], **entry["settings"]) for entry in entries]
    if not candidates or any(learner.lane() is None and "budget" not in learner.settings for learner in candidates):
        raise ValueError("its candidates cannot race")
    return candidates
