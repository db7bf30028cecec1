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
    from rarestream.readers import Stream

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
    path: ShowPath = False,
    plot: Plot = None,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Shrink a model, with a known loss of AUC.

    The largest weights are kept, the others become zero. The file written is for scoring: it cannot be resumed. With
    --on DATA, rows that were not learned, the loss of AUC is shown.
    """
    from rarestream.evaluate import can_draw, reading_settings
    from rarestream.model import Model
    from rarestream.readers import read
    from rarestream.system import write_whole

    asked = options.drop_none(nonzeros=nonzeros, bytes=bytes, auc_loss=auc_loss)
    many = path or plot is not None  # the AUC at many sizes is wanted
    _check_words(asked, many, on, output, plot)
    loaded = Model.load(model)
    options.check_paths(on or [])
    reads = [model, *outputs.files_of(on or [])]
    replaced = None if output is None else outputs.for_model(output, reads, overwrite).note
    if plot is not None:
        outputs.for_file(plot, reads, overwrite, "--plot")
        can_draw()
    found = None
    if on:
        stream = read(on, **{**reading_settings(loaded.source), **reading.settings()})
        options.warn_if_learned(loaded, on, "and the loss is not that on new rows")
        cut, found = _measured(loaded, asked, stream, many)
        options.warn_of_refused(stream.refused, stream.refusals)
    else:
        cut = _cut(loaded, asked)
    if plot is not None and found is not None:
        write_whole(plot, _drawn(found, plot.suffix[1:].lower(), cut.nonzeros if asked else None))
    if output is not None:
        cut.save(output, "scoring")
        if replaced:
            look.stderr().line(replaced)
    if json:
        look.print_json(_record(cut, found, path))
        return
    _show(loaded, cut, bool(asked), found, model.stat().st_size)
    if path and found is not None:
        _show_path(found, cut.nonzeros if asked else None)
    for target in (output, plot):
        if target is not None:
            look.stdout().line(f"{look.stdout()(plain(target), 'bold')} written, {look.size(target.stat().st_size)}")


def _check_words(
    asked: dict[str, Any], many: bool, on: list[str] | None, output: Path | None, plot: Path | None
) -> None:
    if len(asked) > 1:
        raise UsageError("Only one of --nonzeros, --bytes and --auc-loss may be given.")
    if not asked and (output is not None or not many):
        raise UsageError(
            "One of --nonzeros, --bytes and --auc-loss is needed to say how much to prune; --path --on DATA shows the "
            "AUC at many sizes."
        )
    if not asked.get("auc_loss", 0.0) >= 0:
        raise UsageError(f"must be >= 0, got {asked['auc_loss']}.", "--auc-loss")
    if not on and (many or "auc_loss" in asked):
        word = "--auc-loss" if "auc_loss" in asked else "--path" if plot is None else "--plot"
        raise UsageError("needs labelled rows to measure the AUC on: --on DATA.", word)
    if plot is not None and output is not None and os.path.realpath(plot) == os.path.realpath(output):
        raise UsageError(f"{plain(plot)} is also the file of --output.", "--plot")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"{plain(plot)}: the plot must be a .png or an .svg.", "--plot")


def _cut(model: Model, asked: dict[str, Any]) -> Model:
    """The model pruned as --nonzeros or --bytes says; all of it if neither is given."""
    try:
        return model.prune(**asked or {"nonzeros": model.nonzeros})
    except ValueError as error:  # bytes that hold no model
        raise UsageError(str(error).removeprefix("Model.prune: bytes "), "--bytes") from None


def _measured(model: Model, asked: dict[str, Any], stream: Stream, many: bool) -> tuple[Model, SizePath]:
    """The pruned model, and the AUC at several sizes, its own and the full one among them."""
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


def _show(model: Model, cut: Model, asked: bool, found: SizePath | None, had_bytes: int) -> None:
    ink = look.stdout()
    had, has = model.nonzeros, cut.nonzeros
    whole = has == had
    kept = f"{look.count(has)} of {look.count(had)} kept ({look.share(has, had)})"
    if whole:
        kept = f"all {look.count(had)}" + (" kept: nothing was pruned" if asked else "")
    size, before = len(cut.to_bytes("scoring")), len(model.to_bytes("scoring"))
    ink.line(f"{'weights':<10}{ink(kept, 'bold')}")
    ink.line(
        f"{'file':<10}{look.size(size)} for scoring" + ("" if whole else f"; with all weights {look.size(before)}")
    )
    if model.kind == "resumable":
        ink.line(f"{'':<10}{look.size(had_bytes)} now, resumable")
    if found is not None:
        auc, full = found[has], found.full
        told, rows = ink(f"{auc:.4f}", "bold", "cyan"), f"{look.count(found.rows)} rows"
        line = f"{'AUC':<10}{told} on {rows}, {look.count(found.positives)} positive"
        ink.line(line + ("" if whole else f"; with all weights {full:.4f}: {_lost(full - auc)}"))
        if found.bound:
            ink.line(f"{'':<10}streaming estimates: each within {found.bound:.1g} of the exact value")


def _lost(loss: float) -> str:
    return f"{loss:.4f} lost" if loss >= 0 else f"{-loss:.4f} gained"


def _show_path(found: SizePath, chosen: int | None) -> None:
    """Shows a table of some sizes and a curve through all; the axis of sizes is logarithmic."""
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
