"""The answers of the service, as tuples with names."""

from __future__ import annotations

from typing import Any, NamedTuple


class Prediction(NamedTuple):
    """Scores of rows, all of one state of the model."""

    scores: list[float]
    probabilities: list[float] | None  # None: the model is not calibrated
    labels: list[int] | None  # 0 or 1, by the threshold of the model; None if it has none
    ids: list[str] | None  # under which the rows were stored; None: they were not
    stored: int  # rows that were stored: those whose id is known already are not stored again
    version: int  # of the model: 1 for the first, 2 after the first swap
    sequence: int  # of the last entry of the log that was applied
    rows: int  # that the model had learned: with the version, they name the state that scored


class RowPrediction(NamedTuple):
    """The score of a row."""

    score: float
    probability: float | None  # None: the model is not calibrated
    label: int | None  # 0 or 1, by the threshold of the model; None if it has none
    id: str | None  # under which the row was stored; None: it was not
    stored: int | None  # 1 if it was stored now; None if it was sent with others, of which only some were
    version: int
    sequence: int
    rows: int


class RefusedRow(NamedTuple):
    """A row that could not be learned. The others of the request were."""

    row: int  # from 0
    reason: str


class Learned(NamedTuple):
    """What was learned. It is on the disk of the service."""

    learned: int
    refused: list[RefusedRow]
    scores: list[float | None] | None  # before each row was learned; None in an answer that is repeated
    version: int
    sequence: int  # of the last row
    repeated: bool  # whether the key was known: nothing was learned again


class Labelled(NamedTuple):
    """What became of labels. It is on the disk of the service."""

    learned: int
    unknown: list[str]  # no row is stored under these ids
    duplicate: list[str]  # these rows have a label already
    late: list[str]  # the time for these labels is over
    refused: list[RefusedRow]  # `row` is the number of the label, from 0
    version: int
    sequence: int
    repeated: bool


class AucInterval(NamedTuple):
    """An AUC with its 95 % confidence interval."""

    value: float | None  # None while a class is missing
    low: float
    high: float


class ShadowInfo(NamedTuple):
    """A model that learns and scores beside the one that answers."""

    learner: str
    rows: int  # scored by both since it began
    positives: int
    failed: int  # rows that it could not read or learn
    auc: AucInterval
    difference: AucInterval  # AUC of the shadow minus that of the model that answers
    needed_positives: int  # that the gate waits for
    margin: float  # the AUC may be lower by at most this
    passes: bool  # whether the gate lets it through now
    promote: str  # "auto" or "manual"


class ModelInfo(NamedTuple):
    """The model that answers."""

    version: int
    sequence: int
    learner: str
    settings: dict[str, float | int | str | bool | None]
    features: str
    n_features: int
    nonzeros: int
    rows: int
    positives: int
    auc: AucInterval  # progressive
    calibrated: bool
    threshold: float | None
    learning: bool
    reason: str | None  # why it does not learn
    shadow: ShadowInfo | None


# -- from JSON. Fields of a newer service are ignored; one that is missing is a KeyError, which the caller words.


def prediction(found: dict[str, Any]) -> Prediction:
    return Prediction(*[found[name] for name in Prediction._fields])


def row_prediction(found: dict[str, Any]) -> RowPrediction:
    probabilities, labels, ids = found["probabilities"], found["labels"], found["ids"]
    return RowPrediction(
        found["scores"][0],
        None if probabilities is None else probabilities[0],
        None if labels is None else labels[0],
        None if ids is None else ids[0],
        found["stored"],
        found["version"],
        found["sequence"],
        found["rows"],
    )


def learned(found: dict[str, Any]) -> Learned:
    return Learned(
        found["learned"],
        refused_rows(found),
        found["scores"],
        found["version"],
        found["sequence"],
        found.get("repeated", False),
    )


def labelled(found: dict[str, Any]) -> Labelled:
    return Labelled(
        found["learned"],
        found["unknown"],
        found["duplicate"],
        found["late"],
        refused_rows(found),
        found["version"],
        found["sequence"],
        found.get("repeated", False),
    )


def refused_rows(found: dict[str, Any]) -> list[RefusedRow]:
    return [RefusedRow(one["row"], one["reason"]) for one in found["refused"]]


def auc_interval(found: dict[str, Any]) -> AucInterval:
    return AucInterval(*[found[name] for name in AucInterval._fields])


def shadow_info(found: dict[str, Any]) -> ShadowInfo:
    intervals = {name: auc_interval(found[name]) for name in ("auc", "difference")}
    return ShadowInfo(*[intervals.get(name, found[name]) for name in ShadowInfo._fields])


def model_info(found: dict[str, Any]) -> ModelInfo:
    nested = {
        "auc": auc_interval(found["auc"]),
        "shadow": None if found["shadow"] is None else shadow_info(found["shadow"]),
    }
    return ModelInfo(*[nested.get(name, found[name]) for name in ModelInfo._fields])
