"""AUC against model size: how well a model would rank with fewer weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rarestream.blocks import Block
from rarestream.engines import SCALES
from rarestream.evaluate.drawing import can_draw
from rarestream.model import Model
from rarestream.pruning import SIZES, Path, Ranked


def path(
    model: Model,
    blocks: Block | Iterable[Block],
    sizes: int | Sequence[int] = SIZES,
    *,
    auc_loss: float | None = None,
) -> Path:
    """Compute the AUC of a model pruned to each of many sizes, in one pass over labelled rows.

    The AUC at a size is, bit for bit, that of `model.prune(nonzeros=size)` on the same rows, up to 10 million scores
    (200,000 rows at 50 sizes). Beyond that it is streamed, and within `Path.bound` of the exact one.

    Parameters
    ----------
    model : Model
        The model to prune.
    blocks : Block or iterable of Block
        Rows with labels, which the model has not learned.
    sizes : int or sequence of int, default 50
        Number of sizes, 1 to 1000, from 10 weights to all of them in equal ratios; or the sizes themselves, to which
        that of the full model is added.
    auc_loss : float, optional
        Add sizes near the smallest one that loses no more AUC than this, in a second and, if needed, a third pass.

    Returns
    -------
    Path
        Sizes and AUCs.

    Raises
    ------
    DataError
        If rows have no labels, or a class is missing.
    ValueError
        If a size is negative, or there are too many.
    """
    return Ranked(model.weights(), model.rank_keys(), SCALES.index(model.scale)).path(blocks, sizes, auc_loss)


def size_figure(curve: Path, chosen: int | None = None) -> Any:
    """Return the figure of AUC against size, with a size of the path marked."""
    figure_class = can_draw()
    drawn = figure_class(figsize=(7, 4.2), layout="constrained")
    axes = drawn.add_subplot(
        xscale="log",
        xlabel="weights that are not zero",
        ylabel=f"AUC on {curve.rows:,} rows",
        title="AUC against number of weights",
    )
    sizes = [size for size in curve.sizes if size]
    axes.axhline(curve.full, color="0.6", linestyle="--", label=f"all {curve.sizes[-1]:,} weights: {curve.full:.4f}")
    axes.plot(sizes, [curve[size] for size in sizes], marker=".", color="C0")
    if chosen:
        label = f"{chosen:,} weights: {curve[chosen]:.4f}"
        axes.plot([chosen], [curve[chosen]], marker="o", linestyle="", color="C1", label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return drawn
