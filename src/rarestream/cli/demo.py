"""rarestream demo: a guided tour on synthetic data whose true weights are known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rarestream.cli import look
from rarestream.cli.parser import Option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rarestream.blocks import Block
    from rarestream.evaluate import TrainingRun
    from rarestream.evaluate.synthetic import Planted
    from rarestream.model import Model

LEARNERS = ("auto", "dual-auc", "dual-logistic", "ftrl-auc")
POINTS = 24  # of the curve
SHOWN = 10  # planted weights in the table
LOSS = 0.001  # of AUC, for fewer weights
MATTER = 50  # planted weights to look for among those of the model

Seed = Annotated[int, Option("--seed", metavar="N", help="Seed of the synthetic data.", min=0)]
Rows = Annotated[int, Option("--rows", metavar="N", help="Number of rows to learn, at least 10,000.", min=10_000)]


def demo(seed: Seed = 0, rows: Rows = 300_000) -> None:
    """Run a guided demo on synthetic data; no files are needed.

    The true weights of the data are known, and so is the best possible AUC.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rarestream-") as folder:
        _Demo(Path(folder), seed, rows).run()


class _Demo:
    """Trains, evaluates, prunes, inspects and resumes a model, and explains each step."""

    def __init__(self, folder: Path, seed: int, rows: int) -> None:
        self.folder, self.seed, self.rows = folder, seed, rows
        self.unseen = max(20_000, rows // 3)
        self.data = folder / "demo.svm.gz"
        self.file = folder / "demo.rare"
        self.ink = look.stdout()
        self.columns = min(look.width(), 100)

    def run(self) -> None:
        began = time.monotonic()
        self._make()
        model = self._learn()
        self._compare(model)
        self._cut(model)
        self._found(model)
        self._resume()
        self.ink.line()
        self._print(
            f"Finished in {look.duration(time.monotonic() - began)}. To train on your own data:\n"
            "  rarestream train DATA -o model.rare"
        )

    # -- the steps

    def _make(self) -> None:
        import numpy as np

        from rarestream.evaluate.synthetic import FIELDS, HELD_OUT, D, Planted, write_svmlight
        from rarestream.metrics import auc

        began = time.monotonic()
        self.truth: Planted = Planted.plant(self.seed)
        text = write_svmlight((part.block for part in self.truth.rows(self.rows)), self.data)
        parts = list(self.truth.rows(self.unseen, HELD_OUT))
        self.held_out: list[Block] = [part.block for part in parts]
        self.labels: NDArray[np.int8] = np.concatenate([part.block.labels for part in parts])
        self.best = auc(self.labels, np.concatenate([part.log_odds for part in parts]))
        planted = int(np.count_nonzero(self.truth.weights))
        self._head("A stream of rare events", f"made in {look.duration(time.monotonic() - began)}")
        share = 100 * float(np.mean(self.labels > 0))
        self._print(
            f"{look.count(self.rows)} events of {FIELDS} fields, hashed to {look.count(D)} columns; {share:.1f} % are "
            f"positive. {planted} columns have a true weight, all others are noise. As the true weights are known, so "
            f"is the best possible AUC on {look.count(self.unseen)} held-out rows: {self.best:.4f}."
        )
        self._print(f"{self.data.name}: {look.size(self.data.stat().st_size)}, {look.size(text)} of svmlight text.")

    def _learn(self) -> Model:
        model, run, seconds = self._trained("auto")
        model.save(self.file)
        self._head("One pass over it", "rarestream train demo.svm.gz -o demo.rare")
        self._print(
            f"Compressed text to model in {look.duration(seconds)}: {look.short(run.rows / seconds)} rows/s, "
            f"{look.short(run.nonzeros / seconds)} non-zeros/s. {_choice(model)} AUC on the held-out rows while it "
            "learned:"
        )
        self.ink.line()
        label = f" best possible {self.best:.4f} "
        ends = ("0", f"{look.short(self.rows)} rows")
        for line in look.curve(self._climb(), self.best, label, self.columns - 4, ends):
            self.ink.line("  " + self._coloured(line, label))
        self.seconds = seconds
        return model

    def _trained(self, learner: str) -> tuple[Model, TrainingRun, float]:
        from rarestream.evaluate import train
        from rarestream.model import Model
        from rarestream.readers import read

        began = time.monotonic()
        model = Model(learner)
        run = train(model, read(str(self.data)))
        return model, run, time.monotonic() - began

    def _climb(self) -> list[tuple[float, float]]:
        """Rows learned, and the AUC on held-out rows then. The same training once more, untimed, with many stops."""
        from rarestream.evaluate import TrainingRun
        from rarestream.model import Model
        from rarestream.readers import read

        # Closer at the start, where the curve is steep.
        marks = sorted({max(1000, round(self.rows * (i / POINTS) ** 2)) for i in range(1, POINTS + 1)})
        model = Model("auto")
        run = TrainingRun(model, read(str(self.data)), marks=marks)
        return [(model.rows, self._held_out_auc(model)) for step in run if step.mark]

    def _compare(self, model: Model) -> None:
        from rarestream.evaluate import evaluate

        self._head("On rows it never saw", "rarestream evaluate demo.rare held-out.svm")
        cells = []
        for name in LEARNERS:
            other, seconds = model, self.seconds
            if name != LEARNERS[0]:
                other, _, seconds = self._trained(name)
            result = evaluate(other, self.held_out)
            reached = (result.auc - 0.5) / (self.best - 0.5)
            cells.append(
                [
                    name,
                    f"{float(result.auc):.4f}",
                    f"[{result.auc.low:.4f}, {result.auc.high:.4f}]",
                    f"{100 * reached:.1f} %",
                    look.duration(seconds),
                ]
            )
        cells.append(["best possible", f"{self.best:.4f}", "", "100 %", ""])
        heading = ["learner", "AUC", "95 % interval", "of the possible gain", "time"]
        self._table(look.table(cells, heading, left=(0, 2)), bold=1)

    def _cut(self, model: Model) -> None:
        from rarestream.evaluate import path

        validation, test = self.held_out[: len(self.held_out) // 2], self.held_out[len(self.held_out) // 2 :]
        small = model.prune(auc_loss=LOSS, on=validation)
        lost = path(model, test, [small.nonzeros])
        self._head("Pruned", f"rarestream prune demo.rare --auc-loss {LOSS} --on validation.svm")
        self._print(
            f"{look.count(small.nonzeros)} of {look.count(model.nonzeros)} weights are enough to lose no more than "
            f"{LOSS} AUC on one half of the held-out rows; on the other half they lose "
            f"{max(0.0, lost.full - lost[small.nonzeros]):.4f}. The file for scoring shrinks from "
            f"{look.size(len(model.to_bytes('scoring')))} to {look.size(len(small.to_bytes('scoring')))}."
        )

    def _found(self, model: Model) -> None:
        import numpy as np

        planted, found = self.truth.weights, np.zeros(len(self.truth.weights))
        found[: model.n_features] = model.coef
        matters = _matters(planted, self.truth.shows)
        order = np.argsort(-matters, kind="stable")[:MATTER]
        asked = np.argsort(-_matters(found, self.truth.shows), kind="stable")[:MATTER]
        both = len(set(order.tolist()) & set(asked.tolist()))
        agreement = float(np.corrcoef(planted[order], found[order])[0, 1])
        self._head("The weights it found", "rarestream inspect demo.rare --top 10")
        half = (self.columns - 40) // 2
        largest, widest = np.abs(planted[order]).max(), np.abs(found[order]).max()
        self.ink.line(
            "  " + self.ink(f"{'column':>7}  {'in rows':>8}  {'planted':>7}  {'':<{half}}{'found':>7}", "bold")
        )
        for j in order[:SHOWN]:
            bars = [
                self.ink(look.bar(weight, most, half - 3).ljust(half), "green" if weight > 0 else "red")
                for weight, most in ((planted[j], largest), (found[j], widest))
            ]
            self.ink.line(
                f"  {j + 1:>7}  {100 * self.truth.shows[j]:>6.1f} %  {planted[j]:>+7.2f}  {bars[0]}"
                f"{found[j]:>+7.2f}  {bars[1]}".rstrip()
            )
        self._print(
            f"Over the {MATTER} planted columns that matter most, planted and found weights correlate with "
            f"{agreement:.2f}; {both} of them are among the {MATTER} that matter most to the model, out of "
            f"{look.count(model.n_features)}."
        )

    def _resume(self) -> None:
        import hashlib

        from rarestream.evaluate import TrainingRun, place_in
        from rarestream.model import Model
        from rarestream.readers import read
        from rarestream.readers.sources import expand

        half = self.folder / "half.rare"
        first = Model("auto")
        for _ in TrainingRun(first, read(str(self.data)), max_rows=self.rows // 2):
            pass
        first.save(half)
        second = Model.load(half)
        place = place_in(second.source, expand(str(self.data)))
        for _ in TrainingRun(second, read(str(self.data), **place.settings), place=place):
            pass
        second.save(half)
        small = second.to_bytes("scoring")
        prints = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.file, half)]
        self._head("Stopped halfway and resumed", "rarestream train demo.svm.gz --resume half.rare")
        cells = [
            ["demo.rare", look.size(self.file.stat().st_size), "one run", prints[0][:16]],
            ["half.rare", look.size(half.stat().st_size), "two runs", prints[1][:16]],
        ]
        self._table(look.table(cells, ["file", "size", "made in", "sha256"], left=(0, 2, 3)))
        same = "The same file, byte for byte." if prints[0] == prints[1] else "The files differ: please report this."
        self._print(f"{same} Saved for scoring only, it takes {look.size(len(small))}.")

    # -- how it is printed

    def _held_out_auc(self, model: Model) -> float:
        import numpy as np

        from rarestream.metrics import auc

        return auc(self.labels, np.concatenate([model.score(block) for block in self.held_out]))

    def _head(self, title: str, aside: str) -> None:
        room = self.columns - len(title) - len(aside) - 2
        rule = "─" * max(1, room)
        self.ink.line()
        self.ink.line(f"{self.ink(title, 'bold', 'cyan')} {self.ink(f'{rule} {aside}', 'dim')}")

    def _print(self, text: str) -> None:
        import textwrap

        for paragraph in text.split("\n"):
            for line in textwrap.wrap(paragraph, self.columns - 2, break_on_hyphens=False, drop_whitespace=False):
                self.ink.line("  " + line.rstrip())

    def _table(self, lines: list[str], bold: int | None = None) -> None:
        for number, line in enumerate(lines):
            self.ink.line("  " + (self.ink(line, "bold") if number == 0 or number == bold else line))

    def _coloured(self, line: str, label: str) -> str:
        axis, plot = line[:7], line[7:]
        if label in plot:
            plot, rest = plot.split(label)
            return self.ink(axis, "dim") + self.ink(plot, "cyan") + self.ink(label, "bold") + rest
        return self.ink(axis, "dim") + (self.ink(plot, "cyan") if "─" not in plot else self.ink(plot, "dim"))


def _choice(model: Model) -> str:
    """What auto chose, or which settings lead if there were too few rows to choose."""
    chosen = look.described(model.leader)
    if model.chosen_by is None:
        return f"All {look.count(model.rows)} rows were learned with many settings at once; leading: {chosen}."
    return f"The first {look.count(model.chosen_by.rows)} rows were learned with many settings at once; kept: {chosen}."


def _matters(weights: NDArray[np.float64], shows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far a column moves the ranking: its weight times the spread of its being there or not."""
    import numpy as np

    return np.abs(weights) * np.sqrt(shows * (1 - shows))
