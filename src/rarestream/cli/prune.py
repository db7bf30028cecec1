"""rarestream prune: a model cut to size, and what that costs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import look, options

if TYPE_CHECKING:
    from rarestream.model import Model
    from rarestream.pruning import Path as SizePath
    from rarestream.readers import Stream

LINES = 16  # of the table: as many sizes are shown

ModelPath = Annotated[Path, typer.Argument(help="A model file, as `train` writes it.", metavar="MODEL")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file to write; without it nothing is written.", metavar="OUT")
]
Nonzeros = Annotated[int | None, typer.Option(help="Keep so many weights, the largest.", min=0, metavar="N")]
Bytes = Annotated[
    int | None, typer.Option("--bytes", help="Keep as many as a file of so many bytes can hold.", min=0, metavar="B")
]
AucLoss = Annotated[
    float | None, typer.Option(help="Keep as few as lose no more AUC than that on the rows of --on.", metavar="E")
]
On = Annotated[
    list[str] | None,
    typer.Option("--on", help="Labelled rows to measure the AUC on; repeat for more files.", metavar="DATA"),
]
ShowPath = Annotated[bool, typer.Option("--path", help="Show the AUC at many sizes, as a table and a curve.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the AUC at many sizes: a .png or an .svg.", metavar="FILE")
]


def prune(
    model: ModelPath,
    output: Output = None,
    nonzeros: Nonzeros = None,
    bytes: Bytes = None,
    auc_loss: AucLoss = None,
    on: On = None,
    path: ShowPath = False,
    plot: Plot = None,
    zero_based: options.ZeroBased = None,
    positive: options.Positive = None,
    max_bad_rows: options.MaxBadRows = 0,
    format: options.Format = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Cut a model to size, with a known price in AUC.

    The largest weights stay as they are, the others become zero. What is written is made for scoring: it cannot be
    resumed. With --on DATA, rows that were not learned, it is said what AUC is lost.
    """
    from rarestream.evaluate import can_draw
    from rarestream.model import Model
    from rarestream.modelfile import write_whole
    from rarestream.readers import read

    asked = options.given(nonzeros=nonzeros, bytes=bytes, auc_loss=auc_loss)
    many = path or plot is not None  # the AUC at many sizes is wanted
    _check_words(asked, many, on, output, plot)
    loaded = Model.load(model)
    for target in (output, plot):
        if target is not None:
            options.check_output(target, [str(model), *(on or [])])
    if plot is not None:
        can_draw()
    found = None
    if on:
        options.check_paths(on)
        chosen = options.given(zero_based=zero_based, positive=positive, format=format)
        how = {**options.as_learned(loaded.source), **chosen}
        stream = read(on, **how, max_bad_rows=max_bad_rows, threads=threads)
        _warn_if_learned(loaded, on)
        cut, found = _measured(loaded, asked, stream, many)
        options.tell_refused(stream.refused, stream.refusals)
    else:
        cut = _cut(loaded, asked)
    if plot is not None and found is not None:
        write_whole(plot, _drawn(found, plot.suffix[1:].lower(), cut.nonzeros if asked else None))
    if output is not None:
        cut.save(output, "scoring")
    if json:
        import json as notation

        print(notation.dumps(_record(cut, found, path), allow_nan=False))
        return
    _show(loaded, cut, bool(asked), found)
    if path and found is not None:
        _show_path(found, cut.nonzeros if asked else None)
    for target in (output, plot):
        if target is not None:
            look.stdout().line(f"{look.stdout()(str(target), 'bold')} written, {look.size(target.stat().st_size)}")


def _check_words(
    asked: dict[str, Any], many: bool, on: list[str] | None, output: Path | None, plot: Path | None
) -> None:
    three = "'--nonzeros' / '--bytes' / '--auc-loss'"
    if len(asked) > 1:
        raise typer.BadParameter("only one of them says where to cut.", param_hint=three)
    if not asked and (output is not None or not many):
        raise typer.BadParameter(
            "one of them must say where to cut; --path --on DATA shows what there is to choose from.", param_hint=three
        )
    if not asked.get("auc_loss", 0.0) >= 0:
        raise typer.BadParameter(f"must be >= 0, got {asked['auc_loss']}.", param_hint="'--auc-loss'")
    if not on and (many or "auc_loss" in asked):
        word = "--auc-loss" if "auc_loss" in asked else "--path" if plot is None else "--plot"
        raise typer.BadParameter("needs labelled rows to measure the AUC on: --on DATA.", param_hint=f"'{word}'")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise typer.BadParameter(f"{plot}: draws a .png or an .svg.", param_hint="'--plot'")


def _warn_if_learned(model: Model, on: list[str]) -> None:
    from rarestream.evaluate import remembered
    from rarestream.readers.heads import recognised
    from rarestream.readers.sources import expand

    kept = remembered(model.source)
    learned = [] if kept is None else kept[0]
    if any(recognised(entry, one) for one in expand(on) for entry in learned):
        ink = look.stderr()
        ink.line(
            f"{ink('warning:', 'yellow', 'bold')} the model has learned rows of these files, so the AUC is flattered, "
            "and the loss is not that on new rows. Measure on rows kept apart."
        )


