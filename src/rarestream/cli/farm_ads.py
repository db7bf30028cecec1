"""rarestream reproduce farm-ads: the published trials on farm-ads, rerun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rarestream.cli import failures, look, options
from rarestream.cli.parser import Option

if TYPE_CHECKING:
    from rarestream.reproduce.farm_ads import Experiment
    from rarestream.reproduce.rows import Rows

NAMES = {"ftrl_auc": "FTRL-AUC", "ftrl_proximal": "FTRL-Proximal"}

DataDir = Annotated[Path, Option("--data-dir", metavar="DIR", help="The folder with farm-ads.svm, compressed or not.")]


def farm_ads(data_dir: DataDir = Path("data"), json: options.Json = False) -> None:
    """Rerun the published farm-ads trials with the arithmetic of the authors' code.

    Compares every trial's non-zeros and AUC with the authors' result files. The exit code is 1 unless all of them
    agree: the non-zeros exactly, validation and test AUC and the mean curve to 1e-5.
    """
    from rarestream.reproduce import protocol
    from rarestream.reproduce.farm_ads import experiments, records

    rows = protocol.load(data_dir, "farm-ads")
    rerun = experiments(rows)
    if json:
        for record in records(rerun):
            look.print_json(record)
    else:
        _show(rows, rerun)
    if not all(experiment.matches for experiment in rerun):
        raise SystemExit(failures.FAILED)


def _show(rows: Rows, rerun: list[Experiment]) -> None:
    from rarestream.study.results import ratio_name

    ink = look.stdout()
    main, *others = rerun
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
    ink.line("All runs on farm-ads of which the authors' numbers survive, ten trials each; largest differences in AUC:")
    ink.line()
    cells = [
        [
            NAMES[run.method],
            ratio_name(run.imbalance),
            f"{run.matched} of {len(run.trials)}",
            f"{max(abs(trial.valid_difference) for trial in run.trials):.0e}",
            f"{max(abs(trial.test_difference) for trial in run.trials):.0e}",
            f"{run.curve_difference:.0e}",
        ]
        for run in rerun
    ]
    _table(look.table(cells, ["method", "rows", "trials the same", "validation", "test", "mean curve"], left=(0, 1)))
    ink.line()
    matched, trials = sum(run.matched for run in others), sum(len(run.trials) for run in others)
    verdict = f"{main.matched} of {len(main.trials)} {NAMES[main.method]} trials as published"
    alarm = "" if all(run.matches for run in rerun) else ink("Mismatch: ", "red", "bold")
    ink.line(alarm + ink(f"{verdict}; {matched} of {trials} in the other runs.", "bold"))


def _table(lines: list[str]) -> None:
    ink = look.stdout()
    ink.line("  " + ink(lines[0], "bold"))
    for line in lines[1:]:
        ink.line("  " + line)
