"""What the rows say, in sentences: each finding is computed from rows, and says so where there are none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rarestream.reproduce import figures, results, tables
from rarestream.reproduce.datasets import EXACT, OTHER_ROWS
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.methods import CORRECTED, METHODS, PUBLISHED, TABLE2, TABLE3
from rarestream.reproduce.protocol import TRIALS
from rarestream.reproduce.results import Mean, Result, Results, Row
from rarestream.reproduce.tables import RATIOS, Cell, Published, Section

UNTUNED = ("auto", "race")
APART = 0.0005  # of an AUC: more than rounding
LOGISTIC = ("dual_logistic", "balanced_logistic", "ftrl_proximal", "adagrad")  # all with an intercept


class Said(NamedTuple):
    line: str
    more: str = ""  # the numbers behind it


class Finding(NamedTuple):
    title: str
    lines: tuple[Said, ...]


def findings(rows: Sequence[Row], published: Published) -> list[Finding]:
    """The story, in order."""
    corrected, as_published = Results(rows, CORRECTED), Results(rows, PUBLISHED)
    return [
        Finding(
            "What is confirmed",
            (*_confirmed(rows, published), *_tried(as_published, published), *_drawn(as_published, published)),
        ),
        Finding("The paper against itself", tuple(_itself(published))),
        Finding("What the slips changed", tuple(_changed(corrected, as_published))),
        Finding("What our learners reach", (*_reached(corrected, published), *_small(rows, published))),
        Finding("AUC loss and logistic loss", tuple(_losses(corrected))),
        Finding("Lazy and exact class means", tuple(_lazy(corrected, as_published))),
    ]


def in_short(rows: Sequence[Row], published: Published) -> list[str]:
    """The few sentences that a hurried reader needs, of the rows that there are."""
    corrected, as_published = Results(rows, CORRECTED), Results(rows, PUBLISHED)
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
        words = f"; the other {len(others)} are not what the authors' own curves end with either" if others else ""
        out.append(
            f"The authors' arithmetic, slips included, on the paper's own rows gives {len(held) - len(others)} of "
            f"{len(held)} published AUCs of tables II and III to the last printed digit"
            f"{words if others <= itself else ''}."
        )
    apart = [distance for lines in _apart(as_published, published).values() for distance in lines.values()]
    if apart:
        out.append(
            f"Of {len(apart)} lines of figures 2 to 10 on the paper's own rows, none is further than {max(apart):.0e} "
            "from the published one."
        )
    mended = [
        gap
        for method in dict.fromkeys((*TABLE2, *TABLE3))
        for gap in _gaps(
            partial(corrected.get, method=method), partial(as_published.get, method=method), (None, *RATIOS)
        ).values()
    ]
    if mended:
        out.append(
            f"With the slips mended, the AUCs of the same methods are {_verdict(mended)} of {len(mended)} cells."
        )
    out += [said.line for said in _reached(corrected, published) if said.more and said.line.startswith(UNTUNED[0])]
    losses = _gaps(
        partial(corrected.get, method="dual_logistic"), partial(corrected.get, method="dual_auc"), (None, *RATIOS)
    )
    if losses:
        out.append(
            "Logistic loss with an intercept against AUC loss, both with the update of ours, nothing tuned: logistic "
            f"{_verdict(losses.values())} of {len(losses)} cells."
        )
    return out


def _confirmed(rows: Sequence[Row], published: Published) -> Iterator[Said]:
    """How many cells of the tables come out again with the authors' arithmetic."""
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
                yield Said(f"{name}, {section.name}: no rows with the authors' arithmetic, so nothing to say.")
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
            more = [f"Not: {', '.join(off)}."] if off else []
            more += [f"On rows that are not quite the paper's: {', '.join(others)}."] if others else []
            yield Said(
                f"{name}, {section.name}: with the paper's own rows {same} of {len(exact)} come out to the last "
                f"printed digit, {len(exact) - len(off)} within two standard errors.",
                " ".join(more),
            )


