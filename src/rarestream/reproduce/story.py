"""The article that the rows tell: what was published, what is confirmed, what the bugs changed, what follows.

Every number is computed from rows or from the published numbers, and a passage says so where there are none.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rarestream.reproduce import comparisons, errata, tables
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.datasets import OTHER_ROWS
from rarestream.reproduce.methods import LABELS, LEARNED_LAZILY, METHODS, TABLE2, TABLE3, results_of
from rarestream.reproduce.protocol import TRIALS
from rarestream.reproduce.tables import RATIOS, Published
from rarestream.study import results
from rarestream.study.results import Results, extent, place_name, ratio_name
from rarestream.study.rows import CORRECTED, PUBLISHED, Point, TrialRow
from rarestream.study.tables import Cell, Line, Section, Table, short

LOGISTIC = ("dual_logistic", "balanced_logistic", "ftrl_proximal", "adagrad")  # all with an intercept
RIVALS = [(method, "dual_auc") for method in LOGISTIC[:2]] + [(method, "ftrl_auc") for method in LOGISTIC]
UNTUNED = ("auto", "dual_auc", "dual_logistic")  # of ours, those that the short tables show
SHOWN = "farm-ads"  # the set of exact rows on which every method was run both ways
FORM2, FORM3 = ".5f", ".4f"  # as the paper prints the AUCs of tables II and III

PAPER = "*Online AUC Optimization for Sparse High-Dimensional Datasets* (Zhou, Ying, Skiena, ICDM 2020)"
LEAD = (
    f"{PAPER} introduces FTRL-AUC, an online learner that costs O(k) for a row of k non-zeros. It reports that "
    "FTRL-AUC is much faster than other online AUC methods and makes far smaller models at a competitive AUC, and that "
    "it ranks better than logistic methods, most of all where positives are rare. We ran its experiments on the same "
    "splits in two ways: *with the bugs*, which is the arithmetic of the authors' program with its own AUC, and "
    "*corrected*, which is learners that do what the papers say, tried with as many settings, with exact AUC."
)

Part = str | tuple[str, ...] | Table  # a paragraph, a list, a table


class Passage(NamedTuple):
    """A part of the article under a heading."""

    title: str  # none: the opening
    parts: tuple[Part, ...]
    level: int = 2


def article(rows: Sequence[TrialRow], published: Published) -> list[Passage]:
    """Return the article up to its figures."""
    corrected, as_published = results_of(rows, CORRECTED), results_of(rows, PUBLISHED)
    return [
        Passage("", (LEAD, tuple(findings(rows, published)) or f"No findings yet. {extent(rows)}")),
        Passage("What was published", tuple(_published(published))),
        Passage("What is confirmed", tuple(_confirmed(rows, as_published, published))),
        Passage("What the bugs were and what they changed", tuple(_changed(corrected, as_published, published))),
        Passage("What changes for a user of these methods", tuple(_reached(corrected, published))),
        Passage("Small models", tuple(_small(rows, published)), 3),
        Passage("AUC loss and logistic loss", tuple(_losses(corrected)), 3),
        Passage("Lazy and exact class means", tuple(_lazy(corrected, as_published)), 3),
        Passage("Table II", tuple(_table2(rows, published))),
        Passage("Table III", tuple(_table3(rows, published))),
    ]


def appendix(rows: Sequence[TrialRow], published: Published) -> list[Passage]:
    """Return what follows the account of the runs: every difference, and every bug."""
    corrected, as_published = results_of(rows, CORRECTED), results_of(rows, PUBLISHED)
    return [
        Passage("All differences", tuple(_differences(corrected, as_published, published))),
        Passage("All bugs", (f"Each has a test in `{errata.TESTS}`.", _bugs())),
    ]


def findings(rows: Sequence[TrialRow], published: Published) -> Iterator[str]:
    """Yield the main findings, a few sentences with numbers."""
    corrected, as_published = results_of(rows, CORRECTED), results_of(rows, PUBLISHED)
    held = [
        ((section.name, *names), comparisons.is_same(cell, section))
        for table in (tables.table2(rows, published, PUBLISHED), tables.table3(rows, published, PUBLISHED))
        for section, names, cell in table.cells()
        if section.name.startswith("AUC") and cell.difference is not None and not cell.remark
    ]
    apart = [
        distance
        for lines in comparisons.curve_distances(as_published, published).values()
        for distance in lines.values()
    ]
    if held and published:
        others = {place for place, same in held if not same}
        itself = {("AUC", one.method, one.name) for one in comparisons.contradictions(published, None)}
        words = f"; the other {len(others)} also differ from the end of the authors' own curves" if others else ""
        curves = f" {len(apart)} curves agree to {max(apart):.0e}." if apart else ""
        yield (
            f"**Confirmed:** with the bugs, on the paper's own rows, {len(held) - len(others)} of {len(held)} "
            "published AUCs of tables II and III are reproduced to the last printed digit"
            f"{words if others <= itself else ''}.{curves}"
        )
    fixed = [gap for gaps in comparisons.fixes(corrected, as_published).values() for gap in gaps.values()]
    if fixed:
        words = comparisons.verdict(fixed)
        yield f"**Bugs:** with the bugs fixed, the AUCs of the same methods are {words} of {len(fixed)} cells."
    contests = {"Table II": (None,), "Table III": RATIOS}
    won = []
    for name, ratios in contests.items():
        if cells := comparisons.contest(corrected, published, ratios):
            won.append(f"in {sum(mean.value > value for mean, value in cells)} of {len(cells)} cells of {name}")
    if won:
        yield (
            "**Untuned:** `auto`, which has nothing to tune, has a higher AUC than the best published method "
            f"{' and '.join(won)}."
        )
    losses = comparisons.differences(
        partial(corrected.get, method="dual_logistic"), partial(corrected.get, method="dual_auc"), (None, *RATIOS)
    )
    if losses:
        yield (
            "**The loss:** logistic loss with an intercept against AUC loss, both by dual averaging, untuned: the AUC "
            f"of the logistic loss is {comparisons.verdict(losses.values())} of {len(losses)} cells."
        )


# -- what was published


def _published(published: Published) -> Iterator[Part]:
    """Tell the paper's main table in one line per data set, and where the paper contradicts itself."""
    if not published:
        yield "No published numbers, so nothing to report."
        return
    yield "Table II of the paper, its FTRL-AUC beside the method with the highest AUC among the other six:"
    paper = published["table2"]
    lines = []
    for name in SETS:
        aucs = {method: value[0] for method, value in paper["auc"][name].items()}
        best = max((method for method in aucs if method != "ftrl_auc"), key=lambda method: aucs[method])
        texts = [
            f"{aucs['ftrl_auc']:{FORM2}}",
            f"{paper['sparse_ratio'][name]['ftrl_auc'][0]:.4f}",
            f"{paper['seconds'][name]['ftrl_auc'][0]:.3g}",
            f"{aucs[best]:{FORM2}} ({LABELS[best]})",
            f"{paper['seconds'][name][best][0]:.3g}",
        ]
        lines.append((name, texts))
    yield _words("data set", ("FTRL-AUC", "sparse ratio", "seconds", "best other AUC", "its seconds"), lines)
    above = {
        ratio: sum(
            1
            for methods in published["table3"][str(ratio)].values()
            if max(methods, key=lambda m: methods[m][0]) == "ftrl_auc"
        )
        for ratio in RATIOS
    }
    yield (
        f"In Table III, where positives are rare, FTRL-AUC has the highest AUC of four methods on {above[0.1]} of 6 "
        f"data sets at a positive:negative ratio of 0.1, and on {above[0.05]} at 0.05. The others are AdaGrad, RDA-l1 "
        "and FTRL-Pro, with logistic loss."
    )
    off = {ratio: len(comparisons.contradictions(published, ratio)) for ratio in comparisons.CURVES}
    total = {
        ratio: sum(map(len, published[f"figure{figure}"].values())) for ratio, (_, figure) in comparisons.CURVES.items()
    }
    yield (
        f"The tables should be the ends of the authors' own curves, which are means of the same ten trials. "
        f"{off[None]} of {total[None]} AUCs of Table II are more than {comparisons.APART:g} from there, and "
        f"{off[0.1] + off[0.05]} of {total[0.1] + total[0.05]} of Table III."
    )


