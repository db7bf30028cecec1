"""Reader to model to metric: progressive validation while training, and evaluation on held-out rows."""

from rarestream.evaluate.heldout import Evaluation, Evaluator, evaluate, has_learned
from rarestream.evaluate.resume import Place, place_in, remembered
from rarestream.evaluate.scorefile import evaluate_scores
from rarestream.evaluate.sizes import can_draw, figure, path
from rarestream.evaluate.training import Run, Step, doubling, train
from rarestream.pruning import Path

__all__ = [
    "Evaluation",
    "Evaluator",
    "Path",
    "Place",
    "Run",
    "Step",
    "can_draw",
    "doubling",
    "evaluate",
    "evaluate_scores",
    "figure",
    "has_learned",
    "path",
    "place_in",
    "remembered",
    "train",
]