def _same(cell: Cell, section: Section) -> bool:
    """Whether it comes out to the last digit that is printed, rounded or cut."""
    return abs(cell.difference or 0.0) < 10.0 ** -int(section.form[1])


def _near(cell: Cell) -> bool:
    return abs(cell.difference or 0.0) <= max(2 * (cell.error or 0.0), 1e-4)


def _tried(as_published: Results, published: Published) -> Iterator[Said]:
    """How far the mean of every setting tried is from that of the authors, where they kept them."""
    for place, grid in (published or {}).get("grids", {}).items():
        name, method = place.split("/")
        result = as_published.get(name, method)
        if result is None or len(result.trials) < TRIALS or len(result.trials[0]["points"]) != len(grid["rows"]):
            continue
        columns = {word: np.array([line[at] for line in grid["rows"]]) for at, word in enumerate(grid["columns"])}
        values: dict[str, Callable[[Row, Row], float]] = {
            "test AUC": lambda row, point: point["test_auc"],
            "sparse ratio": lambda row, point: point["nonzeros"] / row["n_features"],
        }
        apart = {}
        for words, value in values.items():
            means = np.mean([[value(row, point) for point in row["points"]] for row in result.trials], axis=0)
            apart[words] = float(np.abs(means - columns[words.lower().replace(" ", "_")]).max())
        told = " and ".join(f"{words} by at most {distance:.0e}" for words, distance in apart.items())
        yield Said(
            f"Every one of the {len(grid['rows'])} settings tried for {as_published.label(method)} on {name}: the mean "
            f"over ten trials differs from the authors' in {told}."
        )


def _drawn(as_published: Results, published: Published) -> Iterator[Said]:
    """How far the lines of the figures are from those of the authors."""
    for number, apart in _apart(as_published, published).items():
        largest = f"the largest difference of AUC is {max(apart.values()):.0e}"
        more = ", ".join(f"{place} {distance:.0e}" for place, distance in apart.items())
        yield Said(f"Figure {number}: of the lines with the paper's own rows, {len(apart)}, {largest}.", f"{more}.")


def _apart(as_published: Results, published: Published) -> dict[int, dict[str, float]]:
    """Of each figure, how far each line is from that of the authors, at the same rows or the same lambdas."""
    figures_apart = {}
    for number, plan in figures.PLANS.items():
        said = {} if plan.x == figures.SECONDS else figures.lines_said(number, published)
        found = as_published.fixed if plan.methods == figures.LAZY else as_published.get
        apart = {}
        for name, method in itertools.product(plan.sets, plan.methods):
            result, line = found(name, method, plan.ratio), said.get(name, {}).get(method)
            if not result or not line or result.data != EXACT or len(result.trials) < TRIALS:
                continue
            distance = _distance(result, line)
            if distance is not None:
                apart[f"{as_published.label(method)} on {name}"] = distance
        if apart:
            figures_apart[number] = apart
    return figures_apart


def _distance(result: Result, line: Mapping[str, Sequence[float]]) -> float | None:
    """The largest difference of mean AUC; None where ours were not measured at the same places."""
    if "rows" in line:
        curve = result.curve()
        ours = dict(zip(curve.rows, curve.test_auc, strict=True)) if curve else {}
        pairs = [(ours[rows], auc) for rows, auc in zip(line["rows"], line["test_auc"], strict=True) if rows in ours]
    else:
        points = result.sparsity()
        same = len(points) == len(line["test_auc"])
        pairs = [(mine, auc) for (_, mine, _), auc in zip(points, line["test_auc"], strict=True)] if same else []
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
        Contradiction(METHODS[method].label, name, table[name][method][0], line["test_auc"][-1])
        for name, lines in published[f"figure{CURVES[ratio][1]}"].items()
        for method, line in lines.items()
    )
    return [one for one in each if abs(one.end - one.printed) > APART]


