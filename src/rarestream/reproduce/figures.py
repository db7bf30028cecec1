"""The paper's figures as functions of rows: a line of two panels for each data set, as published and ours.

    1        a toy classifier and its ROC curve
    2, 9     FTRL-AUC with lazy and with exact class means: test AUC against rows
    3, 8     the AUC methods: test AUC against seconds, against rows
    4        sparse ratio against test AUC, one point per lambda
    5, 10    FTRL-AUC and the logistic methods on imbalanced sets: test AUC against rows
    6, 11    the same methods: sparse ratio against test AUC
    7        avazu: FTRL-AUC and FTRL-Proximal

Both panels of a line have the same axis of AUC, unless they are of other rows. It begins where curves are after a
tenth of the rows, so that their first rows do not squeeze the rest. Without any rows of ours, the published panels
stand alone.
"""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarestream.errors import MissingExtraError
from rarestream.metrics import auc
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.datasets import OTHER_ROWS
from rarestream.reproduce.methods import LEARNED_LAZILY, TABLE3, results_of
from rarestream.reproduce.protocol import TRIALS
from rarestream.reproduce.tables import Published
from rarestream.study.figures import AUC, COLOURS, LOOKS, RATIO, ROWS, SECONDS, PlotLine, line_of
from rarestream.study.results import Result, Results
from rarestream.study.rows import CORRECTED, TrialRow

SPARSE = ("ftrl_auc", "spam_l1", "spam_l1l2", "spauc")
OURS = "auto"  # joins the paper's methods where curves are shown
CURVES = ("ftrl_auc", "spam_l2", "solam", "spauc", "fsauc")  # more than seven lines in a panel cannot be told apart
LEFT_OUT = "SPAM-l1 and SPAM-l1/l2 are left out, to keep lines apart; table II has them."
TENTH, HUNDREDTH = 0.1, 0.01  # of the rows, after which curves fit the axis; the second where rows are logarithmic
LOWEST = 0.03  # share of the points of curves that may lie below the axis
LEAST_AUC = 0.15  # the same for sparse ratios: the left end of their lines, where hardly a weight is left
GAP = 0.085  # between the names of two lines, of the height of a panel
WIDTH, HEIGHT = 8.2, 2.8  # of a figure, and of a line of panels, in inches
DPI = 250  # of a PNG


@dataclass(frozen=True)
class Plan:
    """What a figure shows."""

    title: str
    sets: tuple[str, ...]
    methods: tuple[str, ...]
    x: str
    y: str
    ratio: float | None = None
    logarithmic: tuple[str, ...] = ()  # axes
    band: bool = False  # one standard deviation to either side
    note: str = ""
    caption: str = ""  # what to look at

    @property
    def lazy(self) -> bool:
        """Whether it compares lazy and exact class means, at one fixed setting."""
        return self.methods == LEARNED_LAZILY

    def result(self, found: Results, name: str, method: str) -> Result | None:
        """Return the trials that are drawn."""
        return found.fixed(name, method) if self.lazy else found.get(name, method, self.ratio)


