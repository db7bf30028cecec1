"""Splitting: the rows of files into parts, such as train and test, without loading them."""

from rarestream.splitting.splitting import SplitPart, SplitResult, split

__all__ = ["SplitPart", "SplitResult", "split"]
