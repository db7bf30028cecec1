"""AUC against size: what a model would rank like with fewer weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rarestream.blocks import Block
from rarestream.errors import MissingExtraError
from rarestream.model import SCALES, Model
from rarestream.pruning import SIZES, Path, Ranked


def path(
    model: Model,
    blocks: Block | Iterable[Block],
    sizes: int | Sequence[int] = SIZES,
    *,
    auc_loss: float | None = None,
) -> Path:
    """The AUC of a model cut to each of many sizes, on labelled rows, in one pass over them.

    `sizes`: how many, from 10 weights to all of them, each larger than the one before by the same factor; or a list
    of sizes, to which the full model is added. The AUC at a size is, to the bit, that of `model.prune(nonzeros=size)`
    on the same rows, up to 10 million scores (200,000 rows at 50 sizes); then it is streamed, within `bound` of that.

    `auc_loss`: sizes are added near the smallest that loses no more, in a second pass, or a third.
    """
    return Ranked(model.weights(), SCALES.index(model.scale)).path(blocks, sizes, auc_loss)


def figure(found: Path, chosen: int | None = None) -> Any:
    """The path as a matplotlib Figure: AUC against size, and the size that was chosen."""
    figure_class = can_draw()
    drawn = figure_class(figsize=(7, 4.2), layout="constrained")
    axes = drawn.add_subplot(
        xscale="log",
        xlabel="weights that are not zero",
        ylabel=f"AUC on {found.rows:,} rows",
        title="What fewer weights cost",
    )
    sizes = [size for size in found.sizes if size]
    axes.axhline(found.full, color="0.6", linestyle="--", label=f"all {found.sizes[-1]:,} weights: {found.full:.4f}")
    axes.plot(sizes, [found[size] for size in sizes], marker=".", color="C0")
    if chosen:
        label = f"{chosen:,} weights: {found[chosen]:.4f}"
        axes.plot([chosen], [found[chosen]], marker="o", linestyle="", color="C1", label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return drawn


def can_draw() -> Any:
    """The class of figures; MissingExtraError if nothing can be drawn."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('Drawing needs the package matplotlib: pip install "rarestream[plot]"') from None
    return Figure