_LAZY_CAPTION = (
    "FTRL-AUC takes the mean score of each class as it was when a row came (lazy); the exact means are those of the "
    "present weights. Gamma 1, lambda 0.5, not tuned; the band is one standard deviation over the trials."
)
_SPARSE_CAPTION = "One point per λ: lower is smaller, further right ranks better."
_B1_CAPTION = "Where the published line of FTRL-AUC turns back to the left at the top, bug B1 spoils small λ."
_ROWS_CAPTION = "The further left a line rises, the fewer rows it needs."
PLANS = {
    2: Plan(
        "lazy and exact class means",
        ("imdb", "real-sim", "farm-ads"),
        LEARNED_LAZILY,
        ROWS,
        AUC,
        band=True,
        caption=_LAZY_CAPTION,
    ),
    3: Plan(
        "AUC against run time",
        SETS,
        (*CURVES, OURS),
        SECONDS,
        AUC,
        logarithmic=("x",),
        note=LEFT_OUT,
        caption="The same axis of seconds for both: the machines differ, and so do the programs.",
    ),
    4: Plan(
        "sparse ratio and AUC",
        SETS,
        SPARSE,
        AUC,
        RATIO,
        logarithmic=("y",),
        caption=f"{_SPARSE_CAPTION} {_B1_CAPTION}",
    ),
    5: Plan(
        "AUC against rows, positive:negative ratio 0.1",
        SETS,
        (*TABLE3, OURS),
        ROWS,
        AUC,
        ratio=0.1,
        caption=_ROWS_CAPTION,
    ),
    6: Plan(
        "sparse ratio and AUC, positive:negative ratio 0.1",
        SETS,
        TABLE3,
        AUC,
        RATIO,
        ratio=0.1,
        logarithmic=("y",),
        caption=_SPARSE_CAPTION,
    ),
    7: Plan(
        "the click stream",
        ("avazu",),
        ("ftrl_auc", "ftrl_proximal", OURS),
        ROWS,
        AUC,
        logarithmic=("x",),
        band=True,
        caption="Rows of a generated stream rank easier or harder than clicks: compare lines within a panel only.",
    ),
    8: Plan("AUC against rows", SETS, (*CURVES, OURS), ROWS, AUC, note=LEFT_OUT, caption=_ROWS_CAPTION),
    9: Plan(
        "lazy and exact class means",
        ("news20b", "rcv1b", "reviews"),
        LEARNED_LAZILY,
        ROWS,
        AUC,
        band=True,
        caption=_LAZY_CAPTION,
    ),
    10: Plan(
        "AUC against rows, positive:negative ratio 0.05",
        SETS,
        (*TABLE3, OURS),
        ROWS,
        AUC,
        ratio=0.05,
        caption=_ROWS_CAPTION,
    ),
    11: Plan(
        "sparse ratio and AUC, positive:negative ratio 0.05",
        SETS,
        TABLE3,
        AUC,
        RATIO,
        ratio=0.05,
        logarithmic=("y",),
        note="No published points: those of the authors' figure 11 are those of figure 6 (B12).",
        caption=_SPARSE_CAPTION,
    ),
}
NUMBERS = (1, *PLANS)
# The points that the authors kept for figure 11 are those of ratio 0.1, as rerunning farm-ads shows (B12).
POINTS = {6: "figure11", 11: ""}
COLUMN = {ROWS: "rows", SECONDS: "seconds", AUC: "test_auc", RATIO: "sparse_ratio"}  # in published.json


def figure(number: int, rows: Iterable[TrialRow], published: Published, mode: str | None = None) -> Any:
    """Return a figure of the paper as a matplotlib Figure."""
    if number not in NUMBERS:
        raise ValueError(f"figure {number}: the paper has figures 1 to 11.")
    if number == 1:
        return _toy()
    plan = PLANS[number]
    found = results_of(rows, mode)
    paper = published_lines(number, published)
    names = drawn_sets(number, found) or list(plan.sets)
    page, panels = _page(2 if paper else 1, len(names))
    for line, name in zip(panels, names, strict=True):
        theirs = {
            method: published_line(paper[name][method], plan.x, plan.y)
            for method in plan.methods
            if method in paper.get(name, {})
        }
        results = {method: plan.result(found, name, method) for method in plan.methods}
        ours = {
            method: one for method, result in results.items() if (one := line_of(result, plan.x, plan.y)) is not None
        }
        known = [result for result in results.values() if result is not None and result.trials]
        data = known[0].data if known else ""
        if paper:
            _draw(line[0], plan, theirs)
            line[0].set_title(f"{name}, as published" + (" (other rows)" if data in OTHER_ROWS else ""))
        _draw(line[-1], plan, ours)
        if ours:
            _name_missing(line[-1], plan, [found.label(method) for method in plan.methods if method not in ours])
            line[-1].set_title(f"{name}, {_words(found)}, {_trials(known)}" + _rows_note(data))
        else:
            line[-1].set_title(f"{name}, {_words(found)}")
            reason = next((one.why_not for one in results.values() if one), found.why_not(name))
            what = reason if len(reason) < 40 else reason[:38] + "..."
            line[-1].text(0.5, 0.5, what, transform=line[-1].transAxes, ha="center", style="italic")
        if data in OTHER_ROWS:  # nothing to compare: an axis each
            _fit(line[:1], plan, list(theirs.values()))
            _fit(line[-1:], plan, list(ours.values()))
        else:
            _fit(line, plan, [*theirs.values(), *ours.values()])
        if plan.y == AUC and not plan.lazy:
            _name_lines(line[-1], ours, found)
        line[0].set_ylabel(plan.y)
    for panel in panels[-1]:
        panel.set_xlabel(plan.x)
    _legend(page, plan, found)
    note = textwrap.fill(plan.note, 90 if paper else 60)
    page.suptitle("\n".join(filter(None, (f"Figure {number}: {plan.title}", note))), fontsize=12)
    return page


