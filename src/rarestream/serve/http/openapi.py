"""The OpenAPI 3.1 document: made of the classes of the messages, so that it cannot say anything else than they do."""

from __future__ import annotations

from typing import Any

import msgspec

from rarestream.serve import messages
from rarestream.serve.rows import Limits

Json = dict[str, Any]

JSON, LINES = "application/json", "application/x-ndjson"
ARROW, FILE = "application/vnd.apache.arrow.stream", "application/octet-stream"


class Snapshot(msgspec.Struct):
    """The snapshot that was written."""

    sequence: int


MESSAGES = [
    messages.PredictOne,
    messages.PredictMany,
    messages.Prediction,
    messages.LearnOne,
    messages.LearnMany,
    messages.Learned,
    messages.IdLabel,
    messages.LabelMany,
    messages.Labelled,
    messages.ModelOut,
    messages.ShadowOut,
    messages.Health,
    messages.ErrorOut,
    Snapshot,
]

# What the fields mean, by class. Fields whose types have a description of their own are not here.
FIELDS: dict[str, dict[str, str]] = {
    "PredictOne": {
        "row": "The row to score.",
        "id": "Stores the row under this id, for its label.",
        "remember": "Stores the row for its label. Without an id the service makes one.",
    },
    "PredictMany": {
        "rows": "The rows to score.",
        "ids": "One per row: stores the rows under these ids, for their labels.",
        "remember": "Stores the rows for their labels. Without ids the service makes them.",
    },
    "Prediction": {
        "scores": "One per row; larger means more likely positive.",
        "probabilities": "One per row; null if the model is not calibrated.",
        "labels": "One per row, 0 or 1 by the model's threshold; null if it has none.",
        "ids": "Under which the rows are stored; null if they are not.",
        "stored": "Rows that were stored now; rows whose id is known already are not stored again.",
        "version": "Of the model: 1 for the first, 2 after the first swap.",
        "sequence": "Entries of the log up to this one were applied.",
        "rows": "Rows that the model had learned: with the version, they name the state that scored.",
    },
    "LearnOne": {
        "row": "The row to learn.",
        "label": "Its label.",
        "importance": "A row of importance h counts as h rows.",
    },
    "LearnMany": {
        "rows": "The rows to learn, in this order.",
        "labels": "One per row.",
        "importances": "One per row; 1 by default.",
    },
    "RefusedRow": {"row": "Its number in the request, from 0.", "reason": "Why it could not be learned."},
    "Learned": {
        "learned": "Rows that were learned.",
        "refused": "Rows that could not be learned.",
        "scores": "Of each row, before it was learned; null in an answer that is repeated.",
        "version": "Of the model.",
        "sequence": "Of the last row that was learned.",
        "repeated": "The Idempotency-Key was known: nothing was learned again.",
    },
    "IdLabel": {"id": "Of a stored row.", "label": "The label of that row."},
    "LabelMany": {"labels": "Labels with the ids of their rows."},
    "Labelled": {
        "learned": "Rows that were learned.",
        "unknown": "Ids under which no row is stored.",
        "duplicate": "Ids of rows that have a label already.",
        "late": "Ids whose time for a label is over.",
        "refused": "Rows that could not be learned; row is the number of the label in the request.",
        "version": "Of the model.",
        "sequence": "Of the last row that was learned.",
        "repeated": "The Idempotency-Key was known: nothing was learned again.",
    },
    "AucOut": {"value": "null while a class is missing.", "low": "Of the interval.", "high": "Of the interval."},
    "ModelOut": {
        "version": "1 for the first model, 2 after the first swap.",
        "sequence": "Of the last entry of the log that was applied.",
        "learner": "Name of the learner.",
        "settings": "Of the learner.",
        "features": "What the features are: column numbers, or hashed names.",
        "n_features": "Features that the model has seen.",
        "nonzeros": "Weights that are not zero.",
        "rows": "Rows learned.",
        "positives": "Positive rows among them.",
        "auc": "Progressive AUC: each row was scored before it was learned.",
        "calibrated": "Whether there are probabilities.",
        "threshold": "Scores above it are labelled 1; null if there is none.",
        "learning": "Whether the service learns.",
        "reason": "Why it does not learn.",
        "shadow": "The shadow model, if there is one.",
    },
    "ShadowOut": {
        "learner": "Name of the learner.",
        "rows": "Rows that both models have scored.",
        "positives": "Positive rows among them.",
        "failed": "Rows that it could not read or learn.",
        "auc": "Of the shadow model on these rows.",
        "difference": "AUC of the shadow model minus that of the model that answers.",
        "needed_positives": "Positive rows that the gate waits for.",
        "margin": "The AUC may be lower by at most this, with 95 % confidence.",
        "passes": "Whether the gate lets the shadow model through now.",
        "promote": "auto: it replaces the model once the gate lets it through.",
    },
    "Health": {"status": "ok, ready, starting or stopping.", "reason": "Why the service is not ready."},
    "ErrorDetail": {
        "code": "For programs: bad_json, bad_rows, too_large, busy, ...",
        "message": "For people: place, rule, value, way on.",
        "row": "The row to blame, from 0.",
    },
    "ErrorOut": {"error": "What is wrong."},
    "Snapshot": {"sequence": "The last entry of the log that the snapshot holds."},
}

