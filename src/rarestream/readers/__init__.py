"""Readers: files and streams to Blocks."""

from rarestream.readers.stream import Stream, read

__all__ = ["Stream", "read"]
