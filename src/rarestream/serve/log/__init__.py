"""The log of the service: entries in segment files, appended and never changed; who may write, and what damage is.

The format, byte by byte, and what is promised: docs/serve-log.md.
"""

from rarestream.serve.log.errors import LogBrokenError, LogDamagedError, LogError, LogFullError, StateLockedError
from rarestream.serve.log.lock import StateLock
from rarestream.serve.log.segment_log import SegmentLog
from rarestream.serve.log.segments import Record

__all__ = [
    "LogBrokenError",
    "LogDamagedError",
    "LogError",
    "LogFullError",
    "Record",
    "SegmentLog",
    "StateLock",
    "StateLockedError",
]
