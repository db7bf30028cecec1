"""The model file: `format` turns a header and named arrays into bytes and back, `codec` a model into these."""

from rarestream.modelfile.format import DTYPES, FORMAT, from_bytes, peek, read, to_bytes, write

__all__ = ["DTYPES", "FORMAT", "from_bytes", "peek", "read", "to_bytes", "write"]