def _cut(model: Model, asked: dict[str, Any]) -> Model:
    """The model cut where --nonzeros or --bytes says, or, to be looked at, not at all."""
    try:
        return model.prune(**asked or {"nonzeros": model.nonzeros})
    except ValueError as error:  # bytes that hold no model
        said = str(error).removeprefix("Model.prune: bytes ")
        raise typer.BadParameter(said, param_hint="'--bytes'") from None


def _measured(model: Model, asked: dict[str, Any], stream: Stream, many: bool) -> tuple[Model, SizePath]:
    """The model cut to size, and AUCs among which are its own and that of the full one."""
    from rarestream.evaluate import path
    from rarestream.pruning import FIRST, spread

    if "auc_loss" in asked:
        found = path(model, stream, auc_loss=asked["auc_loss"])
        return model.prune(nonzeros=found.smallest(asked["auc_loss"])), found
    cut = _cut(model, asked)
    others = spread(FIRST, model.nonzeros) if many else []
    return cut, path(model, stream, [*others, cut.nonzeros])


def _drawn(found: SizePath, format: str, chosen: int | None) -> bytes:
    from io import BytesIO

    from rarestream.evaluate import figure

    drawn = BytesIO()
    figure(found, chosen).savefig(drawn, format=format, dpi=150)
    return drawn.getvalue()


def _record(cut: Model, found: SizePath | None, path: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "nonzeros": cut.nonzeros,
        "bytes": len(cut.to_bytes("scoring")),
        "auc": None if found is None else found[cut.nonzeros],
        "auc_full": None if found is None else found.full,
    }
    if path and found is not None:
        points = zip(found.sizes, found.aucs, strict=True)
        record["path"] = [{"nonzeros": size, "auc": auc} for size, auc in points]
    return record


def _show(model: Model, cut: Model, asked: bool, found: SizePath | None) -> None:
    ink = look.stdout()
    had, has = model.nonzeros, cut.nonzeros
    whole = has == had
    kept = f"{look.count(has)} of {look.count(had)} stay ({look.share(has, had)})"
    if whole:
        kept = f"all {look.count(had)}" + (" stay: nothing was cut" if asked else "")
    size, before = len(cut.to_bytes("scoring")), len(model.to_bytes("scoring"))
    ink.line(f"{'weights':<10}{ink(kept, 'bold')}")
    ink.line(
        f"{'file':<10}{look.size(size)} for scoring" + ("" if whole else f"; with all weights {look.size(before)}")
    )
    if found is not None:
        auc, full = found[has], found.full
        told, rows = ink(f"{auc:.4f}", "bold", "cyan"), f"{look.count(found.rows)} rows"
        line = f"{'AUC':<10}{told} on {rows}, {look.count(found.positives)} positive"
        ink.line(line + ("" if whole else f"; with all weights {full:.4f}: {_lost(full - auc)}"))
        if found.bound:
            ink.line(f"{'':<10}streamed: each within {found.bound:.1g} of the exact value")


def _lost(loss: float) -> str:
    return f"{loss:.4f} lost" if loss >= 0 else f"{-loss:.4f} gained"


def _show_path(found: SizePath, chosen: int | None) -> None:
    """A table of some sizes and a curve through all; sizes grow to the right by factors."""
    ink = look.stdout()
    ink.line()
    shown = _some(found.sizes, chosen)
    cells = [
        [look.count(size), look.share(size, found.sizes[-1]), f"{found[size]:.4f}", f"{found.full - found[size]:+.4f}"]
        for size in shown
    ]
    lines = look.table(cells, ["weights", "share", "AUC", "loss"])
    ink.line("  " + ink(lines[0], "bold"))
    for line, size in zip(lines[1:], shown, strict=True):
        ink.line("  " + (ink(f"{line}  ◂ kept", "bold") if size == chosen else line))
    ink.line()
    first = max(1, found.sizes[0])
    points = [(math.log(size / first), found[size]) for size in found.sizes if size]
    label = f" all weights {found.full:.4f} "
    ends = (look.count(first), f"{look.count(found.sizes[-1])} weights")
    for line in look.curve(points, found.full, label, look.width() - 4, ends):
        ink.line("  " + line)
    ink.line()


def _some(sizes: tuple[int, ...], chosen: int | None) -> list[int]:
    """The sizes nearest to a few that grow by the same factor, and the one that was chosen."""
    from rarestream.pruning import spread

    wanted = spread(max(1, sizes[0]), sizes[-1], LINES)
    near = {min(sizes, key=lambda size: abs(math.log((size or 0.5) / want))) for want in wanted if want}
    return sorted(near | ({sizes[-1]} if chosen is None else {sizes[-1], chosen}))
