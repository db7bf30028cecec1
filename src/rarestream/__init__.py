"""rarestream learns to rank rare events on sparse, high-dimensional streams, one row at a time.

from rarestream import DualAveraging, Model, read

model = Model(DualAveraging(loss="auc"))
for block in read("clicks.svm.gz"):
    scores = model.learn(block)
model.save("clicks.rare")
"""

from rarestream._version import __version__
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
