"""Race: many settings learn in lanes; fewer and fewer of them continue, in the end one.

After 512, 1024, ..., 16384, 65536, 131072 and 262144 rows the race compares its settings (engines/choice.py). Until the
next time the model scores with a mixture of those that rank about as well as the leading one: the sum of several linear
models is a linear model. After `plan.cut` rows the best `plan.kept` settings continue, after `plan.rows` rows the best
`plan.keep`; where that is one, it continues as a Single, from the weights of the mixture. A race also goes on with
fewer settings before a row with so many new features that the lanes would need more than a gigabyte, and ends when
`finish_race` is called.

Only features that were seen have a coordinate in the lanes (engines/compact.py), however large their indices are.

A setting that cannot learn a row, because its numbers would grow beyond float32, drops out with a warning. A row that
none of them can learn is refused, as a Single refuses it: no lane learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines import arrays as file_arrays
from rarestream.engines.arrays import Arrays
from rarestream.engines.base import Engine, GroupEngine, Learned, out_of_memory, overflow
from rarestream.engines.choice import Choice, Schedule, choose
from rarestream.engines.compact import UNSEEN, CompactSlots
from rarestream.engines.lanes import WIDTH, LaneGroup, Lanes, Scores, forgets, with_half_life
from rarestream.engines.latest import FIRST_LOOK, WINDOW, LatestRows, dropped_out, rows_up_to
from rarestream.engines.merging import Change, rules_of
from rarestream.engines.single import Single
from rarestream.errors import DataError
from rarestream.learners import Learner
from rarestream.learners.base import RacePlan
from rarestream.learners.state import COUNTS, SPARE, TALLY, Layout, zeros
from rarestream.metrics.paired import Standings
from rarestream.system import cores
from rarestream.threads import run_all, run_beside

LATER_LOOK = Schedule(first=1 << 16, factor=2)  # when settings are compared after the cut
MAX_BYTES = (1 << 30) + (1 << 16)  # of memory for the lanes
MANY_FEATURES = (1 << 26) // 200  # 24 settings of so many take 64 MB; with more, a race is cut and ends sooner
THREAD_NUMBERS = 1 << 19  # numbers that a block changes in the lanes: for less, a thread is not worth it
SCORED = 1 << 16  # rows that are scored at once
PORTION = 1 << 14  # slots whose weights are computed at once: these stay in a core's cache
TOGETHER = 1 << 18  # entries whose slots are looked up at once: a core's cache still has them when lanes learn them


class Race(GroupEngine):
    """Many settings in lanes, of which the best will continue.

    Parameters
    ----------
    learner : Learner
        The learner as the user named it.
    plan : RacePlan
        The settings, the default first, and how many of them continue after how many rows.
    scale : str
        How rows are scaled.
    n_features : int
        The number of features to make room for.
    dtype : str
        The dtype that the winner continues in; lanes are float32.
    """

    def __init__(self, learner: Learner, plan: RacePlan, scale: str, n_features: int, dtype: str) -> None:
        super().__init__(learner, scale)
        self.candidates = list(plan.candidates)
        self._plan = plan
        self._dtype = dtype
        self.compact = CompactSlots(n_features + SPARE)
        self.raced = 0  # number of rows so far, without those of importance 0
        self.choice = Choice.alone(0, len(self.candidates))
        self._latest = LatestRows(len(self.candidates))
        self._lane_bytes = Lanes(self.candidates).bytes  # memory per feature
        self._slot_weights: NDArray[np.float32] | None = None  # those of the mixture, once they were asked for
        self._groups = [
            LaneGroup.start([self.candidates[number] for number in part], scale, part, self._needed)
            for part in self._parts()
        ]

    # -- what it is

    @property
    def leader(self) -> Learner:
        return self.candidates[self.choice.leader]

    @property
    def tally(self) -> NDArray[np.float64]:
        """The counts, and the class means and the intercept that belong to the scores of the mixture."""
        a, b, w0, n0 = self._means
        intercept = 0.0
        if self.leader.loss_is_logistic:
            # A setting calls a row positive above a score of its own; the mixture does so above the mixture of these.
            logistic = np.array([learner.loss_is_logistic for learner in self.candidates])
            intercept = -float(self.choice.mixed(np.where(logistic, -w0, (a + b) / 2)))
        means = (float(self.choice.mixed(a)), float(self.choice.mixed(b)))
        return np.array([*self._groups[0].state.counts, *means, intercept, n0[self.choice.leader]])

    @property
    def _means(self) -> NDArray[np.float64]:
        """The numbers a, b, w0 and n0 of each setting."""
        means = np.zeros((4, len(self.candidates)))
        for group in self._groups:
            means[:, group.numbers] = group.state.means[:, group.lane_of]
        return means

    @property
    def largest(self) -> NDArray[np.float32] | None:
        return self._by_feature(self._groups[0].state.largest)

    @property
    def slots(self) -> int:
        return self.compact.room

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        arrays = [array for group in self._groups for array in group.state if array is not None]
        return self.compact.nbytes + self._latest.nbytes + sum(array.nbytes for array in arrays)

    @property
    def _max_slots(self) -> int:
        return MAX_BYTES // self._lane_bytes

    @property
    def _needed(self) -> int:
        """The number of slots for all features that there is room for; those that are never seen cost no memory."""
        return min(UNSEEN + self.compact.room + SPARE, self._max_slots)

    @property
    def _kept(self) -> int:
        """The number of settings that continue, now that they have been compared."""
        return self._plan.kept_after(self.raced, self.choice.decided, self._is_wide, self.choice.close)

    @property
    def _is_wide(self) -> bool:
        """Whether all settings would use much memory, for features that were learned: those are also in a file."""
        if self._used.stop <= MANY_FEATURES:
            return False
        state = self._groups[0].state
        numbers = state.table if state.having is None else state.having
        words = numbers[self._used].view(np.uint64)  # which NumPy compares with 0 much more quickly
        return int(np.count_nonzero(words if words.shape[1] == 1 else words.any(axis=1))) > MANY_FEATURES

    @property
    def _used(self) -> slice:
        return slice(UNSEEN + self.compact.used)

    def _by_feature(self, numbers: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the numbers of slots under the features that have these."""
        if numbers is None:
            return None
        found = zeros((self.slots, *numbers.shape[1:]), numbers.dtype)
        found[self.compact.features] = numbers[UNSEEN : UNSEEN + self.compact.used]
        return found

    # -- learning and deciding

    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        learned, history, since, warning = 0, None, 0, None
        while True:
            rest = block[learned:]
            stop = self.rows_until_decision(rest)
            part = _first_rows(rest if stop is None else rest[:stop], TOGETHER)
            count, dropped = self._learn(part, scores[learned : learned + len(part)])
            learned, warning = learned + count, warning or dropped
            if count == stop:
                engine = self.decide(block[learned:])
                history, since = self._latest.rows(self.choice), learned
                if engine is not self:
                    rows = engine.learn(block[learned:], scores[learned:]).rows
                    return Learned(learned + rows, engine, history, since, warning)
            elif count < len(part) or learned == len(block):
                return Learned(learned, self, history, since, warning)

    def finish_race(self) -> Learned:
        return Learned(0, self.decide(None), self._latest.rows(self.choice))

    def rows_until_decision(self, block: Block) -> int | None:
        """Return how many of these rows to learn before settings are compared; None if they do not reach it."""
        stop = rows_up_to(block, self._next_look - self.raced)
        left = self._max_slots - UNSEEN - SPARE - self.compact.used  # features that there is memory for
        part = block if stop is None else block[:stop]
        if len(part.indices) > left:
            new = self.compact.new_features_in(part)
            if len(new) > left:
                stop = int(np.searchsorted(part.indptr, new[left], "right")) - 1
        return stop

    @property
    def _next_look(self) -> int:
        """The number of rows after which settings are compared next; it depends on nothing but the rows so far."""
        plan, rows = self._plan, self.raced
        # If several settings are kept no choice is the last: it may have to follow a drift.
        looks = [LATER_LOOK.after(rows) if plan.keep == 1 else (rows // WINDOW + 1) * WINDOW]
        if rows < plan.cut:
            looks.append(FIRST_LOOK.after(rows))
        return min(looks + [end for end in (plan.cut, plan.rows) if end > rows])

    def decide(self, rest: Block | None) -> Engine:
        """Compare the settings and drop those that do not continue; return this race, or what continues alone.

        `rest` are the rows to come; with None the race ends here.
        """
        self._slot_weights = None
        compared = self._latest.compared(self.raced)
        if compared is not None:
            self.choice = self._chosen(*compared, ends=rest is None)
        elif self._latest.count >= min(self.raced, WINDOW):  # else groups learned rows, and compared on others
            self.choice = Choice.alone(0, len(self.candidates))
        number = 1 if rest is None else self._kept
        while number > 1:
            if number < len(self.candidates):
                self._cut(number)
            assert rest is not None
            if self.rows_until_decision(rest) != 0:
                return self
            number = WIDTH if len(self.candidates) > WIDTH else 1  # the next row needs more memory than there is
        compared = self._latest.compared(self.raced) if rest is not None and self._plan.keep > 1 else None
        if compared is not None:
            self.choice = self._chosen(*compared, ends=True)
        return self._single()

    def _chosen(self, standings: Standings, scores: NDArray[np.float32], ends: bool) -> Choice:
        """Return the choice on some rows; while several settings race to the end, scores have the default's spread."""
        return choose(standings, scores, None if ends or self._plan.keep == 1 else 0)

    def _cut(self, number: int) -> None:
        """Continue with the best settings, so many of them; some may be copies in which rows fade.

        Those are of the best setting that then forgets old rows altogether, one for each half-life, and of the leader
        with the shortest one.
        """
        fading = any(learner.settings.get("half_life") for learner in self.candidates)
        half_lives = () if fading or number < self._plan.kept else self._plan.half_lives
        lead = self.choice.leader
        lasting = next((one for one in self.choice.order if forgets(self.candidates[one])), lead)
        faded = [(lasting, rows) for rows in half_lives]
        if half_lives and lasting != lead:
            faded.append((lead, half_lives[0]))
        best = self.choice.best(number - len(faded))
        copies = {len(best) + place: rows for place, (_, rows) in enumerate(faded)}
        self._continue_with([*best, *(one for one, _ in faded)], copies)

    def _continue_with(self, chosen: Sequence[int], half_lives: Mapping[int, float] | None = None) -> None:
        """Drop all settings but these; one that is there twice is copied.

        `half_lives`: what some get that have none, by their new numbers.
        """
        chosen, half_lives = list(chosen), half_lives or {}
        self.candidates = [self.candidates[number] for number in chosen]
        for number, half_life in half_lives.items():
            self.candidates[number] = with_half_life(self.candidates[number], half_life)
        self._lane_bytes = Lanes(self.candidates).bytes
        self.choice = self.choice.among(chosen)
        self._latest.keep(chosen)
        self._regroup(chosen, half_lives)

    def _divide(self) -> None:
        """Divide the lanes between the cores."""
        if [group.numbers for group in self._groups] != [list(part) for part in self._parts()]:
            self._regroup(range(len(self.candidates)))

    def _regroup(self, chosen: Sequence[int], half_lives: Mapping[int, float] | None = None) -> None:
        """Continue with the settings that the groups have under these numbers; they are numbered anew."""
        self._shared_counts()
        old, self._groups = self._groups, []
        for part in self._parts():
            faded = {part.index(number): rows for number, rows in (half_lives or {}).items() if number in part}
            group = self._regrouped(old, [chosen[number] for number in part], faded)
            group.numbers = list(part)
            self._groups.append(group)

    def _regrouped(
        self, groups: Sequence[LaneGroup], numbers: Sequence[int], half_lives: Mapping[int, float] | None = None
    ) -> LaneGroup:
        """Return some settings as one group, which counts in place of the others what all share."""
        return LaneGroup.regroup(groups, numbers, self._used.stop, half_lives, share_counts=True)

    def _parts(self) -> list[range]:
        """Return which settings learn on which core, a register of lanes or more on each; that changes no bit."""
        count, registers = len(self.candidates), -(-len(self.candidates) // WIDTH)
        size = -(-registers // min(cores(), registers)) * WIDTH
        return [range(first, min(first + size, count)) for first in range(0, count, size)]

    def _learn(self, block: Block, scores: NDArray[np.float64]) -> tuple[int, str | None]:
        """Learn rows up to one that no setting can; return how many, and a warning if settings had to drop out."""
        if block.width > self.slots:  # the width of the block that this is a part of
            block = replace(block, width=int(block.indices.max(initial=-1)) + 1)
        self.reserve(block.width)
        self._slot_weights = None
        learned, lane_scores, failed = self._learn_lanes(block)
        done = block[:learned]
        first, choice = 0, self.choice
        for row in sorted({row for row, _ in failed.values()}):  # up to there, settings scored that then drop out
            scores[first:row] = choice.mixed(lane_scores[first:row])
            first, choice = row, self.choice.without([one for one, (gone, _) in failed.items() if gone <= row])
        scores[first:learned] = choice.mixed(lane_scores[first:])
        warning = None
        if failed:
            warning = dropped_out(len(self.candidates), {one: reason for one, (_, reason) in failed.items()})
            left = [number for number in range(len(self.candidates)) if number not in failed]
            lane_scores = lane_scores[:, left]
            self._continue_with(left)
        self.raced += self._latest.add_learned(done, lane_scores)
        return learned, warning

    def _learn_lanes(self, block: Block) -> tuple[int, Scores, dict[int, tuple[int, str]]]:
        """Learn rows in all lanes; return how many, their scores under each setting, and which settings failed.

        Settings that cannot learn a row drop out, each with the number of the row and the reason, unless none can: then
        the row is refused.
        """
        scores = self._latest.lend(len(block))
        places = [_Place(group) for group in self._groups]
        failed: dict[int, tuple[int, str]] = {}
        many = len(block.indices) * len(self.candidates) > THREAD_NUMBERS
        counts = self._shared_counts()
        prepared = self.compact.prepared(block, self._groups[0].slots, counts, self._groups[0].state.counts)
        finish = _nothing
        if many and block.sealed:
            # Where lanes leave a core to the preparation, it also touches the memory of new features for them.
            tables = [group.state.table for group in self._groups if len(self._groups) < cores()]
            finish = run_beside(lambda: prepared.prepare(tables))
        else:  # rows that are not sealed are checked before any is learned
            prepared.prepare([])
        try:
            while True:
                behind = [place for place in places if place.rows < len(block)]
                run_all(lambda place: place.learn(prepared, scores), behind, cores() if many else 1)
                row = min(place.rows for place in places)
                if row == len(block):
                    break
                finish()
                prepared.take_back(row)
                stopped = [place for place in places if place.rows == row]
                refused = self.compact.known(block[row : row + 1])
                fails = {number for place in stopped for number in place.group.failing(refused)}
                if len(fails) + len(failed) == len(self.candidates):  # no setting can learn it
                    break
                prepared.count_again(row)
                for place in stopped:
                    gone = [number for number in place.group.numbers if number in fails]
                    failed |= {number: (row, place.group.overflow(number)) for number in gone}
                    place.drop(fails)
                    place.group.share_counts(counts)
                places = [place for place in places if place.group.numbers]
        finally:
            finish()
            self.compact.used = prepared.used
        self._groups = [place.group for place in places]
        return row, scores[:row], failed

    def _shared_counts(self) -> NDArray[np.float32] | None:
        """Return what evidence counts, which is the same for all groups; None if no lane has evidence."""
        counts = next((group.state.having for group in self._groups if group.state.having is not None), None)
        for group in self._groups:
            group.share_counts(counts)
        return counts

    def _single(self) -> Single:
        """Return the leading setting alone, under the numbers of the features, with the weights of the mixture."""
        leader, lead, group, tally = self.leader, self.choice.leader, self._leading_group, self.tally
        state = leader.start(self.compact.room, self._dtype, largest=group.state.largest is not None)
        state.tally[: len(TALLY)] = tally

        def write(some: slice) -> None:
            weights = self._mixed_weights(some) if self.choice.is_mixture else None
            group.write_single(lead, some, self.compact.features_of(some), weights, state)

        self._for_portions(write)
        return Single(leader, self.scale, state)

    def _for_portions(self, act: Callable[[slice], None]) -> None:
        """Call a function for all slots that are used, some at a time, on all cores."""
        starts = range(UNSEEN, self._used.stop, PORTION)
        run_all(lambda start: act(slice(start, min(start + PORTION, self._used.stop))), starts, cores())

    # -- scoring

    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        known = self.compact.known(block)
        if not self.choice.is_mixture:
            return self._leading_group.score_alone(self.choice.leader, known, scores)
        for start in range(0, len(block), SCORED):
            rows = known[start : start + SCORED]
            lane_scores = np.zeros((len(rows), len(self.candidates)), np.float32)
            for group in self._groups:
                lane_scores[:, group.numbers] = group.score(rows)
            scores[start : start + SCORED] = self.choice.mixed(lane_scores)
        wrong = np.flatnonzero(~np.isfinite(scores))
        return int(wrong[0]) if len(wrong) else -1

    def weights(self, start: int, stop: int) -> NDArray[np.float32]:
        if self._slot_weights is None:  # of the features that were seen: often a few of very many
            weights = self._slot_weights = np.zeros(self._used.stop, np.float32)

            def mix(some: slice) -> None:
                weights[some] = self._mixed_weights(some)

            self._for_portions(mix)
        return self._slot_weights[self.compact.slots_of(start, stop)]

    def rank_keys(self, start: int, stop: int) -> NDArray[Any]:
        weights, state = self.weights(start, stop), self._leading_group.state_at(self.choice.leader, self._used)
        factors = self.leader.rank_factors(state, 0, state.slots)
        return weights if factors is None else weights * factors[self.compact.slots_of(start, stop)]

    @property
    def _leading_group(self) -> LaneGroup:
        return next(group for group in self._groups if self.choice.leader in group.numbers)

    def _mixed_weights(self, slots: slice) -> NDArray[np.float64]:
        """Return the weights of the mixture at some slots."""
        total = np.zeros(slots.stop - slots.start)
        for group in self._groups:  # in the order of the settings
            group.add_weights(self.choice.shares, slots.start, total)
        return total

    # -- groups

    def merge_rules(self) -> NDArray[np.int8]:
        return rules_of(self.candidates)

    def learn_in_group(self, block: Block, repeats: float) -> int:
        self.reserve(block.width)
        left = self._max_slots - UNSEEN - SPARE - self.compact.used
        if len(block.indices) > left and len(self.compact.new_features_in(block)) > left:
            raise DataError(
                f"the {len(self.candidates)} settings of {self.learner.name!r} need more than a gigabyte for the "
                "features of a round. Name a learner, such as dual-logistic, or hash features into fewer slots."
            )
        self._slot_weights = None
        rows, learned = self.compact.added(block), 0
        place = _Place(self._gathered())
        while True:
            count, _ = place.group.learn(rows[learned:], repeats=repeats)
            learned += count
            if learned < len(rows):  # some settings cannot learn the next row
                failing = place.group.failing(rows[learned : learned + 1], repeats)
                if len(failing) < len(place.group.numbers):
                    place.drop(failing)
                    self._groups = [place.group]
                    continue
            return learned

    def _gathered(self) -> LaneGroup:
        """Return all lanes as one group, which becomes the only one."""
        if len(self._groups) > 1:
            numbers = sorted(number for group in self._groups for number in group.numbers)
            self._groups = [self._regrouped(self._groups, numbers)]
        return self._groups[0]

    def _columns(self, group: LaneGroup) -> list[int]:
        """Return the columns of z of all settings of a group, then those of n."""
        pairs = [group.lanes.columns(lane) for lane in group.lane_of]
        return [z for z, _ in pairs] + [n for _, n in pairs]

    def numbers_at(self, features: NDArray[np.int32]) -> NDArray[Any]:
        group, slots = self._gathered(), self.compact.slots_at(features)
        numbers = group.state.table[slots[:, np.newaxis], self._columns(group)]
        having = group.state.having
        return numbers if having is None else np.concatenate([numbers, having[slots]], axis=1)

    @property
    def tallies(self) -> NDArray[np.float64]:
        group = self._gathered()
        means = group.state.means[:, group.lane_of]
        return np.concatenate([np.repeat(group.state.counts[:, np.newaxis], means.shape[1], axis=1), means])

    def largest_at(self, features: NDArray[np.int32]) -> NDArray[np.float32] | None:
        largest = self._gathered().state.largest
        return None if largest is None else largest[self.compact.slots_at(features)]

    def settings_left(self) -> NDArray[np.int32]:
        return np.array(self._gathered().numbers, np.int32)

    def adopt(self, change: Change) -> str | None:
        left, warning = change.settings.tolist(), None
        if len(left) < len(self.candidates):
            if self.scale == "none":  # else its steps are too long for so many groups, which no other rows would change
                gone = sorted(set(range(len(self.candidates))) - set(left))
                reasons = {number: overflow(self.candidates[number], self.scale, "float32") for number in gone}
                warning = dropped_out(len(self.candidates), reasons)
            self._continue_with(left)
        self.reserve(int(change.features.max(initial=-1)) + 1)
        group = self._gathered()
        new = int(np.count_nonzero(self.compact.slots_at(change.features) == 0))
        if UNSEEN + self.compact.used + new + SPARE > self._max_slots:
            raise DataError(
                f"the {len(self.candidates)} settings of {self.learner.name!r} need more than a gigabyte for the "
                "features of all groups. Name a learner, such as dual-logistic, or hash features into fewer slots."
            )
        self.compact.add(change.features)
        slots, count = self.compact.slots_at(change.features), len(self.candidates)
        group.state.table[slots[:, np.newaxis], self._columns(group)] = change.numbers[:, : 2 * count]
        unused = group.lanes.width - count  # lanes that repeat the first, to fill a register
        for lane in range(count, count + unused):
            for column, of_first in zip(group.lanes.columns(lane), group.lanes.columns(0), strict=True):
                group.state.table[slots, column] = group.state.table[slots, of_first]
        if group.state.having is not None:
            group.state.having[slots] = change.numbers[:, 2 * count :]
        if group.state.largest is not None and change.largest is not None:
            group.state.largest[slots] = change.largest
        group.state.counts[:] = change.tally[:2, 0]
        group.state.means[:, :count] = change.tally[2:]
        group.state.means[:, count:] = change.tally[2:, :1]
        self._slot_weights = None
        return warning

    def compared(self, block: Block, rows: int) -> tuple[Engine, NDArray[np.float64]]:
        """See `Engine.compared`. The schedule of a race counts the rows of one group: groups learn side by side."""
        group = self._gathered()
        self.raced, self._slot_weights = rows, None
        lane_scores = group.score(self.compact.known(block))
        self._latest = LatestRows(len(self.candidates))
        self._latest.add_learned(block, lane_scores)
        compared = self._latest.compared(2 * len(block))  # so that all of these rows count
        self.choice = Choice.alone(0, len(self.candidates)) if compared is None else self._chosen(*compared, ends=False)
        scores = self.choice.mixed(lane_scores)
        number = self._kept
        if number == 1:
            return self._single(), scores
        if number < len(self.candidates):
            self._continue_with(self.choice.best(number))
            self._gathered()
        self._latest = LatestRows(len(self.candidates))
        return self, scores

    # -- state

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        needed = n_features + SPARE
        try:
            self.compact.reserve(needed, needed if exactly else LARGEST_INDEX + 1)
            for group in self._groups:
                group.reserve(self._needed, self._needed, self._used.stop)
        except MemoryError:
            raise out_of_memory(n_features - 1, self._needed * self._lane_bytes) from None

    def header(self) -> dict[str, Any]:
        return {"candidates": [{"name": learner.name, "settings": learner.settings} for learner in self.candidates]}

    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        group = self._regrouped(self._groups, range(len(self.candidates)))
        state = group.state
        choice: Arrays = {"shares": self.choice.shares, "order": np.array(self.choice.order, np.int32)}
        extra = {"means": state.means, **choice, **self._latest.dump()}
        features = self.compact.features
        order = np.argsort(features)
        slots = UNSEEN + order
        numbers, layout = state.table[slots], group.lanes.layout
        if state.having is not None:  # a feature may have counts and nothing else
            numbers = np.concatenate([numbers, state.having[slots]], axis=1)
            layout = Layout({**layout.columns, **COUNTS})
        table = file_arrays.dump_table(numbers, layout)
        return {
            "tally": np.array([*self.tally, self.raced, self.choice.leader], np.float64),
            "index": features[order[table.pop("index")]],
            **table,
            **file_arrays.dump_extra(extra),
            **file_arrays.dump_largest(self.largest),
        }

    def load(self, arrays: Arrays, n_features: int) -> None:
        count = len(self.candidates)
        self.raced, lead = file_arrays.load_race(arrays, count, self._plan.rows if self._plan.keep == 1 else None)
        arrays = self._with_slots(arrays, min(n_features, self.slots))
        group = self._regrouped(self._groups, range(count))
        state, layout = group.state, group.lanes.layout
        file_arrays.load_table(arrays, state.table, layout, group.slots)
        roots = [group.lanes.columns(lane)[1] for lane in range(count)]
        if (state.table[arrays["index"][:, np.newaxis], roots] < 0).any():  # all others are zero
            raise ValueError("a root is negative")
        if state.having is not None:
            file_arrays.load_table(arrays, state.having, Layout(COUNTS), group.slots)
            if (state.having[arrays["index"]] < 0).any():
                raise ValueError("a count is negative")
        state.counts[:] = arrays["tally"][:2]
        extra = file_arrays.load_extra(arrays)
        state.means[...] = file_arrays.expected(extra, "means", state.means)
        self.choice = Choice.alone(lead, count)
        if "shares" in extra:  # the first versions had no mixture
            shares = file_arrays.expected(extra, "shares", self.choice.shares)
            if (shares < 0).any() or not shares[lead] > 0:
                raise ValueError("its shares are negative, or the leading setting has none")
            order = file_arrays.expected(extra, "order", np.zeros(count, np.int32)).tolist()
            if sorted(order) != list(range(count)) or order[0] != lead:
                raise ValueError("its order is not one of all settings with the leading one first")
            self.choice = Choice(lead, shares, order)
        self._latest.load(extra, self.raced)
        file_arrays.load_largest(arrays, state.largest, group.slots)
        self._groups = [group]
        self._divide()

    def _with_slots(self, arrays: Arrays, slots: int) -> Arrays:
        """Give slots to the features of a file, and return its arrays with slots in place of features."""
        places = ["index"] if self.scale != "max" else ["index", "largest_index"]
        features = [file_arrays.checked_index(arrays, place, slots) for place in places]
        seen = np.unique(np.concatenate(features))
        if UNSEEN + len(seen) + SPARE > self._max_slots:
            raise ValueError(f"it has {len(seen)} features, more than can be raced")
        self.compact.load(seen)
        found = [UNSEEN + np.searchsorted(seen, part).astype(np.int32) for part in features]
        return {**arrays, **dict(zip(places, found, strict=True))}


def _first_rows(block: Block, entries: int) -> Block:
    """Return the first rows, about as many as have so many entries, and at least one if there is any."""
    if len(block.indices) <= entries:
        return block
    return block[: max(1, int(np.searchsorted(block.indptr, entries, "right")) - 1)]


def _nothing() -> None:
    pass


class _Place:
    """A group of lanes and how many rows of a block it has learned."""

    def __init__(self, group: LaneGroup) -> None:
        self.group, self.rows = group, 0

    def learn(self, prepared: _native.PreparedRows, scores: Scores) -> None:
        numbers, rows = self.group.numbers, scores[self.rows :]
        side_by_side = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        into = (
            rows[:, numbers[0] : numbers[-1] + 1] if side_by_side else np.empty((len(rows), len(numbers)), np.float32)
        )
        learned = self.group.learn_prepared(prepared, self.rows, into)
        if not side_by_side:
            rows[:learned, numbers] = into[:learned]
        self.rows += learned

    def drop(self, numbers: Container[int]) -> None:
        left = [number for number in self.group.numbers if number not in numbers]
        if left:
            self.group = LaneGroup.regroup([self.group], left)
        else:
            self.group.drop(numbers)
