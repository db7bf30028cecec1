"""rarestream join: events and labels that come later to rows with labels."""

from __future__ import annotations

import sys
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rarestream.cli import durations, look, options, outputs, sizes
from rarestream.cli.parser import Argument, Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.joining.tables import TableJoin

FORMATS = ("csv", "jsonl")
REDRAWN = 0.2  # seconds between two states of the live line

Events = Annotated[
    str, Argument("EVENTS", help="A CSV, TSV or JSON lines file, a glob, or - for standard input; may be compressed.")
]
Labels = Annotated[str, Argument("LABELS", help="A file of labels, in any of these formats too.")]
Key = Annotated[
    str, Option("--key", "-k", metavar="COLUMN", help="The column of both that says which label is of which event.")
]
Within = Annotated[
    str,
    Option("--within", "-w", metavar="TIME", help="How long after its event a label may come: 30s, 30m, 12h, 7d."),
]
LabelKey = Annotated[
    str | None, Option("--label-key", metavar="COLUMN", help="That column of LABELS.", default="as in --key")
]
Time = Annotated[
    str | None,
    Option("--time", metavar="COLUMN", help="The column of EVENTS with their times.", default="the one with dates"),
]
LabelTime = Annotated[
    str | None,
    Option("--label-time", metavar="COLUMN", help="That column of LABELS.", default="as in --time, else with dates"),
]
LabelColumn = Annotated[
    str | None,
    Option("--label", metavar="COLUMN", help="The column of LABELS to add.", default="1 for every row of LABELS"),
]
Positive = Annotated[
    str | None,
    Option("--positive", metavar="VALUE", help="Write this label as 1 and all others as 0.", default="as they are"),
]
As = Annotated[
    str | None, Option("--as", metavar="NAME", help="Name of the added column.", default="as in --label, else label")
]
Unmatched = Annotated[
    str,
    Option(
        "--unmatched",
        metavar="WHAT",
        help="What becomes of events without a label: negative (0) or drop.",
        choices=lambda: ("negative", "drop"),
    ),
]
Order = Annotated[
    str,
    Option(
        "--order",
        metavar="WHAT",
        help="Order of the rows written: event, or match, each as soon as its label is known.",
        choices=lambda: ("event", "match"),
    ),
]
Disorder = Annotated[
    str, Option("--disorder", metavar="TIME", help="How far rows of a file may be out of order.", default="5m")
]
Memory = Annotated[
    str,
    Option("--memory", metavar="SIZE", help="Memory for rows that wait; the rest goes to a temporary file."),
]
Folder = Annotated[
    Path | None,
    Option("--temporary", metavar="FOLDER", help="Folder of that file.", default="as the system has it"),
]
Output = Annotated[
    Path | None,
    Option(
        "--output", "-o", metavar="FILE", help="The file to write, compressed by its suffix.", default="standard output"
    ),
]
EventsFormat = Annotated[
    str | None,
    Option(
        "--format", metavar="NAME", help="Format of EVENTS: csv or jsonl.", choices=lambda: FORMATS, default="found"
    ),
]
LabelsFormat = Annotated[
    str | None,
    Option("--label-format", metavar="NAME", help="Format of LABELS.", choices=lambda: FORMATS, default="found"),
]
Columns = Annotated[
    list[str] | None,
    Option("--columns", metavar="NAMES", help="Columns of EVENTS if its first row is data.", split=True),
]
LabelColumns = Annotated[
    list[str] | None, Option("--label-columns", metavar="NAMES", help="The same of LABELS.", split=True)
]
NoQuoting = Annotated[bool, Option("--no-quoting", help="Take quotes in CSV files as ordinary characters.")]
MaxBadRows = Annotated[
    int, Option("--max-bad-rows", metavar="N", help="Maximum number of invalid rows to skip, of both files.", min=0)
]
Json = Annotated[
    bool,
    Option("--json", help="Print the summary as JSON, on standard output, or on standard error if the rows go there."),
]