def drawn_sets(number: int, found: Results) -> list[str]:
    """Return the data sets of a figure for which there are lines of ours."""
    plan = PLANS[number]
    return [
        name
        for name in plan.sets
        if any(line_of(plan.result(found, name, method), plan.x, plan.y) is not None for method in plan.methods)
    ]


def has_lines(number: int, rows: Iterable[TrialRow]) -> bool:
    """Return whether a figure has lines of ours; the toy of figure 1 has none."""
    return number in PLANS and bool(drawn_sets(number, results_of(rows)))


def caption(number: int, rows: Iterable[TrialRow]) -> str:
    """Return what to look at in a figure; what lines of ours reach is computed."""
    plan, found = PLANS[number], results_of(rows)
    names = drawn_sets(number, found)
    out = [plan.caption]
    if plan.y == AUC and not plan.lazy:
        best = Counter(_highest(plan, found, name) for name in names)
        words = [f"{found.label(method)} on {count}" for method, count in best.most_common()]
        out.append(f"Highest at the end, {_words(found)}: {', '.join(words)} of {len(names)}.")
    known = {
        name: [one for method in plan.methods if (one := plan.result(found, name, method)) and one.trials]
        for name in names
    }
    few = [f"{name} {_trials(each)}" for name, each in known.items() if any(len(one.trials) < TRIALS for one in each)]
    if few:
        out.append(f"Fewer than ten trials: {', '.join(few)}.")
    others = [name for name in plan.sets if name not in names]
    if others:
        out.append(f"Not drawn, for want of trials: {', '.join(others)}.")
    return " ".join(out)


def _highest(plan: Plan, found: Results, name: str) -> str:
    """Return the method whose line ends highest."""
    lines = {method: line_of(plan.result(found, name, method), plan.x, plan.y) for method in plan.methods}
    return max(lines, key=lambda method: -np.inf if (line := lines[method]) is None else float(line.y[-1]))


def _words(found: Results) -> str:
    return "corrected" if found.mode == CORRECTED else "ours, with the bugs"


def _trials(known: Sequence[Result]) -> str:
    """Return in words how many trials the lines of a panel are means of."""
    counts = sorted({len(result.trials) for result in known})
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{many} trial{'s' * (counts[-1] > 1)}"


def _rows_note(data: str) -> str:
    return f" ({data})" if data not in ("", "exact", "own") else ""


