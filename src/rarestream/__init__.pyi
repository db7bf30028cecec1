"""The public names of rarestream. Written by tests/generated.py."""

from rarestream._version import __version__ as __version__
from rarestream.blocks import Block as Block
from rarestream.converting import convert as convert
from rarestream.errors import DataError as DataError
from rarestream.errors import ExportError as ExportError
from rarestream.errors import FewRowsWarning as FewRowsWarning
from rarestream.errors import MissingExtraError as MissingExtraError
from rarestream.errors import ModelBusyError as ModelBusyError
from rarestream.errors import ModelFileError as ModelFileError
from rarestream.errors import NotCalibratedError as NotCalibratedError
from rarestream.errors import OutputError as OutputError
from rarestream.errors import RarestreamError as RarestreamError
from rarestream.errors import RoundsStoppedWarning as RoundsStoppedWarning
from rarestream.errors import RowError as RowError
from rarestream.errors import SettingsDroppedWarning as SettingsDroppedWarning
from rarestream.errors import SortedRowsWarning as SortedRowsWarning
from rarestream.evaluate.following import follow as follow
from rarestream.features.space import Columns as Columns
from rarestream.features.space import Hashed as Hashed
from rarestream.learners.adagrad import AdaGrad as AdaGrad
from rarestream.learners.adaoam import AdaOam as AdaOam
from rarestream.learners.auto import Auto as Auto
from rarestream.learners.base import Learner as Learner
from rarestream.learners.dual_averaging import DualAveraging as DualAveraging
from rarestream.learners.fsauc import Fsauc as Fsauc
from rarestream.learners.ftrl_auc import FtrlAuc as FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal as FtrlProximal
from rarestream.learners.oam import Oam as Oam
from rarestream.learners.opauc import Opauc as Opauc
from rarestream.learners.rda import Rda as Rda
from rarestream.learners.registry import learner_names as learner_names
from rarestream.learners.registry import make_learner as make_learner
from rarestream.learners.solam import Solam as Solam
from rarestream.learners.spam import Spam as Spam
from rarestream.learners.spauc import Spauc as Spauc
from rarestream.metrics.estimate import Estimate as Estimate
from rarestream.metrics.exact import auc as auc
from rarestream.metrics.exact import auc_interval as auc_interval
from rarestream.metrics.streaming import StreamingAuc as StreamingAuc
from rarestream.metrics.windowed import WindowedAuc as WindowedAuc
from rarestream.model import Model as Model
from rarestream.one_vs_rest import OneVsRest as OneVsRest
from rarestream.readers.stream import read as read
from rarestream.splitting.splitting import split as split

__all__ = [
    "AdaGrad",
    "AdaOam",
    "Auto",
    "Block",
    "Columns",
    "DataError",
    "DualAveraging",
    "Estimate",
    "ExportError",
    "FewRowsWarning",
    "Fsauc",
    "FtrlAuc",
    "FtrlProximal",
    "Hashed",
    "Learner",
    "MissingExtraError",
    "Model",
    "ModelBusyError",
    "ModelFileError",
    "NotCalibratedError",
    "Oam",
    "OneVsRest",
    "Opauc",
    "OutputError",
    "RarestreamError",
    "Rda",
    "RoundsStoppedWarning",
    "RowError",
    "SettingsDroppedWarning",
    "Solam",
    "SortedRowsWarning",
    "Spam",
    "Spauc",
    "StreamingAuc",
    "WindowedAuc",
    "__version__",
    "auc",
    "auc_interval",
    "convert",
    "follow",
    "learner_names",
    "make_learner",
    "read",
    "split",
]
