"""Batches without input and output: what is queued, what is sent together, and what became of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rarestream.client import requests
from rarestream.client.answers import Labelled, Learned
from rarestream.client.encoding import checked_id, checked_importance, checked_label, encoded_row, from_json
from rarestream.client.errors import BatchError, FailedRow, Row, ServiceError, ServiceUnavailableError
from rarestream.errors import DataError

MOST_BYTES = 4 << 20  # of the rows of a request
QUEUE_BYTES = 64 << 20  # of all rows that wait
MOST_FAILED = 1_000  # that are kept until someone looks


class Item(NamedTuple):
    """A row or a label that waits."""

    number: int
    row: bytes | None
    id: str | None
    label: int
    importance: float | None

    @property
    def size(self) -> int:
        return len(self.row) if self.row is not None else len(self.id or "")

    def failed(self, code: str, reason: str, error: ServiceError | None = None) -> FailedRow:
        row: Any = None if self.row is None else from_json(self.row)
        uncertain = isinstance(error, ServiceUnavailableError) and error.uncertain
        return FailedRow(self.number, row, self.id, self.label, self.importance, code, reason, error, uncertain)


class Part:
    """Items that are sent in one request: all rows, or all labels."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items

    def request(self) -> requests.Request[Any]:
        """Return the request, with a key of its own: call it once, so that a retry has the same key."""
        items = self.items
        if items[0].row is None:
            return requests.label_checked([(item.id or "", item.label) for item in items], None)
        importances = None
        if any(item.importance is not None for item in items):
            importances = [1.0 if item.importance is None else item.importance for item in items]
        rows = [item.row or b"" for item in items]
        return requests.learn_encoded(rows, [item.label for item in items], importances, None)

    def after(self, answer: Learned | Labelled) -> list[FailedRow]:
        """Return what the service took and did not learn."""
        failed = [self.items[one.row].failed("refused", one.reason) for one in answer.refused]
        if isinstance(answer, Labelled):
            for code, ids, reason in (
                ("unknown", answer.unknown, "no row is stored under this id"),
                ("duplicate", answer.duplicate, "this row has a label already"),
                ("late", answer.late, "the time for this label is over"),
            ):
                waiting: dict[str, list[Item]] = {}
                for item in self.items:
                    waiting.setdefault(item.id or "", []).append(item)
                # Of several labels for one id, the first may have been learned: the later ones are to blame.
                failed += [waiting[id].pop().failed(code, reason) for id in ids if waiting.get(id)]
        return sorted(failed, key=lambda one: one.number)

    def without(self, error: ServiceError) -> tuple[list[Part], list[FailedRow]]:
        """The request was refused, nothing of it learned: return what to send in its place, and what failed."""
        items = self.items
        if error.row is not None and 0 <= error.row < len(items):
            rest = items[: error.row] + items[error.row + 1 :]
            return [Part(rest)] if rest else [], [items[error.row].failed(error.code, error.message, error)]
        if error.status == 413 and len(items) > 1:
            half = len(items) // 2
            return [Part(items[:half]), Part(items[half:])], []
        return [], [item.failed(error.code, error.message, error) for item in items]


class BatchQueue:
    """The items of a batch that wait, and the failures nobody has seen yet. Whoever uses it locks it."""

    def __init__(
        self, size: int, seconds: float, queue: int, full: str, on_failed: Callable[[FailedRow], object] | None
    ) -> None:
        for name, value in (("size", size), ("queue", queue)):
            if not isinstance(value, int) or value < 1:
                raise DataError(f"{name} must be a whole number >= 1; got {value!r:.80}.")
        if not 0 <= seconds < float("inf"):
            raise DataError(f"seconds must be a number >= 0; got {seconds!r:.80}.")
        if full not in ("wait", "raise"):
            raise DataError(f'full must be "wait" or "raise"; got {full!r:.80}.')
        self.size, self.seconds, self.most, self.on_failed = size, seconds, queue, on_failed
        self.raises = full == "raise"
        self.items: deque[Item] = deque()
        self.bytes = 0
        self.added = 0  # items, ever
        self.finished = 0  # items of which is known what became of them
        self.learned = 0
        self.failures = 0
        self.failed: list[FailedRow] = []
        self.wrong: BaseException | None = None  # raised by on_failed

    def row_item(self, row: Row, label: int, importance: float | None) -> Item:
        weight = None if importance is None else checked_importance(importance)
        return Item(self.added, encoded_row(row), None, checked_label(label), weight)

    def label_item(self, id: str, label: int) -> Item:
        return Item(self.added, None, checked_id(id), checked_label(label), None)

    @property
    def is_full(self) -> bool:
        return len(self.items) >= self.most or self.bytes >= QUEUE_BYTES

    @property
    def blocked(self) -> bool:
        """Whether so much has failed that nothing more is taken until someone has looked."""
        return self.wrong is not None or len(self.failed) >= MOST_FAILED

    def add(self, item: Item) -> None:
        self.items.append(item._replace(number=self.added))
        self.added += 1
        self.bytes += item.size

    @property
    def is_due(self) -> bool:
        """Whether there is a whole request, or no space for more of it."""
        return len(self.items) >= self.size or self.bytes >= MOST_BYTES or self.is_full

    def take(self) -> Part:
        """Return the first items: at most `size`, all rows or all labels."""
        items = [self.items.popleft()]
        size = items[0].size
        labels = items[0].row is None
        while self.items and len(items) < self.size and (self.items[0].row is None) == labels:
            size += self.items[0].size
            if size > MOST_BYTES:
                break
            items.append(self.items.popleft())
        self.bytes -= sum(item.size for item in items)
        return Part(items)

    def tell(self, failed: Iterable[FailedRow]) -> list[FailedRow]:
        """Pass failures to on_failed; return those to keep. Called without the lock: on_failed may use the batch."""
        kept = []
        for one in failed:
            if self.on_failed is None or self.wrong is not None:
                kept.append(one)
                continue
            try:
                self.on_failed(one)
            except BaseException as error:  # raised again where the caller of the batch sees it
                self.wrong = error
                kept.append(one)
        return kept

    def finish(self, items: int, learned: int, failures: int, kept: Iterable[FailedRow]) -> None:
        """Count items of which is now known what became of them."""
        self.finished += items
        self.learned += learned
        self.failures += failures
        self.failed += kept

    def check(self) -> None:
        """Raise what has failed since the last time."""
        if self.wrong is not None:
            wrong, self.wrong = self.wrong, None
            wrong.add_note("Raised by on_failed of a batch.")
            raise wrong
        if self.failed:
            failed, self.failed = self.failed, []
            first = failed[0]
            what = f"row {first.number}" if first.id is None else f"the label of id {first.id!r:.80}"
            many = "1 row or label was" if len(failed) == 1 else f"{len(failed)} rows or labels were"
            raise BatchError(f"{many} not learned. The first is {what}: {first.reason}", failed)
