"""rarestream threshold: from which score on rows are called positive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options, outputs
from rarestream.cli.evaluate import ModelPath, Scores, SomeData
from rarestream.cli.parser import Option, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rarestream.metrics import Decision, Estimate

Fpr = Annotated[float | None, Option("--fpr", metavar="F", help="Maximum false-positive rate, such as 0.01.")]
Precision = Annotated[float | None, Option("--precision", metavar="P", help="Minimum precision.")]
Recall = Annotated[float | None, Option("--recall", metavar="R", help="Minimum recall.")]
Share = Annotated[float | None, Option("--share", metavar="S", help="Maximum share of rows to call positive.")]
Alerts = Annotated[
    float | None,
    Option("--alerts-per-day", metavar="N", help="Maximum number of rows a day to call positive."),
]
RowsPerDay = Annotated[float | None, Option("--rows-per-day", metavar="M", help="Number of rows to be scored a day.")]
Days = Annotated[float | None, Option("--days", metavar="D", help="Number of days that DATA cover.")]
Time = Annotated[
    str | None,
    Option("--time", metavar="COLUMN", help="Count the days by this column: ISO dates, or seconds since 1970."),
]
CostFalsePositive = Annotated[
    float | None, Option("--cost-false-positive", metavar="A", help="Cost of a negative that is called positive.")
]
CostMissed = Annotated[
    float | None, Option("--cost-missed", metavar="B", help="Cost of a positive that is not called positive.")
]
Save = Annotated[bool, Option("--save", help="Store the threshold in MODEL, for predict --label.")]

RULES = ("--fpr", "--precision", "--recall", "--share", "--alerts-per-day")


def threshold(
    model: ModelPath = None,
    data: SomeData = None,
    fpr: Fpr = None,
    precision: Precision = None,
    recall: Recall = None,
    share: Share = None,
    alerts_per_day: Alerts = None,
    rows_per_day: RowsPerDay = None,
    days: Days = None,
    time: Time = None,
    cost_false_positive: CostFalsePositive = None,
    cost_missed: CostMissed = None,
    save: Save = False,
    scores: Scores = None,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Choose the score from which rows are called positive.

    Exactly one rule is needed: --fpr, --precision, --recall, --share, --alerts-per-day, or both costs. Shows what rates
    the threshold has, with 95 % intervals for new rows. Use rows that were not learned.
    """
    from rarestream.evaluate import decide_on_scores
    from rarestream.metrics.thresholds import Wanted
    from rarestream.model import Model

    targets = {"fpr": fpr, "precision": precision, "recall": recall, "share": share, "alerts_per_day": alerts_per_day}
    rule = _checked(targets, rows_per_day, days, time, cost_false_positive, cost_missed)
    learned: bool | None = None  # unknown for scores from a file
    if scores is not None:
        if model is not None or data:
            raise UsageError("cannot be combined with MODEL and DATA.", "--scores")
        if save or time is not None:
            raise UsageError("needs MODEL and DATA.", "--save" if save else "--time")
        options.check_paths([scores])
        decision = decide_on_scores(scores, Wanted.of("threshold", **rule), reading.settings().get("positive"))
    else:
        if model is None or not data:
            raise UsageError("Missing arguments: MODEL and DATA, or --scores FILE.")
        loaded = Model.load(model)
        options.check_paths(data)
        if save:
            outputs.for_model(model, outputs.files_of(data), False, resumed=model)
        settings = reading.settings_for(loaded, data)
        if time is not None:
            rule["days"] = _days(data, settings, time, reading)
        stream = reading.open(data, settings)
        learned = options.warn_if_learned(loaded, data, "and all figures look too good")
        decision = loaded.threshold_for(stream, **rule, save=save)
        options.print_notes(stream)
        options.warn_of_refused(stream.refused, stream.refusals)
        if save:
            loaded.save(model, loaded.kind)
    if json:
        look.print_json({**decision.record(), "learned": learned, "saved": save})
    else:
        _show(decision, None if model is None else (model, data or []), save)


