"""What the rows show, in sentences: each finding is computed from rows, and says so where there are none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rarestream.reproduce import figures, tables
from rarestream.reproduce.datasets import EXACT, OTHER_ROWS
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.methods import LABELS, LEARNED_LAZILY, TABLE2, TABLE3, results_of
from rarestream.reproduce.protocol import TRIALS
from rarestream.reproduce.tables import RATIOS, Published
from rarestream.study import results
from rarestream.study.figures import SECONDS
from rarestream.study.results import Mean, Result, Results, place_name
from rarestream.study.rows import CORRECTED, PUBLISHED, Point, TrialRow
from rarestream.study.tables import Cell, Section

UNTUNED = ("auto", "race")
APART = 0.0005  # of an AUC: more than rounding
LOGISTIC = ("dual_logistic", "balanced_logistic", "ftrl_proximal", "adagrad")  # all with an intercept


class Statement(NamedTuple):
    """A sentence, and the numbers behind it."""

    line: str
    details: str = ""


class Finding(NamedTuple):
    """Statements about one question."""

    title: str
    lines: tuple[Statement, ...]


def findings(rows: Sequence[TrialRow], published: Published) -> list[Finding]:
    """Return what was found, in order."""
    corrected, as_published = results_of(rows, CORRECTED), results_of(rows, PUBLISHED)
    return [
        Finding(
            "What is confirmed",
            (*_confirmed(rows, published), *_tried(as_published, published), *_drawn(as_published, published)),
        ),
        Finding("Contradictions within the paper", tuple(_itself(published))),
        Finding("What the bugs changed", tuple(_changed(corrected, as_published))),
        Finding("What our learners reach", (*_reached(corrected, published), *_small(rows, published))),
        Finding("AUC loss and logistic loss", tuple(_losses(corrected))),
        Finding("Lazy and exact class means", tuple(_lazy(corrected, as_published))),
    ]


def summary(rows: Sequence[TrialRow], published: Published) -> list[str]:
    """Return the main findings in a few sentences."""
    corrected, as_published = results_of(rows, CORRECTED), results_of(rows, PUBLISHED)
    out = []
    held = [
        ((section.name, *names), _same(cell, section))
        for table in (tables.table2(rows, published, PUBLISHED), tables.table3(rows, published, PUBLISHED))
        for section, names, cell in table.cells()
        if section.name.startswith("AUC") and cell.difference is not None and not cell.remark
    ]
    if held and published:
        others = {place for place, same in held if not same}
        itself = {("AUC", one.method, one.name) for one in _contradictions(published, None)}
        words = f"; the other {len(others)} also differ from the end of the authors' own curves" if others else ""
        out.append(
            f"With the authors' bugs, on the paper's own rows, {len(held) - len(others)} of {len(held)} published AUCs "
            "of tables II and III are reproduced to the last printed digit"
            f"{words if others <= itself else ''}."
        )
    apart = [distance for lines in _apart(as_published, published).values() for distance in lines.values()]
    if apart:
        out.append(
            f"Of {len(apart)} lines of figures 2 to 10 on the paper's own rows, none differs by more than "
            f"{max(apart):.0e} from the published one."
        )
    fixed = [
        gap
        for method in dict.fromkeys((*TABLE2, *TABLE3))
        for gap in _gaps(
            partial(corrected.get, method=method), partial(as_published.get, method=method), (None, *RATIOS)
        ).values()
    ]
    if fixed:
        out.append(f"With the bugs fixed, the AUCs of the same methods are {_verdict(fixed)} of {len(fixed)} cells.")
    out += [one.line for one in _reached(corrected, published) if one.details and one.line.startswith(UNTUNED[0])]
    losses = _gaps(
        partial(corrected.get, method="dual_logistic"), partial(corrected.get, method="dual_auc"), (None, *RATIOS)
    )
    if losses:
        out.append(
            "Logistic loss with an intercept against AUC loss, both by dual averaging, not tuned: the AUC of the "
            f"logistic loss is {_verdict(losses.values())} of {len(losses)} cells."
        )
    return out


def _confirmed(rows: Sequence[TrialRow], published: Published) -> Iterator[Statement]:
    """Count the cells of the tables that the authors' arithmetic reproduces."""
    kinds = (
        ("Table II", tables.table2(rows, published, PUBLISHED), ("AUC", "Sparse ratio")),
        ("Table III", tables.table3(rows, published, PUBLISHED), None),
    )
    for name, table, sections in kinds:
        for section in table.sections:
            if sections is not None and section.name not in sections:
                continue
            cells = [
                (line.name, column, cell)
                for line in section.lines
                for column, cell in zip(table.columns, line.cells, strict=True)
                if cell.difference is not None
            ]
            if not cells:
                yield Statement(f"{name}, {section.name}: no rows with the authors' arithmetic, so nothing to report.")
                continue
            exact = [one for one in cells if not one[2].remark]
            same = sum(_same(cell, section) for _, _, cell in exact)
            off = [
                f"{method} on {column} ({cell.difference:+.4f})" for method, column, cell in exact if not _near(cell)
            ]
            others = [
                f"{method} on {column} ({cell.data}, {cell.difference:+.4f})"
                for method, column, cell in cells
                if cell.data and cell.data not in OTHER_ROWS
            ]
            details = [f"Not reproduced: {', '.join(off)}."] if off else []
            details += [f"On rows that differ a little from the paper's: {', '.join(others)}."] if others else []
            yield Statement(
                f"{name}, {section.name}: with the paper's own rows {same} of {len(exact)} are reproduced to the last "
                f"printed digit, {len(exact) - len(off)} within two standard errors.",
                " ".join(details),
            )


