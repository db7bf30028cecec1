"""Classifiers for scikit-learn, a search over their settings, and a transformer. Written by tests/generated.py."""

from collections.abc import Sequence
from typing import Any, ClassVar

from rarestream.adapters.search import RaceSearchCV as RaceSearchCV
from rarestream.adapters.sklearn import StreamClassifier
from rarestream.adapters.space import TableTransformer
from rarestream.learners.adagrad import AdaGrad
from rarestream.learners.adaoam import AdaOam
from rarestream.learners.auto import Auto
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.fsauc import Fsauc
from rarestream.learners.ftrl_auc import FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal
from rarestream.learners.oam import Oam
from rarestream.learners.opauc import Opauc
from rarestream.learners.rda import Rda
from rarestream.learners.solam import Solam
from rarestream.learners.spam import Spam
from rarestream.learners.spauc import Spauc

__all__ = [
    "AdaGradClassifier",
    "AdaOamClassifier",
    "AutoClassifier",
    "DualAveragingClassifier",
    "FeatureSpace",
    "FsaucClassifier",
    "FtrlAucClassifier",
    "FtrlProximalClassifier",
    "OamClassifier",
    "OpaucClassifier",
    "RaceSearchCV",
    "RdaClassifier",
    "SolamClassifier",
    "SpamClassifier",
    "SpaucClassifier",
]

class AdaGradClassifier(StreamClassifier):
    learner: ClassVar[type[AdaGrad]]
    learning_rate: float
    l1: float
    epsilon: float
    intercept: bool
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        l1: float = ...,
        epsilon: float = ...,
        intercept: bool = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class AdaOamClassifier(StreamClassifier):
    learner: ClassVar[type[AdaOam]]
    learning_rate: float
    l2: float
    epsilon: float
    rank: int
    seed: int
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        l2: float = ...,
        epsilon: float = ...,
        rank: int = ...,
        seed: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class AutoClassifier(StreamClassifier):
    learner: ClassVar[type[Auto]]
    rows: int
    keep: int
    budget: int
    def __init__(
        self,
        *,
        rows: int = ...,
        keep: int = ...,
        budget: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class DualAveragingClassifier(StreamClassifier):
    learner: ClassVar[type[DualAveraging]]
    loss: str
    learning_rate: float | None
    beta: float
    l1: float
    rate_power: float
    power: float
    proximal: float
    evidence: float
    budget: int
    half_life: float
    def __init__(
        self,
        *,
        loss: str = ...,
        learning_rate: float | None = ...,
        beta: float = ...,
        l1: float = ...,
        rate_power: float = ...,
        power: float = ...,
        proximal: float = ...,
        evidence: float = ...,
        budget: int = ...,
        half_life: float = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class FsaucClassifier(StreamClassifier):
    learner: ClassVar[type[Fsauc]]
    learning_rate: float
    radius: float
    expected_rows: int
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        radius: float = ...,
        expected_rows: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class FtrlAucClassifier(StreamClassifier):
    learner: ClassVar[type[FtrlAuc]]
    learning_rate: float
    l1: float
    l2: float
    beta: float
    means: str
    half_life: float
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        l1: float = ...,
        l2: float = ...,
        beta: float = ...,
        means: str = ...,
        half_life: float = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class FtrlProximalClassifier(StreamClassifier):
    learner: ClassVar[type[FtrlProximal]]
    learning_rate: float
    l1: float
    l2: float
    beta: float
    intercept: bool
    half_life: float
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        l1: float = ...,
        l2: float = ...,
        beta: float = ...,
        intercept: bool = ...,
        half_life: float = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class OamClassifier(StreamClassifier):
    learner: ClassVar[type[Oam]]
    update: str
    learning_rate: float | None
    buffer: int
    seed: int
    def __init__(
        self,
        *,
        update: str = ...,
        learning_rate: float | None = ...,
        buffer: int = ...,
        seed: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class OpaucClassifier(StreamClassifier):
    learner: ClassVar[type[Opauc]]
    learning_rate: float
    l2: float
    rank: int
    seed: int
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        l2: float = ...,
        rank: int = ...,
        seed: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class RdaClassifier(StreamClassifier):
    learner: ClassVar[type[Rda]]
    gamma: float
    l1: float
    rho: float
    intercept: bool
    def __init__(
        self,
        *,
        gamma: float = ...,
        l1: float = ...,
        rho: float = ...,
        intercept: bool = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class SolamClassifier(StreamClassifier):
    learner: ClassVar[type[Solam]]
    learning_rate: float
    radius: float
    expected_features: int
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        radius: float = ...,
        expected_features: int = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class SpamClassifier(StreamClassifier):
    learner: ClassVar[type[Spam]]
    learning_rate: float
    penalty: str
    l1: float
    l2: float
    gradient: str
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        penalty: str = ...,
        l1: float = ...,
        l2: float = ...,
        gradient: str = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class SpaucClassifier(StreamClassifier):
    learner: ClassVar[type[Spauc]]
    mu: float
    l1: float
    def __init__(
        self,
        *,
        mu: float = ...,
        l1: float = ...,
        dtype: str = ...,
        scale: str = ...,
        max_passes: int = ...,
        shuffle: bool = ...,
        threshold: float | None = ...,
        random_state: Any = ...,
        features: Any = ...,
        pos_label: Any = ...,
        class_weight: Any = ...,
        warm_start: bool = ...,
        early_stopping: bool = ...,
        validation_fraction: float = ...,
        n_iter_no_change: int = ...,
        tol: float = ...,
        calibrate: bool = ...,
        negatives_kept: float = ...,
        verbose: int = ...,
    ) -> None: ...

class FeatureSpace(TableTransformer):
    bits: int
    names: bool
    numeric: Sequence[str]
    categorical: Sequence[str]
    text: Sequence[str]
    dates: Sequence[str]
    ignore: Sequence[str]
    crosses: Sequence[str]
    numbers: str
    missing: Sequence[str]
    ngrams: str
    counts: bool
    def __init__(
        self,
        *,
        bits: int = ...,
        names: bool = ...,
        numeric: Sequence[str] = ...,
        categorical: Sequence[str] = ...,
        text: Sequence[str] = ...,
        dates: Sequence[str] = ...,
        ignore: Sequence[str] = ...,
        crosses: Sequence[str] = ...,
        numbers: str = ...,
        missing: Sequence[str] = ...,
        ngrams: str = ...,
        counts: bool = ...,
    ) -> None: ...
