"""The bodies of requests and answers, as JSON has them. The OpenAPI document is made of these classes.

A row is an object of named values, {"site": "a.com", "price": 3.5}, or, for a model whose features are column numbers,
a list of [index, value]. Rows are not decoded here: `Raw` keeps their text, which the parser of the core reads and the
log stores.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

Id = Annotated[str, Meta(min_length=1, max_length=256, description="The caller's name for a row, for its label.")]
Label = Annotated[Literal[-1, 0, 1], Meta(description="1 for a positive row; 0 or -1 for a negative one.")]
Importance = Annotated[float, Meta(ge=0, le=1e12, description="A row of importance h counts as h rows; 0 skips it.")]


class PredictOne(Struct, forbid_unknown_fields=True):
    """A row to score."""

    row: Raw
    id: Id | None = None
    remember: bool = False  # store the row for its label; an id does that too, and without one the service makes it


class PredictMany(Struct, forbid_unknown_fields=True):
    """Rows to score."""

    rows: list[Raw]
    ids: list[Id] | None = None
    remember: bool = False


class Prediction(Struct):
    """Scores of rows, all of one state of the model."""

    scores: list[float]
    probabilities: list[float] | None  # None: the model is not calibrated
    labels: list[int] | None  # by the threshold of the model, 0 or 1; None if it has none
    ids: list[str] | None  # under which rows were stored; None: they were not
    stored: int  # rows that were stored: those whose id is known already are not stored again
    version: int  # of the model: 1 for the first, 2 after the first swap
    sequence: int  # entries of the log up to this one were applied
    rows: int  # rows that the model had learned: with the version, they name the state that scored


class LearnOne(Struct, forbid_unknown_fields=True):
    """A row with its label."""

    row: Raw
    label: Label
    importance: Importance | None = None


class LearnMany(Struct, forbid_unknown_fields=True):
    """Rows with their labels."""

    rows: list[Raw]
    labels: list[Label]
    importances: list[Importance] | None = None


class RefusedRow(Struct):
    """A row that could not be learned. The others were."""

    row: int  # from 0
    reason: str


class Learned(Struct):
    """What was learned. It is on disk."""

    learned: int
    refused: list[RefusedRow]
    scores: list[float | None] | None  # before each row was learned; None in an answer that is repeated
    version: int
    sequence: int  # of the last row
    repeated: bool = False  # whether the idempotency key was known: nothing was learned again


class IdLabel(Struct, forbid_unknown_fields=True):
    """The label of a stored row."""

    id: Id
    label: Label


class LabelMany(Struct, forbid_unknown_fields=True):
    """Labels of stored rows."""

    labels: list[IdLabel]


class Labelled(Struct):
    """What became of labels. It is on disk."""

    learned: int
    unknown: list[str]  # no row is stored under these ids
    duplicate: list[str]  # these rows have a label already
    late: list[str]  # the time for these labels is over
    refused: list[RefusedRow]  # rows that could not be learned; `row` is the number of the label
    version: int
    sequence: int
    repeated: bool = False


class AucOut(Struct):
    """An AUC with its 95 % confidence interval; None while a class is missing."""

    value: float | None
    low: float
    high: float


class ModelOut(Struct):
    """The model that answers."""

    version: int
    sequence: int
    learner: str
    settings: dict[str, float | int | str | bool | None]
    features: str  # "column numbers", "hashed features with 22 bits"
    n_features: int
    nonzeros: int
    rows: int
    positives: int
    auc: AucOut  # progressive
    calibrated: bool
    threshold: float | None
    learning: bool  # False in a read-only process, or while the disk is full
    reason: str | None  # why it does not learn
    shadow: ShadowOut | None


class ShadowOut(Struct):
    """A model that learns and scores beside the one that answers, until the gate lets it replace that one."""

    learner: str
    rows: int  # scored by both since it began
    positives: int
    failed: int  # rows that it could not read or learn
    auc: AucOut
    difference: AucOut  # AUC of the shadow minus that of the model that answers
    needed_positives: int  # that the gate waits for
    margin: float  # the AUC may be lower by at most this, with 95 % confidence
    passes: bool  # whether the gate lets it through now
    promote: Literal["auto", "manual"]


class Health(Struct):
    """Whether the process works, or is ready."""

    status: str
    reason: str | None = None


class ErrorDetail(Struct, omit_defaults=True):
    """What is wrong with a request."""

    code: str  # for programs: "bad_json", "bad_rows", "too_large", "busy", ...
    message: str  # for people: place, rule, value, way on
    row: int | None = None


class ErrorOut(Struct):
    """The answer to a request that failed."""

    error: ErrorDetail
