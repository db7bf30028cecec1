"""rarestream inspect: what a model file holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.evaluate.namespaces import Weight
    from rarestream.model import Model

MOST_NAMESPACES = 30
WIDEST_NAMESPACE = 30  # characters

Top = Annotated[int, Option("--top", "-n", metavar="N", help="Number of weights to show, the largest.", min=0)]
Namespace = Annotated[
    str | None,
    Option("--namespace", metavar="NAME", help="Show only the weights of this namespace, such as a column of a table."),
]
On = Annotated[
    list[str] | None,
    Option("--on", metavar="DATA", help="Measure the share of each namespace on these rows; may be repeated."),
]
Other = Annotated[
    Path | None, Option("--diff", metavar="OTHER", help="Show the weights that differ most from those of this model.")
]


def inspect(
    model: options.ModelPath,
    top: Top = 10,
    namespace: Namespace = None,
    on: On = None,
    diff: Other = None,
    of_class: options.OfClass = None,
    json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Show the learner, settings, counts and largest weights of a model file.

    For a model of named features, also how much each namespace, such as a column, counts: by its squared weights or,
    with --on DATA, by the variance of what it adds to the scores of these rows.
    """
    from rarestream import modelfile
    from rarestream.evaluate.namespaces import changed_weights, largest_weights, namespace_shares
    from rarestream.features import Hashed
    from rarestream.model import Model

    header, _ = modelfile.read(model)
    if "models" in header and of_class is None:
        from rarestream.cli import many_classes

        many_classes.inspect(model, json)
        return
    loaded = options.load_model(model, of_class)
    other = None if diff is None else Model.load(diff)
    if on and not isinstance(loaded.features, Hashed):
        raise UsageError("the features of this model are column numbers, which have no namespaces.", "--on")
    facts = _facts(model, header, loaded)
    if other is None:
        weights = largest_weights(loaded, top, namespace)
    else:
        weights = changed_weights(loaded, other, top, namespace)
    facts["top"] = _records(loaded, other, weights)
    if isinstance(loaded.features, Hashed):
        shares = namespace_shares(loaded, None if not on else _stream(loaded, on, reading))
        facts["namespaces"] = [share._asdict() for share in shares]
        facts["shares_of"] = "variance" if on else "squared weights"
    if json:
        look.print_json(facts)
        return
    _show_facts(model, facts)
    if top and facts["top"]:
        _show_weights(facts, diff)
    elif diff is not None and top:
        look.stdout().line(f"\nThe weights are those of {plain(diff)}.")
    if namespace is None and diff is None and facts.get("namespaces"):
        _show_namespaces(facts, on)


def _stream(model: Model, data: list[str], reading: options.Reading) -> Iterator[Block]:
    """The rows of --on, whatever their labels; then what there is to say of them."""
    options.check_paths(data)
    stream = reading.open(data, {**reading.settings_for(model, data), "labels": "optional"})
    yield from stream
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)


def _facts(path: Path, header: dict[str, Any], model: Model) -> dict[str, Any]:
    from rarestream.evaluate import column_base

    return {
        "model": str(path),
        "bytes": path.stat().st_size,
        "scoring_bytes": len(model.to_bytes("scoring")),
        "kind": model.kind,
        "format": header["format"],
        "rarestream": header.get("rarestream"),
        "learner": {"name": model.learner.name, "settings": model.learner.settings},
        "leader": {"name": model.leader.name, "settings": model.leader.settings},
        "chosen_by": model.chosen_by and model.chosen_by._asdict(),
        "scale": model.scale,
        "dtype": model.dtype,
        "rows": model.rows,
        "positives": model.positives,
        "n_features": model.n_features,
        "nonzeros": model.nonzeros,
        "pruned_from": model.pruned_from,
        "intercept": model.intercept,
        "threshold": model.threshold,
        "calibration": _calibration(model),
        "decision": None if model.decision is None else model.decision.record(),
        "metrics": model.metrics if "models" in header else header.get("metrics", {}),
        "looks_sorted": model.order.suspicious,
        "source": model.source,
        # Without a file, columns are those of the arrays that a program passed in: from 0.
        "zero_based": column_base(model.source) == 0,
        "features": _features(model),
    }


def _calibration(model: Model) -> dict[str, Any] | None:
    """What makes probabilities of scores."""
    known = model.calibration
    if known is None:
        return None
    return {
        "slope": known.slope,
        "intercept": known.intercept,
        "rows": known.rows,
        "positives": known.positives,
        "enough": known.enough,
        "negatives_kept": model.negatives_kept,
    }


