"""rarestream on Apache Spark: the same learners, features and model files, on frames and streams of Spark.

`fit` learns a frame on the cluster and returns an ordinary Model, `score` adds the scores of any model to a frame,
`pack` prepares rows that are to be learned several times, `stream_fit` learns a stream, and `RarestreamClassifier` is
an estimator for Spark's pipelines. The extra `rarestream[spark]` installs what it needs; workers need it too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rarestream.spark.fitting import fit, receipt
    from rarestream.spark.ml import RarestreamClassifier, RarestreamClassifierModel
    from rarestream.spark.packing import pack
    from rarestream.spark.scoring import score
    from rarestream.spark.streaming import stream_fit

_MODULES = {
    "RarestreamClassifier": "ml",
    "RarestreamClassifierModel": "ml",
    "fit": "fitting",
    "pack": "packing",
    "receipt": "fitting",
    "score": "scoring",
    "stream_fit": "streaming",
}

__all__ = [
    "RarestreamClassifier",
    "RarestreamClassifierModel",
    "fit",
    "pack",
    "receipt",
    "score",
    "stream_fit",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rarestream.spark' has no attribute {name!r}")
    from rarestream.spark.errors import require_pyspark

    require_pyspark()
    return getattr(import_module(f"rarestream.spark.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
