"""scikit-learn classifiers, one per learner. They need the extra: pip install "rarestream[sklearn]"."""

from rarestream.adapters.sklearn import DualAveragingClassifier, FtrlAucClassifier, FtrlProximalClassifier

__all__ = ["DualAveragingClassifier", "FtrlAucClassifier", "FtrlProximalClassifier"]
