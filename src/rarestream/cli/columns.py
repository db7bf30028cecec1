"""What `train` and `race` say of a table: how each column is read, once the first rows have decided it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rarestream.cli import look
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.cli.progress import ProgressBar
    from rarestream.features import TablePlan
    from rarestream.readers import Stream

MOST_LINES = 3  # of names, for columns of one kind
WIDEST_NAME = 30  # characters of a column's name
MEANT = {
    "any": "any (each value decides)",
    "category and number": "category, number",
    "date": "date (hour, weekday, month)",
}


class ColumnsShown:
    """Prints the plan of a table, once: for people on standard error, as JSON or as TOML on standard output."""

    def __init__(self, stream: Stream, *, json: bool, quiet: bool, config: bool = False) -> None:
        self._stream = stream
        self._json, self._quiet, self._config = json, quiet, config
        self._due = stream.features is None or config  # a model that has a plan has shown it before

    def show(self, progress: ProgressBar) -> None:
        """Print the plan if there is one that was not printed yet."""
        plan = getattr(self._stream.features, "plan", None)
        if not self._due or plan is None:
            return
        self._due = False
        if self._json:
            from rarestream.cli.progress import emit

            emit(record(plan))
        if not self._quiet:
            for line in lines(plan):
                progress.note(line)
        if self._config and not self._json:
            from rarestream.readers.tables import as_config

            progress.clear()
            print("\n".join(as_config(plan)), flush=True)


def record(plan: TablePlan) -> dict[str, Any]:
    """The plan as an event of --json."""
    from rarestream.features import column_kinds
    from rarestream.readers.tables import as_config

    columns = [{"name": name, "kind": kind} for name, kind in column_kinds(plan)]
    return {"event": "columns", "columns": columns, "crosses": list(plan.crosses), "config": "\n".join(as_config(plan))}


def lines(plan: TablePlan) -> list[str]:
    """The plan for people: the columns of each kind."""
    from rarestream.features import column_kinds

    kinds: dict[str, list[str]] = {}
    for name, kind in column_kinds(plan):
        kinds.setdefault(kind, []).append(plain(look.cut(name, WIDEST_NAME)))
    if plan.crosses:
        kinds["cross"] = [plain(cross) for cross in plan.crosses]
    words = {kind: MEANT.get(kind, kind) for kind in kinds}
    left = max(map(len, words.values()), default=0)
    found = ["columns, as the options and the first rows decide:"]
    for kind, names in kinds.items():
        parts = _listed(names, look.width() - left - 4)
        found += [f"  {'' if number else words[kind]:<{left}}  {part}" for number, part in enumerate(parts)]
    return found


def _listed(names: list[str], width: int) -> list[str]:
    """Names in a few lines; how many there are more, if they do not fit."""
    parts = look.wrap(", ".join(names), width)
    if len(parts) <= MOST_LINES:
        return parts
    shown = len(", ".join(parts[:MOST_LINES]).split(", ")) - 1
    while True:
        parts = look.wrap(f"{', '.join(names[:shown])} and {look.count(len(names) - shown)} more", width)
        if len(parts) <= MOST_LINES or shown <= 1:
            return parts[:MOST_LINES]
        shown -= 1
