"""Reader to model to metric: progressive validation while training, and evaluation on held-out rows."""

from rarestream.evaluate.heldout import Evaluation, Evaluator, evaluate
from rarestream.evaluate.resume import Place, place_in, remembered
from rarestream.evaluate.scorefile import evaluate_scores
from rarestream.evaluate.training import Run, Step, doubling, train

__all__ = [
    "Evaluation",
    "Evaluator",
    "Place",
    "Run",
    "Step",
    "doubling",
    "evaluate",
    "evaluate_scores",
    "place_in",
    "remembered",
    "train",
]
