"""Metrics of a ranking: AUC, exact, streaming and windowed, with confidence intervals; average precision; recall;
thresholds by a rule; and the calibration that makes probabilities of scores.
"""

from rarestream.metrics.calibration import Calibration
from rarestream.metrics.curves import average_precision, recall_at_fpr
from rarestream.metrics.estimate import Estimate
from rarestream.metrics.exact import auc, auc_difference, auc_interval
from rarestream.metrics.order import SortedCheck
from rarestream.metrics.streaming import StreamingAuc
from rarestream.metrics.thresholds import Costs, Decision, choose_threshold
from rarestream.metrics.windowed import WindowedAuc

__all__ = [
    "Calibration",
    "Costs",
    "Decision",
    "Estimate",
    "SortedCheck",
    "StreamingAuc",
    "WindowedAuc",
    "auc",
    "auc_difference",
    "auc_interval",
    "average_precision",
    "choose_threshold",
    "recall_at_fpr",
]
