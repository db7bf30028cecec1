"""The examination: what the data are, what is wrong with them, and the command that learns from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.doctor import problems as rules
from rarestream.doctor.columns import Column, Table, as_record, describe, single_features
from rarestream.doctor.problems import Problem, column_problems, leak, ranked
from rarestream.doctor.recognise import compression, recognise, replayable
from rarestream.doctor.sample import Sample, as_trained, cells, is_table, row_hashes, without_labels
from rarestream.errors import DataError
from rarestream.features import Columns, Hashed, Kind, TablePlan, kind_name, name_problem
from rarestream.metrics.order import SortedCheck
from rarestream.readers import Stream
from rarestream.readers.formats import load_format
from rarestream.readers.options import as_label, options_of, shown_label
from rarestream.readers.sources import SourceLike, expand

ROWS = 200_000  # examined by default
MOST_CLASSES = 20  # of a label that are listed
REFUSALS_SHOWN = 3
SINGLES_SHOWN = 3
MOST_SKIPPED = 0.01  # share of invalid rows up to which a command is suggested that skips them

Signs = NDArray[np.int8]


class ClassCount(NamedTuple):
    """A label and how many rows have it."""

    label: str
    rows: int


@dataclass
class LabelReport:
    """The label of the rows."""

    column: str | None  # None: the format has a place for it
    classes: list[ClassCount]  # the most frequent first
    positive: str | None  # the one that counts as positive; None: not known
    positives: int
    missing: int

    @property
    def rows(self) -> int:
        """Number of rows with a label."""
        return sum(count for _, count in self.classes)


@dataclass
class FeatureReport:
    """The features of rows that are not cells of a table."""

    distinct: int
    fewest: int  # in a row
    mean: float
    most: int
    smallest: float  # value
    largest: float
    empty: int  # rows without features


@dataclass
class Report:
    """What an examination found."""

    data: list[str]
    format: str
    recognised: str
    needs_format: bool
    compression: str | None
    delimiter: str | None = None
    rows: int = 0
    complete: bool = False
    about: int | None = None  # rows in all, by the size of the data, if they were not read to the end
    refused: int = 0
    refusals: list[str] = field(default_factory=list)
    label: LabelReport | None = None
    candidates: list[str] = field(default_factory=list)  # columns that could be the label
    columns: list[Column] = field(default_factory=list)
    features: FeatureReport | None = None
    duplicates: int = 0
    problems: list[Problem] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether there is no error."""
        return all(problem.level != "error" for problem in self.problems)

    def record(self) -> dict[str, Any]:
        """Return the report for JSON."""
        label = self.label
        return {
            "data": self.data,
            "format": self.format,
            "recognised": self.recognised,
            "compression": self.compression,
            "delimiter": self.delimiter,
            "rows": self.rows,
            "complete": self.complete,
            "about_rows": self.about,
            "refused": self.refused,
            "refusals": self.refusals,
            "label": label
            and {
                "column": label.column,
                "classes": {entry.label: entry.rows for entry in label.classes},
                "positive": label.positive,
                "positives": label.positives,
                "missing": label.missing,
            },
            "label_candidates": self.candidates,
            "columns": [as_record(column, kind_name(column.kinds), self.rows) for column in self.columns],
            "features": self.features and vars(self.features),
            "duplicates": self.duplicates,
            "problems": [
                {
                    "level": problem.level,
                    "what": problem.what,
                    "way_on": problem.way_on,
                    "options": [list(pair) for pair in problem.options],
                    "details": list(problem.details),
                }
                for problem in self.problems
            ],
            "usable": self.usable,
            "command": self.command,
        }


def examine(data: Sequence[SourceLike], rows: int = ROWS, format: str | None = None, **given: Any) -> Report:
    """Examine the first rows of data.

    Parameters
    ----------
    data : sequence of path, glob or "-"
        As for `read`. Of a pipe, the first 256 MB are copied to a temporary file.
    rows : int, >= 1
        Maximum number of rows.
    format : str, optional
        As for `read`; by default also recognised by the first lines.
    **given
        Options of the format.

    Raises
    ------
    DataError
        If no row can be read.
    """
    with replayable(data) as (files, cut):
        sources = expand(files)
        found = recognise(sources, format)
        report = Report(
            [source.name for source in sources], found.format, found.how, found.needed, compression(sources[0])
        )
        allowed = int(given.pop("max_bad_rows", 0))
        _Examination(report, files, given, rows, allowed).run()
        report.complete = report.complete and not cut
    report.problems = ranked(report.problems)
    if all(problem.level != "error" or problem.options for problem in report.problems):
        report.command = _command(report, given, allowed)
    return report