# -- what is confirmed


def _confirmed(rows: Sequence[TrialRow], as_published: Results, published: Published) -> Iterator[Part]:
    """Count the cells, settings and curves that the authors' arithmetic reproduces."""
    kinds = (
        ("Table II", tables.table2(rows, published, PUBLISHED), ("AUC", "Sparse ratio")),
        ("Table III", tables.table3(rows, published, PUBLISHED), None),
    )
    lines = []
    for name, table, sections in kinds:
        for section in table.sections:
            cells = [
                cell
                for part, _, cell in table.cells()
                if part is section and cell.difference is not None and not cell.remark
            ]
            if cells and (sections is None or section.name in sections):
                same, near = (
                    sum(comparisons.is_same(cell, section) for cell in cells),
                    sum(map(comparisons.is_near, cells)),
                )
                lines.append((f"{name}, {section.name}", [str(len(cells)), str(same), str(near)]))
    if not lines:
        yield "There are no trials with the authors' arithmetic on the paper's own rows, so nothing to report."
        return
    yield (
        "The numbers of the paper are those of the authors' program, bugs included. On the data sets whose rows are "
        "the paper's own, its arithmetic gives:"
    )
    yield _words("with the bugs", ("numbers compared", "same to the last digit", "within two standard errors"), lines)
    apart = [
        distance for each in comparisons.curve_distances(as_published, published).values() for distance in each.values()
    ]
    if apart:
        yield (
            f"Of the curves of figures 2 to 10, {len(apart)} can be compared; none differs by more than "
            f"{max(apart):.0e} in AUC from the published one."
        )
    yield from _tried(as_published, published)


