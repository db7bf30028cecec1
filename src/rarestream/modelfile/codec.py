"""A model as the header and the arrays of its file, and back. The format is specified in docs/model-file.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream._version import __version__
from rarestream.engines import Engine, check_arguments, load_engine
from rarestream.engines.arrays import checked, dump_largest
from rarestream.errors import ModelFileError, advice
from rarestream.features import Columns, Hashed, Space
from rarestream.learners import make_learner
from rarestream.metrics import Calibration, Decision, SortedCheck, StreamingAuc
from rarestream.metrics.calibration import NUMBERS, checked_share
from rarestream.modelfile import names

KINDS = ("resumable", "scoring")
PROGRESS = "progress."  # prefix of the names of the arrays of the progressive AUC
CALIBRATION = "calibration"  # the array of its numbers

FileParts = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # header and arrays


class ChosenBy(NamedTuple):
    """What chose a model's learner, and how many rows the model had learned then."""

    name: str
    rows: int


@dataclass
class Saved:
    """Everything of a model that a file stores."""

    engine: Engine
    dtype: str
    n_features: int
    rows: int = 0
    positives: int = 0
    progress: StreamingAuc = field(default_factory=StreamingAuc)
    order: SortedCheck = field(default_factory=SortedCheck)
    source: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    chosen_by: ChosenBy | None = None
    pruned_from: int | None = None
    features: Space | None = None  # None: no row has decided it yet
    calibration: Calibration | None = None
    calibrate: bool = True  # False: a model made without a calibration
    negatives_kept: float = 1.0
    decision: Decision | None = None