class _Examination:
    def __init__(
        self, report: Report, data: Sequence[SourceLike], given: Mapping[str, Any], rows: int, allowed: int
    ) -> None:
        self.report, self.data, self.given, self.rows, self.allowed = report, data, given, rows, allowed

    def run(self) -> None:
        report = self.report
        stream, sample = as_trained(self.data, report.format, self.given, self.rows)
        if is_table(report.format):
            self._table(stream, sample)
        else:
            self._features(stream, sample)
        if report.needs_format:
            self._add(
                "note",
                f"the name of {report.data[0]} does not tell its format, which looks like {report.format}.",
                f"Pass --format {report.format}.",
            )
        for note in stream.notes:
            self._add("note", note if note.endswith(".") else f"{note}.", "")
        if isinstance(stream.features, Hashed) and (message := name_problem(stream.features)):
            self._add("note", *message)

    def _add(self, level: str, what: str, way_on: str, **more: Any) -> None:
        self.report.problems.append(Problem(level, what, way_on, **more))

    def _seen(self, stream: Stream, sample: Sample, rows: int) -> None:
        """Take over how many rows there are, and which are invalid."""
        report = self.report
        report.rows, report.complete = rows, sample.complete
        if not sample.complete and sample.error is None and stream.fraction:
            report.about = max(rows, round(rows / stream.fraction))
        report.refused, report.refusals = stream.refused, stream.refusals
        if sample.error is not None:
            self._add("error", f"reading stops after {rows:,} rows.", "", details=(str(sample.error),))
        if stream.refused:
            self._invalid(stream.refused, rows, stream.refusals)

    def _invalid(self, refused: int, rows: int, first: Sequence[str]) -> None:
        over = refused > self.allowed
        few = refused <= MOST_SKIPPED * rows
        it = "it" if refused == 1 else "them"
        of = f"{refused:,} of {refused + rows:,} rows"
        what = "1 row is invalid:" if refused == 1 else f"{of} are invalid; the first:"
        enough = refused if self.report.complete else 10 * refused
        self._add(
            "error" if over else "warning",
            what,
            f"Correct {it}, or skip {it}: --max-bad-rows {enough}." if over else "--max-bad-rows skips them.",
            details=tuple(first[:REFUSALS_SHOWN]),
            options=(("max_bad_rows", str(enough)),) if over and few else (),
        )

    def _unreadable(self, error: DataError | None, stream: Stream) -> DataError:
        """Return the error for data without a single valid row: with the first invalid ones."""
        first = "".join(f"\n  {message}" for message in stream.refusals[:REFUSALS_SHOWN])
        return DataError(f"{error or f'{self.report.data[0]}: no rows.'}{first}")

    # -- tables

    def _table(self, stream: Stream, sample: Sample) -> None:
        report = self.report
        plan = stream.features.plan if isinstance(stream.features, Hashed) else None
        if plan is None:
            raise sample.error or DataError(f"{report.data[0]}: no rows.")
        report.delimiter = stream.facts.get("delimiter", self.given.get("delimiter"))
        space, rows = cells(self.data, report.format, self.given, plan, self.rows)
        if not rows.rows:
            raise self._unreadable(rows.error, stream)
        block = rows.join()
        names = [column.name for column in plan.columns if column.kinds]
        roles = {name: role for role in ("label", "importance", "tag") if (name := getattr(plan, role)) is not None}
        table = Table(block, space, [*roles, *(name for name in names if name not in roles)], single=True)
        signs = self._label_of_table(table, plan, stream)
        if report.label is not None and report.label.positive is None and sample.error is None:
            # Rows of a third label count as invalid; what else is wrong shows without labels.
            settings = {**self.given, "labels": "optional"}
            stream, sample = as_trained(self.data, report.format, settings, self.rows)
        rows.error = sample.error or rows.error
        self._seen(stream, rows, rows.rows)
        kinds = {column.name: column.kinds for column in plan.columns}
        report.columns = [
            describe(table, name, roles.get(name, "feature"), kinds.get(name, 1), signs) for name in table.columns
        ]
        report.columns += [
            Column(column.name, "feature", 0, 0, 0, (), None, 0.0, (), 0.0, 0)
            for column in plan.columns
            if not column.kinds
        ]
        if plan.label is None:
            report.candidates = [
                column.name
                for column in report.columns
                if column.distinct == 2 and column.role == "feature" and not column.kinds & Kind.AUTO
            ]
        report.problems += column_problems(report.columns, report.rows)
        without = None
        if plan.label in table.columns:
            without = table.column_of_entry == table.columns.index(plan.label)
        self._duplicates(block, signs, without)
        self._order(signs)

    def _label_of_table(self, table: Table, plan: TablePlan, stream: Stream) -> Signs | None:
        """Find the classes of the label's column; return the sign of each row, 0 where it has none."""
        if plan.label is None:
            return None
        found = table.cells(plan.label)
        unknown = int(table.unknown[table.columns.index(plan.label)])
        texts = list(table.texts(plan.label, found.slots[: 10 * MOST_CLASSES]))
        counts = np.bincount(found.values, minlength=len(found.slots))
        order = np.argsort(-counts, kind="stable")
        classes = [ClassCount(texts[at], int(counts[at])) for at in order[:MOST_CLASSES] if at < len(texts)]
        many = len(found.slots)
        positive = self._positive(stream) if many <= 2 or self.given.get("positive") is not None else None
        self.report.label = label = LabelReport(plan.label, classes, None, 0, table.rows - len(found.rows) - unknown)
        self._label_problems(label, many)
        if positive is None:
            return None
        high = [at for at, text in enumerate(texts) if _same_label(text, positive)]
        signs = np.zeros(table.rows, np.int8)
        signs[found.rows] = np.where(np.isin(found.values, high), 1, -1)
        label.positive, label.positives = positive, int(np.count_nonzero(signs > 0))
        self._balance(label)
        return signs

    def _positive(self, stream: Stream) -> str | None:
        """Return the label that counts as positive, as a text."""
        settings = stream.settings
        positive = settings.get("positive")
        if positive is None and settings.get("classes") is not None:
            positive = settings["classes"][1]
        return None if positive is None else f"{positive:g}" if isinstance(positive, float) else str(positive)

    def _label_problems(self, label: LabelReport, many: int) -> None:
        if label.missing:
            of = f"{label.missing:,} of {label.missing + label.rows:,} rows have no label"
            self._add("note", f"{of}; they are not learned.", "")
        if many == 0:
            self._add("error", f"the label {label.column!r} is empty.", "Is it another column? Pass --label.")
        elif many > 2 and self.given.get("positive") is None:
            shown = ", ".join(repr(entry.label) for entry in label.classes[:5]) + (", ..." if many > 5 else "")
            self._add(
                "error",
                f"the label {label.column!r} has {many:,} values: {shown}; two classes are learned.",
                "Name the one that counts as positive, against all others: --positive VALUE.",
            )

    def _balance(self, label: LabelReport) -> None:
        rows = label.rows
        if rows and label.positives in (0, rows):
            sign = "positive" if label.positives else "negative"
            self._add(
                "error",
                f"all {rows:,} rows are {sign}, so there is nothing to rank.",
                "Use data with both classes, or check --label and --positive.",
            )
        elif 0 < min(label.positives, rows - label.positives) < rules.FEW_POSITIVES:
            fewer = min(label.positives, rows - label.positives)
            sign = "positive" if fewer == label.positives else "negative"
            self._add(
                "warning",
                f"only {fewer:,} of {rows:,} rows {'is' if fewer == 1 else 'are'} {sign}; the AUC will be uncertain.",
                "Collect more of them." if self.report.complete else "Examine more rows: --rows N.",
            )

    # -- rows of features

    def _features(self, stream: Stream, sample: Sample) -> None:
        report = self.report
        failed = sample.error
        if not sample.rows:
            sample = without_labels(self.data, report.format, self.given, self.rows)
            if not sample.rows:
                raise self._unreadable(failed or sample.error, stream)
            sample.error = failed
        self._seen(stream, sample, sample.rows)
        block = sample.join()
        if not sample.error and block.labels is not None:
            self._label_of_rows(stream, block)
        sizes = np.diff(block.indptr)
        values = block.values
        report.features = FeatureReport(
            len(np.unique(block.indices)),
            int(sizes.min()),
            float(sizes.mean()),
            int(sizes.max()),
            float(values.min()) if len(values) else 0.0,
            float(values.max()) if len(values) else 0.0,
            int(np.count_nonzero(sizes == 0)),
        )
        if report.features.empty:
            empty = report.features.empty
            rows = "1 row has no features, so its" if empty == 1 else f"{empty:,} rows have no features, so their"
            self._add("note", f"{rows} score is always 0.", "")
        largest = max(abs(report.features.smallest), abs(report.features.largest))
        if block.space is not None and block.space.names is not None:
            table = Table(block, block.space, [], single=False)
            report.columns = [describe(table, name, "feature", 1, None) for name in table.columns]
        if block.labels is not None:
            shown = stream.features or Columns(0 if stream.settings.get("zero_based") else 1)
            for single in single_features(block, rules.LEAK)[:SINGLES_SHOWN]:
                name = shown.shown(np.array([single.feature], np.int32))[0]
                self.report.problems.append(leak(f"feature {name}", single.auc, ()))
        if largest > 1e4:
            self._add(
                "note",
                f"values reach {largest:.3g}: under unit norm, one large value hides the others of its row.",
                "Scale each column by its largest value: --scale max.",
            )
        self._duplicates(block, block.labels, None)
        self._order(block.labels)

    def _label_of_rows(self, stream: Stream, block: Block) -> None:
        assert block.labels is not None
        positives = int(np.count_nonzero(block.labels > 0))
        counts = {"+1": positives, "-1": len(block) - positives}
        classes = stream.settings.get("classes")
        if classes is not None and None not in classes:
            counts = dict(zip((shown_label(label) for label in reversed(classes)), counts.values(), strict=True))
        found = [ClassCount(label, count) for label, count in counts.items() if count]
        found.sort(key=lambda entry: -entry.rows)
        self.report.label = LabelReport(None, found, self._positive(stream), positives, stream.unlabelled)
        self._balance(self.report.label)

    # -- both

    def _duplicates(self, block: Block, signs: Signs | None, without: NDArray[np.bool_] | None) -> None:
        hashes = row_hashes(block, without)
        rows = len(hashes)
        _, group, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        if signs is None:
            self.report.duplicates = rows - len(counts)
        else:
            labelled = group * 3 + signs + 1
            self.report.duplicates = rows - len(np.unique(labelled))
            positives = np.bincount(group, signs > 0)
            negatives = np.bincount(group, signs < 0)
            both = int(counts[(positives > 0) & (negatives > 0)].sum())
            if both > 0.01 * rows:
                self._add(
                    "note",
                    f"{both:,} rows are the same as rows with the other label, so no model can tell them apart.",
                    "",
                )
        if self.report.duplicates:
            share = self.report.duplicates / rows
            repeat = "row repeats" if self.report.duplicates == 1 else f"rows ({100 * share:.2g} %) repeat"
            self._add(
                "warning" if share >= rules.MANY_DUPLICATES else "note",
                f"{self.report.duplicates:,} {repeat} an earlier row.",
                "If they are copies, remove them: rows for testing must not be among those that were learned."
                if share >= 0.01
                else "",
            )

    def _order(self, signs: Signs | None) -> None:
        if signs is None:
            return
        check = SortedCheck()
        check.add(signs[signs != 0])
        if check.suspicious:
            what, _, way_on = check.message.partition(" An online learner")
            self._add("warning", what, f"An online learner{way_on}", options=(("shuffle", "1"),))