def _tried(as_published: Results, published: Published) -> Iterator[str]:
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
        largest = " and ".join(f"{distance:.0e} in {words}" for words, distance in apart.items())
        yield (
            f"For each of the {len(grid['rows'])} settings tried for {as_published.label(method)} on {name}, the mean "
            f"over ten trials differs from the authors' by at most {largest}."
        )


# -- what the bugs changed


def _changed(corrected: Results, as_published: Results, published: Published) -> Iterator[Part]:
    """Tell the bugs of each method in a phrase, and what they changed."""
    yield (
        "Four of them are one mistake in C: a macro writes sign(x) as `(x > 0) - (x < 0)` without outer parentheses, "
        "so a factor beside it reaches only one of the two comparisons (B1 to B4). The program's AUC also omits the "
        "row that ranks last and breaks ties by the order of rows (B6), which is a part of each difference."
    )
    lines = []
    for method, gaps in comparisons.fixes(corrected, as_published).items():
        ratio = None if (SHOWN, None) in gaps else RATIOS[0]
        was, now = as_published.get(SHOWN, method, ratio), corrected.get(SHOWN, method, ratio)
        ends = [one.mean(results.auc) if one else None for one in (was, now)]
        form = FORM2 if ratio is None else FORM3
        change = " → ".join("not run" if end is None else f"{end.value:{form}}" for end in ends)
        sure = sum(comparisons.is_certain(gap) and gap.value > 0 for gap in gaps.values())
        lines.append((LABELS[method], [errata.OF_METHODS[method], change, f"{sure} of {len(gaps)}"]))
    if not lines:
        yield "No method has trials in both ways, so there is nothing to report of their effect."
        return
    yield _words("method", ("bug", f"AUC on {SHOWN}", "higher in"), lines)
    yield (
        f"AdaGrad, RDA-l1 and FTRL-Pro: at a positive:negative ratio of {RATIOS[0]:g}, as in Table III; the others: "
        "all rows. *Higher in*: cells of tables II and III whose AUC rose by more than two standard errors, of those "
        "run both ways. [All differences](#all-differences) has each."
    )
    sizes = []
    for name in SETS:
        both = [
            one.mean(results.sparse_ratio) for each in (as_published, corrected) if (one := each.get(name, "ftrl_auc"))
        ]
        if len(both) == 2 and all(both):
            printed = published["table2"]["sparse_ratio"][name]["ftrl_auc"][0] if published else None
            numbers = [printed, *(mean.value for mean in both if mean)]
            sizes.append((name, ["none" if value is None else f"{value:.4f}" for value in numbers]))
    if sizes:
        yield (
            "The small models of FTRL-AUC were an effect of B1: it spoils small λ, so that validation chose large "
            "ones. Corrected, small λ ranks best, and the size of a model is a separate choice (figure 4)."
        )
        yield _words("sparse ratio of FTRL-AUC", ("published", "with the bugs", "corrected"), sizes)


