"""The compiled core; its sources are in native/.

Arrays must be contiguous and of the declared type: none is converted or copied on the way in. Arguments before `/`
have no names in the module.
"""

from enum import Enum, IntEnum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block

# blocks
class CopyMode(Enum):
    nothing = 0
    indices = 1
    all = 2

class CsrFault(IntEnum):
    none = 0
    indptr = 1
    index = 2
    value = 3
    changed = 4
    sum = 5

def own_rows(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], copy: CopyMode
) -> tuple[CsrFault, int, int, int, Any, Any, Any]: ...
def width_if_canonical(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], /) -> int: ...
def own_dense(array: NDArray[Any], /) -> tuple[CsrFault, int, int, int, Any, Any, Any]: ...
def own_rows_in(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    to_indptr: NDArray[np.int64],
    to_indices: NDArray[np.int32],
    to_values: NDArray[np.float32],
    /,
) -> tuple[CsrFault, int, int, int, int]: ...

# learners
def isa() -> str: ...
def set_isa(name: str, /) -> None: ...

class Scale(IntEnum):
    none = 0
    unit = 1
    max = 2

class Gate:
    def __init__(self) -> None: ...
    def begin_learning(self) -> bool: ...
    def end_learning(self) -> None: ...
    def begin_scoring(self) -> bool: ...
    def end_scoring(self) -> None: ...

class Kernel:
    def __init__(self, name: str, settings: list[float], /) -> None: ...
    def learn(
        self,
        table: NDArray[Any],
        tally: NDArray[Any],
        largest: NDArray[Any] | None,
        extra: list[NDArray[Any]],
        block: Block,
        scale: Scale | int,
        scores: NDArray[Any],
        repeats: float = 1.0,
        /,
    ) -> int: ...
    def score(
        self,
        table: NDArray[Any],
        tally: NDArray[Any],
        largest: NDArray[Any] | None,
        extra: list[NDArray[Any]],
        block: Block,
        scale: Scale | int,
        scores: NDArray[Any],
        /,
    ) -> int: ...
    def weights(
        self, table: NDArray[Any], tally: NDArray[Any], extra: list[NDArray[Any]], first: int, /
    ) -> NDArray[Any]: ...

def touched(table: NDArray[Any], /) -> tuple[NDArray[np.int32], NDArray[Any]]: ...
def score_weights(
    weights: NDArray[Any],
    largest: NDArray[Any] | None,
    block: Block,
    scale: Scale | int,
    scores: NDArray[Any],
    /,
) -> int: ...
def ladder(numbers: NDArray[Any], budget: float, /) -> NDArray[np.int32]: ...
def ranked(weights: NDArray[Any], /) -> NDArray[np.int32]: ...
def score_path(
    weights: NDArray[Any],
    classes: NDArray[np.uint16],
    largest: NDArray[Any] | None,
    block: Block,
    scale: Scale | int,
    scores: NDArray[np.float64],
    /,
) -> int: ...

# metrics
class ScoredFault(IntEnum):
    none = 0
    label = 1
    mixed_labels = 2
    score = 3
    importance = 4