def _same(cell: Cell, section: Section) -> bool:
    """Return whether a cell is reproduced to the last printed digit, rounded or truncated."""
    return abs(cell.difference or 0.0) < 10.0 ** -int(section.form[1])


def _near(cell: Cell) -> bool:
    return abs(cell.difference or 0.0) <= max(2 * (cell.error or 0.0), 1e-4)


def _tried(as_published: Results, published: Published) -> Iterator[Statement]:
    """Compare the mean of every setting tried with that of the authors, where they kept it."""
    for place, grid in (published or {}).get("grids", {}).items():
        name, method = place.split("/")
        result = as_published.get(name, method)
        if result is None or len(result.trials) < TRIALS or len(result.trials[0]["points"]) != len(grid["rows"]):
            continue
        columns = {word: np.array([line[at] for line in grid["rows"]]) for at, word in enumerate(grid["columns"])}
        values: dict[str, Callable[[TrialRow, Point], float]] = {
            "test AUC": lambda row, point: point["test_auc"] or 0.0,
            "sparse ratio": lambda row, point: (point["nonzeros"] or 0) / row["n_features"],
        }
        apart = {}
        for words, value in values.items():
            means = np.mean([[value(row, point) for point in row["points"]] for row in result.trials], axis=0)
            apart[words] = float(np.abs(means - columns[words.lower().replace(" ", "_")]).max())
        largest = " and ".join(f"{words} by at most {distance:.0e}" for words, distance in apart.items())
        yield Statement(
            f"Every one of the {len(grid['rows'])} settings tried for {as_published.label(method)} on {name}: the mean "
            f"over ten trials differs from the authors' in {largest}."
        )


def _drawn(as_published: Results, published: Published) -> Iterator[Statement]:
    """Compare the lines of the figures with those of the authors."""
    for number, apart in _apart(as_published, published).items():
        count = f"{len(apart)} line{'s' * (len(apart) > 1)}"
        details = ", ".join(f"{place} {distance:.0e}" for place, distance in apart.items())
        yield Statement(
            f"Figure {number}: {count} with the paper's own rows; the largest difference in AUC is "
            f"{max(apart.values()):.0e}.",
            f"{details}.",
        )


def _apart(as_published: Results, published: Published) -> dict[int, dict[str, float]]:
    """Return, for each figure, the distance of each line from that of the authors, at the same rows or lambdas."""
    figures_apart = {}
    for number, plan in figures.PLANS.items():
        paper = {} if plan.x == SECONDS else figures.published_lines(number, published)
        found = as_published.fixed if plan.methods == LEARNED_LAZILY else as_published.get
        apart = {}
        for name, method in itertools.product(plan.sets, plan.methods):
            result, line = found(name, method, plan.ratio), paper.get(name, {}).get(method)
            if not result or not line or result.data != EXACT or len(result.trials) < TRIALS:
                continue
            distance = _distance(result, line)
            if distance is not None:
                apart[f"{as_published.label(method)} on {name}"] = distance
        if apart:
            figures_apart[number] = apart
    return figures_apart