def _same_label(text: str, label: str) -> bool:
    try:
        return as_label(text) == as_label(label)
    except ValueError:
        return text == label


# -- the command

_LISTS = ("missing", "text", "numeric", "ignore")


def _command(report: Report, given: Mapping[str, Any], allowed: int) -> list[str]:
    """Return the words of a command that learns these data, with what the problems advise."""
    known = options_of(load_format(report.format).options)
    settings: dict[str, list[str]] = {}
    for name, value in given.items():
        if name in known and name != "threads" and value != known[name].default:
            settings[name] = [str(item) for item in value] if isinstance(value, tuple | list) else [_written(value)]
    taken = {item for name in (*_LISTS, "categorical", "dates") for item in settings.get(name, ())}
    for problem in report.problems:
        for name, value in problem.options:
            if name in known and value not in taken:
                settings[name] = [*settings.get(name, ()), value] if name in _LISTS else [value]
                taken.add(value)
    if "label" in known and "label" not in settings:
        settings = {"label": ["COLUMN"], **settings}
    words = ["rarestream", "train", *report.data]
    words += ["--format", report.format] if report.needs_format or report.recognised == "as given" else []
    if allowed:
        settings["max_bad_rows"] = [str(max(allowed, *map(int, settings.get("max_bad_rows", ["0"]))))]
    for name, values in settings.items():
        if known[name].kind is bool:
            words.append(known[name].flags[0] if values == ["True"] else known[name].off or "")
        else:
            words += [known[name].flags[0], ",".join(dict.fromkeys(values))]
    return [*words, "-o", f"{_stem(report.data[0])}.rare"]


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "tab" if value == "\t" else str(value)


def _stem(name: str) -> str:
    return "model" if name == "-" else Path(name).name.partition(".")[0] or "model"
