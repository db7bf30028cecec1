"""The experiments of the FTRL-AUC paper: its protocol, with our learners or the arithmetic of its published code."""

from rarestream.reproduce.published import METHODS, Run, published_auc, run, runs
from rarestream.reproduce.rows import Rows

__all__ = ["METHODS", "Rows", "Run", "published_auc", "run", "runs"]