STATUSES = {
    400: "The body is not JSON, or the request is not HTTP.",
    401: "The token is missing or wrong.",
    403: "The service is read-only, or a page of another site sent this.",
    404: "There is none.",
    408: "The request did not arrive in time.",
    409: "The state of the service does not allow this now.",
    413: "The body is too large, or has too many rows. The connection is closed.",
    415: "The Content-Type is not one of those listed.",
    422: "A field or a row breaks a rule. Nothing was changed.",
    429: "The queue is full. Try again after Retry-After seconds.",
    500: "A failure of the service; its log has the reason.",
    503: "The service is starting, stopping or full. Try again after Retry-After seconds.",
    507: "The disk is full: the service does not learn.",
}

ROW = {"site": "a.com", "price": 3.5, "tags": ["x", "y"]}


def document(limits: Limits, *, token: bool) -> Json:
    """Return the document of a service.

    Parameters
    ----------
    limits : Limits
        Of its requests.
    token : bool
        Whether it asks for a token.
    """
    from rarestream._version import __version__

    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rarestream",
            "version": __version__,
            "description": (
                "Scores rows, learns from labels that come late, and loses nothing that it has acknowledged. "
                f"A body has at most {limits.body} bytes, a request {limits.rows} rows, a row {limits.nonzeros} "
                f"features, a name {limits.name_bytes} bytes."
            ),
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "paths": _paths(token),
        "components": {
            "schemas": _schemas(limits),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The token the service was started with."}
            },
        },
    }


def _schemas(limits: Limits) -> Json:
    _, found = msgspec.json.schema_components(MESSAGES, ref_template="#/components/schemas/{name}")
    schemas: Json = {
        "Row": {
            "title": "Row",
            "description": "An object of named values or, for a model whose features are column numbers, a list of "
            "[index, value]. Values of other kinds, or rows that the model cannot take, are refused with 422.",
            "anyOf": [{"$ref": "#/components/schemas/NamedRow"}, {"$ref": "#/components/schemas/PairRow"}],
            "examples": [ROW, [[0, 1.5], [7, 1]]],
        },
        "NamedRow": {
            "title": "NamedRow",
            "description": "Text is a category, a number is a number, null is absent; a list has several categories; "
            "an object is a map of names to values.",
            "type": "object",
            "additionalProperties": {"$ref": "#/components/schemas/Value"},
        },
        "Value": {
            "title": "Value",
            "description": "A value of a named row.",
            "type": ["string", "number", "boolean", "null", "array", "object"],
        },
        "PairRow": {
            "title": "PairRow",
            "description": "Column numbers, from 0, with their values.",
            "type": "array",
            "maxItems": limits.nonzeros,
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "prefixItems": [{"type": "integer", "minimum": 0}, {"type": "number"}],
            },
        },
        **found,
    }
    for name in ("PredictOne", "LearnOne"):
        schemas[name]["properties"]["row"] = {"$ref": "#/components/schemas/Row"}
    for name in ("PredictMany", "LearnMany"):
        schemas[name]["properties"]["rows"] = _rows(limits)
    schemas["LabelMany"]["properties"]["labels"].update(minItems=1, maxItems=limits.rows)
    for name, fields in FIELDS.items():
        for field, text in fields.items():
            schemas[name]["properties"][field]["description"] = text
    return schemas


def _rows(limits: Limits) -> Json:
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": limits.rows,
        "items": {"$ref": "#/components/schemas/Row"},
    }