def drawn(figure: Any, suffix: str) -> bytes:
    """Return a figure as a file, the same bytes for the same rows; the text of an SVG is text."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rarestream"}):
        figure.savefig(out, format=suffix, dpi=DPI, metadata={"Date": None} if suffix == "svg" else None)
    return out.getvalue()


def published_lines(number: int, published: Published) -> Mapping[str, Any]:
    """Return the published lines of a figure, by data set and method, as published.json has them."""
    return published.get(POINTS.get(number, f"figure{number}"), {}) if published else {}


def published_line(columns: Mapping[str, Sequence[float]], x: str, y: str) -> PlotLine:
    """Return a published line, but for points that a logarithmic axis cannot show."""
    xs, ys = (np.array(columns[COLUMN[axis]], float) for axis in (x, y))
    kept = (xs > 0) & (ys > 0)
    return PlotLine(xs[kept], ys[kept])


def _draw(panel: Any, plan: Plan, lines: Mapping[str, PlotLine]) -> None:
    """Draw lines, told apart by colour, dashes and markers."""
    from matplotlib.ticker import EngFormatter

    for place, (method, line) in enumerate(lines.items()):
        every = 1 if plan.y == RATIO else (0.05 + 0.03 * place, 0.22)  # of a curve, a few: not all at the same place
        panel.plot(line.x, line.y, markevery=every, **_style(method))
        if plan.band and line.spread is not None:
            low, high = line.y - line.spread, line.y + line.spread
            panel.fill_between(line.x, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
    for axis in plan.logarithmic:
        getattr(panel, f"set_{axis}scale")("log")
    if plan.x == ROWS and not plan.logarithmic:
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 10k, not 10000
    panel.minorticks_off()
    panel.grid(alpha=0.3, linewidth=0.5)


def _fit(panels: Sequence[Any], plan: Plan, lines: Sequence[PlotLine]) -> None:
    """Give the panels of a data set the same axis of AUC, from where curves are after a tenth of the rows."""
    if not lines:
        return
    if plan.y == RATIO:
        aucs, ratios = (np.concatenate(column) for column in zip(*((line.x, line.y) for line in lines), strict=True))
        low, high = max(0.5, float(np.quantile(aucs, LEAST_AUC))), float(aucs.max())
        margin = 0.04 * (high - low)
        shown = ratios[aucs >= low]
        for panel in panels:
            panel.set(xlim=(low - margin, high + margin), ylim=(shown.min() / 1.6, 1.6))
        return
    logarithmic = plan.x == ROWS and "x" in plan.logarithmic
    first = HUNDREDTH if logarithmic else TENTH
    later = np.concatenate([line.y[line.x >= first * line.x.max()] for line in lines])
    low, high = float(np.quantile(later, LOWEST)), float(later.max())
    margin = 0.05 * (high - low)
    for panel in panels:
        panel.set_ylim(low - margin, high + margin)
        if logarithmic:
            panel.set_xlim(left=first / 10 * max(line.x.max() for line in lines))
    if plan.x == SECONDS:
        seconds = np.concatenate([line.x for line in lines])
        for panel in panels:
            panel.set_xlim(seconds.min() / 1.3, seconds.max() * 1.3)


def _name_lines(panel: Any, lines: Mapping[str, PlotLine], found: Results) -> None:
    """Write the name of each curve beside its end; names that would overlap are moved apart."""
    low, high = panel.get_ylim()
    ends = sorted((float(line.y[-1] - low) / (high - low), method) for method, line in lines.items())
    place = -GAP
    places = [place := max(place + GAP, end) for end, _ in ends]
    top = 1.0
    for at in reversed(range(len(places))):
        places[at] = top = min(places[at], top)
        top -= GAP
    for (_, method), place in zip(ends, places, strict=True):
        words = {"transform": panel.transAxes, "va": "center", "fontsize": 10, "color": _dark(method)}
        panel.text(1.02, place, found.label(method), **words)


def _name_missing(panel: Any, plan: Plan, names: Sequence[str]) -> None:
    """Say which methods have no line, where the lines of a plot leave room."""
    if names:
        across, align = (0.03, "left") if plan.y == RATIO else (0.97, "right")
        words = {"transform": panel.transAxes, "ha": align, "fontsize": 9, "style": "italic"}
        panel.text(across, 0.9 if plan.y == RATIO else 0.05, f"not run: {', '.join(names)}", **words)


def _style(method: str) -> dict[str, Any]:
    look = LOOKS[method]
    dashes = (0, look.dashes) if look.dashes else "-"
    return {
        "color": COLOURS[method],
        "linestyle": dashes,
        "linewidth": look.width,
        "marker": look.marker,
        "markersize": 4 + look.width,
        "markeredgecolor": "white",  # so that it shows on its own line
        "markeredgewidth": 0.5,
    }


def _dark(method: str) -> tuple[float, ...]:
    """Return a darker shade of the method's colour, in which words are readable."""
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(COLOURS[method]))