def _distance(result: Result, line: Mapping[str, Sequence[float]]) -> float | None:
    """Return the largest difference in mean AUC; None where ours were not measured at the same places."""
    if "rows" in line:
        curve = result.curve()
        ours = dict(zip(curve.rows, curve.test_auc, strict=True)) if curve else {}
        pairs = [(ours[rows], auc) for rows, auc in zip(line["rows"], line["test_auc"], strict=True) if rows in ours]
    else:
        points = result.sparsity()
        same = len(points) == len(line["test_auc"])
        pairs = [(mine.auc, auc) for mine, auc in zip(points, line["test_auc"], strict=True)] if same else []
    return max(abs(mine - theirs) for mine, theirs in pairs) if pairs else None


class Contradiction(NamedTuple):
    """A number of a table that is not the end of the authors' own curve, the mean of the same ten trials."""

    method: str
    name: str
    printed: float
    end: float


CURVES = {None: ("Table II", 8), 0.1: ("Table III at 0.1", 5), 0.05: ("Table III at 0.05", 10)}  # the figure


def _contradictions(published: Mapping[str, Any], ratio: float | None) -> list[Contradiction]:
    table = published["table2"]["auc"] if ratio is None else published["table3"][str(ratio)]
    each = (
        Contradiction(LABELS[method], name, table[name][method][0], line["test_auc"][-1])
        for name, lines in published[f"figure{CURVES[ratio][1]}"].items()
        for method, line in lines.items()
    )
    return [one for one in each if abs(one.end - one.printed) > APART]


def _itself(published: Published) -> Iterator[Statement]:
    """Report where a table contradicts the authors' own curve."""
    if not published:
        yield Statement("No published numbers, so nothing to report.")
        return
    for ratio, (name, figure) in CURVES.items():
        off = _contradictions(published, ratio)
        total = sum(map(len, published[f"figure{figure}"].values()))
        words = f"{name}: {len(off)} of {total} numbers are more than {APART:g} from the end of the authors' own curve"
        details = "; ".join(f"{one.method} on {one.name} {one.printed:.4f}, curve {one.end:.4f}" for one in off)
        yield Statement(f"{words} (figure {figure}).", f"{details}." if details else "")


def _changed(corrected: Results, as_published: Results) -> Iterator[Statement]:
    """Report corrected minus published, for every method that has both."""
    reported = False
    for method in dict.fromkeys((*TABLE2, *TABLE3)):
        gaps = _gaps(partial(corrected.get, method=method), partial(as_published.get, method=method), (None, *RATIOS))
        if gaps:
            reported = True
            yield Statement(
                f"{corrected.label(method)}, corrected minus published: {_verdict(gaps.values())}.", _listed(gaps)
            )
    sizes = {
        name: (theirs.mean(results.sparse_ratio), mine.mean(results.sparse_ratio))
        for name in SETS
        if (theirs := as_published.get(name, "ftrl_auc")) and (mine := corrected.get(name, "ftrl_auc"))
    }
    ratios = [f"{name} {was.value:.4f}, now {now.value:.4f}" for name, (was, now) in sizes.items() if was and now]
    if ratios:
        yield Statement(
            "FTRL-AUC, sparse ratio: the bug B1 spoils small λ, so that validation chose sparse models; corrected, "
            "small λ ranks best, and size is a separate choice (figure 4, and the table of small models below).",
            f"{'; '.join(ratios)}.",
        )
    if reported:
        yield Statement(
            "Part of a difference is the measure: the authors' AUC omits a row and breaks ties by order (B6)."
        )
    else:
        yield Statement("No method has trials in both modes, so nothing to report.")


def _reached(corrected: Results, published: Published) -> Iterator[Statement]:
    """Compare ours that need no tuning with the best published result of each data set."""
    if not published:
        yield Statement("No published numbers to compare with.")
        return
    best: dict[tuple[str, float | None], tuple[float, str]] = {}
    for name, paper in published["table2"]["auc"].items():
        best[name, None] = max((value[0], method) for method, value in paper.items())
    for cut in RATIOS:
        for name, paper in published["table3"][str(cut)].items():
            best[name, cut] = (paper["ftrl_auc"][0], "ftrl_auc")
    contests = (
        ("the best published method", (None,)),
        ("the published FTRL-AUC at positive:negative ratios 0.1 and 0.05", RATIOS),
    )
    for method, (title, ratios) in itertools.product(UNTUNED, contests):
        details, above = [], 0
        for (name, ratio), (value, rival) in best.items():
            result = corrected.get(name, method, ratio)
            mean = result.mean(results.auc) if result else None
            if ratio in ratios and result is not None and mean is not None and result.data not in OTHER_ROWS:
                above += mean.value > value
                mark = "" if result.data in ("exact", "own") else f", {result.data}"
                rivals = f"{value:.4f} ({corrected.label(rival)}{mark})"
                details.append(f"{place_name(name, ratio)} {_signed(mean).lstrip('+')} against {rivals}")
        if details:
            yield Statement(
                f"{method}, not tuned, has a higher AUC than {title} in {above} of {len(details)} cells.",
                f"{'; '.join(details)}.",
            )
        else:
            yield Statement(f"{method} against {title}: no rows.")


