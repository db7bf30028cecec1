"""The join as its rules have it: everything in memory, plain loops, no watermarks. Written only to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Row = tuple[bytes, float, bytes]  # key, time, and a payload or a label


class Result(NamedTuple):
    joined: list[tuple[bytes, bytes | None]]  # payload and label, in the order of the events
    counts: dict[str, int]


def in_order(rows: Sequence[Row], disorder: float, jump: float) -> tuple[list[Row], int]:
    """The rows whose times can be right, and how many others there are."""
    taken: list[Row] = []
    refused = 0
    latest = -math.inf
    held: Row | None = None
    for row in rows:
        time = row[1]
        if held is not None:
            if time >= held[1] - disorder:
                taken.append(held)
                latest = held[1]
            else:
                refused += 1
            held = None
        if time < latest - disorder:
            refused += 1
        elif taken and time - latest > jump:
            held = row
        else:
            taken.append(row)
            latest = max(latest, time)
    return (taken if held is None else [*taken, held]), refused


def join(
    events: Sequence[Row], labels: Sequence[Row], within: float, disorder: float, jump: float, keep_unmatched: bool
) -> Result:
    good_events, refused_events = in_order(events, disorder, jump)
    good_labels, refused_labels = in_order(labels, disorder, jump)

    kept: list[Row] = []
    for key, time, payload in good_events:
        if not any(other == key and abs(time - at) <= 2 * within for other, at, _ in kept):
            kept.append((key, time, payload))

    label_of: dict[int, bytes] = {}  # by the number of the event
    duplicates = late = without = 0
    for key, time, label in good_labels:
        own = [i for i, (other, at, _) in enumerate(kept) if other == key and abs(time - at) <= within]
        assert len(own) <= 1
        if own and own[0] in label_of:
            duplicates += 1
        elif own:
            label_of[own[0]] = label
        elif any(other == key and within < time - at <= 2 * within for other, at, _ in kept):
            late += 1
        else:
            without += 1

    joined = [(payload, label_of.get(i)) for i, (_, _, payload) in enumerate(kept) if keep_unmatched or i in label_of]
    counts = {
        "events": len(events),
        "labels": len(labels),
        "matched": len(label_of),
        "unmatched": len(kept) - len(label_of),
        "duplicate_events": len(good_events) - len(kept),
        "refused_events": refused_events,
        "duplicate_labels": duplicates,
        "late_labels": late,
        "labels_without_event": without,
        "refused_labels": refused_labels,
    }
    return Result(joined, counts)
