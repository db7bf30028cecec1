"""The compiled core; its sources stand in native/. Arrays must be contiguous; none is copied."""

from typing import Any

from numpy.typing import NDArray

def survey_rows(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]
) -> tuple[int, int, int, int, bool]: ...
def canonicalise_rows(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> int: ...
def parse_svmlight(
    text: NDArray[Any], first_index: int = 1, label_required: bool = True, stop_after: int = 1, isa: str = ""
) -> tuple[Any, Any, Any, int, Any, Any, Any, Any, Any, int, list[tuple[int, int, int, bytes]]]: ...
