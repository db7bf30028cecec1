"""How well is learned: AUC of the package's learners and of other libraries' on the same rows.

    python benchmarks/quality.py --data-dir DIR [--trials 3] [--sets imdb,a9a] [--ratios asis,.1,.05]
        [--parts sets,streams] [--streams NAMES] [--stream-scale 1.0] [--peers vw,sklearn,river] [--contestants NAMES]
        [--json FILE] [--markdown FILE] [--baseline FILE] [--jobs N]

Sets: every DIR/<name>.svm.bz2, by the protocol of the FTRL-AUC paper (rarestream.reproduce.protocol): of a permutation
4/6 of the rows are learned, 1/6 are for validation, 1/6 for the test, the same for all; as they are, and with positives
cut down to a ratio to the negatives. Rows have norm 1 for everybody, as the package scales them. Streams (streams.py)
are generated: each row is scored before it is learned, in one pass; the last rows are to validate on, then to test on.

    auto            Model("auto")
    race            the settings of `rarestream race`, each in one pass; selected on the validation rows
    adagrad ...     the learners of the package that cost O(k) per row as they come; --all-learners: the others too
    vw              Vowpal Wabbit --ftrl --loss_function logistic as it comes
    vw-tuned        the same with 24 settings of ftrl_alpha, ftrl_beta and l1; selected on the validation rows
    sgd-tuned       scikit-learn's SGDClassifier(loss="log_loss"), one epoch, with 24 settings; selected likewise
    river           River's LogisticRegression(optimizer=FTRLProximal()) as it comes; not on large problems
    best-of-24*     of the 24 settings that `auto` had in its first version the best on the test rows: no contestant,
                    nobody can know it beforehand
    batch-logreg*   scikit-learn's LogisticRegression on all rows at once, C selected on the validation rows; not on
                    streams: no contestant, it reads the rows many times; one pass can still be better
    possible*       AUC of the true log odds, where a stream is generated from them

An AUC as .9625(12) has the standard error .0012, over the trials. --baseline compares `auto` with an earlier --json of
this program, problem by problem.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import multiprocessing
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import contenders
import machine
import streams
from contenders import Problem, Tried
from rarestream import Block, Learner, Model, __version__, auc
from rarestream.metrics.paired import Standings
from rarestream.reproduce import protocol
from rarestream.reproduce.rows import Rows
from rarestream.study.text import align, piped
from timing import Contestant, command, interleaved, rarestream_command, timed

AUTO, BEST, BATCH, POSSIBLE = "auto", "best-of-24*", "batch-logreg*", "possible*"
ASIS, STREAM = "asis", "stream"  # kinds of problems; the others are ratios
EXAMPLE = "svmlight_example1"  # only shows the format
PACKAGES = {"vw": "vowpalwabbit", "sklearn": "sklearn", "river": "river"}
CONTESTANTS = {"vw": ("vw", "vw-tuned"), "sklearn": ("sgd-tuned", BATCH), "river": ("river",)}
WIDTH = 100  # of a line of a table
SLOW = 20  # seconds after which a contestant is worth a line of progress

Trial = dict[str, Any]  # auc, error, chosen and seconds by contestant; what to know of the rows


def log(text: str) -> None:
    print(text, flush=True)


# -- one trial


def run(problem: Problem, names: Sequence[str], scratch: Path, pool: contenders.Map = map) -> Trial:
    """Let the contestants learn a problem."""
    labels, test = problem.labels, slice(problem.validation, None)
    trial: Trial = {"rows": problem.learned, "positives": int((labels[test] > 0).sum())}
    trial |= {"auc": {}, "error": {}, "chosen": {}, "seconds": {}}
    kept: dict[str, contenders.Scores] = {}

    def note(name: str, tried: list[Tried] | None, seconds: float, hindsight: bool = False) -> None:
        if tried is None or name not in names:
            return
        rows = test if hindsight else slice(problem.validation)
        best = 0
        if len(tried) > 1:
            best = int(np.argmax([auc(labels[rows], one.scores[rows]) for one in tried]))
        if hindsight:
            trial["settings"] = [round(auc(labels[test], one.scores[test]), 6) for one in tried]
        if seconds > SLOW:
            log(f"    {name} took {seconds:.0f} s")
        kept[name] = tried[best].scores[test]
        trial["chosen"][name], trial["seconds"][name] = tried[best].setting, round(seconds, 2)

    def clocked(act: Callable[[], Any]) -> tuple[Any, float]:
        start = time.perf_counter()
        return act(), time.perf_counter() - start

    for name in names:
        if name == AUTO or name in contenders.untuned_names(slow=True):
            note(name, *clocked(partial(contenders.learner, problem, name)))
    if {"race", BEST} & set(names):
        (raced, first), seconds = clocked(partial(contenders.lanes, problem))
        note("race", raced, seconds)
        note(BEST, first, seconds, hindsight=True)
    if {"vw", "vw-tuned"} & set(names):
        vw = contenders.VowpalWabbit(problem, scratch)
        note("vw", *clocked(vw.default))  # also makes the cache
        if "vw-tuned" in names:
            note("vw-tuned", *clocked(partial(vw.tuned, pool)))
        vw.close()
    for name, contestant in (("sgd-tuned", contenders.sgd), ("river", contenders.river), (BATCH, contenders.batch)):
        if name in names:
            note(name, *clocked(partial(contestant, problem)))
    order = [name for name in names if name in kept]
    standings = Standings(labels[test], np.column_stack([kept[name] for name in order]))
    trial["auc"] = {name: round(float(value), 6) for name, value in zip(order, standings.aucs, strict=True)}
    if AUTO in order:  # DeLong's standard error of the difference from auto
        errors = standings.errors(order.index(AUTO))
        trial["error"] = {name: round(float(value), 6) for name, value in zip(order, errors, strict=True)}
    return trial


@lru_cache(maxsize=1)
def loaded(folder: Path, name: str) -> Rows:
    return protocol.load(folder, name).unit()


def set_problem(folder: Path, name: str, ratio: str, number: int) -> Problem | str:
    """What a trial of a data set is about, or why there is none."""
    rows = loaded(folder, name)
    wanted = None if ratio == ASIS else float(ratio)
    if wanted is not None and (rows.labels > 0).sum() <= int(wanted * (rows.labels < 0).sum()):
        return "it has no more positives than that"
    rows, splits = protocol.trials(rows, wanted)
    split = splits[number]
    parts = [rows.take(part) for part in (split.train, split.valid, split.test)]
    if any(len(np.unique(part.labels)) < 2 for part in parts):
        return "one of its parts has rows of one class only"
    blocks = [Block.of(part.X, part.labels) for part in parts]
    learned, validation, test = map(len, parts)
    return Problem(blocks, learned, validation, test, progressive=False)


def set_trial(folder: Path, names: list[str], scratch: Path, name: str, ratio: str, number: int) -> Trial | str:
    """A trial of a data set, or why there is none."""
    warnings.simplefilter("ignore")
    problem = set_problem(folder, name, ratio, number)
    return problem if isinstance(problem, str) else run(problem, names, scratch)


# -- streams


def first_rows(blocks: list[Block], rows: int) -> list[Block]:
    """The first rows of a stream."""
    found: list[Block] = []
    for block in blocks:
        if rows > 0:
            found.append(block[:rows])
        rows -= len(block)
    return found


def price(blocks: list[Block], rounds: int = 3) -> dict[str, float]:
    """What auto's learning of a stream costs, in passes of the learner that it chose, and of dual-logistic.

    By the clock, as it uses all cores, and in processor time. And from text to a saved model by the clock, as
    `rarestream train` does it.
    """
    trained = Model(AUTO)
    for block in blocks:
        trained.learn(block)

    def passes(learner: str | Learner) -> Contestant:
        def prepare() -> Callable[[], Any]:
            model = Model(learner)
            return lambda: [model.learn(block) for block in blocks]

        return timed(prepare, cores=2)  # not pinned: threads count too

    costs = interleaved({AUTO: passes(AUTO), "one": passes("dual-logistic"), "chosen": passes(trained.leader)}, rounds)
    cost, one, chosen = costs[AUTO], costs["one"], costs["chosen"]
    return {
        "chosen": round(cost.wall / chosen.wall, 3),
        "chosen_cpu": round(cost.cpu / chosen.cpu, 3),
        "one": round(cost.wall / one.wall, 3),
        "program": round(program(blocks, rounds), 3),
        "seconds": round(cost.wall, 3),
    }


def program(blocks: list[Block], rounds: int) -> float:
    """The time on the clock of `rarestream train --learner auto` from svmlight text, over that with dual-logistic."""
    rarestream = rarestream_command()
    if rarestream is None:
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder) / "rows.svm", Path(folder) / "model.rare"
        for number, block in enumerate(blocks):
            machine.write_text(text, block, vw=False, append=number > 0)
        costs = interleaved(
            {
                name: command(rarestream, "train", text, "-o", model, "--learner", name, cores=2)
                for name in (AUTO, "dual-logistic")
            },
            rounds,
        )
    return costs[AUTO].wall / costs["dual-logistic"].wall


def stream_trial(name: str, scale: float, seed: int, names: list[str], scratch: Path, pool: contenders.Map) -> Trial:
    stream = streams.make(name, scale, seed)
    problem = Problem(stream.blocks, stream.learned, stream.validation, stream.test, progressive=True)
    cost = price(first_rows(stream.blocks, stream.learned)) if AUTO in names else None
    trial = run(problem, names, scratch, pool)
    if stream.best is not None:
        trial["auc"][POSSIBLE] = round(stream.best, 6)
    return trial | ({"price": cost} if cost else {})


# -- results


class Difference(NamedTuple):
    """Of one problem: a mean over trials and its standard error."""

    mean: float
    error: float


class Result(NamedTuple):
    problem: str
    kind: str
    trials: list[Trial]

    def aucs(self, name: str) -> list[float]:
        """By trial; [] if it did not take part in all. With hindsight: the setting with the best mean over trials."""
        if name == BEST and all("settings" in trial for trial in self.trials):
            table = np.array([trial["settings"] for trial in self.trials])
            return [float(value) for value in table[:, int(table.mean(axis=0).argmax())]]
        found = [trial["auc"][name] for trial in self.trials if name in trial["auc"]]
        return found if len(found) == len(self.trials) else []

    def lead(self, name: str) -> Difference | None:
        """AUC of auto minus that of another; with one trial the standard error is DeLong's, on the test rows."""
        mine, other = self.aucs(AUTO), self.aucs(name)
        if not mine or not other:
            return None
        gaps = np.subtract(mine, other)
        if len(gaps) > 1:
            return Difference(float(gaps.mean()), standard_error(gaps))
        return Difference(float(gaps[0]), float(self.trials[0]["error"].get(name, np.nan)))