def _features(model: Model) -> dict[str, Any] | None:
    """The facts of a hashed feature space."""
    from rarestream.features import Hashed, name_problem

    space = model.features
    if not isinstance(space, Hashed):
        return None
    table = space.names
    return {
        "bits": space.bits,
        "names": None if table is None else len(table),
        "collisions": None if table is None else table.collisions,
        "names_full": table is not None and table.full,
        "advice": " ".join(name_problem(space) or ()) or None,
        "plan": None if space.plan is None else space.plan.settings(),
    }


def _records(model: Model, other: Model | None, weights: Sequence[Weight]) -> list[dict[str, Any]]:
    """The weights for JSON, with the names of their features."""
    import numpy as np

    from rarestream.evaluate import column_base
    from rarestream.features import Hashed

    features = np.array([weight.feature for weight in weights], np.int32)
    named: list[dict[str, Any]]
    if isinstance(model.features, Hashed):
        theirs = None if other is None else other.features
        names = model.features.shown(features, theirs if isinstance(theirs, Hashed) else None)
        named = [{"name": name, "slot": weight.feature} for name, weight in zip(names, weights, strict=True)]
    else:
        base = column_base(model.source)
        named = [{"column": weight.feature + base} for weight in weights]
    return [
        {
            **name,
            "weight": weight.weight,
            **({} if weight.other is None else {"other": weight.other, "change": weight.change}),
        }
        for name, weight in zip(named, weights, strict=True)
    ]


def _show_facts(path: Path, facts: dict[str, Any]) -> None:
    ink = look.stdout()
    ink.line(f"{ink(plain(path), 'bold')}  {look.size(facts['bytes'])}, {facts['kind']}, format {facts['format']}")
    learner, leader, metrics, chosen = facts["learner"], facts["leader"], facts["metrics"], facts["chosen_by"]
    resumable = facts["kind"] == "resumable"
    lines = [
        *([("", f"for scoring only {look.size(facts['scoring_bytes'])}: rarestream prune")] if resumable else []),
        ("learner", f"{learner['name']}  {ink(look.assignments(learner['settings'], '  '), 'dim')}"),
        *(
            [("leader", f"{leader['name']}  {ink(look.assignments(leader['settings'], '  '), 'dim')}")]
            if leader != learner
            else []
        ),
        *([("chosen by", f"{plain(chosen['name'])} after {look.count(chosen['rows'])} rows")] if chosen else []),
        ("scale", f"{facts['scale']}, state in {facts['dtype']}"),
        (
            "learned",
            f"{look.counted(facts['rows'], 'row')}, {look.count(facts['positives'])} positive "
            f"({look.share(facts['positives'], facts['rows'])})",
        ),
        *_weight_lines(facts),
    ]
    if "progressive_auc" in metrics:
        auc = ink(f"{metrics['progressive_auc']:.4f}", "bold", "cyan")
        lines.append(("AUC", f"{auc} progressive [{metrics['auc_low']:.4f}, {metrics['auc_high']:.4f}]"))
        if facts["looks_sorted"]:
            lines.append(("", "not meaningful: the rows looked sorted by label when they were learned"))
    lines += [*_calibration_lines(facts), *_threshold_lines(facts), *_source_lines(facts["source"])]
    lines.append(("written by", f"rarestream {plain(facts['rarestream'])}"))
    for word, text in lines:
        for number, part in enumerate(look.wrap(text, look.width() - 14)):
            ink.line(f"  {'' if number else word:<12}{part}")


def _calibration_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    known = facts["calibration"]
    if known is None:
        return [("calibration", "none: rarestream calibrate")]
    sign = "-" if known["intercept"] < 0 else "+"
    text = f"log odds = {known['slope']:.4g} score {sign} {abs(known['intercept']):.4g}"
    kept = known["negatives_kept"]
    return [("calibration", text), *([] if kept == 1 else [("", f"{look.share(kept, 1)} of the negatives were kept")])]


def _threshold_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    from rarestream.metrics import Decision

    if facts["decision"] is None:
        what = ", where the probability is 1/2" if (facts["calibration"] or {}).get("enough") else ""
        return [("threshold", f"{facts['threshold']:.4g}{what}")]
    decision = Decision.from_record(facts["decision"])
    rates = (("false-positive rate", decision.fpr), ("recall", decision.recall), ("precision", decision.precision))
    shown = [f"{name} {_percent(rate)} [{_percent(rate.low)}, {_percent(rate.high)}]" for name, rate in rates]
    after = "" if decision.after_rows is None else f", after {look.counted(decision.after_rows, 'row')} were learned"
    return [
        ("threshold", f"{decision.threshold:.6g}, stored: {decision.wording}"),
        *(("", line) for line in shown),
        ("", f"chosen on {look.counted(decision.rows, 'row')}, {look.count(decision.positives)} positive{after}"),
    ]


