"""rarestream reproduce farm-ads: the published trials on farm-ads, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures, look, options

if TYPE_CHECKING:
    from rarestream.reproduce.farm_ads import Experiment
    from rarestream.reproduce.rows import Rows

NAMES = {"ftrl_auc": "FTRL-AUC", "ftrl_proximal": "FTRL-Proximal"}

DataDir = Annotated[Path, typer.Option(help="The folder with farm-ads.svm, compressed or not.", metavar="DIR")]


def farm_ads(data_dir: DataDir = Path("data"), json: options.Json = False) -> None:
    """Run the published farm-ads trials again, with the arithmetic of the authors' code.

    Every trial's non-zeros and AUC stand beside those of the authors' result files. Ends with 1 unless all of
    them agree: the non-zeros exactly, validation and test AUC and the mean curve to 1e-5.
    """
    from rarestream.reproduce import protocol
    from rarestream.reproduce.farm_ads import experiments

    rows = protocol.load(data_dir, "farm-ads")
    done = list(experiments(rows))
    if json:
        import json as notation

        for record in _records(done):
            print(notation.dumps(record, allow_nan=False))
    else:
        _show(rows, done)
    if not all(experiment.matches for experiment in done):
        raise typer.Exit(failures.FAILED)


def _records(done: list[Experiment]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [
        {
            "event": "trial",
            "method": experiment.method,
            "imbalance": experiment.imbalance,
            "trial": number,
            "params": trial.params,
            "published": trial.published._asdict(),
            "ours": trial.ours._asdict(),
            "matches": trial.matches,
        }
        for experiment in done
        for number, trial in enumerate(experiment.trials)
    ]
    trials, matched = sum(len(one.trials) for one in done), sum(one.matched for one in done)
    end = {
        "event": "done",
        "trials": trials,
        "matched": matched,
        "curve_difference": max(one.curve_difference for one in done),
        "matches": all(one.matches for one in done),
    }
    return [*records, end]


def _show(rows: Rows, done: list[Experiment]) -> None:
    ink = look.stdout()
    main, *others = done
    ink.line(
        f"farm-ads, {look.count(len(rows))} rows, {look.count(rows.n_features)} features. "
        f"{NAMES[main.method]} with the arithmetic and the settings of the published runs:"
    )
    ink.line()
    cells = [
        [
            str(number),
            f"{trial.params['gamma']:g}",
            f"{trial.params['l1']:g}",
            str(trial.published.nonzeros),
            str(trial.ours.nonzeros),
            f"{trial.published.test_auc:.7f}",
            f"{trial.ours.test_auc:.7f}",
            f"{trial.test_difference:+.0e}",
            "yes" if trial.matches else "NO",
        ]
        for number, trial in enumerate(main.trials)
    ]
    heading = ["trial", "gamma", "lambda", "published non-zeros", "ours", "published AUC", "ours", "difference", "same"]
    _table(look.table(cells, heading))
    ink.line()
    ink.line("All runs on farm-ads of which the authors' numbers survive, ten trials each; largest differences of AUC:")
    ink.line()
    cells = [
        [
            NAMES[one.method],
            "all rows" if one.imbalance is None else f"{one.imbalance:g} positives a negative",
            f"{one.matched} of {len(one.trials)}",
            f"{max(abs(trial.valid_difference) for trial in one.trials):.0e}",
            f"{max(abs(trial.test_difference) for trial in one.trials):.0e}",
            f"{one.curve_difference:.0e}",
        ]
        for one in done
    ]
    _table(look.table(cells, ["method", "rows", "trials the same", "validation", "test", "mean curve"], left=(0, 1)))
    ink.line()
    matched, trials = sum(one.matched for one in others), sum(len(one.trials) for one in others)
    verdict = f"{main.matched} of {len(main.trials)} {NAMES[main.method]} trials as published"
    alarm = "" if all(one.matches for one in done) else ink("Mismatch: ", "red", "bold")
    ink.line(alarm + ink(f"{verdict}; {matched} of {trials} in the other runs.", "bold"))


def _table(lines: list[str]) -> None:
    ink = look.stdout()
    ink.line("  " + ink(lines[0], "bold"))
    for line in lines[1:]:
        ink.line("  " + line)