# -- what follows


def _reached(corrected: Results, published: Published) -> Iterator[Part]:
    """Compare the best published AUC with the best corrected one, and with `auto`, which is not tuned."""
    lines = []
    first: dict[float | None, Counter[str]] = {}  # how often a method is the best of the paper's, by ratio
    for ratio, name in itertools.product((None, *RATIOS), SETS):
        means = {
            method: mean
            for method in ("auto", *(TABLE2 if ratio is None else TABLE3))
            if (one := corrected.get(name, method, ratio)) and (mean := one.mean(results.auc))
        }
        if not means:
            continue
        form = FORM2 if ratio is None else FORM3
        rival = comparisons.best_published(published, name, ratio)
        auto = means.pop("auto", None)
        best = max(means, key=lambda method: means[method].value, default=None)
        if best is not None:
            first.setdefault(ratio, Counter())[best] += 1
        found = corrected.get(name, best or "auto", ratio)
        other = found is not None and found.data in OTHER_ROWS
        texts = [
            "none" if rival is None else "other rows" if other else f"{rival[0]:{form}} ({LABELS[rival[1]]})",
            "not run" if best is None else f"{means[best].value:{form}} ({LABELS[best]})",
            "not run" if auto is None else f"{auto.value:{form}}",
        ]
        lines.append((place_name(name, ratio), texts))
    if not lines:
        yield "There are no trials of corrected methods, so nothing to report."
        return
    yield (
        "For each data set the best published AUC, the best of the paper's methods when corrected and tuned, and "
        "`auto`, which has nothing to tune:"
    )
    yield _words("data set", ("published", "corrected, tuned", "auto, untuned"), lines)
    counts = [
        f"{ratio_name(ratio)}, {', '.join(f'{LABELS[method]} on {count}' for method, count in best.most_common())}"
        for ratio, best in first.items()
    ]
    if counts:
        yield f"The best of the paper's methods, corrected: {'; '.join(counts)}."


def _small(rows: Sequence[TrialRow], published: Published) -> Iterator[Part]:
    """Compare `auto`, as small as the published FTRL-AUC, with it."""
    table = tables.at_published_size(rows, published)
    (section,) = table.sections
    lines = {line.name: line for line in section.lines if line.name.split(",")[0] == "auto"}
    texts = []
    for place, name in enumerate(table.columns):
        cells = [line.cells[place] for line in lines.values()]
        if any(cell.ours is not None for cell in cells) and not any(cell.data in OTHER_ROWS for cell in cells):
            printed = cells[0].published
            first = "none" if printed is None else f"{printed:{FORM2}}"
            texts.append(
                (name, [first, *(f"{cell.ours:{FORM2}}" if cell.ours is not None else cell.note for cell in cells)])
            )
    if not texts:
        yield "There are no models of that size, so nothing to report."
        return
    yield "With as many weights as the published FTRL-AUC, pruned to the largest or learned on that budget:"
    yield _words("data set", ("published FTRL-AUC", *lines), texts)


def _losses(corrected: Results) -> Iterator[Part]:
    """Count where logistic methods, which have an intercept, rank better than AUC methods, trial by trial."""
    lines = []
    for method, rival in RIVALS:
        gaps = comparisons.differences(
            partial(corrected.get, method=method), partial(corrected.get, method=rival), (None, *RATIOS)
        )
        if gaps:
            lines.append(
                (f"{corrected.label(method)} minus {corrected.label(rival)}", comparisons.counts(gaps.values()))
            )
    if not lines:
        yield "There are no trials of a logistic method and an AUC method, so nothing to report."
        return
    yield (
        "The paper finds AUC loss ahead of logistic loss where positives are rare. Its logistic methods had bugs, and "
        "its FTRL-Pro no intercept. Corrected, over all data sets and ratios, the AUC of a logistic method minus that "
        "of an AUC method in the same trials is:"
    )
    yield _words("AUC of", ("higher in", "lower in", "within two standard errors in"), lines)


