"""Classifiers for River, and two metrics. Written by tests/generated.py."""

from typing import Any, ClassVar

from rarestream.adapters.river import RollingAuc as RollingAuc
from rarestream.adapters.river import StreamClassifier
from rarestream.adapters.river import StreamingAuc as StreamingAuc
from rarestream.learners import Learner

__all__ = [
    "AdaGrad",
    "AdaOam",
    "Auto",
    "DualAveraging",
    "Fsauc",
    "FtrlAuc",
    "FtrlProximal",
    "Oam",
    "Opauc",
    "Rda",
    "RollingAuc",
    "Solam",
    "Spam",
    "Spauc",
    "StreamingAuc",
]

class AdaGrad(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class AdaOam(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Auto(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class DualAveraging(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Fsauc(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class FtrlAuc(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class FtrlProximal(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Oam(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Opauc(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Rda(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Solam(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Spam(StreamClassifier):
    learner: ClassVar[type[Learner]]
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
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...

class Spauc(StreamClassifier):
    learner: ClassVar[type[Learner]]
    mu: float
    l1: float
    def __init__(
        self,
        *,
        mu: float = ...,
        l1: float = ...,
        dtype: str = ...,
        scale: str = ...,
        bits: int = ...,
        numbers: str = ...,
        positive: Any = ...,
    ) -> None: ...