def check_labels(labels: NDArray[np.int8], /) -> tuple[ScoredFault, int]: ...
def narrow_labels(labels: NDArray[Any], /) -> NDArray[np.int8]: ...
def survey_labels(
    labels: NDArray[np.int8], scores: NDArray[Any], importances: NDArray[np.float64] | None
) -> tuple[ScoredFault, int, int, int]: ...
def exact_auc(
    labels: NDArray[np.int8], scores: NDArray[Any], importances: NDArray[np.float64] | None
) -> tuple[ScoredFault, int, int, int, float]: ...
def exact_placed(
    labels: NDArray[np.int8], scores: NDArray[Any], importances: NDArray[np.float64] | None
) -> tuple[float, float, float]: ...
def placements(
    labels: NDArray[np.int8], scores: NDArray[Any], importances: NDArray[np.float64] | None
) -> NDArray[np.float64]: ...
def scorer_placements(
    labels: NDArray[np.int8],
    scores: NDArray[Any],
    importances: NDArray[np.float64] | None,
    first: int,
    placed: NDArray[np.float64],
) -> None: ...
def column_spreads(scores: NDArray[np.float32]) -> NDArray[np.float64]: ...
def placement_errors(
    positives: int, placed: NDArray[np.float64], importances: NDArray[np.float64] | None, other: int
) -> NDArray[np.float64]: ...
def tally_scores(
    labels: NDArray[np.int8], scores: NDArray[Any], importances: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

CALIBRATION_NUMBERS: int

def calibrate(
    numbers: NDArray[np.float64],
    labels: NDArray[np.int8],
    scores: NDArray[np.float64],
    importances: NDArray[np.float64] | None,
) -> None: ...

class OneRow:
    @overload
    def __init__(
        self,
        kernel: Kernel,
        table: NDArray[Any],
        tally: NDArray[np.float64],
        largest: NDArray[np.float32] | None,
        scale: Scale | int,
        gate: Gate,
        progress: StreamingSketch,
        calibration: NDArray[np.float64] | None,
        limit: int,
        /,
    ) -> None: ...
    @overload
    def __init__(
        self,
        weights: NDArray[Any],
        largest: NDArray[np.float32] | None,
        scale: Scale | int,
        gate: Gate,
        progress: StreamingSketch,
        calibration: NDArray[np.float64] | None,
        limit: int,
        /,
    ) -> None: ...
    def learn(self, indices: Any, values: Any, label: Any, importance: Any, /) -> float | None: ...
    def learn_named(
        self, row: Any, label: Any, importance: Any, parser: TableParser, names: NameTable | None, /
    ) -> float | None: ...
    def score(self, indices: Any, values: Any, /) -> float | None: ...
    def score_named(self, row: Any, parser: TableParser, /) -> float | None: ...
    def score_text(self, text: bytes, parser: TableParser | PairsParser, /) -> float | None: ...

class StreamingSketch:
    def __init__(self) -> None: ...
    def add(
        self, labels: NDArray[np.int8], scores: NDArray[np.float64], importances: NDArray[np.float64] | None
    ) -> tuple[ScoredFault, int]: ...
    def merge(self, other: StreamingSketch, /) -> None: ...
    def placed(self) -> tuple[float, float, float, float]: ...
    def totals(self, positive: bool, /) -> tuple[int, float, float]: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def load(self, arrays: dict[str, NDArray[Any]], /) -> None: ...

class DriftDetector:
    def __init__(self, limit: float, tolerance: float, window: int) -> None: ...
    def count(
        self, labels: NDArray[np.int8], scores: NDArray[np.float64], importances: NDArray[np.float64] | None
    ) -> tuple[ScoredFault, int, list[tuple[float, float, float, float, float, float, float, float]]]: ...
    @property
    def rows(self) -> float: ...
    @property
    def positives(self) -> float: ...
    @property
    def alarms(self) -> float: ...
    @property
    def reference(self) -> float: ...
    @property
    def statistic(self) -> float: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def load(self, arrays: dict[str, NDArray[Any]], /) -> None: ...

# features
def murmur3(text: bytes, seed: int) -> int: ...
def feature_hash(namespace: bytes, name: bytes) -> int: ...

class NewNames:
    def __init__(self) -> None: ...
    def add(self, namespace: bytes, name: bytes) -> int: ...
    def __len__(self) -> int: ...
    def to_list(self) -> list[tuple[int, str]]: ...

def svmlight_text(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    labels: NDArray[np.float64],
    importances: NDArray[np.float64],
    qids: NDArray[np.int64],
    plus: bool,
) -> NDArray[np.uint8]: ...
def split_text(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    parts: NDArray[np.int8],
    count: int,
) -> list[NDArray[np.uint8]]: ...

class VwWriter:
    def __init__(self, *, bits: int, first: int, names: NameTable | None) -> None: ...
    def text(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        labels: NDArray[np.float64],
        importances: NDArray[np.float64],
        tags: NDArray[np.uint8],
        tag_ends: NDArray[np.int64],
    ) -> NDArray[np.uint8]: ...
    @property
    def replaced(self) -> int: ...
    @property
    def unknown(self) -> int: ...
    @property
    def zeros(self) -> int: ...
    @property
    def dropped_importances(self) -> int: ...
    @property
    def examples(self) -> list[tuple[str, str]]: ...

class NameTable:
    def __init__(self, bits: int, limit_bytes: int = 67108864, recording: bool = False) -> None: ...
    def copy(self) -> NameTable: ...
    def add(self, names: NewNames) -> None: ...
    def merge(self, other: NameTable, start: int) -> int: ...
    def name(self, slot: int) -> str | None: ...
    def names(self, slots: NDArray[np.int32]) -> list[str | None]: ...
    def to_arrays(
        self, slots: NDArray[np.int32], colliding: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def load(
        self,
        slots: NDArray[np.int32],
        hashes: NDArray[np.int32],
        ends: NDArray[np.int64],
        text: NDArray[np.uint8],
    ) -> None: ...
    def take_changes(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.uint8], NDArray[np.int32]]: ...
    def replay(
        self,
        hashes: NDArray[np.int32],
        lengths: NDArray[np.uint16],
        text: NDArray[np.uint8],
        lost: NDArray[np.int32],
    ) -> None: ...
    def restore(self, collisions: int, full: bool, lost: NDArray[np.int32]) -> None: ...
    def lost_slots(self) -> NDArray[np.int32]: ...
    def __len__(self) -> int: ...
    @property
    def bits(self) -> int: ...
    @property
    def limit_bytes(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def collisions(self) -> int: ...
    @property
    def full(self) -> bool: ...
    @property
    def lost(self) -> int: ...

# readers
def parse_svmlight(
    text: NDArray[Any], first_index: int = 1, label_required: bool = True, stop_after: int = 1, isa: str = ""
) -> tuple[Any, Any, Any, int, Any, Any, Any, Any, Any, int, list[tuple[int, int, int, bytes]]]: ...

# reproduce
class PublishedMethod:
    def __init__(self, name: str, settings: list[float], features: int, rows: int, /) -> None: ...
    def learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float64],
        labels: NDArray[np.int8],
        scores: NDArray[np.float64],
        /,
    ) -> None: ...
    def weights(self) -> NDArray[np.float64]: ...

