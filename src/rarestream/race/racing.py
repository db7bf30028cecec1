"""Racing: many settings learn the same rows in one pass, and are compared by the scores the rows had before.

Settings of the FTRL and dual-averaging learners run side by side in lanes (engines/lanes.py); others get a Model of
their own in the same pass. After 2048, 8192, 32768, ... rows a setting is retired if, on the later half of the rows
so far, the AUC of the leading one is larger by more than four standard errors of their difference (DeLong's, on the
same rows). At the end, on all rows but the first quarter,

    settings="auto"   the setting with the largest AUC minus one standard error of its difference from the default
                      wins; with fewer than 30 rows of a class, the default
    a list            the setting with the largest AUC wins

With `holdout`, every n-th row is scored and never learned, and the settings are compared on these rows in the last
pass. Without it they are compared on the first pass, and only the winner makes further passes.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
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
from rarestream.metrics import Calibration, Estimate, SortedCheck, StreamingAuc
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
RETIRE, TIE = 4.0, 2.0  # standard errors behind: more than RETIRE ends a setting, up to TIE is no clear difference
SAMPLE_SCORES = 1 << 19  # per class, of all settings together
MIN_SAMPLE, MAX_SAMPLE = 1 << 12, 1 << 14  # rows per class


@dataclass(frozen=True)
class Entrant:
    """The result of one setting of a race.

    Attributes
    ----------
    learner : Learner
        The setting.
    auc : float
        AUC on the rows that the settings were compared on; nan if its weights grew beyond float32.
    behind : float
        AUC of the winner minus this one; of a retired setting, AUC of the leader at that time minus this one.
    error : float
        Standard error of `behind`; nan for a retired setting.
    progress : StreamingAuc
        Progressive AUC, up to where the setting was retired.
    retired_after : int or None
        Number of rows after which it was retired; None if it was not.
    """

    learner: Learner
    auc: float
    behind: float
    error: float
    progress: StreamingAuc
    retired_after: int | None

    @property
    def progressive_auc(self) -> Estimate:
        """Progressive AUC, with its interval."""
        return self.progress.auc

    @property
    def in_lane(self) -> bool:
        """Whether it shared a pass with other settings."""
        return self.learner.lane() is not None

    @property
    def close(self) -> bool:
        """Whether it is at most two standard errors behind the winner."""
        return self.retired_after is None and not self.behind > TIE * self.error


@dataclass(frozen=True)
class RaceResult:
    """The result of a race.

    Attributes
    ----------
    model : Model
        The trained model of the winner.
    entrants : tuple of Entrant
        The winner, then the other settings by AUC, then the retired ones.
    judged : int
        Number of rows that the settings were compared on.
    thinned : bool
        Whether these are an even sample of more rows.
    enough : bool
        Whether both classes have the 30 rows that a comparison needs.
    """

    model: Model
    entrants: tuple[Entrant, ...]
    judged: int
    thinned: bool
    enough: bool

    @property
    def winner(self) -> Entrant:
        """The setting of `model`."""
        return self.entrants[0]

    @property
    def close(self) -> list[Entrant]:
        """Settings at most two standard errors behind the winner; if there are none, the winner is clear."""
        return [entrant for entrant in self.entrants[1:] if entrant.close]


def race(
    stream: Stream | Iterable[Block],
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
) -> RaceResult:
    """Learn a stream with many settings at once, and return the best of them as a trained model.

    Parameters
    ----------
    stream : Stream or iterable of Block
        Labelled rows, as `read` returns them, or Blocks, for example those of `make_rare_stream` or a list.
    settings : "auto" or sequence of Learner or str, default "auto"
        The settings of the learner `auto`, or up to 1024 learners or names of learners.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled, as for a Model.
    passes : int, >= 1, default 1
        Total number of passes over the stream; without `holdout` only the winner makes those after the first.
    holdout : float, between 0 and 0.5, default 0
        Share of the rows that is not learned, to compare the settings on. With 0 they are compared on the scores that
        rows had before they were learned.
    retire : bool, default True
        Whether settings that are clearly worse stop early.
    max_rows : int, >= 1, optional
        Maximum number of rows to learn. By default all.
    memory : int, >= 1, optional
        Maximum memory in bytes for all settings together. By default half of the machine's.
    threads : int, >= 1, optional
        Number of threads that learn. By default one per core.
    report : callable, optional
        Called with the TrainingRun and the Step after every step.

    Returns
    -------
    RaceResult
        The winner as a Model, and the result of each setting.

    Raises
    ------
    ValueError
        If an argument is out of range.
    DataError
        If a row is invalid, there are rows of one class only, or a feature index needs more than `memory`.
    """
    racing = Racing(settings, scale=scale, holdout=holdout, retire=retire, memory=memory, threads=threads)
    run = TrainingRun(racing, stream, passes=passes, max_rows=max_rows)
    for step in run:
        if report is not None:
            report(run, step)
    return racing.finish()


class Racing:
    """A race in progress: `learn` blocks of rows as a Model does, then `finish`.

    Parameters
    ----------
    settings, scale, holdout, retire, memory, threads
        As for `race`.

    Attributes
    ----------
    learners : list of Learner
        The settings.
    memory : int
        Maximum memory in bytes for all settings together.
    rows, positives : int
        Number of rows so far, those held out included, and of positive ones.
    n_features : int
        The largest feature index plus one.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

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
            raise ValueError(f"race: holdout must be between 0 and 0.5, got {holdout}.")
        if memory is not None and memory < 1:
            raise ValueError(f"race: memory must be a number of bytes >= 1, got {memory}.")
        if threads is not None and threads < 1:
            raise ValueError(f"race: threads must be >= 1, got {threads}.")
        self.learners = entrants(settings)
        self.memory = memory or machine_memory() // 2
        self.rows = 0
        self.positives = 0
        self.n_features = 0
        self._learned = self._learned_positives = 0
        self.source: dict[str, Any] = {}
        self.order = SortedCheck()
        self._default_first = isinstance(settings, str)
        self._retires = retire
        self._every = round(1 / holdout) if holdout else 0  # every n-th row is held out; 0: none
        self._pass_rows = 0  # so far in this pass
        self._rows_per_pass: int | None = None  # known after the first pass
        self._scale = scale
        self._threads = threads or cores()
        self._fits = ManyFits(self.learners, scale, self._threads)
        self._retired: dict[int, Entrant] = {}
        self._lead = 0
        self._start_judging()
        self._result: RaceResult | None = None

    # -- memory and lanes

    @property
    def bytes(self) -> int:
        """Memory per feature, of all settings together."""
        return self._fits.bytes

    @property
    def most_features(self) -> int:
        """Maximum number of features that fit in `memory`."""
        return min(self.memory // self.bytes, LARGEST_INDEX + 1)

    @property
    def without_lanes(self) -> list[Learner]:
        """Settings that cannot share a pass; each learns separately, which is slower."""
        return [learner for learner in self.learners if learner.lane() is None]

    # -- the interface of a Model

    @property
    def leader(self) -> Learner:
        """The leading setting."""
        return self.learners[self._lead]

    @property
    def progress(self) -> StreamingAuc:
        """Progressive AUC of the leading setting, on the rows that settings are compared on."""
        return self._result.model.progress if self._result else self._progress[self._lead]

    @property
    def model(self) -> Model:
        """What the leading setting has learned so far; until the race is finished, only to score with."""
        return self._result.model if self._result else self._model(self._lead)

    @property
    def nonzeros(self) -> int:
        """Number of non-zero weights of the leading setting."""
        return self.model.nonzeros

    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]:
        """Learn the rows with every setting.

        Parameters
        ----------
        block, again
            As for `Model.learn`.

        Returns
        -------
        array of float64
            The score that each row had under the leading setting before it was learned.

        Raises
        ------
        DataError
            If the block has no labels, a row cannot be learned with any setting, or a feature index needs more than
            `memory`.
        """
        if block.labels is None:
            raise DataError("race: the block has no labels, and settings are judged by them.")
        if again:
            self._begin_pass()
        else:
            warning = self.order.add(block.labels)
            if warning is not None:
                warnings.warn(warning, SortedRowsWarning, stacklevel=2)
        if self._result is not None:
            self._count(block.labels)
            return self._result.model.learn(block, again=again)
        self._make_room(block)
        scores = np.empty(len(block))
        done = 0
        while done < len(block):
            piece = block[done : done + self._next_look - self._pass_rows]
            try:
                scores[done : done + len(piece)] = self._learn(piece)
            except RowError as error:
                raise RowError(error.where, done + error.row, error.reason) from None  # of the caller's block
            done += len(piece)
            if self._pass_rows == self._next_look:
                self._look()
        return scores

    def finish(self) -> RaceResult:
        """End the race.

        Returns
        -------
        RaceResult
            The winner as a Model, which can learn on, and the result of each setting.

        Raises
        ------
        DataError
            If there were rows of one class only.
        """
        if self._result is None:
            self._judge()
        assert self._result is not None
        self._result.model.source = self.source
        self._result.model.order = self.order
        return self._result

    # -- implementation

    def _begin_pass(self) -> None:
        """Begin another pass if the one before is over."""
        if self._rows_per_pass is None:
            self._rows_per_pass = self._pass_rows
        if self._pass_rows < self._rows_per_pass:
            return
        self._pass_rows = 0
        if self._every:
            self._start_judging()  # the last pass decides
        elif self._result is None:
            self._judge()

    def _start_judging(self) -> None:
        count = len(self.learners)
        self._progress = [StreamingAuc() for _ in range(count)]
        self._calibrations = [Calibration() for _ in range(count)]
        self._sample = Sample(count, max(MIN_SAMPLE, min(SAMPLE_SCORES // count, MAX_SAMPLE)))
        self._judged = 0
        self._next_look = SCHEDULE.after(0)

    def _learn(self, block: Block) -> NDArray[np.float64]:
        assert block.labels is not None
        judged, learned, weights = block, block.labels, block.importances
        if self._every:
            held = (self._pass_rows + np.arange(len(block))) % self._every == 0
            judged, learned = block.take(np.flatnonzero(held)), block.labels[~held]
            weights = np.where(held, 0.0, 1.0 if weights is None else weights)
        scores = self._scores(dataclasses.replace(block, importances=weights))
        counted = scores[held] if self._every else scores
        assert judged.labels is not None
        self._sample.add(self._judged, judged.labels, counted, judged.importances)
        for number in self._left():
            rows = ScoredRows(judged.labels, counted[:, number].astype(np.float64), judged.importances)
            self._progress[number].count(rows)
            self._calibrations[number].count(rows)
        self._judged += len(judged)
        self._learned += len(learned)
        self._learned_positives += int(np.count_nonzero(learned > 0))
        self._count(block.labels)
        return scores[:, self._lead].astype(np.float64)

    def _count(self, labels: NDArray[np.int8]) -> None:
        self._pass_rows += len(labels)
        self.rows += len(labels)
        self.positives += int(np.count_nonzero(labels > 0))

    def _scores(self, block: Block) -> NDArray[np.float32]:
        """Learn the rows with every setting; return the scores they had before, a column per setting."""
        scores = self._fits.learn(block, again=True)
        for number in self._fits.errors.keys() - self._retired.keys():
            self._retired[number] = self._entrant(number, np.nan, np.nan, np.nan, self.rows)
        if not self._left():
            raise self._fits.errors[min(self._fits.errors)]
        self._follow_leader()
        return scores

    def _follow_leader(self) -> None:
        """Take another leader if the previous one has dropped out."""
        left = self._left()
        if self._lead not in left:
            self._lead = left[0]

    def _left(self) -> list[int]:
        return self._fits.left

    def _look(self) -> None:
        """Determine the leader, and retire settings that are clearly worse; never the default of "auto"."""
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
        beaten = [place for place in np.flatnonzero(gaps > RETIRE * errors) if not self._is_default(left[place])]
        for place in beaten:
            number = left[place]
            self._retired[number] = self._entrant(number, standings.aucs[place], gaps[place], np.nan, self.rows)
        if beaten:
            self._fits.drop(self._retired)
            self._follow_leader()

    def _compared(self, rows: Scored) -> Standings:
        """Return the AUCs of the remaining settings on some rows."""
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
        model.progress, model.calibration = self._progress[self._lead], self._calibrations[self._lead]
        model.chosen_by = ChosenBy("race", self._judged)
        table = [
            self._entrant(number, aucs[place], aucs[best] - aucs[place], errors[place], None)
            for place, number in enumerate(left)
        ]
        winner = table.pop(best)
        table.sort(key=lambda entrant: -entrant.auc)
        retired = sorted(self._retired.values(), key=lambda entrant: (-(entrant.retired_after or 0), entrant.behind))
        self._result = RaceResult(model, (winner, *table, *retired), len(rows.labels), self._sample.thinned, enough)
        self._fits.close()

    def _entrant(self, number: int, auc: float, behind: float, error: float, retired: int | None) -> Entrant:
        progress = self._progress[number]
        return Entrant(self.learners[number], float(auc), float(behind), float(error), progress, retired)

    def _model(self, number: int) -> Model:
        return self._fits.model(number, self.n_features)

    def _make_room(self, block: Block) -> None:
        width = block.width
        if width > self.most_features and (features := self._fits.seen_with(block)) > self.most_features:
            allow = advice("memory=BYTES", "--memory SIZE")
            raise DataError(
                f"race: {features:,} features need {features * self.bytes / 1e9:,.1f} GB, {self.bytes} bytes per "
                f"feature for {len(self._left())} settings, and {self.memory / 1e9:,.1f} GB are allowed. Race fewer "
                f"settings, allow more memory ({allow}), or hash the features into a smaller range."
            )
        self.n_features = max(self.n_features, width)
        self._fits.reserve(width, self.most_features)
