"""How good probabilities are: log loss and calibration error on the sets of a folder, beside other ways to get them.

    python benchmarks/calibration.py --data-dir DIR [--trials 2] [--sets imdb,a9a] [--ratios .1,.05,.02] [--no-cv]
        [--markdown FILE]

Sets: every DIR/<name>.svm.bz2, split as for quality.py: of a permutation 4/6 of the rows are learned, the others are
scored. Positives are cut down to a ratio to the negatives; a set with fewer is left out at that ratio.

    auto         Model("auto"), calibrated while it learns, as it comes
    dual-logistic, dual-auc   the same with these learners
    ftrl         FtrlProximal's own probabilities: the logistic function of score plus intercept
    auto, cv     scikit-learn's CalibratedClassifierCV around AutoClassifier: five fits of 4/5 of the rows, whose
                 probabilities, calibrated on the other 1/5, are averaged
    dual-logistic, isotonic   isotonic regression, batch, of the later half of the scores that rows had before they were
                 learned, in place of the calibration

An error is the calibration error with 15 bins of equal width, as it is usually given. The last lines compare `auto`
with the others over all problems.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import quality
from rarestream import Block, Model
from rarestream.metrics import calibration_error, log_loss
from rarestream.reproduce import protocol
from rarestream.reproduce.rows import Rows
from rarestream.study.text import align, piped

WAYS = ("auto", "dual-logistic", "dual-auc", "ftrl", "auto, cv", "dual-logistic, isotonic")
Values = NDArray[np.float64]


class Measured(NamedTuple):
    loss: float
    error: float


class Problem(NamedTuple):
    learned: Rows
    scored: Rows

    @classmethod
    def of(cls, folder: Path, name: str, ratio: float, trial: int) -> Problem | None:
        rows = quality.loaded(folder, name)
        if (rows.labels > 0).sum() <= int(ratio * (rows.labels < 0).sum()):
            return None
        rows, splits = protocol.trials(rows, ratio)
        split = splits[trial]
        return cls(rows.take(split.train), rows.take(np.concatenate([split.valid, split.test])))


def block_of(rows: Rows) -> Block:
    return Block.of(rows.X, rows.labels)


def probabilities(problem: Problem, way: str) -> Values:
    learned, scored = block_of(problem.learned), block_of(problem.scored)
    if way == "auto, cv":
        return by_cross_validation(problem)
    if way == "ftrl":
        model = Model("ftrl-proximal", calibrate=False)
        model.learn(learned)
        return 1 / (1 + np.exp(-(model.score(scored) + model.intercept)))
    model = Model(way.partition(",")[0])
    before = [model.learn(learned[start : start + 8192]) for start in range(0, len(learned), 8192)]
    model.finish_race()
    if way == "dual-logistic, isotonic":
        return by_isotonic(model, learned, np.concatenate(before), model.score(scored))
    return model.probability(scored)


def by_isotonic(model: Model, learned: Block, before: Values, scores: Values) -> Values:
    from sklearn.isotonic import IsotonicRegression

    half = len(learned) // 2
    found = IsotonicRegression(out_of_bounds="clip").fit(before[half:], learned.labels[half:] > 0)
    least = 1 / len(learned)
    return np.clip(found.predict(scores), least, 1 - least)


def by_cross_validation(problem: Problem) -> Values:
    from sklearn.calibration import CalibratedClassifierCV

    from rarestream.sklearn import AutoClassifier

    found = CalibratedClassifierCV(AutoClassifier()).fit(problem.learned.X, problem.learned.labels)
    return found.predict_proba(problem.scored.X)[:, 1]


def measured(labels: NDArray[np.int8], p: Values) -> Measured:
    return Measured(log_loss(labels, p), float(calibration_error(labels, p, by="width")))


def trials(
    folder: Path, sets: Sequence[str], ratios: Sequence[float], count: int, ways: Sequence[str]
) -> Iterator[tuple[str, dict[str, Measured]]]:
    """The means over the trials of each set and ratio."""
    for name in sets:
        for ratio in ratios:
            problems = [Problem.of(folder, name, ratio, trial) for trial in range(count)]
            if None in problems:
                continue
            found = {
                way: [measured(one.scored.labels, probabilities(one, way)) for one in problems if one is not None]
                for way in ways
            }
            yield (
                f"{name} {ratio:g}".replace("0.", "."),
                {way: Measured(*np.mean(values, axis=0)) for way, values in found.items()},
            )


def summary(results: Sequence[tuple[str, dict[str, Measured]]], ways: Sequence[str]) -> list[list[str]]:
    """`auto` against each other way, and the calibration against isotonic regression of the same scores."""
    lines = [["", "lower log loss", "mean difference", "largest", "lower error"]]
    for way in ways[1:]:
        own = "dual-logistic" if "isotonic" in way else "auto"
        losses = np.array([found[own].loss - found[way].loss for _, found in results])
        errors = np.array([found[own].error - found[way].error for _, found in results])
        count = len(results)
        lines.append(
            [
                f"{own} against {way}",
                f"{(losses < 0).sum()} of {count}",
                f"{losses.mean():+.4f}",
                f"{losses.max():+.4f}",
                f"{(errors < 0).sum()} of {count}",
            ]
        )
    return lines


def markdown(table: Sequence[Sequence[str]]) -> str:
    head, *rows = table
    return "\n".join([piped(head), piped(["---"] * len(head)), *map(piped, rows)])


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--sets")
    parser.add_argument("--ratios", default=".1,.05,.02")
    parser.add_argument("--no-cv", action="store_true", help="leave out what takes five fits")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(words)
    warnings.simplefilter("ignore")
    ways = [way for way in WAYS if not (given.no_cv and way == "auto, cv")]
    sets = quality.set_files(given.data_dir, given.sets)
    results = []
    for name, found in trials(
        given.data_dir, sets, [float(one) for one in given.ratios.split(",")], given.trials, ways
    ):
        print(f"{name}: " + ", ".join(f"{way} {one.loss:.4f}" for way, one in found.items()), flush=True)
        results.append((name, found))
    table = [["log loss / error", *ways]]
    for name, found in results:
        best = min(one.loss for one in found.values())
        cells = [f"{one.loss:.4f} / {one.error:.4f}" + ("*" if one.loss == best else "") for one in found.values()]
        table.append([name, *cells])
    print()
    print("\n".join(align(table, left=[0])))
    print("\n* the lowest log loss\n")
    print("\n".join(align(summary(results, ways), left=[0])))
    if given.markdown is not None:
        parts = [markdown(table), "\\* the lowest log loss", markdown(summary(results, ways))]
        given.markdown.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