# -- routes


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Json, **examples: Any) -> Json:
    shown = {name: {"value": value} for name, value in examples.items()}
    return {JSON: {"schema": schema, **({"examples": shown} if shown else {})}}


def _answer(text: str, content: Json | None = None, headers: Json | None = None) -> Json:
    answer: Json = {"description": text}
    if content is not None:
        answer["content"] = content
    if headers is not None:
        answer["headers"] = headers
    return answer


def _failures(*statuses: int) -> Json:
    answers: Json = {}
    for status in statuses:
        answers[str(status)] = _answer(STATUSES[status], {JSON: {"schema": _ref("ErrorOut")}})
        if status in (429, 503):
            answers[str(status)]["headers"] = {
                "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}
            }
        if status == 401:
            answers[str(status)]["headers"] = {
                "WWW-Authenticate": {"description": "The scheme.", "schema": {"type": "string"}}
            }
    return answers


BYTES = {"type": "string", "format": "binary"}
ARROW_ROWS = {**BYTES, "description": "an Arrow IPC stream, a row per row"}
ARROW_SCORES = {**BYTES, "description": "an Arrow IPC stream with the columns score, probability and label"}
MODEL_FILE = {**BYTES, "description": "a model file (.rare)"}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes the request safe to repeat: with a key that is known nothing is learned again, and the "
    "answer is that of the first time.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
}
ROW_FAILURES = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)


def _lines(text: str) -> Json:
    return {"contentMediaType": LINES, "description": text}


def _column(name: str, text: str) -> Json:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": text,
        "schema": {"type": "string", "minLength": 1},
    }


