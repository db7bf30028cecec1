"""Learners: one file per algorithm. A learner is a frozen value: its settings and its rule, never any data."""

from rarestream.learners.base import Learner, State, Weights, learner_names, make_learner
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.ftrl_auc import FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal

__all__ = ["DualAveraging", "FtrlAuc", "FtrlProximal", "Learner", "State", "Weights", "learner_names", "make_learner"]