def encode(model: Saved, kind: str) -> FileParts:
    """Return the header and the arrays of a file.

    Parameters
    ----------
    model : Saved
    kind : str
        "resumable" with all state, or "scoring" with the weights only.

    Raises
    ------
    ModelFileError
        If no file could be read back: a number is not finite, or a scoring-only model is to be resumable.
    """
    if kind not in KINDS:
        raise ValueError(f"Model.save: kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    engine, chosen_by = model.engine, model.chosen_by
    arrays: dict[str, NDArray[Any]]
    if kind == "resumable":
        arrays = engine.dump(model.n_features)
        arrays |= {PROGRESS + name: part for name, part in model.progress.state().items()}
        learner, dtype, extra_header = engine.learner, model.dtype, engine.header()
    else:
        arrays = _scoring_arrays(engine, model.n_features)
        learner, dtype, extra_header = engine.leader, str(arrays["weight"].dtype), {}
        if learner is not engine.learner:  # nothing more is learned, so a race ends here
            chosen_by = ChosenBy(engine.learner.name, model.rows)
    if model.calibration is not None and model.calibration.rows:
        arrays[CALIBRATION] = model.calibration.state()
    features = encode_features(model.features, model.n_features, arrays, kind)
    header: dict[str, Any] = {
        "format": 2 if isinstance(model.features, Hashed) else 1,  # the lowest that can hold it
        "kind": kind,
        "rarestream": __version__,
        "learner": {"name": learner.name, "settings": learner.settings},
        "dtype": dtype,
        "scale": engine.scale,
        "features": features,
        "rows": model.rows,
        "positives": model.positives,
        "source": model.source,
        "metrics": model.metrics,
        **extra_header,
    }
    if chosen_by is not None:
        header["chosen_by"] = chosen_by._asdict()
    if model.pruned_from is not None:
        header["pruned_from"] = model.pruned_from
    if not model.calibrate:
        header["calibrate"] = False
    if model.negatives_kept != 1:
        header["negatives_kept"] = model.negatives_kept
    if model.decision is not None:
        header["decision"] = model.decision.record()
    if model.order.runs:
        header["label_order"] = model.order.state()
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(
                f"Model.save: {name!r} of {engine.learner!r} holds NaN or infinity: such a model could never be "
                "loaded again. Nothing was written. Learn with a smaller learning rate or more regularisation."
            )
    return header, arrays


def encode_features(space: Space | None, n_features: int, arrays: dict[str, NDArray[Any]], kind: str) -> dict[str, Any]:
    """Return the entry of a feature space in the header of a file; the names of features in "index" join the arrays."""
    features: dict[str, Any] = {"space": "columns", "count": n_features}
    if isinstance(space, Hashed):
        colliding = kind == "resumable"
        arrays |= names.dump(space, arrays["index"], colliding)
        features |= {"space": "hashed", **names.header(space, arrays, colliding)}
    elif space is not None and space.first:
        features["first"] = space.first
    return features


def decode_features(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Space:
    """Return the feature space of a file."""
    entry = header["features"]
    if entry["space"] == "columns":
        return Columns(entry.get("first", 0))
    if entry["space"] != "hashed":
        raise ValueError("its feature space is unknown")
    if header["format"] < 2:
        raise ValueError("its features are hashed, which format 1 cannot hold")
    space = names.load(entry, arrays, colliding=header["kind"] == "resumable")
    if entry["count"] != space.slots:
        raise ValueError(f"it has {entry['count']} features, not 2^{space.bits}")
    return space


def _scoring_arrays(engine: Engine, n_features: int) -> dict[str, NDArray[Any]]:
    """Return the non-zero weights, and the numbers that turn their scores into decisions."""
    chunks = [
        (start + at, part[at]) for start, part in engine.weight_chunks(n_features) for at in [np.flatnonzero(part)]
    ]
    empty = (np.zeros(0, np.int64), np.zeros(0, engine.weight_dtype))
    index, weight = (np.concatenate(parts) for parts in zip(empty, *chunks, strict=True))
    arrays: dict[str, NDArray[Any]] = {"tally": engine.tally.copy(), "index": index.astype(np.int32), "weight": weight}
    return {**arrays, **dump_largest(engine.largest)}


def decode(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str, space: Space | None = None
) -> Saved:
    """Return the model of a file; ModelFileError, whose message starts with `name`, if the file is invalid.

    `space`: that of the file, if it is known.
    """
    if "models" in header:
        way = advice(
            "Load it with OneVsRest.load.",
            "Use it with train --resume, evaluate, predict and inspect, or name a class: inspect, explain and export "
            "have --class LABEL.",
        )
        raise ModelFileError(f"{name}: has a model for each of several classes. {way}")
    try:
        count = header["features"]["count"]
        check_arguments(header["dtype"], header["scale"], count)
        space = decode_features(header, arrays) if space is None else space
        learner = make_learner(header["learner"]["name"], **header["learner"]["settings"])
        n_features = max(count, learner.initial_features)
        if isinstance(space, Hashed) and n_features > count:
            raise ValueError(f"its learner starts with {n_features} features, more than there are slots")
        model = Saved(load_engine(header, learner, arrays, n_features), header["dtype"], n_features)
        model.rows, model.positives = _count(header["rows"]), _count(header["positives"])
        if model.positives > model.rows:
            raise ValueError(f"{model.positives} of its {model.rows} rows are positive")
        decided = isinstance(space, Hashed) or space.first or model.rows or len(arrays["index"])
        model.features = space if decided else None
        model.source = dict(header["source"])
        model.pruned_from = _count(header["pruned_from"]) if "pruned_from" in header else None
        model.metrics = {name: _finite(value) for name, value in header["metrics"].items()}
        if "label_order" in header:
            model.order = SortedCheck.from_state(list(header["label_order"]))
        if "chosen_by" in header:
            chosen_by = header["chosen_by"]
            model.chosen_by = ChosenBy(str(chosen_by["name"]), _count(chosen_by["rows"]))
        if CALIBRATION in arrays:
            model.calibration = Calibration.from_state(checked(arrays, CALIBRATION, np.dtype(np.float64), len(NUMBERS)))
        model.calibrate = bool(header.get("calibrate", True))
        model.negatives_kept = checked_share(_finite(header.get("negatives_kept", 1.0)))
        if "decision" in header:
            model.decision = Decision.from_record(header["decision"])
            if (model.decision.after_rows or 0) > model.rows:
                raise ValueError(f"its decision was made after {model.decision.after_rows} rows, more than it learned")
        if model.engine.resumable:
            progress = {key[len(PROGRESS) :]: part for key, part in arrays.items() if key.startswith(PROGRESS)}
            if not all(np.isfinite(part).all() for part in progress.values()):
                raise ValueError("its progress holds NaN or infinity")
            model.progress = StreamingAuc.from_state(progress)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, MemoryError) as error:
        raise ModelFileError(f"{name}: not a model this version can read ({_reason(error)}).") from None
    return model


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:  # True is an int, but no count
        raise ValueError(f"a count is {value!r}")
    return value


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"a metric is {value!r}")
    return float(value)


def _reason(error: BaseException) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
