"""The numbers of the service as Prometheus reads them, collected when they are asked for.

Requests only add to plain counts (`counts.py`); everything else is asked of the service once per scrape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from rarestream.serve.http.counts import BOUNDS, Counts

if TYPE_CHECKING:
    from rarestream.serve.http.application import Application

# Gauges and counters of `Service.statistics`: name, help, and the keys that lead to the number. What the service does
# not have is left out, as Prometheus wants it.
GAUGES: list[tuple[str, str, tuple[str, ...]]] = [
    ("model_version", "Version of the model that answers.", ("version",)),
    ("sequence", "Sequence number of the last entry of the log that was applied.", ("sequence",)),
    ("model_rows", "Rows that the model has learned.", ("rows",)),
    ("model_positives", "Positive rows that the model has learned.", ("positives",)),
    ("model_nonzeros", "Weights of the model that are not zero.", ("nonzeros",)),
    ("model_features", "Features that the model has seen.", ("n_features",)),
    ("model_bytes", "Bytes of the model's state in memory.", ("state_bytes",)),
    ("drift_alarm", "1 while the drift alarm is on.", ("drift", "alarm")),
    ("drift_statistic", "Statistic of the drift detector.", ("drift", "statistic")),
    ("drift_limit", "Value of the statistic that raises the alarm.", ("drift", "limit")),
    ("pending_labels", "Rows that wait for their label.", ("labels", "waiting")),
    ("queue_rows", "Rows that wait to be learned.", ("queue", "rows")),
    ("queue_bytes", "Bytes of the rows that wait to be learned.", ("queue", "bytes")),
    ("queue_limit", "Rows that may wait before others are refused.", ("queue", "limit")),
    ("log_bytes", "Bytes of the log on disk.", ("disk", "log_bytes")),
    ("snapshot_sequence", "Sequence number of the newest snapshot.", ("disk", "snapshot_sequence")),
    ("snapshot_age_seconds", "Age of the newest snapshot.", ("disk", "snapshot_age")),
    ("learning", "1 while the service learns.", ("learning",)),
    ("disk_full", "1 while the disk is full and nothing is learned.", ("disk", "full")),
    ("shadow_auc_difference", "AUC of the shadow model minus that of the model.", ("shadow", "difference", "value")),
]
COUNTERS: list[tuple[str, str, tuple[str, ...]]] = [
    ("drift_alarms", "Drift alarms so far.", ("drift", "count")),
    ("labels_joined", "Labels that met their row.", ("labels", "joined")),
    ("labels_late", "Labels that came after their time.", ("labels", "late")),
    ("labels_unknown", "Labels for ids without a row.", ("labels", "unknown")),
    ("labels_duplicate", "Labels of rows that had one.", ("labels", "duplicate")),
    ("rows_unlabelled", "Rows whose label did not come in time.", ("labels", "unlabelled")),
]
AUCS = [("auc", "Progressive AUC over all rows.", "auc"), ("window_auc", "AUC of the latest rows.", "window_auc")]


class Metrics(Collector):
    """Collects the numbers of one application."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the numbers and their content type, in the format that the scraper prefers."""
        encoder, kind = choose_encoder(accept)
        return encoder(self._registry), kind

    def describe(self) -> list[Metric]:
        """Return nothing: names are not known before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield every number."""
        counts = self._app.total_counts()
        yield from _requests(counts)
        yield from _rows(counts)
        statistics = self._app.service.statistics() if self._app.service.ready else {}
        for name, text, keys in GAUGES:
            if (value := _found(statistics, keys)) is not None:
                yield GaugeMetricFamily(f"rarestream_{name}", text, value)
        for name, text, keys in COUNTERS:
            if (value := _found(statistics, keys)) is not None:
                yield CounterMetricFamily(f"rarestream_{name}", text, value)
        for name, text, key in AUCS:
            gauge = GaugeMetricFamily(f"rarestream_{name}", f"{text} low and high: 95 % interval.", labels=["bound"])
            for bound in ("value", "low", "high"):
                if (value := _found(statistics, (key, bound))) is not None:
                    gauge.add_metric([bound], value)
            if gauge.samples:
                yield gauge
        yield GaugeMetricFamily("rarestream_ready", "1 if requests are answered.", float(self._app.service.ready))
        if (memory := _memory()) is not None:
            yield GaugeMetricFamily("rarestream_memory_bytes", "Resident memory of the process.", memory)


def _requests(total: Counts) -> Iterator[Metric]:
    answers = CounterMetricFamily("rarestream_requests", "Requests answered.", labels=["method", "path", "status"])
    seconds = HistogramMetricFamily(
        "rarestream_request_seconds", "Time from headers to answer.", labels=["method", "path"]
    )
    for (method, path), counts in total.routes.items():
        for status, number in counts.statuses.items():
            answers.add_metric([method, path, str(status)], number)
        if counts.statuses:
            totals = list(accumulate(counts.buckets))
            bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
            buckets = list(zip(bounds, map(float, totals), strict=True))
            seconds.add_metric([method, path], buckets, counts.seconds)
    for status, number in total.refused.items():
        answers.add_metric(["", "", str(status)], number)
    yield answers
    yield seconds


def _rows(total: Counts) -> Iterator[Metric]:
    yield CounterMetricFamily("rarestream_rows_predicted", "Rows scored over HTTP.", total.predicted)
    yield CounterMetricFamily("rarestream_rows_learned", "Rows learned over HTTP.", total.learned)
    yield CounterMetricFamily("rarestream_rows_labelled", "Stored rows learned over HTTP.", total.labelled)


def _found(statistics: dict[str, Any], keys: tuple[str, ...]) -> float | None:
    value: Any = statistics
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _memory() -> float | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return None
