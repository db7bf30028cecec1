"""The compiled core; its sources stand in native/. Arrays must be contiguous; none is copied."""

from typing import Any

from numpy.typing import NDArray

# blocks
def survey_rows(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]
) -> tuple[int, int, int, int, bool]: ...
def canonicalise_rows(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> int: ...

# learners
def isa() -> str: ...
def set_isa(name: str) -> None: ...

class Gate:
    def __init__(self) -> None: ...
    def begin_learning(self) -> bool: ...
    def end_learning(self) -> None: ...
    def begin_scoring(self) -> bool: ...
    def end_scoring(self) -> None: ...

class Kernel:
    def __init__(self, name: str, settings: list[float]) -> None: ...
    def learn(
        self,
        pairs: NDArray[Any],
        tally: NDArray[Any],
        largest: NDArray[Any] | None,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[Any],
        width: int,
        labels: NDArray[Any],
        importances: NDArray[Any] | None,
        scale: int,
        scores: NDArray[Any],
        /,
    ) -> int: ...
    def score(
        self,
        pairs: NDArray[Any],
        largest: NDArray[Any] | None,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[Any],
        width: int,
        scale: int,
        scores: NDArray[Any],
        /,
    ) -> None: ...
    def weights(self, pairs: NDArray[Any], /) -> NDArray[Any]: ...

def score_weights(
    weights: NDArray[Any],
    largest: NDArray[Any] | None,
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    width: int,
    scale: int,
    scores: NDArray[Any],
    /,
) -> None: ...
def parse_svmlight(
    text: NDArray[Any], first_index: int = 1, label_required: bool = True, stop_after: int = 1, isa: str = ""
) -> tuple[Any, Any, Any, int, Any, Any, Any, Any, Any, int, list[tuple[int, int, int, bytes]]]: ...
