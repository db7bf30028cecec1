"""scikit-learn classifiers, one per learner. They need the extra: pip install "rarestream[sklearn]"."""

from typing import TYPE_CHECKING, Any

from rarestream.adapters.sklearn import classifiers

globals().update(classifiers())
__all__ = sorted(classifiers())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
