"""Metrics of a ranking: AUC, exact, streaming and windowed, with confidence intervals; partial AUC, average precision,
recall; AUC within groups and of several classes; a detector of an AUC that falls; the calibration that makes
probabilities of scores, and measures of probabilities; curves; thresholds by a rule.

Names that a model does not need are imported when first used.
"""

from typing import TYPE_CHECKING

from rarestream.metrics.calibration import Calibration
from rarestream.metrics.curves import average_precision, recall_at_fpr
from rarestream.metrics.estimate import Bounded, Estimate
from rarestream.metrics.exact import auc, auc_difference, auc_interval
from rarestream.metrics.order import SortedCheck
from rarestream.metrics.streaming import StreamingAuc
from rarestream.metrics.thresholds import Costs, Decision, choose_threshold
from rarestream.metrics.windowed import WindowedAuc

if TYPE_CHECKING:
    from rarestream.metrics.classes import ClassesAuc, pairwise_auc
    from rarestream.metrics.drift import Alarm, DriftDetector
    from rarestream.metrics.groups import GroupAuc, GroupTable, group_auc
    from rarestream.metrics.partial import partial_auc
    from rarestream.metrics.plots import (
        LiftCurve,
        PrecisionRecallCurve,
        RocCurve,
        ScoreHistogram,
        lift_curve,
        precision_recall_curve,
        roc_curve,
        score_histogram,
    )
    from rarestream.metrics.probability import (
        Reliability,
        brier_score,
        calibration_error,
        log_loss,
        normalised_entropy,
        reliability,
    )

__all__ = [
    "Alarm",
    "Bounded",
    "Calibration",
    "ClassesAuc",
    "Costs",
    "Decision",
    "DriftDetector",
    "Estimate",
    "GroupAuc",
    "GroupTable",
    "LiftCurve",
    "PrecisionRecallCurve",
    "Reliability",
    "RocCurve",
    "ScoreHistogram",
    "SortedCheck",
    "StreamingAuc",
    "WindowedAuc",
    "auc",
    "auc_difference",
    "auc_interval",
    "average_precision",
    "brier_score",
    "calibration_error",
    "choose_threshold",
    "group_auc",
    "lift_curve",
    "log_loss",
    "normalised_entropy",
    "pairwise_auc",
    "partial_auc",
    "precision_recall_curve",
    "recall_at_fpr",
    "reliability",
    "roc_curve",
    "score_histogram",
]
_MODULES = {
    "classes": ["ClassesAuc", "pairwise_auc"],
    "drift": ["Alarm", "DriftDetector"],
    "groups": ["GroupAuc", "GroupTable", "group_auc"],
    "partial": ["partial_auc"],
    "plots": [
        "LiftCurve",
        "PrecisionRecallCurve",
        "RocCurve",
        "ScoreHistogram",
        "lift_curve",
        "precision_recall_curve",
        "roc_curve",
        "score_histogram",
    ],
    "probability": [
        "Reliability",
        "brier_score",
        "calibration_error",
        "log_loss",
        "normalised_entropy",
        "reliability",
    ],
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            value: object = getattr(import_module(f"rarestream.metrics.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'rarestream.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
