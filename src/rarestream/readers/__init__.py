"""Files to Blocks."""

from rarestream.readers import svmlight as _svmlight  # registers itself
from rarestream.readers.order import SortedCheck
from rarestream.readers.stream import Stream, read

__all__ = ["SortedCheck", "Stream", "read"]

del _svmlight
