"""How often the intervals of a threshold cover the true rates of that threshold, in simulations.

    python benchmarks/coverage.py [--repeats 1000] [--only normal] [--json FILE]

Rows are drawn anew in each repeat, labels and scores, and a threshold is chosen on them by `choose_threshold`; the true
rates of that threshold are known, because the distributions of the scores are. Prints a Markdown table: the share of
repeats, in per cent, in which the 95 % interval of a figure has its true value. With 1000 repeats, 95 % is measured
with a standard error of 0.7 %.

    normal      scores N(0, 1) of negatives, N(1.5, 1) of positives
    tails       Student's t with 3 degrees of freedom, moved by 2.5 for positives
    ties        the normal scores rounded down to thirds: about 20 different scores
    importances the normal scores; each negative has importance 10, as if one of ten had been kept
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from rarestream.metrics import choose_threshold

FIGURES = ("fpr", "recall", "precision", "share")


class Scores(NamedTuple):
    """A distribution of scores: that of negatives, how far positives are moved, and what is done with them."""

    negatives: Any
    shift: float
    step: float = 0.0  # scores are rounded down to multiples of it
    importance: float = 1.0  # of negatives

    def draw(self, rng: np.random.Generator, positives: int, negatives: int) -> np.ndarray:
        """Scores of positives, then of negatives."""
        scores = self.negatives.rvs(size=positives + negatives, random_state=rng)
        scores[:positives] += self.shift
        return np.floor(scores / self.step) * self.step if self.step else scores

    def above(self, threshold: float) -> tuple[float, float]:
        """True recall and false-positive rate of a threshold."""
        return float(self.negatives.sf(threshold - self.shift)), float(self.negatives.sf(threshold))


KINDS = {
    "normal": Scores(stats.norm, 1.5),
    "tails": Scores(stats.t(3), 2.5),
    "ties": Scores(stats.norm, 1.5, step=1 / 3),
    "importances": Scores(stats.norm, 1.5, importance=10.0),
}
SIZES = {50: 5_000, 500: 20_000, 5_000: 50_000}  # positives and negatives, on average
RULES: tuple[dict[str, Any], ...] = (
    {"fpr": 0.001},
    {"fpr": 0.01},
    {"fpr": 0.1},
    {"recall": 0.5},
    {"recall": 0.9},
    {"share": 0.01},
    {"precision": 0.3},
    {"costs": (1, 20)},
)


class Measured(NamedTuple):
    """A line of the table."""

    scores: str
    rule: str
    positives: int
    negatives: int
    covered: dict[str, float]
    failed: int  # repeats in which no threshold followed the rule


def measure(kind: str, rule: dict[str, Any], positives: int, negatives: int, repeats: int) -> Measured:
    scores, rows = KINDS[kind], positives + negatives
    rng = np.random.default_rng(17)
    covered = dict.fromkeys(FIGURES, 0)
    failed = 0
    for _ in range(repeats):
        n_pos = min(max(int(rng.binomial(rows, positives / rows)), 1), rows - 1)
        values = scores.draw(rng, n_pos, rows - n_pos)
        labels = np.repeat([1, 0], [n_pos, rows - n_pos])
        importances = None if scores.importance == 1 else np.where(labels == 1, 1.0, scores.importance)
        try:
            found = choose_threshold(labels, values, importances, **rule)
        except ValueError:
            failed += 1
            continue
        recall, fpr = scores.above(found.threshold)
        share_pos = positives / (positives + scores.importance * negatives)
        share = share_pos * recall + (1 - share_pos) * fpr
        true = {"fpr": fpr, "recall": recall, "precision": share_pos * recall / share, "share": share}
        for name in FIGURES:
            estimate = getattr(found, name)
            covered[name] += estimate.low <= true[name] <= estimate.high
    done = max(1, repeats - failed)
    name, value = next(iter(rule.items()))
    return Measured(
        kind, f"{name} {value}", positives, negatives, {name: covered[name] / done for name in FIGURES}, failed
    )


def main(parse: Callable[[], argparse.Namespace]) -> None:
    options = parse()
    found = []
    print("| scores | rule | positives | negatives | FPR | recall | precision | share |\n" + "|---" * 8 + "|")
    for kind in options.only.split(",") if options.only else KINDS:
        for rule in RULES:
            for positives, negatives in SIZES.items():
                one = measure(kind, rule, positives, negatives, options.repeats)
                found.append(one._asdict())
                cells = [f"{100 * one.covered[name]:.1f}" for name in FIGURES]
                none = f" (none in {one.failed})" if one.failed else ""
                words = [kind, one.rule + none, f"{positives:,}", f"{negatives:,}", *cells]
                print(f"| {' | '.join(words)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--only", help="kinds of scores, comma-separated")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments)
