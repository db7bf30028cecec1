"""Readers: files and streams to Blocks.

Names are imported when first used: the command line needs the options of the formats, and not yet NumPy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rarestream.readers.stream import Stream as Stream
    from rarestream.readers.stream import read as read

__all__ = ["Stream", "read"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rarestream.readers' has no attribute {name!r}")
    from rarestream.readers import stream

    value: object = getattr(stream, name)
    globals()[name] = value
    return value
