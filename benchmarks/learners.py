"""Every learner on one shape: a pass over 2,000 rows of news20b's, and a row that comes alone at two widths.

`published` is what a pass takes in the authors' C code (-O3, one core of another machine, best of a few runs, scaled
from the first 200 rows): a ratio against it says something about orders of magnitude, not about tens of percent.
`as published, here` is their arithmetic in our own C++, in this run, where that visits all that theirs visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rarestream import Block, Learner, Model, learner_names, make_learner
from rarestream.reproduce import published
from rarestream.reproduce.rows import Rows
from shapes import SHAPES, rows
from small import lonely_rows, microseconds
from timing import Cost, interleaved, one_core, timed, touch

SHAPE, ROWS = SHAPES["news20b"], 2000
PUBLISHED_ROWS = 50  # as many are run as published, and the time is scaled
WIDTHS = (10**4, 10**6)


@dataclass(frozen=True)
class Entry:
    """A learner with settings worth a line, and the authors' method it stands against."""

    name: str
    settings: dict[str, Any]
    method: str | None = None  # of rarestream.reproduce.published
    seconds: float | None = None  # a pass of the authors' C
    must: float | None = None  # times faster than that
    flat: bool = True  # a row costs the same whatever d

    @property
    def learner(self) -> Learner:
        return make_learner(self.name, **self.settings)

    @property
    def label(self) -> str:
        return " ".join([self.name, *(f"{word}={value}" for word, value in self.settings.items())])


ENTRIES = [
    Entry("ftrl-auc", {}, "ftrl_auc", 0.059),
    Entry("ftrl-auc", {"means": "exact"}, None, 1.7),
    Entry("ftrl-proximal", {}, "ftrl_proximal", 0.034),
    Entry("spam", {"penalty": "l2"}, "spam_l2", 9.1, 100),
    Entry("spam", {"penalty": "l1", "l1": 1e-4}, "spam_l1", 14.6, 3),
    Entry("spam", {"penalty": "elasticnet", "l1": 1e-4}, "spam_l1l2", 15.5),
    Entry("spam", {"penalty": "l2", "gradient": "full"}, "spam_l2", 9.1),
    Entry("spam", {"penalty": "l1", "l1": 1e-4, "gradient": "full"}, "spam_l1", 14.6, 3, flat=False),
    Entry("solam", {}, "solam", 14.9, 100),
    Entry("spauc", {}, "spauc", 14.9, 100),
    Entry("spauc", {"l1": 1e-4}, "spauc", 14.9, 3, flat=False),
    Entry("fsauc", {"expected_rows": ROWS}, "fsauc", 26.0, 3),
    Entry("fsauc", {"expected_rows": ROWS, "radius": 1}, "fsauc", 26.0, 3),
    Entry("rda", {}, None, 4.4, 100),
    Entry("adagrad", {}, None, 14.9, 100),
]
# What the authors' methods are given: their cost hardly depends on it.
PARAMETERS = {
    "ftrl_auc": {"gamma": 0.5, "l1": 0.7, "l2": 0.0, "beta": 1.0},
    "ftrl_proximal": {"gamma": 0.5, "l1": 0.7, "l2": 0.0, "beta": 1.0},
    "spam_l1": {"xi": 1.0, "l1": 1e-4, "l2": 0.0},
    "spam_l2": {"xi": 1.0, "l1": 0.0, "l2": 1e-3},
    "spam_l1l2": {"xi": 1.0, "l1": 1e-4, "l2": 1e-3},
    "spauc": {"mu": 1e-3, "l1": 1e-4},
    "solam": {"xi": 1.0, "r": 10.0},
    "fsauc": {"r": 100.0, "g": 1.0},
}


def entries() -> list[Entry]:
    """Those above, and every other registered learner as it comes."""
    named = {entry.name for entry in ENTRIES}
    others = [Entry(name, {}) for name in learner_names() if name not in named]
    return ENTRIES + [replace(other, flat="d" not in other.learner.about.cost.split(";")[0]) for other in others]


def measure(rounds: int) -> list[dict[str, Any]]:
    block = rows(SHAPE, ROWS)
    contestants = {entry.label: _pass(entry.learner, block) for entry in entries()}
    for method in PARAMETERS:
        contestants[f"as published {method}"] = _as_published(method, block)
    slow = [name for name in contestants if name.startswith(("as published", "fsauc", "oam", "adaoam"))]
    best = interleaved(contestants, rounds, seldom=[*slow, *(e.label for e in ENTRIES if "l1" in e.settings)])
    alone = _alone([entry for entry in entries() if entry.flat], rounds)
    found = []
    for entry in entries():
        seconds = best[entry.label].cpu
        here = best[f"as published {entry.method}"].cpu if entry.method else None
        found.append(
            {
                "learner": entry.label,
                "seconds": seconds,
                "ns per non-zero": seconds / block.nonzeros * 1e9,
                "published": entry.seconds,
                "as published, here": here,
                "must": entry.must,
                "one row": alone.get(entry.label),
            }
        )
    return found


def _pass(learner: Learner, block: Block) -> Callable[[], Cost]:
    def prepare() -> Callable[[], Any]:
        model = Model(learner, n_features=SHAPE.d)
        touch(block.indices, block.values)
        return lambda: model.learn(block)

    return timed(prepare)


def _as_published(method: str, block: Block) -> Callable[[], Cost]:
    part = block[: ROWS if method in ("ftrl_auc", "ftrl_proximal") else PUBLISHED_ROWS]
    given = Rows.of(part, SHAPE.d)
    contest = timed(lambda: lambda: published.run(method, given, PARAMETERS[method]))
    return lambda: contest() * (ROWS / len(part))


def _alone(some: list[Entry], rounds: int) -> dict[str, dict[int, float]]:
    """Microseconds to learn one row that comes alone, by number of features."""
    models = {(entry.label, d): Model(entry.learner, n_features=d) for entry in some for d in WIDTHS}
    given = {d: lonely_rows(d, 1000, pool=2000) for d in WIDTHS}
    found: dict[str, dict[int, float]] = {}
    for _ in range(2 * rounds):
        for (label, d), model in models.items():
            with one_core():
                spent = microseconds(
                    lambda model=model, d=d: [model.learn_one(*row) for row in given[d]], len(given[d])
                )
            widths = found.setdefault(label, {})
            widths[d] = min(spent, widths.get(d, spent))
    return found


def show(found: list[dict[str, Any]]) -> None:
    print(f"\nOne pass over {ROWS:,} rows of news20b's shape, d = {SHAPE.d:,}, one core, float32; and one row alone")
    print(
        f"{'':46}{'seconds':>9}{'ns/nnz':>8}{'published':>11}{'faster':>8}{'as publ., here':>16}{'faster':>8}"
        f"{'row: us':>9}{'10^6/10^4':>11}"
    )
    for line in found:
        seconds, theirs, here = line["seconds"], line["published"], line["as published, here"]
        cells = f"{line['learner']:46}{seconds:>9.4f}{line['ns per non-zero']:>8.1f}"
        cells += f"{theirs:>11.3g}{_times(theirs / seconds):>8}" if theirs else f"{'-':>11}{'-':>8}"
        cells += f"{here:>16.3g}{_times(here / seconds):>8}" if here else f"{'-':>16}{'-':>8}"
        if line["one row"]:
            near, far = (line["one row"][d] for d in WIDTHS)
            cells += f"{near:>9.1f}{far / near:>10.2f}x"
        print(cells)


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.1f}x"
