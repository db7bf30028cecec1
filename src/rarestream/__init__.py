"""rarestream learns to rank rare events on sparse, high-dimensional streams, one row at a time.

    from rarestream import Model, read

    model = Model()
    for block in read("clicks.svm.gz"):
        scores = model.learn(block)
    model.save("clicks.rare")

Names are imported when first used, so that `import rarestream` and the command line start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rarestream._version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers; at run time names come from __getattr__, which knows every registered learner
    from rarestream.blocks import Block as Block
    from rarestream.errors import DataError as DataError
    from rarestream.errors import MissingExtraError as MissingExtraError
    from rarestream.errors import ModelBusyError as ModelBusyError
    from rarestream.errors import ModelFileError as ModelFileError
    from rarestream.errors import OutputError as OutputError
    from rarestream.errors import RarestreamError as RarestreamError
    from rarestream.errors import RowError as RowError
    from rarestream.errors import SortedRowsWarning as SortedRowsWarning
    from rarestream.learners import Learner as Learner
    from rarestream.learners import learner_names as learner_names
    from rarestream.learners import make_learner as make_learner
    from rarestream.learners.adagrad import AdaGrad as AdaGrad
    from rarestream.learners.adaoam import AdaOam as AdaOam
    from rarestream.learners.auto import Auto as Auto
    from rarestream.learners.dual_averaging import DualAveraging as DualAveraging
    from rarestream.learners.fsauc import Fsauc as Fsauc
    from rarestream.learners.ftrl_auc import FtrlAuc as FtrlAuc
    from rarestream.learners.ftrl_proximal import FtrlProximal as FtrlProximal
    from rarestream.learners.oam import Oam as Oam
    from rarestream.learners.opauc import Opauc as Opauc
    from rarestream.learners.rda import Rda as Rda
    from rarestream.learners.solam import Solam as Solam
    from rarestream.learners.spam import Spam as Spam
    from rarestream.learners.spauc import Spauc as Spauc
    from rarestream.metrics import Estimate as Estimate
    from rarestream.metrics import StreamingAuc as StreamingAuc
    from rarestream.metrics import WindowedAuc as WindowedAuc
    from rarestream.metrics import auc as auc
    from rarestream.metrics import auc_interval as auc_interval
    from rarestream.model import Model as Model
    from rarestream.readers import read as read

_PACKAGES = {
    "blocks": ["Block"],
    "errors": [
        "DataError",
        "MissingExtraError",
        "ModelBusyError",
        "ModelFileError",
        "OutputError",
        "RarestreamError",
        "RowError",
        "SortedRowsWarning",
    ],
    "learners": ["Learner", "learner_names", "make_learner"],
    "metrics": ["Estimate", "StreamingAuc", "WindowedAuc", "auc", "auc_interval"],
    "model": ["Model"],
    "readers": ["read"],
}
_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}


def _learners() -> dict[str, Any]:
    return {cls.__name__: cls for cls in import_module("rarestream.learners").learner_classes()}


if not TYPE_CHECKING:  # with a __getattr__ in view, a type checker would accept any misspelt name

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            value: Any = sorted([*_PACKAGE_OF, *_learners(), "__version__"])
        elif name in _PACKAGE_OF:
            value = getattr(import_module(f"rarestream.{_PACKAGE_OF[name]}"), name)
        elif name.startswith("_") or name not in _learners():
            raise AttributeError(f"module 'rarestream' has no attribute {name!r}")
        else:
            value = _learners()[name]
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
