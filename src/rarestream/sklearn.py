"""scikit-learn classifiers, one per learner, a search over their settings, and a transformer of tables.

They need scikit-learn: pip install "rarestream[sklearn]". The classes are made from the registry of learners; what type
checkers and editors see is in sklearn.pyi, which `make lint` keeps up to date.
"""

from rarestream.adapters.sklearn import classifiers

# isort: split
# After the import above, whose error message says what to install.
from rarestream.adapters.search import RaceSearchCV as RaceSearchCV
from rarestream.adapters.space import FeatureSpace as FeatureSpace

globals().update(classifiers())
__all__ = sorted([*classifiers(), "FeatureSpace", "RaceSearchCV"])
