"""Racing: many settings learn the same rows in one pass, and are judged by the scores the rows had before.

Settings of the FTRL and dual-averaging learners run side by side in lanes (engines/lanes.py); others get a Model of
their own in the same pass. After 2048, 8192, 32768, ... rows a setting is retired if, on the later half of the rows
so far, the AUC of the one in the lead is larger by more than four standard errors of their difference (DeLong's, on
the same rows). At the end all but the first quarter of the rows count:

    settings="auto"   the setting with the largest AUC wins, less one standard error of its difference from the
                      default; with fewer than 30 rows of a class the default does
    a list            the setting with the largest AUC wins

With `holdout`, every so-many-th row is scored and never learned, and the settings are judged on these rows in the last
pass. Without it they are judged on the first pass, and only the winner goes on to further ones.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines import SCALES
from rarestream.engines.choice import MIN_CLASS_ROWS, Schedule, best_setting, warm_up
from rarestream.errors import DataError, RowError, SortedRowsWarning, advice
from rarestream.evaluate import Step, TrainingRun
from rarestream.learners import Learner
from rarestream.metrics import Estimate, SortedCheck, StreamingAuc
from rarestream.metrics.paired import Standings
from rarestream.metrics.rows import ScoredRows, both_classes
from rarestream.model import Model
from rarestream.modelfile.codec import ChosenBy
from rarestream.race.entrants import entrants
from rarestream.race.fitting import ManyFits
from rarestream.race.sample import Sample, Scored
from rarestream.readers import Stream
from rarestream.system import cores, machine_memory

SCHEDULE = Schedule(first=2048, factor=4)
BEATEN, CLEAR = 4.0, 2.0  # standard errors
KEPT, FEWEST_KEPT, MOST_KEPT = 1 << 19, 1 << 12, 1 << 14  # scores of a class, of all settings; rows of a class


@dataclass(frozen=True)
class Entrant:
    """How one of the settings did."""

    learner: Learner
    auc: float  # of the rows it was judged on; nan if its weights grew beyond float32
    behind: float  # how much less than the winner's, or when it was retired than that of the one in the lead
    error: float  # the standard error of that difference; nan if it was retired
    progress: StreamingAuc  # of the scores that all rows had, up to where it was retired
    retired_after: int | None  # rows; None: it came to the end

    @property
    def progressive_auc(self) -> Estimate:
        return self.progress.auc

    @property
    def in_lane(self) -> bool:
        return self.learner.lane() is not None

    @property
    def close(self) -> bool:
        """Whether it cannot be told from the winner."""
        return self.retired_after is None and not self.behind > CLEAR * self.error


@dataclass(frozen=True)
class Race:
    """What came of a race: the winner, a Model that can be saved, resumed and cut to size, and how all settings did."""

    model: Model
    entrants: tuple[Entrant, ...]  # the winner, then the best first, those retired last
    judged: int  # rows that the settings were compared on
    thinned: bool  # whether these are an even sample of more
    enough: bool  # whether they were enough of both classes to choose by

    @property
    def winner(self) -> Entrant:
        return self.entrants[0]

    @property
    def close(self) -> list[Entrant]:
        """Settings that cannot be told from the winner: less than two standard errors behind. None: it is clear."""
        return [one for one in self.entrants[1:] if one.close]


def race(
    stream: Stream,
    settings: str | Sequence[Learner | str] = "auto",
    *,
    scale: str = "unit",
    passes: int = 1,
    holdout: float = 0.0,
    retire: bool = True,
    max_rows: int | None = None,
    memory: int | None = None,
    threads: int | None = None,
    report: Callable[[TrainingRun, Step], object] | None = None,
) -> Race:
    """Learns a stream with many settings at once, and returns the best of them as a trained Model.

    settings  "auto", or a list of learners
    holdout   the share of rows to judge on, which are never learned; 0: rows are judged before they are learned
    retire    whether settings that are clearly beaten drop out on the way
    memory    bytes that all settings may take together; None: half of the machine's
    threads   that learn; None: as many as there are cores
    report    is told of every step
    """
    racing = Racing(settings, scale=scale, holdout=holdout, retire=retire, memory=memory, threads=threads)
    run = TrainingRun(racing, stream, passes=passes, max_rows=max_rows)
    for step in run:
        if report is not None:
            report(run, step)
    return racing.finish()


class Racing:
    """A race under way: `learn` blocks of rows as a Model does, then `finish`."""

    def __init__(
        self,
        settings: str | Sequence[Learner | str] = "auto",
        *,
        scale: str = "unit",
        holdout: float = 0.0,
        retire: bool = True,
        memory: int | None = None,
        threads: int | None = None,
    ) -> None:
        if scale not in SCALES:
            raise ValueError(f"race: scale must be one of {', '.join(SCALES)}, got {scale!r}.")
        if not 0 <= holdout <= 0.5:
            raise ValueError(f"race: holdout is a share between 0 and 0.5, got {holdout}.")
        if memory is not None and memory < 1:
            raise ValueError(f"race: memory is a number of bytes, got {memory}.")
        if threads is not None and threads < 1:
            raise ValueError(f"race: threads must be >= 1, got {threads}.")
        self.learners = entrants(settings)
        self.memory = memory or machine_memory() // 2
        self.rows = 0  # that came so far, with those held out
        self.positives = 0
        self.n_features = 0
        self._learned = self._learned_positives = 0
        self.source: dict[str, Any] = {}
        self.order = SortedCheck()
        self._default_first = isinstance(settings, str)
        self._retires = retire
        self._every = round(1 / holdout) if holdout else 0  # which rows are held out
        self._turn = 0  # rows of this pass
        self._length: int | None = None  # rows of a pass, once the first is over
        self._scale = scale
        self._threads = threads or cores()
        self._fits = ManyFits(self.learners, scale, self._threads)
        self._retired: dict[int, Entrant] = {}
        self._lead = 0
        self._start_judging()
        self._race: Race | None = None

    # -- what is planned

    @property
    def bytes(self) -> int:
        """Of a feature, of all settings."""
        return self._fits.bytes

    @property
    def most_features(self) -> int:
        """How many fit in the memory allowed."""
        return min(self.memory // self.bytes, LARGEST_INDEX + 1)

    @property
    def without_lanes(self) -> list[Learner]:
        """Settings that learn alone, in the time of a pass each."""
        return [learner for learner in self.learners if learner.lane() is None]

    # -- as of a Model

    @property
    def leader(self) -> Learner:
        """The settings in the lead."""
        return self.learners[self._lead]

    @property
    def progress(self) -> StreamingAuc:
        """Of the scores the judged rows had under the settings in the lead."""
        return self._race.model.progress if self._race else self._progress[self._lead]

    @property
    def model(self) -> Model:
        """What the settings in the lead have learned so far; to score with only, until the race is finished."""
        return self._race.model if self._race else self._model(self._lead)

    @property
    def nonzeros(self) -> int:
        """Weights that are not zero under the settings in the lead."""
        return self.model.nonzeros

    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]:
        """Learns the rows with every setting. Returns the scores that those in the lead gave them before."""
        if block.labels is None:
            raise DataError("race: the block has no labels, and settings are judged by them.")
        if again:
            self._begin_pass()
        else:
            doubt = self.order.add(block.labels)
            if doubt is not None:
                warnings.warn(doubt, SortedRowsWarning, stacklevel=2)
        if self._race is not None:
            self._count(block.labels)
            return self._race.model.learn(block, again=again)
        self._make_room(block.width)
        scores = np.empty(len(block))
        done = 0
        while done < len(block):
            piece = block[done : done + self._next_look - self._turn]
            try:
                scores[done : done + len(piece)] = self._learn(piece)
            except RowError as error:
                raise RowError(error.where, done + error.row, error.says) from None  # of the caller's block
            done += len(piece)
            if self._turn == self._next_look:
                self._look()
        return scores

    def finish(self) -> Race:
        """The outcome. Its model can go on."""
        if self._race is None:
            self._judge()
        assert self._race is not None
        self._race.model.source = self.source
        self._race.model.order = self.order
        return self._race

    # -- inside

    def _begin_pass(self) -> None:
        """Another pass begins, if the one before is over."""
        if self._length is None:
            self._length = self._turn
        if self._turn < self._length:
            return
        self._turn = 0
        if self._every:
            self._start_judging()  # held-out rows are judged by the last pass
        elif self._race is None:
            self._judge()

    def _start_judging(self) -> None:
        count = len(self.learners)
        self._progress = [StreamingAuc() for _ in range(count)]
        self._sample = Sample(count, max(FEWEST_KEPT, min(KEPT // count, MOST_KEPT)))
        self._judged = 0
        self._next_look = SCHEDULE.after(0)

    def _learn(self, block: Block) -> NDArray[np.float64]:
        assert block.labels is not None
        judged, learned, weights = block, block.labels, block.importances
        if self._every:
            held = (self._turn + np.arange(len(block))) % self._every == 0
            judged, learned = block.take(np.flatnonzero(held)), block.labels[~held]
            weights = np.where(held, 0.0, 1.0 if weights is None else weights)
        scores = self._scores(dataclasses.replace(block, importances=weights))
        counted = scores[held] if self._every else scores
        assert judged.labels is not None
        self._sample.add(self._judged, judged.labels, counted, judged.importances)
        for one in self._left():
            self._progress[one].count(ScoredRows(judged.labels, counted[:, one].astype(np.float64), judged.importances))
        self._judged += len(judged)
        self._learned += len(learned)
        self._learned_positives += int(np.count_nonzero(learned > 0))
        self._count(block.labels)
        return scores[:, self._lead].astype(np.float64)

    def _count(self, labels: NDArray[np.int8]) -> None:
        self._turn += len(labels)
        self.rows += len(labels)
        self.positives += int(np.count_nonzero(labels > 0))

    def _scores(self, block: Block) -> NDArray[np.float32]:
        """Has every setting learn the rows; the scores they gave before, a column per setting."""
        scores = self._fits.learn(block, again=True)
        for number in self._fits.errors.keys() - self._retired.keys():
            self._retired[number] = self._entrant(number, np.nan, np.nan, np.nan, self.rows)
        if not self._left():
            raise self._fits.errors[min(self._fits.errors)]
        self._follow_leader()
        return scores

    def _follow_leader(self) -> None:
        """Looks for another leader if the one there was has dropped out."""
        left = self._left()
        if self._lead not in left:
            self._lead = left[0]

    def _left(self) -> list[int]:
        return self._fits.left

    def _look(self) -> None:
        """Sees who leads, and retires those who are clearly beaten; never the default of "auto"."""
        self._next_look = SCHEDULE.after(self._next_look)
        rows = self._sample.since(self._judged // 2)
        if rows.fewest < MIN_CLASS_ROWS:
            return
        left, standings = self._left(), self._compared(rows)
        best = self._best(standings)
        self._lead = left[best]
        if not self._retires:
            return
        gaps, errors = standings.aucs[best] - standings.aucs, standings.errors(best)
        beaten = [place for place in np.flatnonzero(gaps > BEATEN * errors) if not self._is_default(left[place])]
        for place in beaten:
            number = left[place]
            self._retired[number] = self._entrant(number, standings.aucs[place], gaps[place], np.nan, self.rows)
        if beaten:
            self._fits.drop(self._retired)
            self._follow_leader()

    def _compared(self, rows: Scored) -> Standings:
        """The settings that are left, on some rows."""
        return Standings(rows.labels, rows.scores[:, self._left()], rows.importances)

    def _is_default(self, number: int) -> bool:
        return self._default_first and number == 0

    def _best(self, standings: Standings) -> int:
        left = self._left()
        if self._default_first and 0 in left:
            return best_setting(standings, left.index(0))
        return int(np.argmax(standings.aucs))

    def _judge(self) -> None:
        both_classes("race", self.rows, self.positives)
        rows = self._sample.since(0 if self._every else warm_up(self._judged))
        if not rows.fewest:
            rows = self._sample.since(0)
        if not rows.fewest:
            raise DataError(
                "race: the rows held out are all of one class. Hold out a larger share of them: "
                + advice("holdout=0.2", "--holdout 0.2")
            )
        left, standings = self._left(), self._compared(rows)
        enough = rows.fewest >= MIN_CLASS_ROWS
        keep_default = self._default_first and 0 in left and not enough
        best = left.index(0) if keep_default else self._best(standings)
        aucs, errors = standings.aucs, standings.errors(best)
        self._lead = left[best]
        model = self._model(self._lead)
        model.rows, model.positives = self._learned, self._learned_positives
        model.progress = self._progress[self._lead]
        model.chosen_by = ChosenBy("race", self._judged)
        table = [
            self._entrant(number, aucs[place], aucs[best] - aucs[place], errors[place], None)
            for place, number in enumerate(left)
        ]
        winner = table.pop(best)
        table.sort(key=lambda one: -one.auc)
        out = sorted(self._retired.values(), key=lambda one: (-(one.retired_after or 0), one.behind))
        self._race = Race(model, (winner, *table, *out), len(rows.labels), self._sample.thinned, enough)
        self._fits.close()

    def _entrant(self, number: int, auc: float, behind: float, error: float, retired: int | None) -> Entrant:
        progress = self._progress[number]
        return Entrant(self.learners[number], float(auc), float(behind), float(error), progress, retired)

    def _model(self, number: int) -> Model:
        return self._fits.model(number, self.n_features)

    def _make_room(self, width: int) -> None:
        if width > self.most_features:
            allow = advice("memory=BYTES", "--memory SIZE")
            raise DataError(
                f"race: feature index {width - 1} needs {width * self.bytes / 1e9:,.1f} GB, {self.bytes} bytes a "
                f"feature for {len(self._left())} settings, and {self.memory / 1e9:,.1f} GB are allowed. Race fewer "
                f"settings, allow more memory ({allow}), or hash or renumber the features into a smaller range."
            )
        self.n_features = max(self.n_features, width)
        self._fits.reserve(width, self.most_features)
