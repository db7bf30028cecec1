"""What people watch while a model learns: its numbers over time, and the live page.

`Monitor` needs no extra; `web` and `dashboard` need those of [serve], and are imported when used.
"""

from rarestream.monitor.latencies import Latencies
from rarestream.monitor.monitor import Monitor

__all__ = ["Latencies", "Monitor"]
