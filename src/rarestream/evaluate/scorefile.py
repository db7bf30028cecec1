"""Evaluates, and chooses thresholds on, a file of scores made by any program: one label and one score per line.

They are separated by spaces, a tab or a comma.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Labels
from rarestream.errors import DataError, advice, plain
from rarestream.evaluate.heldout import Evaluation, Evaluator
from rarestream.metrics import Decision
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.thresholds import Wanted
from rarestream.readers.chunks import Chunks
from rarestream.readers.labels import LabelRule, OneLabelError
from rarestream.readers.options import check_positive
from rarestream.readers.parser import quoted
from rarestream.readers.sources import expand


def evaluate_scores(
    path: str, positive: float | str | None = None, *, probabilities: bool = False, curves: bool = False
) -> Evaluation:
    """Evaluate a file with one label and one score per line.

    Blank lines, lines that start with # and a heading on the first line are ignored. A compressed file is decompressed
    automatically.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    positive : float, optional
        The label that counts as +1; every other is -1. By default labels are -1 and +1, 0 and 1, or two other numbers
        of which the larger is +1.
    probabilities : bool, default False
        Whether the scores are probabilities, between 0 and 1: log loss, Brier score and calibration are computed too.
    curves : bool, default False
        Whether to compute the curves that `figure` draws.

    Returns
    -------
    Evaluation
        AUC with its interval, partial AUC, average precision and recall, and what else was asked for.

    Raises
    ------
    DataError
        If a line is invalid, named by file and line, or a class is missing.
    """
    evaluator = Evaluator(plain(path), probability=np.asarray if probabilities else None, curves=curves)
    for labels, scores in labelled_scores(path, positive, probabilities):
        evaluator.add(labels, scores)
    return evaluator.result()


def decide_on_scores(path: str, wanted: Wanted, positive: float | str | None = None) -> Decision:
    """Choose a threshold for the scores of a file, which are as for `evaluate_scores`.

    Parameters
    ----------
    path, positive
        As for `evaluate_scores`.
    wanted : Wanted
        The rule.

    Returns
    -------
    Decision
        The threshold and its rates.

    Raises
    ------
    DataError
        If a line is invalid, a class is missing, or no threshold follows the rule.
    """
    kept = KeptScores(None)
    for labels, scores in labelled_scores(path, positive):
        kept.add(labels, scores, None)
    return wanted.decide(*kept.joined())


def labelled_scores(
    path: str, positive: float | str | None = None, probabilities: bool = False
) -> Iterator[tuple[Labels, NDArray[np.float64]]]:
    """Yield the labels, as -1 and +1, and the scores of a file, a batch at a time; as for `evaluate_scores`."""
    try:
        label = None if positive is None else check_positive(positive, text=False)
    except ValueError as error:
        raise DataError(f"evaluate_scores: positive must be {error}, got {positive!r}.") from None
    rule = LabelRule(label, optional=False)
    for labels, scores, lines in _batches(path):
        if probabilities:
            _check_probabilities(plain(path), scores, lines)
        yield _signs(rule, plain(path), labels, lines), scores


def _batches(path: str) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], list[int]]]:
    """Yield labels, scores and their line numbers."""
    (source,) = expand(path)
    buffer = bytearray()
    line = 0
    with closing(Chunks([source])) as chunks:
        while (chunk := chunks.take(buffer)) is not None:
            rows: list[tuple[float, float]] = []
            lines: list[int] = []
            text = chunk.text.tobytes()
            del chunk  # releases the buffer, which is about to be filled again
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
        raise DataError(f"{place}: a line must be two numbers, a label and a score; got {quoted(words)}.") from None
    if label != label or score != score:
        raise DataError(f"{place}: nan has no rank; drop such rows or impute their scores.")
    return label, score


def _check_probabilities(path: str, scores: NDArray[np.float64], lines: list[int]) -> None:
    wrong = np.flatnonzero((scores < 0) | (scores > 1))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{path}:{lines[row]}: {scores[row]:g} is no probability, which lies between 0 and 1. Calibrate the scores "
            f"first, or drop {advice('probabilities=True', '--probabilities')}."
        )


def _signs(rule: LabelRule, path: str, labels: NDArray[np.float64], lines: list[int]) -> Labels:
    try:
        signs = rule.signs(labels)
    except OneLabelError as error:
        raise DataError(f"{path}:{lines[0]}: {error.message('first rows')}") from None
    unknown = np.flatnonzero(signs == 0)
    if len(unknown):
        row = unknown[0]
        raise DataError(f"{path}:{lines[row]}: {rule.error_message(float(labels[row]))}")
    return signs
