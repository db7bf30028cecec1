"""rarestream reproduce: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from rarestream.cli import failures, look, options, outputs
from rarestream.cli.parser import Option, UsageError, require_choice
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.reproduce.experiments import FoundData
    from rarestream.reproduce.output import Written
    from rarestream.study.rows import TrialRow
    from rarestream.study.store import Row
    from rarestream.study.trials import Progress

NAMES = {  # of the commands, and what they say of themselves
    "table1": "Table I: the data sets, found and published.",
    "table2": "Table II: run time, sparse ratio and AUC of the AUC methods.",
    "table3": "Table III: AUC with few positives, with logistic methods.",
    "figure1": "Figure 1: a classifier and its ROC curve.",
    "figure2": "Figure 2: lazy and exact class means, three sets.",
    "figure3": "Figure 3: AUC against run time.",
    "figure4": "Figure 4: AUC against sparsity.",
    "figure5": "Figure 5: AUC against rows, positive:negative ratio 0.1.",
    "figure6": "Figure 6: AUC against sparsity, positive:negative ratio 0.1.",
    "figure7": "Figure 7: avazu, or a generated stream in place of it.",
    "figure8": "Figure 8: AUC against rows.",
    "figure9": "Figure 9: lazy and exact class means, three more sets.",
    "figure10": "Figure 10: AUC against rows, positive:negative ratio 0.05.",
    "figure11": "Figure 11: AUC against sparsity, positive:negative ratio 0.05.",
    "lazy": "Figures 2 and 9 together.",
    "avazu": "Figure 7 under another name.",
    "all": "Every table and figure, and a report.",
}

DataDir = Annotated[
    Path,
    Option(
        "--data-dir",
        metavar="DIR",
        help="The folder with farm-ads.svm, imdb.svm and so on, or their publishers' files.",
    ),
]
Out = Annotated[
    Path, Option("--out", metavar="FOLDER", help="The folder for results.jsonl, tables and figures; rerun to resume.")
]
Quick = Annotated[bool, Option("--quick", help="Two trials and coarse grids: minutes instead of hours.")]
AsPublished = Annotated[
    bool, Option("--as-published", help="Use the arithmetic of the authors' code, with its bugs, not our learners.")
]
DataSets = Annotated[
    str | None, Option("--datasets", metavar="A,B", help="Only these data sets, comma-separated: farm-ads,imdb")
]
Methods = Annotated[
    str | None, Option("--methods", metavar="A,B", help="Only these methods, comma-separated: ftrl_auc,race")
]
Trials = Annotated[int | None, Option("--trials", metavar="N", help="Number of trials.", min=1, max=10, default="10")]
Jobs = Annotated[int | None, Option("--jobs", metavar="N", help="Number of processes.", min=1, default="one per core")]
StreamRows = Annotated[
    int | None,
    Option(
        "--rows",
        metavar="N",
        help="Number of rows of the synthetic stream that replaces avazu.",
        min=1000,
        default="2,000,000; with --quick 200,000",
    ),
]


def command(name: str) -> Callable[..., None]:
    """Return the command that runs an experiment."""

    def run(
        data_dir: DataDir = Path("data"),
        out: Out = Path("reproduction"),
        quick: Quick = False,
        as_published: AsPublished = False,
        datasets: DataSets = None,
        methods: Methods = None,
        trials: Trials = None,
        jobs: Jobs = None,
        rows: StreamRows = None,
        json: options.Json = False,
    ) -> None:
        from rarestream.reproduce.experiments import ALL, Plan, find_data, run_experiments
        from rarestream.reproduce.methods import METHODS
        from rarestream.reproduce.output import file_names, write

        plan = Plan(
            _mode(as_published),
            quick,
            trials,
            _listed("--datasets", datasets, _sets()),
            _listed("--methods", methods, METHODS),
            stream=rows,
        )
        names = ALL if name == "all" else [name]
        data = find_data(names, plan, data_dir)
        _print_missing(data)
        outputs.for_folder(out, file_names(names, report=name == "all"))
        progress = _Progress()
        try:
            finished = run_experiments(names, plan, data, out, processes=jobs, report=progress)
        except KeyboardInterrupt:
            _interrupted(out)
        progress.end()
        written = write(names, data, finished, out, report=name == "all")
        _print_warnings(written)
        if json:
            _print_rows(finished.asked)
        else:
            _print_tables(written)

    run.__name__ = name
    run.__doc__ = f"""{NAMES[name]}

    Finished trials are kept in FOLDER/results.jsonl: rerun to resume. Each table and figure is written there too.
    """
    return run


Story = Annotated[
    Path | None,
    Option(
        "--story",
        metavar="FILE",
        help="Also write the Markdown report here, and its figures to a folder of the same name.",
    ),
]


def report(
    data_dir: DataDir = Path("data"),
    out: Out = Path("reproduction"),
    as_published: AsPublished = False,
    story: Story = None,
    overwrite: outputs.OverwriteAny = False,
) -> None:
    """Write tables, figures and report of the finished trials; nothing is run.

    The trials may be of an unfinished run, or of several runs with the same FOLDER.
    """
    from rarestream.reproduce import experiments, output

    if story is not None and story.suffix != ".md":
        raise UsageError(f"the file must end with .md, got {plain(story)}.", "--story")
    rows = experiments.finished_trials(out)
    if not rows:
        failures.exit_with(
            f"{plain(out / 'results.jsonl')}: there are no trials. Run some first: "
            + look.quoted(["rarestream", "reproduce", "table2", "--out", out]),
            failures.FAILED,
        )
    if story is not None:
        story.parent.mkdir(parents=True, exist_ok=True)
        outputs.for_file(story, [], overwrite, "--story")
    plan = experiments.Plan(_mode(as_published), quick=False, stream=experiments.stream_of(rows))
    data = experiments.find_data(experiments.ALL, plan, data_dir)
    _print_missing(data)
    _print_other_rows(data, rows, out)
    finished = experiments.finished_experiments(plan, data, rows)
    written = output.write(experiments.ALL, data, finished, out, report=True, story=story)
    _print_warnings(written)
    _print_tables(written)


def _mode(as_published: bool) -> str:
    from rarestream.study.rows import CORRECTED, PUBLISHED

    return PUBLISHED if as_published else CORRECTED


def _print_missing(data: FoundData) -> None:
    """Say which data sets are missing, and where they are looked for."""
    from rarestream.reproduce.datasets import places

    ink = look.stderr()
    if data.stream:
        ink.line(f"avazu is not in {data.folder}; it is replaced by a generated stream of {data.stream:,} rows.")
    if data.missing:
        ink.line(f"{ink('Missing data', 'yellow', 'bold')}, left out. These files are looked for:")
        for line in places(data.folder, data.missing):
            ink.line(f"  {line}")
        words = ["rarestream", "datasets", data.missing[0], "--data-dir", data.folder]
        ink.line(f"To download one: {look.quoted(words)}")


def _print_other_rows(data: FoundData, rows: Sequence[Row], out: Path) -> None:
    """Say which trials are of other rows than those of the data folder; fail if all are."""
    others = data.of_other_rows(rows)
    if not others:
        return
    names = ", ".join(f"{name} ({look.count(count)})" for name, count in others.items())
    words = f"{plain(out / 'results.jsonl')}: trials on {names} are of other rows than those in {plain(data.folder)}"
    if sum(others.values()) == len(rows):
        failures.exit_with(
            f"{words}, and there are no others. Pass the folder of their data with --data-dir DIR.",
            failures.FAILED,
        )
    look.warn(f"{words}; they are left out.")


def _interrupted(out: Path) -> NoReturn:
    from rarestream.reproduce.experiments import finished_trials

    count = look.count(len(finished_trials(out)))
    failures.exit_with(
        f"interrupted; {count} trials are in {plain(out / 'results.jsonl')}. Rerun the same command to resume.",
        failures.INTERRUPTED,
    )


def _print_warnings(written: Written) -> None:
    for warning in written.warnings:
        look.warn(warning)


def _print_rows(rows: Sequence[TrialRow]) -> None:
    for row in rows:
        look.print_json(row)


def _print_tables(written: Written) -> None:
    from rarestream.study.tables import terminal

    ink = look.stdout()
    for table in written.tables:
        ink.line(terminal(table))
        ink.line()
    if written.paths:
        ink.line(f"Written: {', '.join(str(path) for path in written.paths)}")


class _Progress:
    """Shows how many trials are finished: a line that is redrawn in a terminal, one line per trial in a log."""

    def __init__(self) -> None:
        self._ink = look.stderr()
        self._live_line = look.LiveLine(self._ink.terminal)

    def __call__(self, now: Progress) -> None:
        left = "" if not now.left else f", about {look.duration(now.left)} left"
        if now.row is None:
            if now.left is None and now.done < now.total:
                self._print("reading the data, and timing each method on a few rows ...")
            elif now.done < now.total:
                self._print(f"{look.count(now.done)} of {look.count(now.total)} trials done{left}")
            return
        row = now.row
        ratio = "" if row["ratio"] is None else f" {row['ratio']:g}"
        result = row["error"] or f"AUC {row['points'][row['chosen']]['test_auc']:.4f}"
        self._print(
            f"{look.count(now.done)} of {look.count(now.total)}: {row['dataset']}{ratio} {row['method']} "
            f"trial {row['trial']}: {result}{left}"
        )

    def _print(self, text: str) -> None:
        self._live_line.draw(plain(text)[: look.width()])
        if not self._live_line.shown:
            self._ink.line(text)

    def end(self) -> None:
        self._live_line.clear()


def _sets() -> list[str]:
    from rarestream.reproduce.datasets import AVAZU, NAMES

    return [*NAMES, AVAZU]


def _listed(option: str, text: str | None, known: Any) -> list[str] | None:
    """Split A,B into words, each of which must be known."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        require_choice(option, word, known, {"--datasets": "a data set", "--methods": "a method"}[option])
    return words
