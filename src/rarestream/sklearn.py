"""scikit-learn classifiers, one per learner, and a search over their settings.

They need the extra: pip install "rarestream[sklearn]".
"""

from typing import TYPE_CHECKING, Any

from rarestream.adapters.sklearn import classifiers

# isort: split
# After the line above, which says what to install.
from rarestream.adapters.search import RaceSearchCV as RaceSearchCV

globals().update(classifiers())
__all__ = sorted([*classifiers(), "RaceSearchCV"])

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
