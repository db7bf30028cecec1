"""Rows of named values, such as dicts, as features of a hashed space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.features.space import Hashed


class EncodedRows(NamedTuple):
    """CSR rows of slots, as a Block holds them: sorted, without duplicates, in arrays that nobody can write to."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    width: int


def encode_rows(space: Hashed, rows: Sequence[Mapping[str, Any]], *, names: bool = True) -> EncodedRows:
    """Return rows as features of a space.

    Parameters
    ----------
    space : Hashed
        The space. If it has no plan yet, it gets one.
    rows : sequence of mappings
        Each row as column names and values.
    names : bool, default True
        Whether the space remembers the names of the features: not when rows are only scored.

    Raises
    ------
    DataError
        If a value cannot be a feature, or a column of the plan is missing.
    """
    # THE ONE PLACE where the native encoder of rows is called.
    raise NotImplementedError("encode_rows")
