"""How a model runs: `Single` has one learner, `Race` many settings of which one will stay, `Frozen` only weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarestream.engines.base import SCALES, Arrays, Engine, Learned, Weights
from rarestream.engines.frozen import Frozen
from rarestream.engines.race import Race, candidates_of
from rarestream.engines.single import Single
from rarestream.learners import Learner
from rarestream.learners.auto import Auto

__all__ = ["SCALES", "Engine", "Frozen", "Learned", "Race", "Single", "Weights", "load_engine", "start_engine"]


def start_engine(learner: Learner, scale: str, n_features: int, dtype: str) -> Engine:
    """Return the engine that a learner starts with."""
    if isinstance(learner, Auto):
        return Race(learner, learner.candidates(), scale, n_features, dtype)
    return Single.start(learner, scale, n_features, dtype)


def load_engine(header: Mapping[str, Any], learner: Learner, arrays: Arrays) -> Engine:
    """Return the engine of a file; ValueError, KeyError or TypeError if its header or arrays break a rule."""
    scale, dtype, n_features = header["scale"], header["dtype"], header["features"]["count"]
    engine: Engine
    if header["kind"] == "scoring":
        if isinstance(learner, Auto):
            raise ValueError("auto has no weights of its own")
        engine = Frozen(learner, scale, dtype, n_features)
    elif header["kind"] != "resumable":
        raise ValueError(f"its kind is {header['kind']!r}")
    elif isinstance(learner, Auto):
        # Files that do not tell are from before the settings were written down: they raced these.
        told = header.get("candidates")
        candidates = learner.first_candidates() if told is None else candidates_of(told)
        engine = Race(learner, candidates, scale, n_features, dtype)
    else:
        engine = Single.start(learner, scale, n_features, dtype)
    engine.load(arrays, n_features)
    return engine