def _small(rows: Sequence[TrialRow], published: Published) -> Iterator[Statement]:
    """Compare ours, as small as the published FTRL-AUC, with it."""
    (section,) = tables.at_published_size(rows, published).sections
    lines = [line for line in section.lines if line.name.split(",")[0] in UNTUNED]
    for line in lines:
        cells = {
            name: cell
            for name, cell in zip(SETS, line.cells, strict=True)
            if cell.difference is not None and cell.data not in OTHER_ROWS
        }
        above = sum((cell.difference or 0.0) > 0 for cell in cells.values())
        details = [
            f"{name} {cell.ours:.4f} against {cell.published:.4f}" + (f" ({cell.remark})" if cell.remark else "")
            for name, cell in cells.items()
        ]
        words = f"{line.name}, as small as the published FTRL-AUC, has a higher AUC in {above} of {len(cells)} cells."
        yield Statement(words, f"{', '.join(details)}.")
    if not lines:
        yield Statement("As small as the published FTRL-AUC: no rows.")


def _losses(corrected: Results) -> Iterator[Statement]:
    """Report the AUC of logistic methods, which have an intercept, minus that of AUC methods, trial by trial."""
    reported = False
    rivals = [(method, "dual_auc") for method in LOGISTIC[:2]] + [(method, "ftrl_auc") for method in LOGISTIC]
    for method, rival in rivals:
        gaps = _gaps(partial(corrected.get, method=method), partial(corrected.get, method=rival), (None, *RATIOS))
        if gaps:
            reported = True
            names = f"{corrected.label(method)} minus {corrected.label(rival)}"
            yield Statement(f"{names}: {_verdict(gaps.values())}.", _listed(gaps))
    if not reported:
        yield Statement("No trials of a logistic method and an AUC method, so nothing to report.")


def _lazy(corrected: Results, as_published: Results) -> Iterator[Statement]:
    """Report the AUC with lazy minus that with exact class means."""
    reported = False
    for found, words in ((as_published, "as published"), (corrected, "corrected")):
        lazy = partial(found.fixed, method="ftrl_auc"), partial(found.fixed, method="ftrl_auc_non_lazy")
        gaps = _gaps(*lazy, (None,))
        if gaps:
            reported = True
            yield Statement(
                f"Lazy minus exact, gamma 1, lambda 0.5, {words}: {_verdict(gaps.values())}.", _listed(gaps)
            )
    if not reported:
        yield Statement("No rows of the lazy figures, so nothing to report.")


Gaps = dict[tuple[str, float | None], Mean]


def _gaps(
    one: Callable[..., Result | None], other: Callable[..., Result | None], ratios: Sequence[float | None]
) -> Gaps:
    """Return the mean difference in AUC over shared trials, wherever both have some."""
    found: Gaps = {}
    for ratio, name in itertools.product(ratios, SETS):
        mine, theirs = one(dataset=name, ratio=ratio), other(dataset=name, ratio=ratio)
        gap = results.mean(results.auc_differences(mine, theirs)) if mine and theirs else None
        if gap is not None:
            found[name, ratio] = gap
    return found


def _verdict(gaps: Iterable[Mean]) -> str:
    """Count how many differences are positive, negative, or not significant."""
    counts = {"higher": 0, "lower": 0, "within two standard errors": 0}
    for gap in gaps:
        certain = gap.error is not None and abs(gap.value) > 2 * gap.error
        counts["within two standard errors" if not certain else "higher" if gap.value > 0 else "lower"] += 1
    return ", ".join(f"{word} in {count}" for word, count in counts.items())


def _listed(gaps: Gaps) -> str:
    return ", ".join(f"{place_name(*place)} {_signed(gap)}" for place, gap in gaps.items()) + "."


def _signed(mean: Mean) -> str:
    return f"{mean.value:+.4f}" + ("" if mean.error is None else f" ± {mean.error:.4f}")
