"""rarestream prune: a smaller model, and the AUC that it loses."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.model import Model
    from rarestream.pruning import Path as SizePath
    from rarestream.pruning import Rows

LINES = 16  # of the table: as many sizes are shown

Output = Annotated[
    Path | None,
    Option("--output", "-o", metavar="OUT", help="The model file to write; without it nothing is written."),
]
Nonzeros = Annotated[
    int | None, Option("--nonzeros", metavar="N", help="Number of weights to keep, the largest.", min=0)
]
Bytes = Annotated[
    int | None, Option("--bytes", metavar="B", help="Maximum size of the file: keep as many weights as fit.", min=0)
]
AucLoss = Annotated[
    float | None,
    Option("--auc-loss", metavar="E", help="Maximum loss of AUC on the rows of --on: keep as few weights as possible."),
]
On = Annotated[
    list[str] | None,
    Option("--on", metavar="DATA", help="Labelled rows to measure the AUC on; may be repeated."),
]
Refit = Annotated[
    list[str] | None,
    Option(
        "--refit",
        metavar="DATA",
        help="The rows that the model has learned: learn them once more with only the features that are kept; may be "
        "repeated.",
    ),
]
ShowPath = Annotated[bool, Option("--path", help="Show the AUC at many sizes, as a table and a curve.")]
Plot = Annotated[
    Path | None, Option("--plot", metavar="FILE", help="Plot the AUC at many sizes, as a .png or an .svg.")
]


def prune(
    model: options.ModelPath,
    output: Output = None,
    overwrite: outputs.Overwrite = False,
    nonzeros: Nonzeros = None,
    bytes: Bytes = None,
    auc_loss: AucLoss = None,
    on: On = None,
    refit: Refit = None,
    path: ShowPath = False,
    plot: Plot = None,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Shrink a model, with a known loss of AUC.

    The largest weights are kept, the others become zero. The file written is for scoring: it cannot be resumed. With
    --on DATA, rows that were not learned, the loss of AUC is shown. With --refit DATA, the rows that were learned, the
    weights that are kept are learned anew: small models rank better so, mostly. Either kind of rows also calibrates the
    probabilities of the smaller model, which has none without them.
    """
    from rarestream.evaluate import can_draw, figure, figure_bytes
    from rarestream.evaluate import path as measured
    from rarestream.model import Model
    from rarestream.pruning import repeatable
    from rarestream.system import write_whole

    asked = options.drop_none(nonzeros=nonzeros, bytes=bytes, auc_loss=auc_loss)
    many = path or plot is not None  # the AUC at many sizes is wanted
    _check_options(asked, many, on, output, plot)
    if refit and not asked:
        raise UsageError("needs one of --nonzeros, --bytes and --auc-loss: how much to prune.", "--refit")
    loaded = Model.load(model)
    options.check_paths([*(on or []), *(refit or [])])
    reads = [model, *outputs.files_of([*(on or []), *(refit or [])])]
    replaced = None if output is None else outputs.for_model(output, reads, overwrite).note
    if plot is not None:
        outputs.for_file(plot, reads, overwrite, "--plot")
        can_draw()
    curve = None
    if on:
        stream = reading.open(on, reading.settings_for(loaded, on))
        options.warn_if_learned(loaded, on, "and the loss is not that on new rows")
        rows = repeatable(stream)
        pruned, curve = _measured(loaded, asked, rows, many)
        options.print_notes(stream)
        options.warn_of_refused(stream.refused, stream.refusals)
    else:
        pruned = _pruned(loaded, asked)
    size, refitted = pruned.nonzeros, None  # of weights kept; the AUC after --refit
    if refit:
        again = reading.open(refit, reading.settings_for(loaded, refit))
        pruned = loaded.prune(nonzeros=size, refit=again)
        options.warn_of_refused(again.refused, again.refusals)
        refitted = None if curve is None else measured(pruned, rows, [pruned.nonzeros]).full
    elif on and loaded.calibration is not None and pruned.calibration is None:
        pruned.calibrate_on(rows)
    if plot is not None and curve is not None:
        write_whole(plot, figure_bytes(figure(curve, size if asked else None), plot.suffix))
    if output is not None:
        pruned.save(output, "scoring")
        if replaced:
            look.stderr().line(replaced)
    if json:
        look.print_json(_record(pruned, size, curve, refitted, path))
        return
    _show(loaded, pruned, size, bool(asked), curve, refitted, model.stat().st_size)
    if path and curve is not None:
        _show_path(curve, size if asked else None)
    for target in (output, plot):
        if target is not None:
            look.stdout().line(f"{look.stdout()(plain(target), 'bold')} written, {look.size(target.stat().st_size)}")


def _check_options(
    asked: dict[str, Any], many: bool, on: list[str] | None, output: Path | None, plot: Path | None
) -> None:
    if len(asked) > 1:
        raise UsageError("Only one of --nonzeros, --bytes and --auc-loss may be given.")
    if not asked and (output is not None or not many):
        raise UsageError(
            "Missing option: pass one of --nonzeros, --bytes and --auc-loss to say how much to prune, or --path and "
            "--on DATA to see the AUC at many sizes."
        )
    if not asked.get("auc_loss", 0.0) >= 0:
        raise UsageError(f"must be >= 0, got {asked['auc_loss']}.", "--auc-loss")
    if not on and (many or "auc_loss" in asked):
        word = "--auc-loss" if "auc_loss" in asked else "--path" if plot is None else "--plot"
        raise UsageError("needs labelled rows to measure the AUC on: --on DATA.", word)
    if plot is not None and output is not None and os.path.realpath(plot) == os.path.realpath(output):
        raise UsageError(f"{plain(plot)} is also the file of --output.", "--plot")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"the file must end with .png or .svg, got {plain(plot)}.", "--plot")