def join(
    events: Events,
    labels: Labels,
    key: Key,
    within: Within,
    time: Time = None,
    label: LabelColumn = None,
    positive: Positive = None,
    unmatched: Unmatched = "negative",
    as_: As = None,
    output: Output = None,
    order: Order = "event",
    label_key: LabelKey = None,
    label_time: LabelTime = None,
    disorder: Disorder = "5m",
    memory: Memory = "500M",
    temporary: Folder = None,
    max_bad_rows: MaxBadRows = 0,
    format: EventsFormat = None,
    label_format: LabelsFormat = None,
    columns: Columns = None,
    label_columns: LabelColumns = None,
    no_quoting: NoQuoting = False,
    overwrite: outputs.OverwriteAny = False,
    json: Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Join events with labels that come later.

    Writes the rows of EVENTS in their order, as they are, with a label column added: that of the row of LABELS with the
    same key and a time at most --within away, and 0 for events without one. Both files are read once, in the order of
    time, so memory holds only the window. Times are ISO dates, or numbers since 1970.
    """
    from rarestream.joining.tables import TableJoin
    from rarestream.readers.options import as_label
    from rarestream.readers.picking import PickedTable, Wanted
    from rarestream.writers.files import opened

    window, slack = durations.seconds(within, "--within"), durations.seconds(disorder, "--disorder", zero=True)
    most = sizes.size_in_bytes(memory, "--memory")
    if positive is not None and label is None:
        raise UsageError("needs --label, the column of LABELS that has the labels.", "--positive")
    try:
        wanted = None if positive is None else as_label(positive)
    except ValueError:
        raise UsageError(f"must be a number or a text, got {positive!r}.", "--positive") from None
    name = as_ or label or "label"
    for word, other in (("--label", label), ("--label-time", label_time)):
        if other is not None and other == (label_key or key):
            raise UsageError(f"{plain(other)} is the key already.", word)
    if time == key:
        raise UsageError(f"{plain(key)} is the key already.", "--time")
    if label is not None and label == (label_time or time):
        raise UsageError(f"{plain(label)} is the time already.", "--label")
    if events == labels == "-":
        raise UsageError("only one of EVENTS and LABELS can be standard input.", "LABELS")
    options.check_paths([events, labels])
    if temporary is not None and not temporary.is_dir():
        raise UsageError(f"{plain(temporary)} is not a folder.", "--temporary")
    if str(output) in ("-", "/dev/stdout"):
        output = None
    if output is not None:
        outputs.for_file(output, outputs.files_of([events, labels]), overwrite, "--output")
    quoting = not no_quoting
    left = PickedTable(
        events,
        Wanted(key, time or "", absent=name),
        max_bad_rows,
        format,
        time_option="--time",
        key_option="--key",
        columns=tuple(columns or ()),
        quoting=quoting,
    )
    right = PickedTable(
        labels,
        Wanted(label_key or key, label_time or "", label or "", rows=False),
        max_bad_rows,
        label_format,
        usual_time=time or "",
        time_option="--label-time",
        key_option="--key" if label_key is None else "--label-key",
        label_option="--label",
        columns=tuple(label_columns or ()),
        quoting=quoting,
    )
    joined = TableJoin(
        left,
        right,
        name=name,
        within=window,
        unmatched=unmatched,
        positive=wanted,
        max_bad_rows=max_bad_rows,
        quoting=quoting,
        order=order,
        disorder=slack,
        memory=most,
        folder=None if temporary is None else str(temporary),
    )
    started = clock.monotonic()
    show = _Show(joined, started, not quiet and not json, (time, label_time))
    at_once = left.piped or right.piped  # whoever writes to a pipe may be waiting for an answer
    try:
        with opened("-" if output is None else str(output)) as file:
            for text in joined:
                file.write(text)
                if at_once:
                    file.flush()
                show.step()
    finally:
        show.clear()
    seconds = clock.monotonic() - started
    if json:
        record = {
            **joined.counts.as_dict(),
            "invalid_rows": joined.refusals.count,
            "written": joined.written,
            "time": left.wanted.time,
            "label_time": right.wanted.time,
            "seconds": round(seconds, 3),
        }
        look.print_json(record, sys.stderr if output is None else sys.stdout)
    elif not quiet:
        _summarise(joined, unmatched, seconds)
    options.warn_of_refused(joined.refusals.count, joined.refusals.first)
    if joined.counts.events and joined.counts.labels and not joined.counts.matched:
        look.warn("no event has a label. Check that the keys are the same, and --within and the times.")


class _Show:
    """What is said while rows are joined: which columns are the times, and a live line in a terminal."""

    def __init__(self, joined: TableJoin, started: float, shown: bool, times: tuple[str | None, str | None]) -> None:
        self._joined, self._started = joined, started
        self._line = look.LiveLine(shown and sys.stderr.isatty())
        self._drawn = 0.0
        self._named = times[0]
        named = zip((joined.events, joined.labels), ("--time", "--label-time"), times, strict=True)
        self._found = [(table, option) for table, option, name in named if shown and name is None]

    def step(self) -> None:
        for table, option in [found for found in self._found if found[0].wanted.time]:
            self._found.remove((table, option))
            if table.wanted.time != self._named:
                self.clear()
                name = plain(table.wanted.time)
                look.stderr().message(f"The times of {table.sources[0].name} are in its column {name} ({option}).")
        now = clock.monotonic()
        if not self._line.shown or now - self._drawn < REDRAWN:
            return
        self._drawn = now
        counts, size = self._joined.counts, self._joined.events.size
        rate = counts.events / max(now - self._started, 1e-9)
        parts = [f"{look.count(counts.events)} events", f"{look.count(counts.matched)} matched"]
        if size:
            parts.insert(0, f"{min(1.0, self._joined.position / size):.0%}")
        parts.append(f"{look.short(rate)}/s")
        if self._joined.spilled:
            parts.append(f"{look.short(self._joined.spilled)} on disk")
        text = look.cut("  " + " · ".join(parts), look.width() - 1)
        self._line.draw(look.stderr()(text, "dim"))

    def clear(self) -> None:
        self._line.clear()


def _summarise(joined: TableJoin, unmatched: str, seconds: float) -> None:
    """Say what was joined, and what was not."""
    counts, ink = joined.counts, look.stderr()
    events, labels = look.counted(counts.events, "event"), look.counted(counts.labels, "label")
    written = look.counted(joined.written, "row")
    ink.line(f"{events} and {labels} in {look.duration(seconds)}; {written} written")
    share = look.share(counts.matched, counts.matched + counts.unmatched)
    lines = [
        (counts.matched, f"with a label ({share})" if counts.matched else "with a label"),
        (counts.unmatched, f"without a label: {'negative' if unmatched == 'negative' else 'dropped'}"),
        (counts.duplicate_events, "left out: the key of an earlier event"),
        (counts.duplicate_labels, "not used: a further label of an event"),
        (counts.late_labels, "not used: a label after the window"),
        (counts.labels_without_event, "not used: a label without an event"),
    ]
    shown = [*lines[:2], *(line for line in lines[2:] if line[0])]
    width = max(len(look.count(number)) for number, _ in shown)
    for number, what in shown:
        ink.line(f"  {look.count(number):>{width}} {what}")
