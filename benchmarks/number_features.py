"""How numbers should enter a linear model: test AUC on real tables, one pass of `auto`, nothing tuned.

    python benchmarks/number_features.py [--tables flights,loans] [--trials 3] [--json FILE]

Each table of real_tables.py is written as a CSV file and read with `read`, once for every way in which the reader can
turn numbers into features; the first 70 % of the rows are learned, the AUC is that of the last 30 %. Rows whose order
means nothing are permuted anew in each trial (NumPy's generator, seeds 0, 1, ...); rows in the order of time stay
in it, which gives one trial. Beside it: batch logistic regression (scikit-learn, C = 1) on one-hot categories and
standardised numbers, where a person has said which whole numbers are ids. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import machine
from rarestream import Model, auc, read
from real_tables import LABEL, TABLES, Frame, date_columns, frame, number_columns

LEARNED = 0.7  # share of the rows


class Way(NamedTuple):
    """Options of the reader and the model for one way in which numbers can become features."""

    numbers: str
    kind: str | None = None  # what every column of numbers is said to be; None: what the reader decides
    scale: str = "unit"

    def options(self, columns: list[str]) -> dict[str, Any]:
        return {"numbers": self.numbers, **({self.kind: columns} if self.kind else {})}


WAYS = {
    "raw": Way("raw", "numeric"),
    "raw, largest value 1": Way("raw", "numeric", "max"),
    "raw, largest value 1, and categories": Way("raw", None, "max"),
    "categories": Way("soft", "categorical"),
    "soft": Way("soft", "numeric"),
    "soft, and categories (default)": Way("soft"),
}
BATCH = "batch logistic regression"


def learned_auc(path: Path, cut: int, way: Way, columns: list[str]) -> float:
    """The AUC of the rows from `cut` on, by a model that learned those before."""
    model = Model(scale=way.scale)
    labels, scores = [], []
    seen = 0
    for block in read(path, label=LABEL, positive="yes", **way.options(columns)):
        known = min(max(cut - seen, 0), len(block))
        seen += len(block)
        if known:
            model.learn(block[:known])
        if known < len(block):
            if not labels:
                model.finish_race()  # no more rows come to choose by
            rest = block[known:]
            labels.append(rest.labels)
            scores.append(model.score(rest))
    return auc(np.concatenate(labels), np.concatenate(scores))


def batch_auc(rows: Frame, cut: int, ids: tuple[str, ...]) -> float:
    """The same by batch logistic regression: times as hour, weekday and month, ids and texts one-hot."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows = rows.copy()
    for column in date_columns(rows):
        times = pd.to_datetime(rows.pop(column)).dt
        for part in ("hour", "weekday", "month"):
            rows[f"{column} {part}"] = getattr(times, part).astype(str)
    labels = np.where(rows.pop(LABEL) == "yes", 1, -1)
    numbers = [column for column in number_columns(rows) if column not in ids]
    categories = [column for column in rows if column not in numbers]
    rows[numbers] = rows[numbers].astype(np.float64)
    rows[categories] = rows[categories].astype(object).where(rows[categories].notna(), "missing").astype(str)
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), categories),
            (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()), numbers),
        ),
        LogisticRegression(max_iter=2000),
    )
    model.fit(rows[:cut], labels[:cut])
    return auc(labels[cut:], model.decision_function(rows[cut:]))


def measure(name: str, trials: int, ways: list[str]) -> dict[str, list[float]]:
    """The test AUC of every way, one for each trial."""
    table, rows = TABLES[name], frame(name)
    columns, cut = number_columns(rows), int(len(rows) * LEARNED)
    found: dict[str, list[float]] = {way: [] for way in ways}
    for trial in range(1 if table.in_order else trials):
        if not table.in_order:
            rows = rows.iloc[np.random.default_rng(trial).permutation(len(rows))].reset_index(drop=True)
        path = machine.CACHE / f"{name}-{trial}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(path, index=False, lineterminator="\n")
        for way in ways:
            found[way].append(
                batch_auc(rows, cut, table.ids) if way == BATCH else learned_auc(path, cut, WAYS[way], columns)
            )
        path.unlink()
    return found


def markdown(results: dict[str, dict[str, list[float]]], shapes: dict[str, tuple[int, float]]) -> str:
    """A row per table, and their mean; the best of the ways that the reader has is bold."""
    ways = list(next(iter(results.values())))
    means = {name: {way: float(np.mean(found[way])) for way in ways} for name, found in results.items()}
    lines = [f"| table | label | rows | positive | {' | '.join(ways)} |", "|---|---|" + "---:|" * (len(ways) + 2)]
    for name, found in means.items():
        count, share = shapes[name]
        order = ", in order of time" if TABLES[name].in_order else ""
        start = f"| {name} | {TABLES[name].about}{order} | {count:,} | {share:.1%} |"
        lines.append(f"{start} {' | '.join(_bold(found))} |")
    mean = {way: float(np.mean([found[way] for found in means.values()])) for way in ways}
    lines.append(f"| mean | | | | {' | '.join(_bold(mean))} |")
    return "\n".join(lines)


def _bold(found: dict[str, float]) -> list[str]:
    best = max((value for way, value in found.items() if way != BATCH), default=None)
    return [f"**{value:.4f}**" if way != BATCH and value == best else f"{value:.4f}" for way, value in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES), help="some of %(default)s")
    parser.add_argument("--trials", type=int, default=3, help="permutations of a table whose order means nothing")
    parser.add_argument("--no-batch", action="store_true", help="leave out batch logistic regression, which is slow")
    parser.add_argument("--json", type=Path, help="where the AUC of every trial goes")
    given = parser.parse_args()
    ways = [*WAYS, *([] if given.no_batch else [BATCH])]
    results, shapes = {}, {}
    for name in given.tables.split(","):
        start = time.perf_counter()
        results[name] = measure(name, given.trials, ways)
        rows = frame(name)
        shapes[name] = len(rows), float(np.mean(rows[LABEL] == "yes"))
        cells = ", ".join(f"{way} {np.mean(aucs):.4f}" for way, aucs in results[name].items())
        print(f"[{time.perf_counter() - start:4.0f} s] {name}: {cells}", flush=True)
    print("\n" + markdown(results, shapes))
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
