"""The compiled core; its sources stand in native/. Arrays must be contiguous; none is copied."""

from typing import Any

from numpy.typing import NDArray

def survey_rows(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]
) -> tuple[int, int, int, int, bool]: ...
def canonicalise_rows(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> int: ...