def _legend(page: Any, plan: Plan, found: Results) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **_style(method)) for method in plan.methods]
    names = [found.label(method) for method in plan.methods]
    words = {"loc": "outside lower center", "frameon": False, "fontsize": 11, "handlelength": 2.7, "columnspacing": 1.0}
    page.legend(handles, names, ncols=len(names), **words)


def _page(wide: int, high: int) -> tuple[Any, list[list[Any]]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('Figures need the package matplotlib: pip install "rarestream[plot]"') from None
    page = Figure(figsize=(WIDTH if wide > 1 else 6.4, HEIGHT * high + 1.3), layout="constrained")
    panels = page.subplots(high, wide, squeeze=False)
    for panel in panels.flat:
        panel.tick_params(labelsize=10)
        panel.title.set_fontsize(11)
    return page, [list(line) for line in panels]


def toy() -> tuple[Any, Any]:
    """Return the points of figure 1 and their labels.

    They are ours: the paper's had 15 positive labels for 14 positive points (B11), so its AUC is of a mislabelled set.
    """
    generator = np.random.default_rng(3)
    labels = np.repeat(np.array([1, -1], np.int8), 14)
    return generator.normal([(-0.45, 0.45)] * 14 + [(0.45, -0.45)] * 14, 0.7), labels


def _toy() -> Any:
    """Draw a line as classifier, and the ROC curve of its scores."""
    points, labels = toy()
    scores = points @ (-1.0, 1.0)
    page, ((plane, curve),) = _page(2, 1)
    reach = float(np.abs(points).max()) * 1.1
    plane.fill_between([-reach, reach], [-reach, reach], reach, color=COLOURS["ftrl_auc"], alpha=0.12, linewidth=0)
    plane.fill_between([-reach, reach], -reach, [-reach, reach], color=COLOURS["spam_l1"], alpha=0.12, linewidth=0)
    plane.plot([-reach, reach], [-reach, reach], color="black", linewidth=1)
    for sign, method, marker in ((1, "ftrl_auc", "o"), (-1, "spam_l1", "s")):
        mine = labels == sign
        plane.plot(*points[mine].T, marker, color=COLOURS[method], markersize=4, label=f"y = {sign:+d}")
    plane.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="x1", ylabel="x2")
    plane.set_title("w = (-1, 1)", fontsize=9)
    plane.legend(fontsize=7)
    ranked = labels[np.argsort(-scores)] > 0
    tpr = np.concatenate([[0], np.cumsum(ranked) / ranked.sum()])
    fpr = np.concatenate([[0], np.cumsum(~ranked) / (~ranked).sum()])
    curve.fill_between(fpr, tpr, color=COLOURS["ftrl_auc"], alpha=0.12, linewidth=0, step="post")
    curve.step(fpr, tpr, where="post", color=COLOURS["ftrl_auc"])
    curve.plot([0, 1], [0, 1], color="grey", linewidth=0.7)
    curve.set(xlabel="false positive rate", ylabel="true positive rate")
    curve.set_title(f"AUC = {auc(labels, scores):.3f}", fontsize=9)
    page.suptitle("Figure 1: a classifier and its ROC curve", fontsize=10)
    page.supxlabel("Points of our own: the paper's had 15 positive labels for 14 positive points (B11).", fontsize=7)
    return page
