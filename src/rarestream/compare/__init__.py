"""Compare every learner, and methods of scikit-learn, on a user's rows: same splits, same tuning effort."""

from rarestream.compare.comparing import Comparison, compare
from rarestream.compare.methods import METHODS
from rarestream.compare.page import page
from rarestream.compare.standings import Standing, csv, markdown, standings

__all__ = ["METHODS", "Comparison", "Standing", "compare", "csv", "markdown", "page", "standings"]
