"""Training and evaluation: a reader, a model and a metric together.

Progressive validation while training, evaluation on held-out rows, AUC against model size, and resuming.
"""

from rarestream.evaluate.heldout import Evaluation, Evaluator, evaluate, has_learned
from rarestream.evaluate.namespaces import NamespaceShare, Weight, changed_weights, largest_weights, namespace_shares
from rarestream.evaluate.resume import Place, column_base, place_in, reading_settings, remembered
from rarestream.evaluate.scorefile import evaluate_scores
from rarestream.evaluate.sizes import can_draw, figure, path
from rarestream.evaluate.training import Step, TrainingRun, doubling, train
from rarestream.pruning import Path

__all__ = [
    "Evaluation",
    "Evaluator",
    "NamespaceShare",
    "Path",
    "Place",
    "Step",
    "TrainingRun",
    "Weight",
    "can_draw",
    "changed_weights",
    "column_base",
    "doubling",
    "evaluate",
    "evaluate_scores",
    "figure",
    "has_learned",
    "largest_weights",
    "namespace_shares",
    "path",
    "place_in",
    "reading_settings",
    "remembered",
    "train",
]