def _lazy(corrected: Results, as_published: Results) -> Iterator[Part]:
    """Report the AUC with lazy minus that with exact class means."""
    kinds = {"with the bugs": as_published, "corrected": corrected}
    gaps = {
        words: comparisons.differences(
            partial(found.fixed, method=LEARNED_LAZILY[0]), partial(found.fixed, method=LEARNED_LAZILY[1]), (None,)
        )
        for words, found in kinds.items()
    }
    lines = [
        (name, [comparisons.signed(each[name, None]) if (name, None) in each else "not run" for each in gaps.values()])
        for name in SETS
        if any((name, None) in each for each in gaps.values())
    ]
    if not lines:
        yield "There are no trials of figures 2 and 9, so nothing to report."
        return
    yield "FTRL-AUC with lazy class means minus FTRL-AUC with exact ones, at gamma 1, lambda 0.5 (figures 2 and 9):"
    yield _words("data set", tuple(gaps), lines)


# -- the tables


def _shown(methods: Iterable[str]) -> list[str]:
    return [LABELS[method] for method in (*methods, *UNTUNED)]


def _table2(rows: Sequence[TrialRow], published: Published) -> Iterator[Part]:
    table = tables.table2(rows, published, CORRECTED)
    auc = short(table, ["AUC"], _shown(TABLE2))
    if not auc.sections:
        yield "There are no trials, so nothing to report."
        return
    which = _which_rows(table)
    yield f"All rows, corrected and tuned; the last lines are ours, untuned. ± is the standard error.{which}"
    yield auc
    if auc.note:
        yield auc.note
    yield "The share of weights that are not zero, and the seconds that the chosen setting took to learn:"
    yield short(table, ["Sparse ratio"], _shown(TABLE2), errors=False)
    yield short(table, ["Run time, seconds"], _shown(TABLE2), errors=False)


def _table3(rows: Sequence[TrialRow], published: Published) -> Iterator[Part]:
    table = tables.table3(rows, published, CORRECTED)
    auc = short(table, [section.name for section in table.sections], _shown(TABLE3))
    if not auc.sections:
        yield "There are no trials, so nothing to report."
        return
    yield f"Positives cut to a ratio, corrected and tuned; the last lines are ours, untuned.{_which_rows(table)}"
    yield auc
    if auc.note:
        yield auc.note


def _which_rows(table: Table) -> str:
    """Say which columns are not of the paper's rows."""
    kinds: dict[str, list[str]] = {}
    for _, (_, name), cell in table.cells():
        if cell.data and name not in kinds.setdefault(cell.data, []):
            kinds[cell.data].append(name)
    return "".join(f" {' and '.join(names)}: {data} rows." for data, names in kinds.items())


# -- all differences