def standard_error(values: Any) -> float:
    values = np.asarray(values)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def decimals(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def with_error(mean: float, error: float) -> str:
    """.9625(12): the error in units of the last digit."""
    text = f"{mean:.4f}".replace("0.", ".", 1)
    return text if np.isnan(error) else f"{text}({round(error * 1e4)})"


class Table(NamedTuple):
    title: str
    heading: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        return "\n".join([self.title, *align([self.heading, *self.rows], left={0})]) + "\n"

    def markdown(self) -> str:
        rule = ["---", *["---:"] * (len(self.heading) - 1)]
        return "\n".join([f"**{self.title}**", "", *map(piped, [self.heading, rule, *self.rows])]) + "\n"


def kinds(results: list[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Results of one kind, and all sets together."""
    found = list(dict.fromkeys(one.kind for one in results))
    for kind in found:
        words = {ASIS: "sets as they are", STREAM: "streams"}.get(kind, f"sets at ratio {kind}")
        yield words, [one for one in results if one.kind == kind]
    sets = [one for one in results if one.kind != STREAM]
    if len({one.kind for one in sets}) > 1:
        yield "all sets", sets


def tables(results: list[Result], names: Sequence[str]) -> list[Table]:
    """Each problem, then the means, in blocks of columns that fit a line; auto is in every block."""
    shown = [name for name in (*names, POSSIBLE) if any(one.aucs(name) for one in results)]
    made: list[Table] = []
    columns = [[_column(one, name) for one in results] for name in shown]
    first = max(len(one.problem) for one in results)
    widths = [max(len(name), *map(len, column)) + 2 for name, column in zip(shown, columns, strict=True)]
    blocks: list[list[int]] = []
    for number in range(len(shown)):
        auto = shown.index(AUTO) if AUTO in shown else None
        if not blocks or first + sum(widths[one] for one in blocks[-1]) + widths[number] > WIDTH:
            blocks.append([auto] if auto is not None and number != auto else [])
        blocks[-1].append(number)
    for block in blocks:
        rows = [[one.problem, *(columns[number][line] for number in block)] for line, one in enumerate(results)]
        made.append(Table("Test AUC", ["problem", *(shown[number] for number in block)], rows))
    for words, part in kinds(results):
        made.append(_standings(words, part, shown))
    priced = [(one.problem, one.trials[-1]) for one in results if "price" in one.trials[-1]]
    if priced:
        words = ("chosen", "chosen_cpu", "one", "program", "seconds")
        rows = [[problem, *(f"{trial['price'][word]:.2f}" for word in words)] for problem, trial in priced]
        heading = ["stream", "passes of the chosen", "in CPU time", "of dual-logistic", "whole program", "seconds"]
        made.append(Table("Price of auto, by the clock: learning in passes; text to model", heading, rows))
    return made


def _column(result: Result, name: str) -> str:
    found = result.aucs(name)
    return with_error(float(np.mean(found)), standard_error(found)) if found else "-"


def _standings(words: str, part: list[Result], shown: Sequence[str]) -> Table:
    rows = []
    for name in shown:
        here = [one for one in part if one.aucs(name)]
        if not here:
            continue
        mean = f"{np.mean([np.mean(one.aucs(name)) for one in here]):.4f}"
        leads = [lead for one in here if (lead := one.lead(name)) is not None]
        if name == AUTO or not leads:
            rows.append([name, str(len(here)), mean, "", "", "", ""])
            continue
        gaps = [lead.mean for lead in leads]
        above, below = (
            sum(sign * lead.mean > (0 if np.isnan(lead.error) else lead.error) for lead in leads) for sign in (1, -1)
        )
        middle, error = f"{np.mean(gaps):+.4f}", decimals(standard_error(gaps))
        rows.append([name, str(len(here)), mean, middle, error, str(above), str(below)])
    heading = ["contestant", "problems", "mean AUC", "auto minus it", "s.e.", "auto above", "below"]
    return Table(f"Means over {words}; above and below: by more than one standard error", heading, rows)


def compared(results: list[Result], baseline: list[Result]) -> list[Table]:
    """How auto has changed since an earlier run, on the trials that both have."""
    past = {one.problem: one for one in baseline}
    rows, changes = [], {}
    for one in results:
        mine = one.aucs(AUTO)
        other = past[one.problem].aucs(AUTO) if one.problem in past else []
        count = min(len(mine), len(other))
        if not count:
            continue
        pairs = zip(one.trials[:count], past[one.problem].trials[:count], strict=True)
        if any(now[word] != then[word] for now, then in pairs for word in ("rows", "positives")):
            log(f"{one.problem}: the baseline has other rows; not compared")
            continue
        gaps = np.subtract(mine[:count], other[:count])
        changes[one.problem] = float(gaps.mean())
        cells = [f"{np.mean(values[:count]):.4f}" for values in (other, mine)]
        rows.append([one.problem, *cells, f"{gaps.mean():+.4f}", decimals(standard_error(gaps))])
    made = [Table("Auto since the baseline", ["problem", "before", "now", "change", "s.e."], rows)]
    summary = []
    for words, part in kinds(results):
        here = {one.problem: changes[one.problem] for one in part if one.problem in changes}
        if not here:
            continue
        values = list(here.values())
        worst = min(here, key=lambda problem: here[problem])
        up, down = (sum(sign * value > 5e-5 for value in values) for sign in (1, -1))
        change = [f"{np.mean(values):+.4f}", decimals(standard_error(values))]
        summary.append([words, str(len(here)), *change, str(up), str(down), f"{here[worst]:+.4f} {worst}"])
    heading = ["mean over", "problems", "change", "s.e.", "higher", "lower", "worst problem"]
    return [*made, Table("Mean change of auto", heading, summary)]


def read_results(path: Path) -> list[Result]:
    return [Result(one["problem"], one["kind"], one["trials"]) for one in json.loads(path.read_text())["problems"]]


def save(path: Path, results: list[Result], options: dict[str, Any]) -> None:
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    about = {"version": __version__, "commit": found.stdout.strip(), "machine": machine.description()}
    content = {**about, "options": options, "problems": [one._asdict() for one in results]}
    aside = path.with_name(path.name + ".part")
    aside.write_text(json.dumps(content, indent=1))
    aside.rename(path)


# -- the program


def available(wanted: Sequence[str]) -> list[str]:
    """The peers that are installed; a line for each that is not."""
    found = []
    for peer in wanted:
        if importlib.util.find_spec(PACKAGES[peer]) is None:
            log(f"{peer}: the package {PACKAGES[peer]} is not installed; left out")
            continue
        try:
            if peer == "vw":
                machine.library()  # writes its rows
        except SystemExit as error:
            log(f"{peer}: {error}; left out")
            continue
        found.append(peer)
    return found


def contestants(peers: Sequence[str], slow: bool) -> list[str]:
    theirs = [name for peer in peers for name in CONTESTANTS[peer]]
    ceilings = [BEST, *(name for name in theirs if name.endswith("*"))]
    plain = [name for name in theirs if not name.endswith("*")]
    return [AUTO, "race", *contenders.untuned_names(slow), *plain, *ceilings]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with the sets")
    parser.add_argument("--trials", type=int, default=3, help="permutations of each set, up to 10")
    parser.add_argument("--sets", help="default: all files of the folder")
    parser.add_argument("--ratios", default="asis,.1,.05", help="positives to negatives; asis: as they are")
    parser.add_argument("--parts", default="sets,streams")
    parser.add_argument("--streams", default=",".join(streams.RECIPES))
    parser.add_argument("--stream-scale", type=float, default=1.0, help="shortens all streams")
    parser.add_argument("--stream-trials", type=int, default=1, help="seeds of each stream")
    parser.add_argument("--peers", default=",".join(PACKAGES))
    parser.add_argument("--contestants", help="only these of those above")
    parser.add_argument("--all-learners", action="store_true", help="also learners that cost more than O(k) per row")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--baseline", type=Path, help="an earlier --json to compare auto with")
    return parser


def set_files(folder: Path | None, wanted: str | None) -> list[str]:
    if folder is None:
        log("sets: no --data-dir; left out")
        return []
    found = [path.name.removesuffix(".svm.bz2") for path in sorted(folder.glob("*.svm.bz2"))]
    names = wanted.split(",") if wanted else [name for name in found if name != EXAMPLE]
    for name in names:
        if name not in found:
            log(f"{name}: {folder / name}.svm.bz2 is missing; left out")
    return [name for name in names if name in found]


def measured(given: argparse.Namespace, names: list[str], scratch: Path, pool: contenders.Map) -> Iterator[Result]:
    parts = given.parts.split(",")
    if "sets" in parts:
        files = set_files(given.data_dir, given.sets)
        problems = list(itertools.product(files, given.ratios.split(",")))
        jobs = [(name, ratio, number) for name, ratio in problems for number in range(given.trials)]
        done = pool(partial(set_trial, given.data_dir, names, scratch), *zip(*jobs, strict=True)) if jobs else iter(())
        for name, ratio in problems:
            problem = name if ratio == ASIS else f"{name} {ratio}"
            trials = list(itertools.islice(done, given.trials))
            reasons = [trial for trial in trials if isinstance(trial, str)]
            if reasons:
                log(f"{problem}: {reasons[0]}; left out")
            else:
                yield Result(problem, ratio, trials)
    if "streams" in parts:
        for name in given.streams.split(","):
            if name not in streams.RECIPES:
                log(f"{name}: there is no such stream, only {', '.join(streams.RECIPES)}; left out")
                continue
            seeds = range(given.stream_trials)
            trials = [stream_trial(name, given.stream_scale, seed, names, scratch, pool) for seed in seeds]
            yield Result(name, STREAM, trials)


def main(words: Sequence[str] | None = None) -> list[Result]:
    parser = options()
    given = parser.parse_args(words)
    peers = available([name for name in given.peers.split(",") if name])
    names = contestants(peers, given.all_learners)
    if given.contestants:
        known, wanted = contestants(list(PACKAGES), slow=True), given.contestants.split(",")
        if unknown := [name for name in wanted if name not in known]:
            parser.error(f"--contestants: no {', '.join(unknown)}; there are {', '.join(known)}")
        names = [name for name in known if name in wanted and (name in names or not _foreign(name))]
    baseline = read_results(given.baseline) if given.baseline else []
    results: list[Result] = []
    start = time.perf_counter()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pool: contenders.Map = map
        if given.jobs > 1:
            pool = stack.enter_context(ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn"))).map
        for result in measured(given, names, scratch, pool):
            results.append(result)
            log(f"[{time.perf_counter() - start:6.0f} s] {result.problem}: {_progress(result, names)}")
            if given.json:
                save(given.json, results, {key: str(value) for key, value in vars(given).items()})
    if not results:
        return results
    made = tables(results, names) + (compared(results, baseline) if baseline else [])
    log("\n" + "\n".join(table.text() for table in made))
    if given.markdown:
        given.markdown.write_text("\n".join([section(given), *(table.markdown() for table in made)]))
    return results


def section(given: argparse.Namespace) -> str:
    """The head of the Markdown section: what was measured."""
    return (
        "## How well is learned\n\n"
        f"rarestream {__version__}, `benchmarks/quality.py`: {given.trials} trials of each set, {given.stream_trials} "
        f"of each stream at scale {given.stream_scale:g}. An AUC as .9625(12) has a standard error of .0012. "
        "Names that end in * are no contestants: they know the test rows or the truth, or read the rows many times.\n"
    )


def _progress(result: Result, names: Sequence[str]) -> str:
    """Auto, and the best of the others that are no ceilings."""
    others = [name for name in names if name != AUTO and not name.endswith("*") and result.aucs(name)]
    shown = [AUTO] if result.aucs(AUTO) else []
    if others:
        shown.append(max(others, key=lambda name: float(np.mean(result.aucs(name)))))
    return ", ".join(f"{name} {_column(result, name)}" for name in shown)


def _foreign(name: str) -> bool:
    return any(name in theirs for theirs in CONTESTANTS.values())


if __name__ == "__main__":
    main()
