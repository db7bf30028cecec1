"""Metrics of a ranking: AUC, exact, streaming and windowed, with confidence intervals; average precision; recall; and
the calibration that makes probabilities of scores.
"""

from rarestream.metrics.calibration import Calibration
from rarestream.metrics.curves import average_precision, recall_at_fpr
from rarestream.metrics.estimate import Estimate
from rarestream.metrics.exact import auc, auc_difference, auc_interval
from rarestream.metrics.order import SortedCheck
from rarestream.metrics.streaming import StreamingAuc
from rarestream.metrics.windowed import WindowedAuc

__all__ = [
    "Calibration",
    "Estimate",
    "SortedCheck",
    "StreamingAuc",
    "WindowedAuc",
    "auc",
    "auc_difference",
    "auc_interval",
    "average_precision",
    "recall_at_fpr",
]
