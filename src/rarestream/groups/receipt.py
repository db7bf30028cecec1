"""Receipt: what learning in groups has cost, in AUC, time and bytes, and what more groups would cost."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KEY = "groups"  # of Model.source
WIDTH = 80  # of the text


@dataclass
class RoundReceipt:
    """One round."""

    rows: int
    seconds: float | None  # None in a record: the same rows give the same model file
    sent: int  # bytes of the state that each group starts from
    received: int  # bytes of what all groups have learned
    settings: int  # that learned side by side: several in a race
    auc: float | None = None  # of the merged model on the rows held out; None with one group
    strength: float = 1.0  # below 1 where the AUC fell and the round was learned again with shorter steps


@dataclass
class Price:
    """The AUC that so many groups lose against learning in sequence, on a sample of the rows."""

    groups: int
    rounds: int
    loss: float
    error: float  # standard error of the loss, of the rows that the AUC is measured on


@dataclass
class Receipt:
    """What a fit in groups has cost.

    Attributes
    ----------
    groups : int
    rows, positives : int
        Rows learned in one pass.
    skipped : int
        Rows left out because their label or features are null.
    held_out : int
        Rows that the AUC was measured on after each round, before they were learned too; 0 with one group.
    auc, auc_low, auc_high : float or None
        The AUC of the last merged model on these rows, and its 95 % interval.
    rounds : list of RoundReceipt
    sample : int
        Rows that `prices` were measured on.
    prices : list of Price
        The loss of AUC against learning in sequence, with these groups and with more.
    stopped : str or None
        Why the rounds ended early.
    """

    groups: int
    rows: int
    positives: int
    skipped: int = 0
    held_out: int = 0
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    rounds: list[RoundReceipt] = field(default_factory=list)
    sample: int = 0
    prices: list[Price] = field(default_factory=list)
    stopped: str | None = None
    seconds_before: float | None = None  # to read, pack and divide the rows

    def record(self) -> dict[str, Any]:
        """Return the receipt as numbers and text, for `Model.source`: without times, so that files can be compared."""
        record = dataclasses.asdict(self)
        del record["seconds_before"]
        for one in record["rounds"]:
            del one["seconds"]
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Receipt:
        """Return the receipt of a record."""
        fields = dict(record)
        fields["rounds"] = [RoundReceipt(seconds=None, **one) for one in record["rounds"]]
        fields["prices"] = [Price(**one) for one in record["prices"]]
        return cls(**fields)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows, {self.positives:,} positive, in {_counted(self.groups, 'group')}"]
        if self.skipped:
            lines[0] += f"; {self.skipped:,} more left out, their label or features are null"
        if self.auc is not None and self.auc_low is not None and self.auc_high is not None:
            lines.append(
                f"AUC {self.auc:.4f} ({self.auc_low:.4f} to {self.auc_high:.4f}) on {self.held_out:,} rows held out, "
                "which were learned last"
            )
        lines += _table(
            ["round", "rows", "settings", "AUC", "seconds", "state MB", "learned MB"],
            [
                [
                    str(number) + ("" if one.strength == 1 else f" ({one.strength:g})"),
                    f"{one.rows:,}",
                    str(one.settings),
                    "-" if one.auc is None else f"{one.auc:.4f}",
                    "-" if one.seconds is None else f"{one.seconds:.1f}",
                    f"{one.sent / 1e6:.1f}",
                    f"{one.received / 1e6:.1f}",
                ]
                for number, one in enumerate(self.rounds, 1)
            ],
        )
        if self.seconds_before is not None:
            lines.append(f"{self.seconds_before:.1f} s before the first round, to read, pack and divide the rows")
        if self.stopped is not None:
            lines.append(f"Stopped: {self.stopped}")
        if self.prices:
            lines.append(f"AUC lost against learning in sequence, on a sample of {self.sample:,} rows:")
            lines += _table(
                ["groups", "rounds", "loss", "error"],
                [[str(one.groups), str(one.rounds), f"{one.loss:+.4f}", f"{one.error:.4f}"] for one in self.prices],
            )
            lines.append("With more rows than the sample has, the loss is smaller: groups differ less.")
        return "\n".join(part for line in lines for part in textwrap.wrap(line, WIDTH))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(heading, *rows, strict=True)]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (heading, *rows))
    return [f"  {line}" for line in lines]
