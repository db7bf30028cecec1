"""Rows and models to export: column numbers, a table, and dicts of any values."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rarestream import Block, Model, read

ROWS = 100_000
LEARNED = 10_000


@pytest.fixture(scope="session")
def block() -> Block:
    """Many rows of column numbers: some empty, some with features that no model has learned, values of all sizes."""
    generator = np.random.default_rng(5)
    sizes = generator.integers(0, 9, ROWS)
    indices = generator.integers(0, 3000, sizes.sum()) ** 2 % 4001
    values = (generator.normal(size=sizes.sum()) * 10.0 ** generator.integers(-3, 4, sizes.sum())).astype(np.float32)
    truth = np.sign(values) * generator.normal(size=4001)[indices]
    totals = np.bincount(np.repeat(np.arange(ROWS), sizes), truth, ROWS)
    labels = np.where(totals + generator.normal(size=ROWS) > 2, 1, -1)
    return Block.of((np.append(0, np.cumsum(sizes)), indices, values), labels)


def learned(block: Block, learner: Any = "dual-auc", **options: Any) -> Model:
    """A model that has learned some of the rows, but not all of their features."""
    model = Model(learner, **options)
    model.learn(block[:LEARNED])
    return model


class Table(NamedTuple):
    """Rows of a table: as a file, and as typed values."""

    path: Path
    columns: dict[str, list[Any]]

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table with a column of each kind, missing cells, and text that needs quotes."""
    choose = random.Random(6)
    sites = [
        "a.com",
        'b\'c "d"',
        "日本",
        "été^x",
        "007",
        None,
        *(f"s{i}.com" for i in range(8)),
    ]  # few: names must not share slots
    titles = ["Grün offer OF the day", "a-b c, 3x", "日本 word word", "", "x"]
    columns: dict[str, list[Any]] = {
        "site": [choose.choice(sites) for _ in range(ROWS)],
        "price": [choose.choice([None, 0.5, 8.0, -2.25, round(choose.lognormvariate(0, 3), 3)]) for _ in range(ROWS)],
        "age": [choose.choice([None, 0, choose.randint(-9, 30)]) for _ in range(ROWS)],
        "it's": [choose.choice(["ios", "web", "?"]) for _ in range(ROWS)],
        "when": [
            f"{choose.randint(1969, 2031)}-{choose.randint(1, 12):02}-{choose.randint(1, 28):02}"
            + choose.choice(["", f"T{choose.randint(0, 23):02}:30"])
            for _ in range(ROWS)
        ],
        "title": [choose.choice(titles) for _ in range(ROWS)],
        "clicked": [int(choose.random() < 0.2) for _ in range(ROWS)],
    }
    path = tmp_path_factory.mktemp("table") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return Table(path, columns)


class Named(NamedTuple):
    """A model of a table, and the scores of all its rows."""

    model: Model
    scores: Any


def named(table: Table, scale: str = "unit", rows: int = LEARNED, **reading: Any) -> Named:
    reading = {"label": "clicked", "missing": ["?"], "crosses": ["site*age", "price*it's*site"], **reading}
    model = Model("dual-auc", scale=scale)
    left = rows
    for part in read(table.path, **reading):
        if left > 0:
            model.learn(part[:left])
            left -= len(part)
    scores = np.concatenate(
        [model.score(part) for part in read(table.path, features=model.features, labels="optional")]
    )
    return Named(model, scores)


@pytest.fixture(scope="session")
def of_table(table: Table) -> Named:
    """A model of a table without columns of text, which has met all names."""
    return named(table, rows=ROWS, ignore=["title"])


@pytest.fixture(scope="session")
def of_text(table: Table) -> Named:
    return named(table, text=["title"], ngrams="words:1-2", counts=True)
