"""rarestream learns to rank rare events on sparse, high-dimensional streams, one row at a time."""

from rarestream.blocks import Block

__all__ = ["Block"]
