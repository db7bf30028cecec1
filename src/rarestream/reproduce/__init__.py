"""The FTRL-AUC paper, run again: its protocol, and the arithmetic of its code as it was published."""

from rarestream.reproduce.published import METHODS, Run, published_auc, run, runs
from rarestream.reproduce.rows import Rows

__all__ = ["METHODS", "Rows", "Run", "published_auc", "run", "runs"]