def _percent(rate: float) -> str:
    return look.share(rate, 1)


def _source_lines(source: dict[str, Any]) -> list[tuple[str, str]]:
    from rarestream.evaluate import remembered

    kept = remembered(source)
    if kept is None:
        return []
    files, place = kept
    names = ", ".join(plain(entry["name"]) for entry in files[:3]) + (
        f" and {len(files) - 3} more" if len(files) > 3 else ""
    )
    shuffle = place.settings["shuffle"]
    shuffled = "" if shuffle is None else f", shuffled with seed {shuffle}"
    where = "complete" if place.complete else f"stopped after row {look.count(place.rows)}"
    return [("data", f"{names}{shuffled}"), ("", f"pass {place.number} of {place.passes}, {where}")]


def _weight_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    pruned = "" if facts["pruned_from"] is None else f"; pruned from {look.count(facts['pruned_from'])}"
    nonzeros, features = look.count(facts["nonzeros"]), facts["features"]
    if features is None:
        share = look.share(facts["nonzeros"], facts["n_features"])
        columns = look.counted(facts["n_features"], "column")
        return [("weights", f"{nonzeros} non-zero, of {columns} ({share}){pruned}")]
    space = f"hashed to {look.count(facts['n_features'])} slots ({features['bits']} bits)"
    if features["names"] is None:
        names = "names not kept"
    else:
        names = f"{look.counted(features['names'], 'name')} known, {look.count(features['collisions'])} in shared slots"
    lines = [("weights", f"{nonzeros} non-zero{pruned}"), ("features", f"{space}; {names}")]
    return lines + ([("", features["advice"])] if features["advice"] else [])


def _show_weights(facts: dict[str, Any], other: Path | None) -> None:
    ink = look.stdout()
    rows = facts["top"]
    value = "weight" if other is None else "change"
    largest = max(abs(row[value]) for row in rows)
    named = facts["features"] is not None
    what = "largest weight" if other is None else "largest difference"
    of = "" if other is None else f" from {plain(other)}"
    count = ""
    if not named:
        count = f"; columns count from {'0' if facts['zero_based'] else '1'}"
        count += ", as in the data" if facts["source"] else ""
    ink.line()
    ink.line(f"{look.counted(len(rows), what)}{of}{count}")
    words = ["weight"] if other is None else ["weight", "other", "change"]
    first = "feature" if named else "column"
    numbers = look.table([[f"{row[word]:+.4g}" for word in words] for row in rows], words)
    names = [str(row["name"] if named else row["column"]) for row in rows]
    room = look.width() - max(map(len, numbers)) - 8
    wide = min(max(map(len, [first, *names])), room - 16)
    cells = [[look.cut(name, wide), line] for name, line in zip(names, numbers[1:], strict=True)]
    lines = look.table(cells, [first, numbers[0]], left=(0,) if named else ())
    ink.line("  " + ink(lines[0], "bold"))
    wide = max(map(len, lines))
    half = max(8, min(30, (look.width() - wide - 6) // 2))
    for line, row in zip(lines[1:], rows, strict=True):
        ink.line(f"  {line:<{wide}}  {look.signed_bar(ink, row[value], largest, half)}")


def _show_namespaces(facts: dict[str, Any], on: list[str] | None) -> None:
    ink = look.stdout()
    rows = facts["namespaces"]
    measured = "of the variance of the scores, measured on these rows" if on else "of the squared weights"
    ink.line()
    ink.line(f"share of each namespace {measured}" + ("" if on else "; to measure it on rows: --on DATA"))
    shown = rows[:MOST_NAMESPACES]
    cells = [[_namespace(row["namespace"]), look.count(row["weights"]), look.share(row["share"], 1)] for row in shown]
    lines = look.table(cells, ["namespace", "weights", "share"], left=(0,))
    ink.line("  " + ink(lines[0], "bold"))
    wide = max(map(len, lines))
    cells_of_bar = max(8, min(40, look.width() - wide - 4))
    for line, row in zip(lines[1:], shown, strict=True):
        ink.line(f"  {line:<{wide}}  {ink(look.bar(row['share'], rows[0]['share'], cells_of_bar), 'cyan')}".rstrip())
    if len(rows) > len(shown):
        ink.line(f"  and {look.count(len(rows) - len(shown))} more; --json has all of them")


def _namespace(name: str | None) -> str:
    if name is None:
        return "(names not known)"
    return plain(look.cut(name, WIDEST_NAMESPACE)) or "(none)"
