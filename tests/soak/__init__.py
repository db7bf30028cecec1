"""A service at full load: its memory must not grow once it has warmed up.

    python -m tests.soak --seconds 600

What may grow is kept steady, so that only what should not grow can: rows have a fixed set of features, stored rows wait
a second for their labels, requests have no idempotency keys, of which 100,000 are remembered, and the log is cut. A
shadow learns for part of the time, a live page is open, /metrics is read and snapshots are made.
"""
