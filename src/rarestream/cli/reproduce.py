"""rarestream reproduce: the paper's tables and figures, run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures, look, options, outputs
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.reproduce.datasets import Source
    from rarestream.reproduce.experiments import Plan
    from rarestream.trials import Progress, Row

NAMES = {  # of the commands, and what they say of themselves
    "table1": "Table I: the data sets, those found beside the paper's.",
    "table2": "Table II: run time, sparse ratio and AUC of the AUC methods.",
    "table3": "Table III: AUC with few positives, beside logistic methods.",
    "figure1": "Figure 1: a classifier and its ROC curve.",
    "figure2": "Figure 2: lazy and exact class means, three sets.",
    "figure3": "Figure 3: AUC against run time.",
    "figure4": "Figure 4: AUC against sparsity.",
    "figure5": "Figure 5: AUC against rows, 0.1 positives a negative.",
    "figure6": "Figure 6: AUC against sparsity, 0.1 positives a negative.",
    "figure7": "Figure 7: avazu, or a generated stream in place of it.",
    "figure8": "Figure 8: AUC against rows.",
    "figure9": "Figure 9: lazy and exact class means, three more sets.",
    "figure10": "Figure 10: AUC against rows, 0.05 positives a negative.",
    "figure11": "Figure 11: AUC against sparsity, 0.05 positives a negative.",
    "lazy": "Figures 2 and 9 together.",
    "avazu": "Figure 7 under another name.",
    "all": "Every table and figure, and a report.",
}
STREAM, QUICK_STREAM = 2_000_000, 200_000  # rows in place of avazu's

DataDir = Annotated[
    Path, typer.Option(help="The folder with farm-ads.svm, imdb.svm and so on, compressed or not.", metavar="DIR")
]
Out = Annotated[Path, typer.Option(help="The folder for results.jsonl, tables and figures.", metavar="FOLDER")]
Quick = Annotated[bool, typer.Option("--quick", help="Two trials and thin grids: minutes in place of hours.")]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="The arithmetic of the authors' code, slips included, not our learners.")
]
DataSets = Annotated[str | None, typer.Option(help="Only these data sets: farm-ads,imdb", metavar="A,B")]
Methods = Annotated[str | None, typer.Option(help="Only these methods: ftrl_auc,race", metavar="A,B")]
Trials = Annotated[int | None, typer.Option(help="How many of the ten trials.", min=1, max=10, metavar="N")]
Jobs = Annotated[int | None, typer.Option(help="Processes; else one to a core.", min=1, metavar="N")]
StreamRows = Annotated[
    int | None, typer.Option("--rows", help="Rows of the stream in place of avazu.", min=1000, metavar="N")
]


def command(name: str) -> Callable[..., None]:
    """The command that runs an experiment."""

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
        from rarestream.reproduce.experiments import ALL, Plan
        from rarestream.reproduce.methods import CORRECTED, METHODS, PUBLISHED
        from rarestream.reproduce.output import written

        plan = Plan(
            PUBLISHED if as_published else CORRECTED,
            quick,
            trials,
            _listed("--datasets", datasets, _sets()),
            _listed("--methods", methods, METHODS),
        )
        stream = rows or (QUICK_STREAM if quick else STREAM)
        names = ALL if name == "all" else [name]
        sources, missing = _sources(names, plan, data_dir, stream)
        outputs.for_folder(out, written(names, story=name == "all"))
        every, asked = _carried_out(names, plan, sources, out, jobs)
        _show_all(names, sources, missing, out, asked, every if name == "all" else [], json)

    run.__name__ = name
    run.__doc__ = f"""{NAMES[name]}

    Trials that are done stay in FOLDER/results.jsonl: after a kill, the same command goes on where it was. Each table
    and figure is written there too.
    """
    return run


Story = Annotated[
    Path | None,
    typer.Option(help="Write the Markdown here too, its pictures into a folder of the same name.", metavar="FILE"),
]


def report(
    data_dir: DataDir = Path("data"),
    out: Out = Path("reproduction"),
    as_published: AsPublished = False,
    story: Story = None,
    overwrite: outputs.OverwriteAny = False,
) -> None:
    """Tables, figures and report of the trials that are done; nothing is run.

    Of a run that is not at its end, or of several that went into the same FOLDER.
    """
    from rarestream.reproduce.datasets import streamed
    from rarestream.reproduce.experiments import ALL, Plan
    from rarestream.reproduce.methods import CORRECTED, PUBLISHED
    from rarestream.trials import read_rows

    if story is not None and story.suffix != ".md":
        raise typer.BadParameter(f"{plain(story)}: name a file that ends with .md.", param_hint="'--story'")
    path = out / "results.jsonl"
    if not path.exists():
        failures.say(
            f"{plain(path)}: there are no trials. Run some first: "
            + look.quoted(["rarestream", "reproduce", "table2", "--out", out]),
            failures.FAILED,
        )
    if story is not None:
        story.parent.mkdir(parents=True, exist_ok=True)
        outputs.for_file(story, [], overwrite, "--story")
    plan = Plan(PUBLISHED if as_published else CORRECTED, quick=False)
    every = read_rows(path)
    stream = next((long for row in reversed(every) if (long := streamed(row["source"]))), 0)
    sources, missing = _sources(ALL, plan, data_dir, stream)
    rows = [row for row in _current(every, sources) if row["mode"] == plan.mode]
    _show_all(ALL, sources, missing, out, rows, _current(every, sources), json=False, story=story)


def _carried_out(
    names: Sequence[str], plan: Plan, sources: dict[str, Source], out: Path, jobs: int | None
) -> tuple[list[Row], list[Row]]:
    """All rows of the sources, of either arithmetic, and those of the experiments."""
    from rarestream.reproduce.experiments import carry_out, units_of
    from rarestream.trials import Store

    units = units_of(names, plan, sources)
    progress = _Progress()
    if units:
        progress.begin()
    with Store(out / "results.jsonl") as store:
        try:
            rows = carry_out(units, sources, store, processes=jobs, report=progress if units else None)
        except KeyboardInterrupt:
            done = f"{look.count(len(store.rows))} trials are in {store.path}"
            failures.say(f"interrupted; {done}. Run it again to go on.", failures.INTERRUPTED)
        every = _current(store.rows, sources)
    progress.end()
    return every, rows


def _current(rows: Sequence[Row], sources: dict[str, Source]) -> list[Row]:
    """Those of the data as it is now."""
    marks = {name: source.mark for name, source in sources.items()}
    return [row for row in rows if marks.get(row["dataset"]) == row["source"]]


def _show_all(
    names: Sequence[str],
    sources: dict[str, Source],
    missing: Sequence[str],
    out: Path,
    rows: list[Row],
    every: list[Row],
    json: bool,
    story: Path | None = None,
) -> None:
    """Tables and figures of some rows; a report of others, if there are any."""
    from rarestream.reproduce import output
    from rarestream.reproduce.results import MISSING

    absent: list[Row] = [{"kind": MISSING, "dataset": name} for name in missing]
    shown, told = rows + absent, every + absent
    shapes = _shapes(sources) if "table1" in names else {}
    tables = output.tables_of(names, shown, shapes)
    written = output.write_tables(out, tables)
    pictures = _unless_missing(lambda: output.write_figures(out, names, shown))
    written += pictures
    if every:
        written += output.write_story(out / "report.md", told, shapes, pictures)
        written += _unless_missing(lambda: output.write_page(out, told, shapes))
    if story is not None:
        beside = story.with_suffix("")
        beside.mkdir(parents=True, exist_ok=True)
        small = _unless_missing(lambda: output.write_figures(beside, names, shown, ["png"], dpi=100))
        written += small + output.write_story(story, told, shapes, small)
    if json:
        import json as notation

        for row in rows:
            print(notation.dumps(row, allow_nan=False))
        return
    _show(tables, written)


def _unless_missing(step: Callable[[], list[Path]]) -> list[Path]:
    """What a step wrote; nothing, and a warning, without the package that it needs."""
    from rarestream.errors import MissingExtraError

    try:
        return step()
    except MissingExtraError as error:
        look.stderr().line(f"{look.stderr()('warning:', 'yellow', 'bold')} {error}")
        return []


def _sources(names: Sequence[str], plan: Plan, folder: Path, stream: int) -> tuple[dict[str, Source], list[str]]:
    """Where the data sets of the experiments are, and which are missing: that is said. In place of avazu comes a stream
    of so many rows, if any."""
    from rarestream.reproduce import datasets
    from rarestream.reproduce.experiments import EXPERIMENTS

    wanted = plan.wanted(list(dict.fromkeys(name for one in names for name in EXPERIMENTS[one].names)))
    found = datasets.sources(folder, wanted)
    ink = look.stderr()
    if stream and datasets.AVAZU in wanted and datasets.AVAZU not in found:
        found[datasets.AVAZU] = datasets.stream(stream)
        ink.line(f"avazu is not in {folder}; in place of it: a generated stream of {look.count(stream)} rows.")
    missing = [name for name in wanted if name not in found]
    if missing:
        ink.line(f"{ink('Missing data', 'yellow', 'bold')}, left out. They would be found as")
        for line in datasets.places(folder, missing):
            ink.line(f"  {line}")
    if wanted and not found:
        failures.say(
            f"{folder}: has none of the data sets. Name the folder that has them: --data-dir DIR", failures.FAILED
        )
    return found, missing


def _shapes(sources: dict[str, Source]) -> dict[str, dict[str, Any]]:
    from rarestream.reproduce import datasets

    return {name: datasets.load(source).shape for name, source in sources.items()}


def _show(tables: dict[str, Any], written: Sequence[Path]) -> None:
    from rarestream.reproduce import tables as forms

    ink = look.stdout()
    for table in tables.values():
        ink.line(forms.terminal(table))
        ink.line()
    if written:
        ink.line(f"Written: {', '.join(str(path) for path in written)}")


class _Progress:
    """Told of every trial: an estimate before the first, then a line that is drawn anew, or one a trial in a log."""

    def __init__(self) -> None:
        self._ink = look.stderr()
        self._live = False

    def begin(self) -> None:
        self._say("reading the data, and timing each method on a few rows ...")

    def __call__(self, now: Progress) -> None:
        left = "" if not now.left else f", about {look.duration(now.left)} left"
        if now.row is None:
            if now.done < now.total:
                self._say(f"{look.count(now.done)} of {look.count(now.total)} trials done{left}")
            return
        row: Row = now.row
        share = "" if row["ratio"] is None else f" {row['ratio']:g}"
        came = row["error"] or f"AUC {row['points'][row['chosen']]['test_auc']:.4f}"
        self._say(
            f"{look.count(now.done)} of {look.count(now.total)}: {row['dataset']}{share} {row['method']} "
            f"trial {row['trial']}: {came}{left}"
        )

    def _say(self, text: str) -> None:
        if self._ink.terminal:
            print(f"\r\x1b[K{plain(text)[: look.width()]}", end="", file=self._ink.file, flush=True)
            self._live = True
        else:
            self._ink.line(text)

    def end(self) -> None:
        if self._live:
            self._ink.line()


def _sets() -> list[str]:
    from rarestream.reproduce.datasets import AVAZU, NAMES

    return [*NAMES, AVAZU]


def _listed(option: str, text: str | None, known: Any) -> list[str] | None:
    """The words of A,B, each of which is known."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        options.among(option, word, known, {"--datasets": "data set", "--methods": "method"}[option])
    return words