# lanes
MAX_LANES: int
LANE_GROUP: int

class Loss(Enum):
    pairwise_square = 0
    pairwise_hinge = 1
    logistic = 2

def compact_slots(
    indices: NDArray[np.int32],
    width: int,
    slot_of: NDArray[np.int32],
    features: NDArray[np.int32],
    used: int,
    add: bool,
    /,
) -> tuple[NDArray[np.int32], int]: ...
def pick_columns(
    tables: list[NDArray[np.float32]],
    columns: NDArray[np.int32],
    factors: NDArray[np.float32],
    into: NDArray[Any],
    /,
) -> None: ...
def mix(numbers: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.float64]: ...
def half_life_units(rows: float, half_life: float, /) -> tuple[float, float]: ...

class LaneSetting:
    def __init__(
        self,
        *,
        loss: Loss,
        power: float,
        proximal: float,
        evidence: float,
        learning_rate: float,
        l1: float,
        l2: float,
        beta: float,
        rate_power: float,
        intercept: bool,
        half_life: float,
        mean_gradient: bool,
    ) -> None: ...

class PreparedRows:
    def __init__(
        self,
        block: Block,
        slot_of: NDArray[np.int32],
        features: NDArray[np.int32],
        slots: int,
        used: int,
        having: NDArray[np.float32] | None,
        positives: float,
        negatives: float,
        /,
    ) -> None: ...
    def prepare(self, tables: list[NDArray[np.float32]], /) -> None: ...
    def take_back(self, row: int, /) -> None: ...
    def count_again(self, row: int, /) -> None: ...
    @property
    def used(self) -> int: ...

class LaneKernel:
    def __init__(self, settings: list[LaneSetting], /) -> None: ...
    @property
    def lanes(self) -> int: ...
    def learn(
        self,
        table: NDArray[np.float32],
        counts: NDArray[np.float64],
        means: NDArray[np.float64],
        having: NDArray[np.float32] | None,
        largest: NDArray[np.float32] | None,
        rates: NDArray[np.float32] | None,
        block: Block,
        scale: Scale | int,
        scores: NDArray[np.float32],
        isa: str = "",
        classes: NDArray[np.int32] | None = None,
        repeats: float = 1.0,
        /,
    ) -> int: ...
    def learn_prepared(
        self,
        table: NDArray[np.float32],
        counts: NDArray[np.float64],
        means: NDArray[np.float64],
        largest: NDArray[np.float32] | None,
        prepared: PreparedRows,
        first: int,
        scale: Scale | int,
        scores: NDArray[np.float32],
        isa: str = "",
        /,
    ) -> int: ...
    def add_weights(
        self,
        table: NDArray[np.float32],
        counts: NDArray[np.float64],
        having: NDArray[np.float32] | None,
        shares: NDArray[np.float64],
        first: int,
        out: NDArray[np.float64],
        /,
    ) -> None: ...
    def write_alone(
        self,
        table: NDArray[np.float32],
        counts: NDArray[np.float64],
        having: NDArray[np.float32] | None,
        lane: int,
        setting: LaneSetting,
        first: int,
        features: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        out: NDArray[Any],
        /,
    ) -> None: ...
    def score(
        self,
        table: NDArray[np.float32],
        counts: NDArray[np.float64],
        having: NDArray[np.float32] | None,
        largest: NDArray[np.float32] | None,
        lane: int,
        block: Block,
        scale: Scale | int,
        scores: NDArray[np.float64],
        /,
    ) -> int: ...

