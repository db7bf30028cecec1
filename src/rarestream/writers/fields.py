"""What the text formats write of a row beside its features, as arrays for the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError

NO_NUMBERS = np.zeros(0, np.float64)


def label_numbers(block: Block, format: str) -> NDArray[np.float64]:
    """Return labels as numbers, NaN where there is none.

    Raises
    ------
    DataError
        If the rows have classes that are text.
    """
    if block.classes is not None:
        if block.classes.dtype.kind not in "biuf":
            raise DataError(
                f"convert: the classes are text, such as {str(block.classes[0])!r}, but labels of {format} are "
                "numbers. Number the classes first."
            )
        return block.classes.astype(np.float64)
    if block.labels is None:
        return np.full(len(block), np.nan)
    labels = block.labels.astype(np.float64)
    labels[block.labels == 0] = np.nan
    return labels


def importance_numbers(block: Block) -> NDArray[np.float64]:
    """Return importances; an empty array if there are none."""
    return NO_NUMBERS if block.importances is None else np.ascontiguousarray(block.importances, np.float64)


def tag_texts(tags: NDArray[Any]) -> list[str]:
    """Return tags as text, empty where there is none."""
    if tags.dtype.kind in "iu":
        return ["" if tag < 0 else str(tag) for tag in tags.tolist()]
    return ["" if tag is None else str(tag) for tag in tags.tolist()]
