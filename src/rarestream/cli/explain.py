"""rarestream explain: what each feature adds to the score of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rarestream.cli import look, options
from rarestream.cli.parser import Option
from rarestream.errors import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rarestream.explaining import Explanation
    from rarestream.model import Model
    from rarestream.readers import Stream

Rows = Annotated[
    list[int] | None,
    Option("--row", metavar="N", help="Number of the row, from 1; may be repeated.", min=1, default="1"),
]
Top = Annotated[int, Option("--top", "-n", metavar="K", help="Number of terms to show, the largest.", min=1)]

NARROWEST_BAR, WIDEST_BAR = 6, 20  # cells on each side


class _Row(NamedTuple):
    """A row that is explained."""

    number: int  # from 1
    place: str | None  # file and line
    label: int | None  # -1 or +1
    explanation: Explanation


def explain(
    model: options.ModelPath,
    data: options.Data,
    row: Rows = None,
    top: Top = 20,
    of_class: options.OfClass = None,
    json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Show what each feature adds to the score of a row.

    A score is the sum of value times weight over the features of the row, as the model scales it. The terms are
    sorted by what they add, and sum to the score.
    """
    loaded = options.load_model(model, of_class)
    options.check_paths(data)
    settings = {**reading.settings_for(loaded, data), "labels": "optional"}
    if of_class is not None:  # whose labels are not those of two classes
        settings["classes"] = "all"
    stream = reading.open(data, settings)
    names = _column_base(loaded)
    for number, found in enumerate(_rows(loaded, stream, sorted(set(row or [1])))):
        if json:
            look.print_json(_record(found, top, names))
        else:
            if number:
                look.stdout().line()
            _show(found, top, names, loaded.label_threshold)
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)


def _rows(model: Model, stream: Stream, numbers: Sequence[int]) -> Iterator[_Row]:
    """The rows of these numbers, which ascend, explained."""
    from rarestream.errors import DataError

    before, left = 0, list(numbers)
    for block in stream:
        while left and left[0] <= before + len(block):
            at = left.pop(0) - before - 1
            label = None if block.labels is None else int(block.labels[at])
            yield _Row(before + at + 1, stream.where(at), label, model.explain(block[at : at + 1])[0])
        before += len(block)
        if not left:
            return
    raise DataError(f"explain: there is no row {look.count(left[0])}: the data have {look.counted(before, 'row')}.")


def _column_base(model: Model) -> int | None:
    """The number of the first column where features are columns; None: they have names."""
    from rarestream.evaluate import column_base
    from rarestream.features import Hashed

    return None if isinstance(model.features, Hashed) else column_base(model.source)


def _name(name: str, base: int | None) -> str:
    return name if base is None else f"column {int(name) + base}"


def _record(row: _Row, top: int, base: int | None) -> dict[str, Any]:
    terms = row.explanation.terms
    rest = terms[top:]
    return {
        "row": row.number,
        "place": row.place,
        "label": row.label,
        "score": row.explanation.score,
        "terms": [{**term._asdict(), "name": _name(term.name, base)} for term in terms[:top]],
        "other_terms": len(rest),
        "other_contribution": sum(term.contribution for term in rest),
    }


def _show(row: _Row, top: int, base: int | None, threshold: float) -> None:
    ink = look.stdout()
    score, terms = row.explanation
    label = {1: ", labelled positive", -1: ", labelled negative"}.get(row.label or 0, "")
    side = "above" if score >= threshold else "below"
    where = f"row {look.count(row.number)}"
    ink.line(ink(where if row.place is None else f"{plain(row.place)}, {where}", "bold"))
    ink.line(f"  score {ink(f'{score:+.4f}', 'bold', 'cyan')}, {side} the threshold {threshold:+.4g}{label}")
    shown, rest = terms[:top], terms[top:]
    names = [_name(term.name, base) for term in shown]
    cells = [[f"{term.value:.4g}", f"{term.weight:+.4g}", f"{term.contribution:+.4f}"] for term in shown]
    foot = [["", "", f"{score:+.4f}"]]
    under = ["sum: the score"]
    if rest:
        foot.insert(0, ["", "", f"{sum(term.contribution for term in rest):+.4f}"])
        under.insert(0, f"({look.counted(len(rest), 'other term')})")
    figures = look.table([*cells, *foot], ["value", "weight", "adds"])
    wide = max(map(len, figures))
    room = look.width() - wide - 7
    left = min(room - 2 * NARROWEST_BAR, max(map(len, [*names, *under])))
    half = min(WIDEST_BAR, (room - left) // 2)
    largest = max((abs(term.contribution) for term in shown), default=0.0)
    bars = ["", *(look.signed_bar(ink, term.contribution, largest, half) for term in shown), *("" for _ in foot)]
    for number, (name, line, bar) in enumerate(zip(["feature", *names, *under], figures, bars, strict=True)):
        text = f"{look.cut(name, left):<{left}}  {line:>{wide}}"
        ink.line(f"  {text if number else ink(text, 'bold')}  {bar}".rstrip())