def _itself(published: Published) -> Iterator[Said]:
    """Where a table contradicts the authors' own curve."""
    if not published:
        yield Said("No published numbers, so nothing to say.")
        return
    for ratio, (name, figure) in CURVES.items():
        off = _contradictions(published, ratio)
        total = sum(map(len, published[f"figure{figure}"].values()))
        words = f"{name}: {len(off)} of {total} numbers are more than {APART:g} from the end of the authors' own curve"
        more = "; ".join(f"{one.method} on {one.name} {one.printed:.4f}, curve {one.end:.4f}" for one in off)
        yield Said(f"{words} (figure {figure}).", f"{more}." if more else "")


def _changed(corrected: Results, as_published: Results) -> Iterator[Said]:
    """Corrected less as published, of every method that has both."""
    told = False
    for method in dict.fromkeys((*TABLE2, *TABLE3)):
        gaps = _gaps(partial(corrected.get, method=method), partial(as_published.get, method=method), (None, *RATIOS))
        if gaps:
            told = True
            yield Said(
                f"{corrected.label(method)}, corrected less as published: {_verdict(gaps.values())}.", _listed(gaps)
            )
    sizes = {
        name: (theirs.mean(results.sparse_ratio), mine.mean(results.sparse_ratio))
        for name in SETS
        if (theirs := as_published.get(name, "ftrl_auc")) and (mine := corrected.get(name, "ftrl_auc"))
    }
    ratios = [f"{name} {was.value:.4f}, now {now.value:.4f}" for name, (was, now) in sizes.items() if was and now]
    if ratios:
        yield Said(
            "FTRL-AUC, share of non-zeros: the slip B1 spoils small λ, so that validation chose sparse models; mended, "
            "small λ ranks best, and size is a choice of its own (figure 4, and the table of small models below).",
            f"{'; '.join(ratios)}.",
        )
    if told:
        yield Said("Part of a difference is the measure: the authors' AUC leaves a row out, ties go by order (B6).")
    else:
        yield Said("No method has trials with both arithmetics, so nothing to say.")


def _reached(corrected: Results, published: Published) -> Iterator[Said]:
    """Ours that need no tuning, against the best that was published of each set."""
    if not published:
        yield Said("No published numbers to compare with.")
        return
    best: dict[tuple[str, float | None], tuple[float, str]] = {}
    for name, said in published["table2"]["auc"].items():
        best[name, None] = max((value[0], method) for method, value in said.items())
    for cut in RATIOS:
        for name, said in published["table3"][str(cut)].items():
            best[name, cut] = (said["ftrl_auc"][0], "ftrl_auc")
    contests = (("the best published", (None,)), ("the published FTRL-AUC, positives cut down,", RATIOS))
    for method, (title, ratios) in itertools.product(UNTUNED, contests):
        told, above = [], 0
        for (name, ratio), (value, rival) in best.items():
            result = corrected.get(name, method, ratio)
            mean = result.mean(results.auc) if result else None
            if ratio in ratios and result is not None and mean is not None and result.data not in OTHER_ROWS:
                above += mean.value > value
                mark = "" if result.data in ("exact", "own") else f", {result.data}"
                rivals = f"{value:.4f} ({corrected.label(rival)}{mark})"
                told.append(f"{_place(name, ratio)} {_signed(mean).lstrip('+')} against {rivals}")
        if told:
            yield Said(f"{method}, not tuned, is above {title} on {above} of {len(told)}.", f"{'; '.join(told)}.")
        else:
            yield Said(f"{method} against {title}: no rows.")