def _checked(
    targets: dict[str, float | None],
    rows_per_day: float | None,
    days: float | None,
    time: str | None,
    cost_false_positive: float | None,
    cost_missed: float | None,
) -> dict[str, Any]:
    """The arguments of `threshold_for`; UsageError if the options contradict each other."""
    given = [flag for flag, value in zip(RULES, targets.values(), strict=True) if value is not None]
    costs = [flag for flag, value in _costs(cost_false_positive, cost_missed) if value is not None]
    if len(costs) == 1:
        other = "--cost-missed" if costs[0] == "--cost-false-positive" else "--cost-false-positive"
        raise UsageError(f"needs {other} too: a threshold is chosen by both.", costs[0])
    if len(given) > 1 or not (given or costs):
        got = f"got {' and '.join(given)}" if given else "got none"
        ways = f"{', '.join(RULES)}, or --cost-false-positive and --cost-missed"
        raise UsageError(f"Pass exactly one rule: {ways}; {got}.")
    for flag, value in zip(RULES[:-1], targets.values(), strict=False):
        whole = flag in ("--precision", "--recall")
        if value is not None and not (0 < value < 1 or (whole and value == 1)):
            allowed = "above 0 and at most 1" if whole else "above 0 and below 1"
            raise UsageError(f"must be {allowed}, such as 0.01 for one per cent, got {value:g}.", flag)
    daily = (("--rows-per-day", rows_per_day), ("--days", days), ("--time", time))
    numbers = (("--alerts-per-day", targets["alerts_per_day"]), *daily[:2], *_costs(cost_false_positive, cost_missed))
    for flag, value in numbers:
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"must be a number above 0, got {value:g}.", flag)
    ways_of_days = [flag for flag, value in daily if value is not None]
    if len(ways_of_days) > 1:
        raise UsageError(f"cannot be combined with {ways_of_days[1]}.", ways_of_days[0])
    if targets["alerts_per_day"] is not None and not ways_of_days:
        raise UsageError("needs the rows a day: --rows-per-day M, --days D or --time COLUMN.", "--alerts-per-day")
    both = None if cost_false_positive is None or cost_missed is None else (cost_false_positive, cost_missed)
    return {**targets, "rows_per_day": rows_per_day, "days": days, "costs": both}


def _costs(false_positive: float | None, missed: float | None) -> tuple[tuple[str, float | None], ...]:
    return ("--cost-false-positive", false_positive), ("--cost-missed", missed)


def _days(data: Sequence[str], settings: dict[str, Any], column: str, reading: options.ReadingLabelled) -> float:
    """The days that the data cover by a column, which is read in a pass of its own, as it may be a feature too."""
    from rarestream.evaluate import days_covered

    try:
        stream = reading.open(data, {**settings, "tag": column})
    except UsageError:
        raise UsageError("only tables have columns with names; use --days D or --rows-per-day M.", "--time") from None
    if not stream.replayable:
        raise UsageError("needs a file, because it is read twice; use --days D or --rows-per-day M.", "--time")
    return days_covered(stream, column)


def _show(decision: Decision, of: tuple[Path, Sequence[str]] | None, saved: bool) -> None:
    ink = look.stdout()
    ink.line(f"threshold {ink(f'{decision.threshold:.6g}', 'bold', 'cyan')}: {decision.wording}")
    rates = [
        ("false-positive rate", decision.fpr),
        ("recall", decision.recall),
        ("precision", decision.precision),
        ("rows called positive", decision.share),
    ]
    cells = [[name, *_cells(rate, percent)] for name, rate in rates]
    if decision.alerts_per_day is not None:
        cells.append(["alerts a day", *_cells(decision.alerts_per_day, number)])
    if decision.cost is not None:
        cells.append(["cost per 1,000 rows", *_cells(decision.cost, lambda cost: number(1000 * cost))])
    lines = look.table(cells, ["", "on these rows", "95 % interval on new rows"], left=(0, 2))
    ink.line(ink(lines[0], "bold"))
    for line in lines[1:]:
        ink.line(line)
    counted = f"{look.counted(decision.rows, 'row')}, {look.count(decision.positives)} positive"
    daily = "" if decision.rows_per_day is None else f", {number(decision.rows_per_day)} rows a day"
    ink.line(f"{counted} ({look.share(decision.positives, decision.rows)}){daily}")
    if of is None:
        ink.message(f"Call a row positive when its score is at least {decision.threshold!r}.")
    elif saved:
        ink.message(f"Saved. To label rows with it: {look.quoted(['rarestream', 'predict', of[0], 'DATA', '--label'])}")
    else:
        ink.message("Nothing was saved. With --save it is stored in the model, and predict --label uses it.")


def _cells(value: Estimate, shown: Any) -> list[str]:
    return [shown(float(value)), f"{shown(value.low)} to {shown(value.high)}"]


def percent(rate: float) -> str:
    return look.share(rate, 1)


def number(value: float) -> str:
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else look.count(value)