def _differences(corrected: Results, as_published: Results, published: Published) -> Iterator[Part]:
    """List every AUC as printed, with the bugs and corrected; every loss; curves; contradictions."""
    fixes = comparisons.fixes(corrected, as_published)
    for ratio, methods in ((None, TABLE2), *((ratio, TABLE3) for ratio in RATIOS)):
        form = FORM2 if ratio is None else FORM3
        lines = []
        for method, name in itertools.product(methods, SETS):
            both = [
                one.mean(results.auc) if one else None
                for one in (as_published.get(name, method, ratio), corrected.get(name, method, ratio))
            ]
            if any(both):
                printed = comparisons.printed_auc(published, name, method, ratio)
                gap = fixes.get(method, {}).get((name, ratio))
                texts = ["none" if printed is None else f"{printed:{form}}"]
                texts += ["not run" if mean is None else f"{mean.value:{form}}" for mean in both]
                lines.append((LABELS[method], [name, *texts, "none" if gap is None else comparisons.signed(gap)]))
        if lines:
            table, _ = comparisons.CURVES[ratio]
            yield f"{table}, AUC. The difference is corrected minus with the bugs, trial by trial:"
            yield _words("method", ("data set", "printed", "with the bugs", "corrected", "difference"), lines)
    gaps = {
        f"{corrected.label(method)} minus {corrected.label(rival)}": found
        for method, rival in RIVALS
        if (
            found := comparisons.differences(
                partial(corrected.get, method=method), partial(corrected.get, method=rival), (None, *RATIOS)
            )
        )
    }
    if gaps:
        places = [
            place
            for place in itertools.product((None, *RATIOS), SETS)
            if any(place[::-1] in each for each in gaps.values())
        ]
        yield "Logistic loss minus AUC loss:"
        yield _words(
            "data set",
            tuple(gaps),
            [
                (
                    place_name(name, ratio),
                    [
                        comparisons.signed(each[name, ratio]) if (name, ratio) in each else "not run"
                        for each in gaps.values()
                    ],
                )
                for ratio, name in places
            ],
        )
    apart = comparisons.curve_distances(as_published, published)
    if apart:
        yield "Published curves, with the bugs on the paper's own rows:"
        yield _words(
            "figure",
            ("curves compared", "largest difference in AUC"),
            [(str(number), [str(len(each)), f"{max(each.values()):.0e}"]) for number, each in apart.items()],
        )
    if published:
        off = [
            (one, name)
            for ratio, (name, _) in comparisons.CURVES.items()
            for one in comparisons.contradictions(published, ratio)
        ]
        yield f"Printed AUCs that are more than {comparisons.APART:g} from the end of the authors' own curve:"
        yield _words(
            "method",
            ("data set", "table", "printed", "end of the curve"),
            [(one.method, [one.name, name, f"{one.printed:.4f}", f"{one.end:.4f}"]) for one, name in off],
        )


def _bugs() -> Table:
    lines = [(one.name, [one.where, one.what, one.effect]) for one in errata.ERRATA]
    return _words("bug", ("where", "what the program does", "effect"), lines)


# -- how it was run


def runs(rows: Sequence[TrialRow], found: Mapping[str, Any] | None = None) -> Iterator[Part]:
    """Tell how much was run, on which rows, where less than elsewhere, and which grids are not the paper's."""
    yield (
        f"{extent(rows)} A trial splits the rows anew into training, validation and test rows, as the authors' program "
        "did; a setting is chosen on the validation rows alone."
    )
    lines = [(name, [f"{shape['n']:,}", shape["data"], shape["note"]]) for name, shape in (found or {}).items()]
    if lines:
        yield _words("data set", ("rows", "which", "what is known of them"), lines)
        yield (
            "*Exact* rows are the paper's, *rebuilt* ones were made from the same texts; the numbers of a *subset* or "
            "of *generated* rows cannot be compared with published ones."
        )
    fewer: dict[str, dict[str, list[str]]] = {}  # by how much there is, and by method: the data sets
    for each in (results_of(rows, CORRECTED), results_of(rows, PUBLISHED)):
        for one in each.all():
            if one.trials and each.get(one.dataset, one.method, one.ratio) is one and (words := each.fewer(one)):
                label = each.label(one.method) + (" with the bugs" if each.mode == PUBLISHED else "")
                fewer.setdefault(words, {}).setdefault(label, []).append(place_name(one.dataset, one.ratio))
    if fewer:
        lines = [
            (words, ["; ".join(f"{label} on {', '.join(names)}" for label, names in cells.items())])
            for words, cells in fewer.items()
        ]
        yield "Less was run of some:"
        yield _words("trials, settings", ("of",), lines)
    yield "A corrected method is tried with as many settings as the published one. Where the range differs:"
    notes = [(method.label, [method.note]) for method in METHODS.values() if method.note]
    yield _words("method", ("corrected range, and why",), notes)


# -- words and numbers


def _words(corner: str, columns: Sequence[str], lines: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """Return a table of words, without a title."""
    body = tuple(Line(name, tuple(Cell(note=text) for text in texts)) for name, texts in lines)
    return Table("", "", corner, tuple(columns), (Section(corner, "", body),))
