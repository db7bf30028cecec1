"""River classifiers, one per learner, and two River metrics.

They need River: pip install "rarestream[river]". The classes are made from the registry of learners; what type checkers
and editors see is in river.pyi, which `make lint` keeps up to date.
"""

from rarestream.adapters.river import RollingAuc as RollingAuc
from rarestream.adapters.river import StreamingAuc as StreamingAuc
from rarestream.adapters.river import classifiers

globals().update(classifiers())
__all__ = sorted([*classifiers(), "RollingAuc", "StreamingAuc"])
