"""scikit-learn classifiers, one per learner, and a search over their settings.

They need scikit-learn: pip install "rarestream[sklearn]". The classes are made from the registry of learners; what type
checkers and editors see is in sklearn.pyi, which `make lint` keeps up to date.
"""

from rarestream.adapters.sklearn import classifiers

# isort: split
# After the import above, whose error message says what to install.
from rarestream.adapters.search import RaceSearchCV as RaceSearchCV

globals().update(classifiers())
__all__ = sorted([*classifiers(), "RaceSearchCV"])
