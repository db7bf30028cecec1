"""rarestream inspect: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options
from rarestream.cli.parser import Option
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.model import Model

Top = Annotated[int, Option("--top", "-n", metavar="N", help="Number of weights to show, the largest.", min=0)]
Other = Annotated[
    Path | None, Option("--diff", metavar="OTHER", help="Show the weights that differ most from those of this model.")
]


def inspect(model: options.ModelPath, top: Top = 10, diff: Other = None, json: options.Json = False) -> None:
    """Show the learner, settings, counts and largest weights of a model file."""
    from rarestream import modelfile
    from rarestream.model import Model

    header, _ = modelfile.read(model)
    loaded = Model.load(model)
    other = None if diff is None else Model.load(diff)
    facts = _facts(model, header, loaded)
    base = 0 if facts["zero_based"] else 1
    facts["top"] = _top(loaded, top, base) if other is None else _changed(loaded, other, top, base)
    if json:
        look.print_json(facts)
        return
    _show_facts(model, facts)
    if top and facts["top"]:
        _show_weights(facts, diff)


def _facts(path: Path, header: dict[str, Any], model: Model) -> dict[str, Any]:
    from rarestream.evaluate import remembered

    kept = remembered(model.source)
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
        "metrics": header.get("metrics", {}),
        "looks_sorted": model.order.suspicious,
        "source": model.source,
        # Without a file, columns are those of the arrays that a program passed in: from 0.
        "zero_based": kept is None or bool(kept[1].settings.get("zero_based")),
    }


def _top(model: Model, top: int, base: int) -> list[dict[str, Any]]:
    import numpy as np

    weights = model.coef
    living = np.flatnonzero(weights)
    order = living[np.argsort(-np.abs(weights[living]), kind="stable")][:top]
    return [{"column": int(j) + base, "weight": float(weights[j])} for j in order]


def _changed(model: Model, other: Model, top: int, base: int) -> list[dict[str, Any]]:
    import numpy as np

    mine, theirs = np.zeros((2, max(model.n_features, other.n_features)))
    mine[: model.n_features] = model.coef
    theirs[: other.n_features] = other.coef
    moved = np.flatnonzero(mine != theirs)
    order = moved[np.argsort(-np.abs(mine[moved] - theirs[moved]), kind="stable")][:top]
    return [
        {
            "column": int(j) + base,
            "weight": float(mine[j]),
            "other": float(theirs[j]),
            "change": float(mine[j] - theirs[j]),
        }
        for j in order
    ]


def _show_facts(path: Path, facts: dict[str, Any]) -> None:
    ink = look.stdout()
    ink.line(f"{ink(plain(path), 'bold')}  {look.size(facts['bytes'])}, {facts['kind']}, format {facts['format']}")
    learner, leader, metrics, chosen = facts["learner"], facts["leader"], facts["metrics"], facts["chosen_by"]
    resumable = facts["kind"] == "resumable"
    pruned = "" if facts["pruned_from"] is None else f"; pruned from {look.count(facts['pruned_from'])}"
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
        (
            "weights",
            f"{look.count(facts['nonzeros'])} non-zero, of {look.counted(facts['n_features'], 'column')}"
            f" ({look.share(facts['nonzeros'], facts['n_features'])}){pruned}",
        ),
    ]
    if "progressive_auc" in metrics:
        auc = ink(f"{metrics['progressive_auc']:.4f}", "bold", "cyan")
        lines.append(("AUC", f"{auc} progressive [{metrics['auc_low']:.4f}, {metrics['auc_high']:.4f}]"))
        if facts["looks_sorted"]:
            lines.append(("", "not meaningful: the rows looked sorted by label when they were learned"))
    lines += [("threshold", f"{facts['threshold']:.4g}"), *_source_lines(facts["source"])]
    lines.append(("written by", f"rarestream {plain(facts['rarestream'])}"))
    for word, text in lines:
        for number, part in enumerate(look.wrap(text, look.width() - 14)):
            ink.line(f"  {'' if number else word:<12}{part}")


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


def _show_weights(facts: dict[str, Any], other: Path | None) -> None:
    ink = look.stdout()
    rows = facts["top"]
    value = "weight" if other is None else "change"
    largest = max(abs(row[value]) for row in rows)
    start = "0" if facts["zero_based"] else "1"
    what = "largest weight" if other is None else "largest difference"
    of = "" if other is None else f" from {plain(other)}"
    ink.line()
    ink.line(
        f"{look.counted(len(rows), what)}{of}; columns count from {start}"
        + (", as in the data" if facts["source"] else "")
    )
    cells = [
        [str(row["column"]), *(f"{row[word]:+.4g}" for word in ("weight", "other", "change") if word in row)]
        for row in rows
    ]
    heading = ["column", "weight"] if other is None else ["column", "weight", "other", "change"]
    lines = look.table(cells, heading)
    ink.line("  " + ink(lines[0], "bold"))
    wide = max(map(len, lines))
    half = max(8, min(30, (look.width() - wide - 6) // 2))
    for line, row in zip(lines[1:], rows, strict=True):
        drawn = look.bar(row[value], largest, half)
        if row[value] < 0:
            shape = ink(look.bar_left(row[value], largest, half), "red") + "│"
        else:
            shape = " " * half + "│" + ink(drawn, "green")
        ink.line(f"  {line:<{wide}}  {shape}")
