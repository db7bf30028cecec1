"""A file of scores from anywhere: a label and a score a line, set apart by blanks, a tab or a comma."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Labels
from rarestream.errors import DataError, plain
from rarestream.evaluate.heldout import Evaluation, Evaluator
from rarestream.readers.chunks import Chunks
from rarestream.readers.labels import LabelRule, OneLabelError, pass_positive, positive_number
from rarestream.readers.sources import expand


def evaluate_scores(path: str, positive: float | None = None) -> Evaluation:
    """The evaluation of a file of `label score` lines ("-" is standard input), compressed or not.

    Labels are read by the rule for rows: -1 and +1, 0 and 1, or the larger of two numbers; with `positive` that label
    against all others. Blank lines, lines that start with # and a heading on the first line are passed over.
    """
    evaluator = Evaluator(plain(path))
    rule = LabelRule(positive_number(positive), optional=False)
    for labels, scores, lines in _batches(path):
        evaluator.add(_signs(rule, plain(path), labels, lines), scores)
    return evaluator.result()


def _batches(path: str) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], list[int]]]:
    """Labels, scores and the numbers of their lines."""
    (source,) = expand(path)
    buffer = bytearray()
    line = 0
    with closing(Chunks([source])) as chunks:
        while (chunk := chunks.take(buffer)) is not None:
            rows: list[tuple[float, float]] = []
            lines: list[int] = []
            text = chunk.text.tobytes()
            del chunk  # its text is borrowed from the buffer, which is about to be filled again
            for words in text.splitlines():
                line += 1
                row = _row(f"{plain(path)}:{line}", words, line)
                if row is not None:
                    rows.append(row)
                    lines.append(line)
            if rows:
                labels, scores = np.array(rows, np.float64).T
                yield labels, scores, lines


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


def _signs(rule: LabelRule, path: str, labels: NDArray[np.float64], lines: list[int]) -> Labels:
    try:
        signs = rule.signs(labels)
    except OneLabelError as error:
        raise DataError(
            f"{path}:{lines[0]}: the first rows have only the label {error}; labels are -1 and +1, 0 and 1, or two "
            f"numbers that both come early. Otherwise {pass_positive()}."
        ) from None
    unknown = np.flatnonzero(signs == 0)
    if len(unknown):
        row = unknown[0]
        raise DataError(f"{path}:{lines[row]}: {rule.complaint(float(labels[row]))}")
    return signs
