"""Rows of named values, such as dicts, as features of a hashed space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.features.faults import dict_message
from rarestream.features.plan import TablePlan
from rarestream.features.space import Hashed

BY_VALUE = TablePlan(open=True)  # the plan of a space that has read no table: each value counts as what it is


class EncodedRows(NamedTuple):
    """CSR rows of slots, as a Block holds them: sorted, without duplicates, in arrays that nobody can write to."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    width: int


def encode_rows(
    space: Hashed,
    rows: Sequence[Mapping[str, Any]],
    *,
    names: bool = True,
    label: str | None = None,
    where: str = "Block.of_dicts",
) -> EncodedRows:
    """Return rows as features of a space.

    Parameters
    ----------
    space : Hashed
        The space. If it has no plan yet, it gets one: each value counts as what it is.
    rows : sequence of mappings
        Each row as column names and values. A column that a row does not have is missing in it.
    names : bool, default True
        Whether the space remembers the names of the features: not when rows are only scored.
    label : str, optional
        A column that is no feature. That of the plan is none either.
    where : str
        The function called, for messages.

    Raises
    ------
    DataError
        If a value cannot be a feature.
    """
    if space.plan is None:
        space.plan = BY_VALUE if label is None else replace(BY_VALUE, label=label)
    found = space.parser(names, label).encode_dicts(rows if type(rows) is list else list(rows), stop_after=1)
    if found[12] is not None and space.names is not None:
        space.names.add(found[12])
    if found[10]:
        row, _, rule, token, field = found[10][0]
        place = where if len(rows) == 1 else f"{where}: row {row}"
        raise DataError(f"{place}: {dict_message(rule, field, token)}")
    return EncodedRows(*found[:4])
