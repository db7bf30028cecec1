"""rarestream learns to rank rare events on sparse, high-dimensional streams, one row at a time.

    from rarestream import DualAveraging, Model, read

    model = Model(DualAveraging(loss="auc"))
    for block in read("clicks.svm.gz"):
        scores = model.learn(block)
    model.save("clicks.rare")

Names are brought in when first used, so that `import rarestream` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rarestream._version import __version__

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.errors import DataError, MissingExtraError, ModelBusyError, ModelFileError, RarestreamError
    from rarestream.learners import DualAveraging, FtrlAuc, FtrlProximal, Learner, learner_names, make_learner
    from rarestream.metrics import Estimate, StreamingAuc, WindowedAuc, auc, auc_interval
    from rarestream.model import Model
    from rarestream.readers import read

__all__ = [
    "Block",
    "DataError",
    "DualAveraging",
    "Estimate",
    "FtrlAuc",
    "FtrlProximal",
    "Learner",
    "MissingExtraError",
    "Model",
    "ModelBusyError",
    "ModelFileError",
    "RarestreamError",
    "StreamingAuc",
    "WindowedAuc",
    "__version__",
    "auc",
    "auc_interval",
    "learner_names",
    "make_learner",
    "read",
]

_ROOMS = {
    "blocks": ["Block"],
    "errors": ["DataError", "MissingExtraError", "ModelBusyError", "ModelFileError", "RarestreamError"],
    "learners": ["DualAveraging", "FtrlAuc", "FtrlProximal", "Learner", "learner_names", "make_learner"],
    "metrics": ["Estimate", "StreamingAuc", "WindowedAuc", "auc", "auc_interval"],
    "model": ["Model"],
    "readers": ["read"],
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'rarestream' has no attribute {name!r}")
    value = getattr(import_module(f"rarestream.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
