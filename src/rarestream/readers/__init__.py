"""Readers: files and streams to Blocks."""

from rarestream.readers import svmlight as _svmlight  # registers itself
from rarestream.readers.stream import Stream, read

__all__ = ["Stream", "read"]

del _svmlight