# Arrow
class ArrowBatch:
    def __init__(self, schema: object, array: object) -> None: ...
    @staticmethod
    def of_buffers(columns: list[Any], length: int) -> ArrowBatch: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...

class ArrowStream:
    def __init__(self, stream: object) -> None: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    def next(self) -> ArrowBatch | None: ...

# tables
class TableParser:
    def __init__(
        self,
        *,
        bits: int,
        names: bool,
        columns: list[tuple[str, int, int]],
        crosses: list[tuple[str, list[int]]],
        missing: list[str],
        raw: bool,
        counts: bool,
        open: bool,
        characters: bool,
        shortest: int,
        longest: int,
        request: tuple[int, int] | None = None,
    ) -> None: ...
    def parse_csv(
        self,
        text: NDArray[np.uint8],
        *,
        columns: list[int],
        delimiter: str,
        quote: str,
        skip_header: bool,
        stop_after: int,
    ) -> tuple[Any, ...]: ...
    def parse_text(self, text: NDArray[np.uint8], *, label: int, words: int, stop_after: int) -> tuple[Any, ...]: ...
    def parse_jsonl(self, text: NDArray[np.uint8], *, stop_after: int) -> tuple[Any, ...]: ...
    def parse_objects(self, text: bytes) -> tuple[Any, ...]: ...
    def encode_dicts(self, rows: list[Any], *, stop_after: int) -> tuple[Any, ...]: ...
    def parse_arrow(
        self, batch: ArrowBatch, *, columns: list[int], start: int, stop: int, stop_after: int
    ) -> tuple[Any, ...]: ...

class PairsParser:
    def __init__(self, *, features: int, nonzeros: int) -> None: ...
    def parse(self, text: bytes) -> tuple[Any, ...]: ...

def survey_jsonl(
    text: NDArray[np.uint8], *, missing: list[str]
) -> tuple[int, list[tuple[str, int, int, int, int, int, int]]]: ...
def lines_of_entries(entries: list[Any]) -> bytes: ...
def survey_dicts(
    rows: list[Any], *, missing: list[str]
) -> tuple[int, list[tuple[str, int, int, int, int, int, int]]]: ...
def survey_csv(
    text: NDArray[np.uint8], *, names: list[str], missing: list[str], delimiter: str, quote: str, skip_header: bool
) -> tuple[int, list[tuple[str, int, int, int, int, int, int]]]: ...
def survey_arrow(
    batches: list[ArrowBatch], *, wanted: list[bool], missing: list[str], rows: int
) -> tuple[int, list[tuple[str, int, int, int, int, int, int]]]: ...
def pick_csv(
    text: NDArray[np.uint8],
    *,
    columns: list[int],
    names: list[str],
    delimiter: str,
    quote: str,
    skip_header: bool,
    rows: bool,
    label: bool,
    stop_after: int,
) -> tuple[Any, ...]: ...
def pick_jsonl(
    text: NDArray[np.uint8], *, names: list[str], rows: bool, label: bool, stop_after: int
) -> tuple[Any, ...]: ...
def csv_row_end(text: NDArray[np.uint8], filled: int, *, delimiter: str, quote: str) -> tuple[int, int]: ...

# Vowpal Wabbit text
class VwParser:
    def __init__(self, *, bits: int, names: bool, forgets: bool = False) -> None: ...
    def parse(self, text: NDArray[np.uint8], *, stop_after: int, isa: str = "") -> tuple[Any, ...]: ...

def merge_tables(
    table: NDArray[Any], rules: NDArray[np.int8], parts: list[tuple[NDArray[np.int32], NDArray[Any], float]], /
) -> None: ...
def mark_features(indices: NDArray[np.int32], marks: NDArray[np.uint8], /) -> None: ...
