"""Training and evaluation: a reader, a model and a metric together.

Progressive validation while training, evaluation on held-out rows, AUC against model size, and resuming. Names are
imported when first used: a command that trains evaluates nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rarestream.evaluate.days import days_covered
    from rarestream.evaluate.drawing import can_draw
    from rarestream.evaluate.figures import figure, figure_bytes
    from rarestream.evaluate.following import follow
    from rarestream.evaluate.grouping import read_groups
    from rarestream.evaluate.heldout import Curves, Evaluation, Evaluator, evaluate, has_learned
    from rarestream.evaluate.progress import Progress, ProgressMeter, StopTraining
    from rarestream.evaluate.resume import (
        Place,
        class_labels,
        column_base,
        place_in,
        place_of,
        reading_settings,
        remembered,
    )
    from rarestream.evaluate.scorefile import decide_on_scores, evaluate_scores
    from rarestream.evaluate.sizes import path
    from rarestream.evaluate.training import Saving, Step, TrainingRun, doubling, marks_every, train
    from rarestream.pruning import Path

__all__ = [
    "Curves",
    "Evaluation",
    "Evaluator",
    "Path",
    "Place",
    "Progress",
    "ProgressMeter",
    "Saving",
    "Step",
    "StopTraining",
    "TrainingRun",
    "can_draw",
    "class_labels",
    "column_base",
    "days_covered",
    "decide_on_scores",
    "doubling",
    "evaluate",
    "evaluate_scores",
    "figure",
    "figure_bytes",
    "follow",
    "has_learned",
    "marks_every",
    "path",
    "place_in",
    "place_of",
    "read_groups",
    "reading_settings",
    "remembered",
    "train",
]
_MODULES = {
    "days": ["days_covered"],
    "drawing": ["can_draw"],
    "figures": ["figure", "figure_bytes"],
    "following": ["follow"],
    "grouping": ["read_groups"],
    "heldout": ["Curves", "Evaluation", "Evaluator", "evaluate", "has_learned"],
    "progress": ["Progress", "ProgressMeter", "StopTraining"],
    "resume": ["Place", "class_labels", "column_base", "place_in", "place_of", "reading_settings", "remembered"],
    "scorefile": ["decide_on_scores", "evaluate_scores"],
    "sizes": ["Path", "path"],
    "training": ["Saving", "Step", "TrainingRun", "doubling", "marks_every", "train"],
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            value: object = getattr(import_module(f"rarestream.evaluate.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'rarestream.evaluate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