def _small(rows: Sequence[Row], published: Published) -> Iterator[Said]:
    """Ours cut to the size of the published FTRL-AUC."""
    (section,) = tables.at_published_size(rows, published).sections
    lines = [line for line in section.lines if line.name.split(",")[0] in UNTUNED]
    for line in lines:
        cells = {
            name: cell
            for name, cell in zip(SETS, line.cells, strict=True)
            if cell.difference is not None and cell.data not in OTHER_ROWS
        }
        above = sum((cell.difference or 0.0) > 0 for cell in cells.values())
        told = [
            f"{name} {cell.ours:.4f} against {cell.published:.4f}" + (f" ({cell.remark})" if cell.remark else "")
            for name, cell in cells.items()
        ]
        words = f"{line.name}, as small as the published FTRL-AUC, is above it on {above} of {len(cells)}."
        yield Said(words, f"{', '.join(told)}.")
    if not lines:
        yield Said("As small as the published FTRL-AUC: no rows.")


def _losses(corrected: Results) -> Iterator[Said]:
    """The logistic methods, with their intercept, less those for AUC, trial by trial."""
    told = False
    rivals = [(method, "dual_auc") for method in LOGISTIC[:2]] + [(method, "ftrl_auc") for method in LOGISTIC]
    for method, rival in rivals:
        gaps = _gaps(partial(corrected.get, method=method), partial(corrected.get, method=rival), (None, *RATIOS))
        if gaps:
            told = True
            names = f"{corrected.label(method)} less {corrected.label(rival)}"
            yield Said(f"{names}: {_verdict(gaps.values())}.", _listed(gaps))
    if not told:
        yield Said("No trials of a logistic method beside one for AUC, so nothing to say.")


def _lazy(corrected: Results, as_published: Results) -> Iterator[Said]:
    told = False
    for found, words in ((as_published, "the authors' arithmetic"), (corrected, "corrected")):
        lazy = partial(found.fixed, method="ftrl_auc"), partial(found.fixed, method="ftrl_auc_non_lazy")
        gaps = _gaps(*lazy, (None,))
        if gaps:
            told = True
            yield Said(f"Lazy less exact, gamma 1, lambda 0.5, {words}: {_verdict(gaps.values())}.", _listed(gaps))
    if not told:
        yield Said("No rows of the lazy figures, so nothing to say.")


Gaps = dict[tuple[str, float | None], Mean]


def _gaps(
    one: Callable[..., Result | None], other: Callable[..., Result | None], ratios: Sequence[float | None]
) -> Gaps:
    """The mean difference of AUC over shared trials, wherever both have some."""
    found: Gaps = {}
    for ratio, name in itertools.product(ratios, SETS):
        mine, theirs = one(dataset=name, ratio=ratio), other(dataset=name, ratio=ratio)
        gap = results.mean(results.gaps(mine, theirs)) if mine and theirs else None
        if gap is not None:
            found[name, ratio] = gap
    return found


def _verdict(gaps: Iterable[Mean]) -> str:
    counts = {"above": 0, "below": 0, "within two standard errors": 0}
    for gap in gaps:
        certain = gap.error is not None and abs(gap.value) > 2 * gap.error
        counts["within two standard errors" if not certain else "above" if gap.value > 0 else "below"] += 1
    return ", ".join(f"{word} on {count}" for word, count in counts.items())


def _listed(gaps: Gaps) -> str:
    return ", ".join(f"{_place(*place)} {_signed(gap)}" for place, gap in gaps.items()) + "."


def _place(name: str, ratio: float | None) -> str:
    return name if ratio is None else f"{name} at {ratio:g}"


def _signed(mean: Mean) -> str:
    return f"{mean.value:+.4f}" + ("" if mean.error is None else f" ± {mean.error:.4f}")


def settings(found: Results) -> Iterator[tuple[str, str, str, str]]:
    """(set, method, settings, how many trials chose them), the most frequent choice of each."""
    for one in found.all():
        counts: dict[str, int] = {}
        for row in one.trials:
            words = " ".join(f"{name}={_short(value)}" for name, value in results.chosen(row)["params"].items())
            counts[words or "default"] = counts.get(words or "default", 0) + 1
        if counts:
            words, count = max(counts.items(), key=lambda item: item[1])
            yield _place(one.dataset, one.ratio), found.label(one.method), words, f"{count} of {len(one.trials)}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)