def _pruned(model: Model, asked: dict[str, Any]) -> Model:
    """The model pruned as --nonzeros or --bytes says; all of it if neither is given."""
    try:
        return model.prune(**asked or {"nonzeros": model.nonzeros})
    except ValueError as error:  # bytes that hold no model
        raise UsageError(str(error).removeprefix("Model.prune: bytes "), "--bytes") from None


def _measured(model: Model, asked: dict[str, Any], rows: Rows, many: bool) -> tuple[Model, SizePath]:
    """The pruned model, and the AUC at several sizes, its own and the full one among them."""
    from rarestream.evaluate import path
    from rarestream.pruning import FIRST, spread

    if "auc_loss" in asked:
        curve = path(model, rows, auc_loss=asked["auc_loss"])
        return model.prune(nonzeros=curve.smallest(asked["auc_loss"])), curve
    pruned = _pruned(model, asked)
    others = spread(FIRST, model.nonzeros) if many else []
    return pruned, path(model, rows, [*others, pruned.nonzeros])


def _record(pruned: Model, size: int, curve: SizePath | None, refitted: float | None, path: bool) -> dict[str, Any]:
    before = None if curve is None else curve[size]
    record: dict[str, Any] = {
        "nonzeros": pruned.nonzeros,
        "bytes": len(pruned.to_bytes("scoring")),
        "auc": before if refitted is None else refitted,
        "auc_full": None if curve is None else curve.full,
    }
    if refitted is not None:
        record["auc_before_refit"] = before
    if path and curve is not None:
        points = zip(curve.sizes, curve.aucs, strict=True)
        record["path"] = [{"nonzeros": size, "auc": auc} for size, auc in points]
    return record


def _show(
    model: Model,
    pruned: Model,
    has: int,
    asked: bool,
    curve: SizePath | None,
    refitted: float | None,
    had_bytes: int,
) -> None:
    ink = look.stdout()
    had = model.nonzeros
    whole = has == had
    kept = f"{look.count(has)} of {look.count(had)} kept ({look.share(has, had)})"
    if whole:
        kept = f"all {look.count(had)}" + (" kept: nothing was pruned" if asked else "")
    size, before = len(pruned.to_bytes("scoring")), len(model.to_bytes("scoring"))
    ink.line(f"{'weights':<10}{ink(kept, 'bold')}")
    ink.line(
        f"{'file':<10}{look.size(size)} for scoring" + ("" if whole else f"; with all weights {look.size(before)}")
    )
    if model.kind == "resumable":
        ink.line(f"{'':<10}{look.size(had_bytes)} now, resumable")
    if curve is not None:
        auc, full = curve[has] if refitted is None else refitted, curve.full
        shown, rows = ink(f"{auc:.4f}", "bold", "cyan"), f"{look.count(curve.rows)} rows"
        ink.line(f"{'AUC':<10}{shown} on {rows}, {look.count(curve.positives)} positive")
        if refitted is not None:
            ink.line(f"{'':<10}{curve[has]:.4f} before it was refitted")
        if not whole:
            ink.line(f"{'':<10}{full:.4f} with all weights: {_lost(full - auc)}")
        if curve.bound:
            ink.line(f"{'':<10}streaming estimates: each within {curve.bound:.1g} of the exact value")


def _lost(loss: float) -> str:
    return f"{loss:.4f} lost" if loss >= 0 else f"{-loss:.4f} gained"


def _show_path(curve: SizePath, chosen: int | None) -> None:
    """Show a table of some sizes and a curve through all; the axis of sizes is logarithmic."""
    ink = look.stdout()
    ink.line()
    shown = _some(curve.sizes, chosen)
    cells = [
        [look.count(size), look.share(size, curve.sizes[-1]), f"{curve[size]:.4f}", f"{curve.full - curve[size]:+.4f}"]
        for size in shown
    ]
    lines = look.table(cells, ["weights", "share", "AUC", "loss"])
    ink.line("  " + ink(lines[0], "bold"))
    for line, size in zip(lines[1:], shown, strict=True):
        ink.line("  " + (ink(f"{line}  ◂ kept", "bold") if size == chosen else line))
    ink.line()
    first = max(1, curve.sizes[0])
    points = [(math.log(size / first), curve[size]) for size in curve.sizes if size]
    label = f" all weights {curve.full:.4f} "
    ends = (look.count(first), f"{look.count(curve.sizes[-1])} weights")
    for line in look.curve(points, curve.full, label, look.width() - 4, ends):
        ink.line("  " + line)
    ink.line()


def _some(sizes: tuple[int, ...], chosen: int | None) -> list[int]:
    """The sizes nearest to a few that grow by the same factor, and the one that was chosen."""
    from rarestream.pruning import spread

    wanted = spread(max(1, sizes[0]), sizes[-1], LINES)
    near = {min(sizes, key=lambda size: abs(math.log((size or 0.5) / want))) for want in wanted if want}
    return sorted(near | ({sizes[-1]} if chosen is None else {sizes[-1], chosen}))
