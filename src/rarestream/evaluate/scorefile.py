"""A file of scores from anywhere: a label and a score a line, set apart by blanks, a tab or a comma."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.evaluate.heldout import Evaluation, Evaluator
from rarestream.readers.chunks import Chunks
from rarestream.readers.sources import expand


def evaluate_scores(path: str, positive: float | None = None) -> Evaluation:
    """The evaluation of a file of `label score` lines ("-" is standard input), compressed or not.

    Labels are -1 and +1, or 0 and 1; with `positive` that label against all others. Blank lines, lines that start
    with # and a heading on the first line are passed over.
    """
    evaluator = Evaluator(path)
    for labels, scores in _batches(path):
        if positive is not None:
            evaluator.add(np.where(labels == positive, 1, -1), scores)
        else:
            evaluator.add(_signs(path, labels), scores)
    return evaluator.result()


def _batches(path: str) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    (source,) = expand(path)
    buffer = bytearray()
    line = 0
    with closing(Chunks([source])) as chunks:
        while (chunk := chunks.take(buffer)) is not None:
            rows: list[tuple[float, float]] = []
            text = chunk.text.tobytes()
            del chunk  # its text is borrowed from the buffer, which is about to be filled again
            for words in text.splitlines():
                line += 1
                row = _row(f"{path}:{line}", words, line)
                if row is not None:
                    rows.append(row)
            if rows:
                labels, scores = np.array(rows, np.float64).T
                yield labels, scores


def _row(place: str, words: bytes, line: int) -> tuple[float, float] | None:
    if not words.strip() or words.lstrip().startswith(b"#"):
        return None
    parts = words.replace(b",", b" ").split()
    try:
        label, score = map(float, parts)
    except ValueError:
        if line == 1 and len(parts) == 2 and all(part[:1].isalpha() for part in parts):
            return None
        shown = repr(words[:40].decode("ascii", "backslashreplace"))
        raise DataError(f"{place}: a line is a label and a score, two numbers, got {shown}.") from None
    if label != label or score != score:
        raise DataError(f"{place}: nan has no rank; drop such rows or impute their scores.")
    return label, score


def _signs(path: str, labels: NDArray[np.float64]) -> NDArray[np.int8]:
    wrong = labels[(labels != 1) & (labels != -1) & (labels != 0)]
    if len(wrong):
        raise DataError(
            f"{path}: has the label {wrong[0]:g}; labels are -1 and +1, or 0 and 1. "
            "Otherwise name the positive one: --positive VALUE."
        )
    return np.where(labels == 1, 1, -1).astype(np.int8)