def _paths(token: bool) -> Json:
    prediction = {
        "scores": [0.83],
        "probabilities": [0.031],
        "labels": None,
        "ids": ["42"],
        "stored": 1,
        "version": 1,
        "sequence": 17,
        "rows": 1017,
    }
    paths: Json = {
        "/predict": {
            "post": {
                "summary": "Score rows",
                "description": "One row or many. An id, or remember, stores a row for its label.",
                "requestBody": {
                    "required": True,
                    "content": {
                        **_json(
                            {"anyOf": [_ref("PredictOne"), _ref("PredictMany")]},
                            one={"row": ROW},
                            stored={"row": ROW, "id": "42"},
                            many={"rows": [ROW, {"site": "b.com", "price": 1.25}]},
                        ),
                        LINES: {
                            "schema": _lines("a row per line"),
                            "example": '{"site": "a.com"}\n{"site": "b.com"}\n',
                        },
                        ARROW: {"schema": ARROW_ROWS},
                    },
                },
                "responses": {
                    "200": _answer(
                        "The scores, all of one state of the model.",
                        {**_json(_ref("Prediction"), one=prediction), ARROW: {"schema": ARROW_SCORES}},
                        {
                            "Rarestream-Sequence": {
                                "description": "Of an Arrow answer: sequence.",
                                "schema": {"type": "integer"},
                            },
                            "Rarestream-Version": {
                                "description": "Of an Arrow answer: version.",
                                "schema": {"type": "integer"},
                            },
                        },
                    ),
                    **_failures(*ROW_FAILURES, 507),
                },
            }
        },
        "/learn": {
            "post": {
                "summary": "Learn rows with labels",
                "description": "The answer comes when the rows are on disk.",
                "parameters": [
                    IDEMPOTENCY_KEY,
                    _column("label", "Of an Arrow body: the column of the labels."),
                    _column("importance", "Of an Arrow body: the column of the importances."),
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        **_json(
                            {"anyOf": [_ref("LearnOne"), _ref("LearnMany")]},
                            one={"row": ROW, "label": 1},
                            many={"rows": [ROW, {"site": "b.com"}], "labels": [1, 0]},
                        ),
                        LINES: {
                            "schema": _lines("a LearnOne per line"),
                            "example": '{"row": {"site": "a.com"}, "label": 1}\n',
                        },
                        ARROW: {"schema": ARROW_ROWS},
                    },
                },
                "responses": {
                    "200": _answer("What was learned.", _json(_ref("Learned"))),
                    **_failures(*ROW_FAILURES, 507),
                },
            }
        },
        "/label": {
            "post": {
                "summary": "Learn stored rows, whose labels have come",
                "description": "The answer comes when the labels are on disk.",
                "parameters": [IDEMPOTENCY_KEY],
                "requestBody": {
                    "required": True,
                    "content": {
                        **_json(
                            {"anyOf": [_ref("IdLabel"), _ref("LabelMany")]},
                            one={"id": "42", "label": 1},
                            many={"labels": [{"id": "42", "label": 1}, {"id": "43", "label": 0}]},
                        ),
                        LINES: {"schema": _lines("an IdLabel per line"), "example": '{"id": "42", "label": 1}\n'},
                    },
                },
                "responses": {
                    "200": _answer("What became of the labels.", _json(_ref("Labelled"))),
                    **_failures(*ROW_FAILURES, 507),
                },
            }
        },
        "/model": {"get": _get("The model that answers", _json(_ref("ModelOut")), 503)},
        "/model/file": {
            "get": _get("The model file of the newest snapshot", {FILE: {"schema": MODEL_FILE}}, 404, 503),
        },
        "/snapshot": {
            "post": {
                "summary": "Write a snapshot now",
                "responses": {
                    "200": _answer("It is on disk.", _json(_ref("Snapshot"))),
                    **_failures(401, 403, 409, 429, 500, 503, 507),
                },
            }
        },
        "/shadow": {
            "get": _get("The shadow model", _json(_ref("ShadowOut")), 404, 503),
            "post": {
                "summary": "Start a shadow model",
                "description": "The body is a model file. It scores and learns the same rows as the model that "
                "answers, until the gate lets it replace that one, or it is dropped.",
                "parameters": [
                    {
                        "name": "promote",
                        "in": "query",
                        "description": "auto: it replaces the model once the gate lets it through.",
                        "schema": {"type": "string", "enum": ["auto", "manual"], "default": "manual"},
                    },
                    {
                        "name": "positives",
                        "in": "query",
                        "description": "Positive rows that the gate waits for.",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 10**9, "default": 100},
                    },
                    {
                        "name": "margin",
                        "in": "query",
                        "description": "The AUC may be lower by at most this.",
                        "schema": {"type": "number", "minimum": 0, "maximum": 0.5, "default": 0},
                    },
                ],
                "requestBody": {"required": True, "content": {FILE: {"schema": MODEL_FILE}}},
                "responses": {
                    "201": _answer("It has begun.", _json(_ref("ShadowOut"))),
                    **_failures(400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 503, 507),
                },
            },
            "delete": {
                "summary": "Drop the shadow model",
                "responses": {"204": _answer("It is gone."), **_failures(401, 403, 404, 409, 429, 500, 503, 507)},
            },
        },
        "/shadow/promote": {
            "post": {
                "summary": "Let the shadow model answer, if the gate lets it through",
                "responses": {
                    "200": _answer("The model that answers now.", _json(_ref("ModelOut"))),
                    **_failures(401, 403, 404, 409, 429, 500, 503, 507),
                },
            }
        },
        "/metrics": {
            "get": _get("The numbers of the service for Prometheus", {"text/plain": {"schema": {"type": "string"}}})
        },
        "/statistics": {"get": _get("The numbers of the live page", _json({"type": "object"}), 503)},
        "/events": {
            "get": _get(
                "The numbers of the live page, once a second",
                {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events."}}},
                503,
            )
        },
        "/healthz": {"get": _open_get("The process answers", _json(_ref("Health")))},
        "/readyz": {"get": _open_get("Whether requests should be sent here", _json(_ref("Health")))},
        "/openapi.json": {"get": _open_get("This document", _json({"type": "object"}))},
        "/docs": {"get": _open_get("This document, as a page", {"text/html": {"schema": {"type": "string"}}})},
    }
    paths["/readyz"]["get"]["responses"]["503"] = _answer(
        "Not now.",
        _json(_ref("Health")),
        {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}},
    )
    for path, methods in paths.items():
        for method, operation in methods.items():
            operation["operationId"] = f"{method}_{path.strip('/').replace('/', '_').replace('.', '_')}"
            needs_token = operation.pop("x-open", None) is None
            if token and needs_token:
                operation["security"] = [{"token": []}]
            elif not token or not needs_token:
                operation["responses"].pop("401", None)
    return paths


def _get(text: str, content: Json, *statuses: int) -> Json:
    return {"summary": text, "responses": {"200": _answer("The answer.", content), **_failures(401, *statuses, 500)}}


def _open_get(text: str, content: Json) -> Json:
    return {"summary": text, "x-open": True, "responses": {"200": _answer("The answer.", content), **_failures(500)}}
