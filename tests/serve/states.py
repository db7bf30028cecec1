"""Models, records and states that tests of the service share."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from rarestream import FtrlAuc, Model, read
from rarestream.serve import entries
from rarestream.serve.log import Record
from rarestream.serve.rows import RowText
from rarestream.serve.state import Rules, ServedState


def named_model(rows: int = 60, learner: Any = None, seed: int = 0) -> Model:
    """A model of named features."""
    rng = random.Random(seed)
    model = Model(FtrlAuc() if learner is None else learner)
    data = [{"site": f"s{rng.randrange(9)}", "n": rng.randrange(5), "y": int(rng.random() < 0.3)} for _ in range(rows)]
    for block in read(data, label="y", bits=10):
        model.learn(block)
    return model


def row(rng: random.Random) -> tuple[str, int]:
    """A row that this model can read, and its label."""
    site = rng.randrange(12)
    return f'{{"site":"s{site}","n":{rng.randrange(5)}}}', 1 if rng.random() < (0.6 if site < 3 else 0.1) else -1


def text(rows: list[str], format: str = "json") -> RowText:
    return RowText(format, "\n".join(rows).encode(), len(rows))


def learn(time: float, rows: list[str], labels: list[int], key: str | None = None, **more: Any) -> entries.Learn:
    importances = more.get("importances")
    weights = None if importances is None else np.array(importances, np.float64).tobytes()
    body = "\n".join(rows).encode()
    return entries.Learn(time, key, 7, more.get("format", "json"), body, np.array(labels, np.int8).tobytes(), weights)


def store(time: float, rows: list[str], ids: list[str]) -> entries.Store:
    return entries.Store(time, "json", "\n".join(rows).encode(), ids)


def label(time: float, ids: list[str], labels: list[int], key: str | None = None) -> entries.LabelRows:
    return entries.LabelRows(time, key, 7, ids, np.array(labels, np.int8).tobytes())


def records(made: list[tuple[entries.Entry, int]]) -> list[Record]:
    """Entries, each with its count, as the log has them."""
    found, sequence = [], 1
    for entry, count in made:
        found.append(Record(sequence, count, entries.KINDS[type(entry)], entries.encode(entry)))
        sequence += count
    return found


def begun(model: Model, **rules: Any) -> ServedState:
    """The state of a directory that begins with a model: as a snapshot has it."""
    return ServedState.from_files(ServedState(model, Rules(**rules)).files())[0]


def applied(state: ServedState, log: list[Record], slice_rows: int = 256) -> list[Any]:
    """Apply records; return their answers."""
    answers = []
    for record in log:
        steps = state.apply(record)
        while True:
            state.slice_rows = slice_rows
            try:
                next(steps)
            except StopIteration as stop:
                answers.append(stop.value)
                break
    return answers


def continued(files: dict[str, bytes], log: list[Record]) -> ServedState:
    """The state of a snapshot, and the records of the log after it."""
    state, counts = ServedState.from_files(files)
    begin = state.join_from
    state.rejoin((record for record in log if begin <= record.sequence <= state.sequence), counts)
    applied(state, [record for record in log if record.sequence > state.sequence])
    return state
