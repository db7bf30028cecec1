"""Training and evaluation: a reader, a model and a metric together.

Progressive validation while training, evaluation on held-out rows, AUC against model size, and resuming.
"""

from rarestream.evaluate.heldout import Evaluation, Evaluator, evaluate, has_learned
from rarestream.evaluate.resume import Place, column_base, place_in, reading_settings, remembered
from rarestream.evaluate.scorefile import evaluate_scores
from rarestream.evaluate.sizes import can_draw, figure, path
from rarestream.evaluate.training import Step, TrainingRun, doubling, train
from rarestream.pruning import Path

__all__ = [
    "Evaluation",
    "Evaluator",
    "Path",
    "Place",
    "Step",
    "TrainingRun",
    "can_draw",
    "column_base",
    "doubling",
    "evaluate",
    "evaluate_scores",
    "figure",
    "has_learned",
    "path",
    "place_in",
    "reading_settings",
    "remembered",
    "train",
]
