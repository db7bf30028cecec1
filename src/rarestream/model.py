"""Model: learns and scores rows, is saved, loaded and pruned."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native, modelfile
from rarestream.blocks import (
    LARGEST_IMPORTANCE,
    SMALLEST_IMPORTANCE,
    Block,
    canonical,
    importance_rule,
    numeric,
)
from rarestream.engines import Engine, Weights, check_arguments, overflow, start_engine
from rarestream.engines.merging import Change
from rarestream.errors import (
    DataError,
    FewRowsWarning,
    ModelBusyError,
    NotCalibratedError,
    RowError,
    SettingsDroppedWarning,
    SortedRowsWarning,
    advice,
    plain,
)
from rarestream.explaining import Explanation, explanations, row_weights
from rarestream.features import COLUMNS, Columns, Hashed, Space, described, encode_rows
from rarestream.learners import Learner, make_learner
from rarestream.learners.state import padded, tally_of, zeros
from rarestream.metrics import Calibration, Decision, StreamingAuc
from rarestream.metrics.calibration import ENOUGH, checked_share
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.progressive import ProgressiveScores
from rarestream.metrics.rows import ScoredRows, both_classes
from rarestream.metrics.thresholds import Wanted
from rarestream.modelfile.codec import CALIBRATION, ChosenBy, FileParts, Saved, decode, encode


class Model:
    """A learner and what it has learned.

    Any number of threads may score with a model at once. `learn` at the same time as another `learn` or `score` of the
    same model raises ModelBusyError.

    Parameters
    ----------
    learner : Learner or str, default "auto"
        A learner such as `DualAveraging()`, or the name of one; `learner_names()` lists them.
    dtype : {"float32", "float64"}, default "float32"
        Precision of the model state.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled before they are learned or scored. "unit": to Euclidean norm 1; "max": each feature is
        divided by its largest absolute value so far, then the row scaled to norm 1 (for raw numeric columns); "none":
        not at all.
    n_features : int, >= 0, default 0
        Number of features to reserve memory for. The state grows when a larger index arrives, so it need not be known.
    features : Columns or Hashed, optional
        What the features of rows are: column numbers, or hashed names. By default that of the first rows learned.
    calibrate : bool, default True
        Whether the model also learns to turn its scores into probabilities, which takes a little time for each row.
    negatives_kept : float, above 0 and at most 1, default 1
        Share of the negatives that the rows to learn have, if the others were left out at random: 0.1 if every tenth
        was kept. Probabilities are then those among all rows; scores do not depend on it.

    Attributes
    ----------
    dtype : str
        Precision of the model state.
    rows : int
        Number of rows learned; a row of several passes counts once in each.
    positives : int
        Number of them that are positive.
    order : SortedCheck
        Whether the rows look sorted by label.
    source : dict
        Where the rows came from and how far they were learned, for resuming.
    pruned_from : int or None
        Number of non-zero weights before the model was pruned; None if it was not.
    chosen_by : ChosenBy or None
        What chose the learner, and after how many rows; None if the user did.
    decision : Decision or None
        The threshold that `label` uses, and what rates it has, as `threshold_for(..., save=True)` or a file has set it.
    calibrate : bool
        Whether rows that are learned are also used to calibrate.
    negatives_kept : float
        Share of the negatives that the model was given.

    Raises
    ------
    TypeError
        If `learner` is neither a learner nor a name.
    ValueError
        If the name is unknown, or another argument is out of range.
    """

    def __init__(
        self,
        learner: Learner | str = "auto",
        *,
        dtype: str = "float32",
        scale: str = "unit",
        n_features: int = 0,
        features: Space | None = None,
        calibrate: bool = True,
        negatives_kept: float = 1.0,
    ) -> None:
        if isinstance(learner, str):
            learner = make_learner(learner)
        if not isinstance(learner, Learner):
            raise TypeError(
                f"Model: learner must be a learner such as DualAveraging(), or the name of one, got {learner!r}."
            )
        check_arguments(dtype, scale, n_features, "Model: ")
        n_features = max(n_features, learner.initial_features)
        if features is not None and not isinstance(features, Columns | Hashed):
            raise TypeError(f"Model: features must be Columns() or Hashed(), got {features!r}.")
        if isinstance(features, Hashed) and n_features > features.slots:
            raise ValueError(f"Model: n_features is {n_features}, but {_few_slots(features)}")
        engine = start_engine(learner, scale, n_features, dtype)
        if isinstance(features, Hashed):
            n_features = features.slots
            engine.reserve(n_features, exactly=True)
        saved = Saved(engine, dtype, n_features, features=features, calibrate=bool(calibrate))
        saved.negatives_kept = checked_share(negatives_kept)
        self._take_over(saved)

    @classmethod
    def from_engine(cls, engine: Engine, n_features: int, features: Space = COLUMNS) -> Model:
        """Return a model that continues from an engine and takes ownership of it."""
        if isinstance(features, Hashed):
            n_features = features.slots
        engine.reserve(n_features, exactly=isinstance(features, Hashed))
        return cls._of(Saved(engine, str(engine.weight_dtype), n_features, features=features))

    @classmethod
    def _of(cls, saved: Saved) -> Model:
        model = cls.__new__(cls)
        model._take_over(saved)
        return model

    def _take_over(self, saved: Saved) -> None:
        self._engine = saved.engine
        self._n_features = saved.n_features
        self.dtype = saved.dtype
        self.rows = saved.rows
        self.positives = saved.positives
        self.order = saved.order
        self.source = saved.source
        self.pruned_from = saved.pruned_from
        self.chosen_by = saved.chosen_by
        self.decision = saved.decision
        self.calibrate, self.negatives_kept = saved.calibrate, saved.negatives_kept
        calibration = saved.calibration
        if calibration is None and self.calibrate and self._engine.resumable:
            calibration = Calibration()
        self._progressive = ProgressiveScores(saved.progress, calibration)
        self._one: _native.OneRow | None = None  # what learns and scores a row alone; None until it is needed
        self._metrics = saved.metrics
        self._features = saved.features
        # That of the blocks to learn, compared by identity: None for column numbers.
        self._space = saved.features if isinstance(saved.features, Hashed) else None
        self._gate = _native.Gate()
        self._coef: NDArray[Any] | None = None

    @property
    def progress(self) -> StreamingAuc:
        """Progressive AUC: that of the scores that rows had before they were first learned."""
        return self._progressive.auc

    @progress.setter
    def progress(self, progress: StreamingAuc) -> None:
        self._progressive = ProgressiveScores(progress, self._progressive.calibration)
        self._one = None

    @property
    def calibration(self) -> Calibration | None:
        """What turns scores into probabilities; None if there is nothing of the kind.

        That is so with `calibrate=False`, and in files of earlier versions and pruned models until they are calibrated.
        """
        known = self._progressive.calibration
        return None if known is None or (self.rows and not known.rows) else known

    @calibration.setter
    def calibration(self, calibration: Calibration | None) -> None:
        self._progressive = ProgressiveScores(self._progressive.auc, calibration)
        self._one = None

    # -- learning and scoring

    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]:
        """Learn the rows in order.

        Parameters
        ----------
        block : Block
            Rows with labels.
        again : bool, default False
            Whether the model has learned these rows before. Their scores then tell nothing about new rows, and are not
            counted in `progress`.

        Returns
        -------
        array of float64
            The score that each row had before it was learned.

        Raises
        ------
        RowError
            If the step of a row would overflow the state. The rows before it were learned; it was not, nor were those
            after it. All other errors are raised before anything is learned.
        DataError
            If the block has no labels or other features than the model, or a feature index needs more memory than
            there is.
        ModelFileError
            If the model was saved for scoring only.
        ModelBusyError
            If another thread uses the model.
        """
        _check("Model.learn", block)
        if block.labels is None:
            raise DataError("Model.learn: the block has no labels. Use score() for unlabelled rows.")
        scores = np.empty(len(block))
        self._begin_learning()
        try:
            if block.space is not self._space:
                self._join_space(block.space)
            self._check_slots("Model.learn", block)
            if again:
                self._finish_race()
            learned, said = self._learn(block, scores, again)
        finally:
            self._gate.end_learning()
        for warning in said:
            warnings.warn(warning, stacklevel=2)
        if learned < len(block):
            error = RowError("Model.learn", learned, block.changed() or self._refusal(learned))
            error.scores = scores[:learned]
            raise error
        return scores

    def _learn(self, block: Block, scores: NDArray[np.float64], again: bool) -> tuple[int, list[UserWarning]]:
        """Learn rows up to one that cannot be learned; return how many, and warnings."""
        before = self.rows
        self._one = None  # its state may get more room
        learned, engine, history, since, dropped = self._engine.learn(block, scores)
        said: list[UserWarning] = [] if dropped is None else [SettingsDroppedWarning(dropped)]
        self._coef = None
        done, width = block, block.width
        if learned < len(block):
            done, scores = block[:learned], scores[:learned]
            width = int(done.indices.max(initial=-1)) + 1
        assert done.labels is not None
        labels = done.labels  # of one row, counting bytes takes a fifth of the time of np.count_nonzero
        positives = labels.tobytes().count(1) if len(labels) < 64 else int(np.count_nonzero(labels > 0))
        self.rows += learned
        self.positives += positives
        if width > self._n_features:
            self._n_features = width
        if history is not None:
            self._continue_with(engine, history, before + since)
        if again:
            return learned, said
        new, new_scores = (done[since:], scores[since:]) if since else (done, scores)
        assert new.labels is not None
        self._progressive.count(ScoredRows(new.labels, new_scores, new.importances), self._races)
        sorted_rows = self.order.add(done.labels, positives)
        return learned, said if sorted_rows is None else [*said, SortedRowsWarning(sorted_rows)]

    def finish_race(self) -> None:
        """End a race of settings now: the model continues with the leading ones.

        Nothing changes if the model's learner does not race settings, or the race is over.

        Raises
        ------
        ModelBusyError
            If another thread uses the model.
        """
        self._begin_learning()
        try:
            self._finish_race()
        finally:
            self._gate.end_learning()

    def _finish_race(self) -> None:
        _, engine, history, *_ = self._engine.finish_race()
        if history is not None:
            self._continue_with(engine, history, self.rows)

    def _continue_with(self, engine: Engine, history: ScoredRows, rows: int) -> None:
        """Continue with an engine that has compared its settings after `rows` rows."""
        self._one = None
        if engine is not self._engine:
            self.chosen_by = ChosenBy(self.learner.name, rows)
            self._engine = engine
            engine.reserve(self._n_features)
        self._coef = None
        self._progressive.restart(history, self._races)

    @property
    def _races(self) -> bool:
        """Whether several settings learn, which will be compared."""
        return len(self._engine.candidates) > 1

    @overload
    def learn_one(
        self, indices: ArrayLike, values: ArrayLike, label: int, importance: float | None = None
    ) -> float: ...
    @overload
    def learn_one(self, row: Mapping[str, Any], /, label: int, importance: float | None = None) -> float: ...
    def learn_one(  # type: ignore[misc]  # by position, the second form's label is in place of the first one's values
        self, indices: Any, values: Any = None, label: Any = None, importance: Any = None
    ) -> float:
        """Learn one row, as `learn` does with a block of one row.

        Two forms: `learn_one(indices, values, label)` and, for a model with hashed features, `learn_one(row, label)`
        with a row such as {"site": "a.com", "price": 3.5}.

        Parameters
        ----------
        indices : array-like of int
            Feature indices, from 0. Their order does not matter; the values of equal ones are added. Or a mapping: the
            row with its names.
        values : array-like of float
            Value of each feature; finite. Not with a mapping.
        label : {-1, 0, 1}
            1 for a positive row; -1 or 0 for a negative one.
        importance : float, optional
            0, or between 1e-100 and 1e12. A row of importance h counts as h rows. By default 1.

        Returns
        -------
        float
            The score that the row had before it was learned.

        Raises
        ------
        DataError
            If an argument is invalid, or for the reasons of `learn`.
        """
        named = _is_mapping(indices)
        if named and values is not None:  # label and importance by position
            label, importance = values, importance if label is None else label
        score = self.learn_usual(indices, values, label, importance, named)
        if score is not None:
            return score
        row = (
            self._named_row("Model.learn_one", indices, label, importance)
            if named
            else _one_row(indices, values, label, importance)
        )
        score = float(self.learn(row)[0])
        self.prepare_one()
        return score

    def learn_usual(
        self, indices: Any, values: Any, label: Any, importance: Any = None, named: bool = False
    ) -> float | None:
        """Learn a row as `learn_one` does, in one call of the core, if there is nothing unusual about it.

        Returns
        -------
        float or None
            The score that the row had before; None if nothing was learned: it has to go another way.
        """
        one, space = self._one, self._space
        if one is None:
            return None
        if not named:
            score = one.learn(indices, values, label, importance) if space is None else None
        elif space is not None and space.plan is not None:
            score = one.learn_named(indices, label, importance, space.parser(), space.names)
        else:
            return None
        if score is None:
            return None
        try:  # it was learned, and the gate is closed
            self._coef = None
            self.rows += 1
            positive = label == 1
            if positive:
                self.positives += 1
            sorted_rows = self.order.add_one(positive)
        finally:
            self._gate.end_learning()
        if sorted_rows is not None:
            warnings.warn(SortedRowsWarning(sorted_rows), stacklevel=3)
        return score

    def score_usual(self, indices: Any, values: Any, named: bool = False) -> float | None:
        """Score a row as `score_one` does, in one call of the core; None if it has to go another way."""
        one, space = self._one, self._space
        if one is None:
            return None
        if not named:
            return one.score(indices, values) if space is None else None
        return None if space is None or space.plan is None else one.score_named(indices, space.parser(names=False))

    def score_text(self, text: bytes, parser: _native.TableParser | _native.PairsParser) -> float | None:
        """Score a row that is written in JSON, in one call of the core.

        Parameters
        ----------
        text : bytes
            The row: an object, or a list of [index, value].
        parser : TableParser or PairsParser
            Of rows of the model's feature space; `rarestream.serve` has it.

        Returns
        -------
        float or None
            As `score` gives it; None if it has to go another way.
        """
        one = self._one
        if one is None:
            self.prepare_one()
            one = self._one
        return None if one is None else one.score_text(text, parser)

    def prepare_one(self) -> None:
        """Make what the next rows that come alone are learned and scored with, unless another thread learns."""
        if self._one is None and self._gate.begin_scoring():
            try:
                auc, calibration = self._progressive.auc, self._progressive.calibration
                numbers = None if calibration is None else calibration.numbers
                self._one = self._engine.one_row(self._gate, auc._sketch, numbers, self._n_features)
            finally:
                self._gate.end_scoring()

    def score(self, block: Block) -> NDArray[np.float64]:
        """Score rows: larger means more likely positive. The model does not change.

        Parameters
        ----------
        block : Block
            Rows; labels are ignored.

        Returns
        -------
        array of float64
            The score of each row.

        Raises
        ------
        RowError
            If the score of a row is not finite.
        DataError
            If the block has other features than the model.
        ModelBusyError
            If another thread is learning with the model.
        """
        _check("Model.score", block)
        if block.space is not self._space:
            self._check_space("Model.score", block.space)
        scores = np.empty(len(block))
        self._begin_scoring()
        try:
            wrong = self._engine.score(block, scores)
        finally:
            self._gate.end_scoring()
        if wrong >= 0:
            scale = advice(f"scale={self.scale!r}", f"--scale {self.scale}")
            reason = f"has values so large that its score is {scores[wrong]} with {scale}. Scale the values down."
            raise RowError("Model.score", wrong, block.changed() or reason)
        return scores

    @overload
    def score_one(self, indices: ArrayLike, values: ArrayLike) -> float: ...
    @overload
    def score_one(self, row: Mapping[str, Any], /) -> float: ...
    def score_one(self, indices: Any, values: Any = None) -> float:
        """Score one row, as `score` does with a block of one row.

        Two forms: `score_one(indices, values)` and, for a model with hashed features, `score_one(row)` with a row such
        as {"site": "a.com", "price": 3.5}.

        Parameters
        ----------
        indices : array-like of int
            Feature indices, from 0. Or a mapping: the row with its names.
        values : array-like of float
            Value of each feature; finite. Not with a mapping.

        Returns
        -------
        float
            The score of the row.

        Raises
        ------
        DataError
            If an argument is invalid, or for the reasons of `score`.
        """
        named = _is_mapping(indices)
        score = self.score_usual(indices, values, named)
        if score is not None:
            return score
        row = self._named_row("Model.score_one", indices, names=False) if named else _one_row(indices, values)
        score = float(self.score(row)[0])
        self.prepare_one()
        return score

    # -- probabilities

    def probability(self, block: Block, *, negatives_kept: float | None = None) -> NDArray[np.float64]:
        """Return the probability that each row is positive. The model does not change.

        Parameters
        ----------
        block : Block
            Rows; labels are ignored.
        negatives_kept : float, above 0 and at most 1, optional
            Share of the negatives that the rows learned had, if the others were left out at random. By default that
            which the model was made with, 1 if nothing was said.

        Returns
        -------
        array of float64
            Between 1e-13 and 1 - 1e-13. Rows are ranked as by their scores.

        Raises
        ------
        NotCalibratedError
            If the model has no calibration.
        RowError, DataError, ModelBusyError
            As for `score`.

        Warns
        -----
        FewRowsWarning
            If the model has learned fewer than ten rows of a class.
        """
        known = self.known_calibration("Model.probability")
        return known.probability(self.score(block), self._share(negatives_kept))

    def probability_interval(
        self, block: Block, *, level: float = 0.95, negatives_kept: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of confidence intervals of `probability`.

        They tell how sure the calibration is, and are wide while a class has few rows.

        Parameters
        ----------
        block, negatives_kept
            As for `probability`.
        level : float, between 0 and 1, default 0.95
            Confidence level.

        Returns
        -------
        low, high : arrays of float64

        Raises
        ------
        NotCalibratedError, RowError, DataError, ModelBusyError
            As for `probability`.
        """
        known = self.known_calibration("Model.probability_interval")
        return known.interval(self.score(block), level, self._share(negatives_kept))

    @overload
    def probability_one(self, indices: ArrayLike, values: ArrayLike) -> float: ...
    @overload
    def probability_one(self, row: Mapping[str, Any], /) -> float: ...
    def probability_one(self, indices: Any, values: Any = None) -> float:
        """Return the probability that one row is positive, as `probability` does with a block of one row.

        Parameters
        ----------
        indices : array-like of int
            Feature indices, from 0. Or a mapping: the row with its names.
        values : array-like of float
            Value of each feature; finite. Not with a mapping.

        Returns
        -------
        float

        Raises
        ------
        NotCalibratedError
            If the model has no calibration.
        DataError
            As for `score_one`.
        """
        known = self.known_calibration("Model.probability_one")
        return float(known.probability(self.score_one(indices, values), self.negatives_kept))

    def calibrate_on(self, blocks: Block | Iterable[Block]) -> None:
        """Fit the probabilities to labelled rows, in place of those the model has learned. Scores do not change.

        A model is calibrated while it learns. This is for those that are not: of a file of an earlier version, or
        pruned; and for rows whose share of positives is another.

        Parameters
        ----------
        blocks : Block or iterable of Block
            Rows with labels, which the model has not learned.

        Raises
        ------
        DataError
            If rows have no labels, or a class is missing. The model has not changed then.
        RowError, ModelBusyError
            As for `score`.
        """
        found = Calibration()
        for block in [blocks] if isinstance(blocks, Block) else blocks:
            _check("Model.calibrate_on", block)
            if block.labels is None:
                raise DataError("Model.calibrate_on: the rows have no labels.")
            found.count(ScoredRows(block.labels, self.score(block), block.importances))
        both_classes("Model.calibrate_on", found.rows, found.positives)
        self.calibration = found

    def known_calibration(self, where: str) -> Calibration:
        """Return the calibration; NotCalibratedError if there is none, and a warning if it is based on very few rows.

        `where` is what messages begin with.
        """
        known = self.calibration
        if known is None:
            if not self.calibrate:
                why = "was made with " + advice("calibrate=False", "--no-calibrate")
            elif self.pruned_from is not None:
                why = "was pruned, which changes scores"
            else:
                why = "is of a version that did not calibrate"
            raise NotCalibratedError(
                f"{where}: the model {why}, so its scores cannot be turned into probabilities. "
                + advice(
                    "Call model.calibrate_on(labelled rows)", "Use rarestream calibrate MODEL DATA with labelled rows"
                )
                + advice(", or learn more rows." if self.calibrate and self._engine.resumable else ".", ".")
            )
        if self.rows and not known.enough:
            negatives = known.rows - known.positives
            warnings.warn(
                FewRowsWarning(
                    f"{where}: probabilities are based on {known.positives} positive and {negatives} negative rows; "
                    f"{ENOUGH} of each are the least that say anything. "
                    + advice("probability_interval shows", "--interval shows")
                    + " how little is known."
                ),
                stacklevel=3,
            )
        return known

    def _share(self, negatives_kept: float | None) -> float:
        return self.negatives_kept if negatives_kept is None else negatives_kept

    # -- decisions

    def threshold_for(
        self,
        blocks: Block | Iterable[Block],
        *,
        fpr: float | None = None,
        precision: float | None = None,
        recall: float | None = None,
        share: float | None = None,
        alerts_per_day: float | None = None,
        rows_per_day: float | None = None,
        days: float | None = None,
        costs: tuple[float, float] | None = None,
        save: bool = False,
    ) -> Decision:
        """Choose the score from which rows are called positive, by a rule, on labelled rows.

        Exactly one rule is needed: `fpr`, `precision`, `recall`, `share`, `alerts_per_day` or `costs`. What the weights
        learned does not change.

        Parameters
        ----------
        blocks : Block or iterable of Block
            Labelled rows, which the model has not learned: on others the rates look better than they are. Their scores
            are kept in memory.
        fpr, precision, recall, share, alerts_per_day, rows_per_day, days, costs : optional
            As for `rarestream.metrics.choose_threshold`.
        save : bool, default False
            Whether `label` is to use this threshold from now on: it becomes `decision`, and is saved with the model.

        Returns
        -------
        Decision
            The threshold and its false-positive rate, recall, precision and share of alerts, with intervals.

        Raises
        ------
        DataError
            If rows have no labels, an argument is invalid, a class is missing, or no threshold follows the rule; the
            message then names the best there is.
        RowError, ModelBusyError
            As for `score`.
        """
        wanted = Wanted.of(
            advice("Model.threshold_for", "threshold"),
            fpr=fpr,
            precision=precision,
            recall=recall,
            share=share,
            alerts_per_day=alerts_per_day,
            rows_per_day=rows_per_day,
            days=days,
            costs=costs,
        )
        kept, after_rows = KeptScores(None), self.rows
        for block in [blocks] if isinstance(blocks, Block) else blocks:
            _check(wanted.where, block)
            if block.labels is None:
                raise DataError(f"{wanted.where}: the rows have no labels, which a threshold is chosen on.")
            kept.add(block.labels, self.score(block), block.importances)
        decision = replace(wanted.decide(*kept.joined()), after_rows=after_rows)
        if save:
            self.decision = decision
        return decision

    def label(self, block: Block) -> NDArray[np.int8]:
        """Call rows positive or negative. The model does not change.

        A row is positive if its score is at least `decision.threshold`, if there is a decision, and otherwise at least
        `threshold`.

        Parameters
        ----------
        block : Block
            Rows; their labels are ignored.

        Returns
        -------
        array of int8
            1 for the rows that are called positive, -1 for the others.

        Raises
        ------
        RowError, DataError, ModelBusyError
            As for `score`.
        """
        return np.where(self.score(block) >= self.label_threshold, 1, -1).astype(np.int8)

    @property
    def label_threshold(self) -> float:
        """The lowest score that `label` calls positive."""
        return self.threshold if self.decision is None else self.decision.threshold

    # -- explaining scores

    def explain(self, block: Block) -> list[Explanation]:
        """Explain the scores of rows: what each feature adds. The model does not change.

        Parameters
        ----------
        block : Block
            Rows; labels are ignored.

        Returns
        -------
        list of Explanation
            Of each row its score and its terms, the largest absolute contributions first. A term has the `name` of the
            feature, its `value` as given, the `weight` that such a value has in this row, and its `contribution`, which
            is their product. The contributions of a row sum to its score, up to rounding.

        Raises
        ------
        RowError, DataError, ModelBusyError
            As for `score`.
        """
        _check("Model.explain", block)
        with self._reading("explain"):
            scores = self.score(block)
            weights = self._weights_of_rows(block)
        features, places = np.unique(block.indices, return_inverse=True)
        space = block.space  # its names are closest to the rows: two may share a slot
        names = (self.features or COLUMNS).shown(features) if space is None else space.shown(features, self._space)
        return explanations(block, [names[place] for place in places.tolist()], weights, scores)

    def contributions(self, block: Block) -> NDArray[np.float64]:
        """Return what each entry of some rows adds to the score of its row. The model does not change.

        Parameters
        ----------
        block : Block
            Rows; labels are ignored.

        Returns
        -------
        array of shape (block.nonzeros,)
            In the order of `block.values`. Those of a row sum to its score, up to rounding.

        Raises
        ------
        RowError, DataError, ModelBusyError
            As for `score`.
        """
        _check("Model.contributions", block)
        with self._reading("contributions"):
            self.score(block[:0])  # refuses rows of another feature space
            return block.values * self._weights_of_rows(block)

    def _weights_of_rows(self, block: Block) -> NDArray[np.float64]:
        """Return the weights of all entries of a block, for values as given."""
        features, places = np.unique(block.indices, return_inverse=True)
        weights = self._engine.weights_at(features, self._n_features)
        largest = self._engine.largest
        maxima = None
        if largest is not None:
            maxima = np.zeros(len(features))
            known = features < len(largest)
            maxima[known] = largest[features[known]]
            maxima = maxima[places]
        return row_weights(block, self.scale, weights[places], maxima)

    @overload
    def explain_one(self, indices: ArrayLike, values: ArrayLike) -> Explanation: ...
    @overload
    def explain_one(self, row: Mapping[str, Any], /) -> Explanation: ...
    def explain_one(self, indices: Any, values: Any = None) -> Explanation:
        """Explain the score of one row, as `explain` does with a block of one row.

        Parameters
        ----------
        indices : array-like of int
            Feature indices, from 0. Or a mapping: the row with its names.
        values : array-like of float
            Value of each feature; finite. Not with a mapping.

        Returns
        -------
        Explanation
            The score of the row and its terms.

        Raises
        ------
        DataError
            If an argument is invalid, or for the reasons of `explain`.
        """
        if _is_mapping(indices):
            return self.explain(self._named_row("Model.explain_one", indices, own_names=True))[0]
        return self.explain(_one_row(indices, values))[0]

    def feature_names(self, indices: ArrayLike) -> list[str]:
        """Return what features are called.

        Parameters
        ----------
        indices : array-like of int
            Feature indices, from 0.

        Returns
        -------
        list of str
            With hashed features the name of each, such as "site = a.com", or "slot 123" if it is not known; otherwise
            the number of its column.
        """
        return (self.features or COLUMNS).shown(np.asarray(indices, np.int32))

    # -- what was learned

    @property
    def features(self) -> Space | None:
        """What the features of rows are: Columns or Hashed; None before the first row, unless it was given."""
        if self._features is None and self.rows:
            return COLUMNS
        return self._features

    @property
    def learner(self) -> Learner:
        """The learner; after a race of settings, the one that won it."""
        return self._engine.learner

    @property
    def leader(self) -> Learner:
        """The learner whose weights give the scores: during a race of settings, the leading one."""
        return self._engine.leader

    @property
    def candidates(self) -> list[Learner]:
        """The settings that learn: during a race of settings, those that are still in it; else the learner."""
        return list(self._engine.candidates)

    @property
    def scale(self) -> str:
        """How rows are scaled: "unit", "max" or "none"."""
        return self._engine.scale

    @property
    def n_features(self) -> int:
        """The largest feature index seen or reserved, plus one."""
        return self._n_features

    @property
    def coef(self) -> NDArray[Any]:
        """Weights, one per feature; read-only. They multiply the values of scaled rows (see `scale`).

        With scale="max" they multiply the values of rows that are only scaled to norm 1, and are float64: those of
        features with very small values may be very large.
        """
        if self._coef is None:
            weights, _, known = self.weights()
            if known is not None:
                weights = np.divide(weights, known, out=np.zeros(len(weights)), where=known > 0, dtype=np.float64)
            weights.flags.writeable = False
            self._coef = weights
        return self._coef

    def weights(self) -> Weights:
        """Return what scoring needs: weights for scaled rows, class counts, and largest values of features."""
        with self._reading("weights"):
            weight = self._of_all_features(self._engine.weights)
            largest = self._engine.largest
            if largest is not None:
                largest = padded(largest[: self._n_features], self._n_features)  # an engine may have less room
            return Weights(weight, self._engine.tally, largest)

    def weights_between(self, start: int, stop: int) -> NDArray[Any]:
        """Return the weights of some features, as `weights` has them: of those below `n_features`.

        For readers that must not take long: a model may have millions.
        """
        with self._reading("weights_between"):
            return self._engine.weights(start, max(start, min(stop, self._n_features)))

    def rank_keys(self) -> NDArray[Any]:
        """Return a number for each feature: a smaller model keeps the weights whose numbers have the largest size.

        They are the weights for scaled rows, in most learners as they are; `rank_factors` of a learner says otherwise.
        """
        with self._reading("rank_keys"):
            return self._of_all_features(self._engine.rank_keys)

    def _of_all_features(self, part_of: Callable[[int, int], NDArray[Any]]) -> NDArray[Any]:
        """Return the numbers of all features, of which `part_of` returns some."""
        numbers: NDArray[Any] | None = None
        for start, stop in self._engine.chunks(self._n_features):
            part = part_of(start, stop)
            if numbers is None:
                numbers = zeros((self._n_features,), part.dtype)
            if part.any():  # pages of zeros stay untouched
                numbers[start:stop] = part
        return zeros((0,), self._engine.weight_dtype) if numbers is None else numbers

    @property
    def nonzeros(self) -> int:
        """Number of weights that are not zero: the size of the model."""
        with self._reading("nonzeros"):
            return sum(int(np.count_nonzero(part)) for _, part in self._engine.weight_chunks(self._n_features))

    @property
    def state_bytes(self) -> int:
        """Memory of the state in bytes, room for more features included."""
        return self._engine.nbytes

    @property
    def intercept(self) -> float:
        """Intercept of a logistic learner, which added to a score gives the log odds; 0 for AUC losses."""
        return float(self._tally["w0"])

    @property
    def class_means(self) -> tuple[float, float]:
        """Mean score of negatives and of positives, each row scored before it was learned."""
        return float(self._tally["b"]), float(self._tally["a"])

    @property
    def threshold(self) -> float:
        """Score from which a row is called positive if there is no `decision`: that of probability 1/2.

        Without a calibration: where the log odds of a logistic learner are zero, or halfway between the class means.
        """
        known = self.calibration
        if known is None or not known.enough:
            return self.leader.threshold(self._tally)
        return known.middle - math.log(self.negatives_kept) / known.slope

    @property
    def _tally(self) -> Any:
        return tally_of(self._engine.tally)

    @property
    def metrics(self) -> dict[str, float]:
        """The progressive AUC as a file stores it; empty before both classes were seen."""
        if self.kind == "scoring":  # what the file said when it was made
            return self._metrics
        auc = self.progress.auc
        if auc != auc:
            return {}
        return {"progressive_auc": float(auc), "auc_low": auc.low, "auc_high": auc.high, "auc_bound": auc.bound}

    @property
    def kind(self) -> str:
        """ "resumable", or "scoring" for a model that was saved without its state."""
        return "resumable" if self._engine.resumable else "scoring"

    def __repr__(self) -> str:
        return (
            f"Model({self.learner!r}, dtype={self.dtype!r}, scale={self.scale!r}): {self.rows:,} rows, "
            f"{self._n_features:,} features"
        )

    # -- pruning

    def prune(
        self,
        *,
        nonzeros: int | None = None,
        bytes: int | None = None,
        auc_loss: float | None = None,
        on: Block | Iterable[Block] | None = None,
        refit: Block | Iterable[Block] | None = None,
    ) -> Model:
        """Return a scoring-only model that keeps the largest weights; all others are exactly zero.

        Weights are ranked by their absolute value for scaled rows; those of `DualAveraging` with a power or evidence,
        by that times the fourth root of the feature's accumulator. This model does not change. Exactly one of
        `nonzeros`, `bytes` and `auc_loss` is needed. Fewer weights give other scores, so probabilities are calibrated
        anew, on the rows `refit` or `on`; without rows the smaller model has none until `calibrate_on` is called.

        Parameters
        ----------
        nonzeros : int, >= 0, optional
            Number of weights to keep; all if there are fewer.
        bytes : int, >= 0, optional
            Maximum size of the scoring-only file.
        auc_loss : float, >= 0, optional
            Maximum loss of AUC on the rows `on`. The size is the smallest, within 1 %, such that no larger size that
            was tried loses more. It takes two or three passes over the rows.
        on : Block or iterable of Block, optional
            Labelled rows, which the model has not learned. Needed with `auc_loss`, and only then. The rows of an
            iterator are held in memory.
        refit : Block or iterable of Block, optional
            Labelled rows, those that the model has learned: the learner learns them once more, in one pass, as if only
            the features that are kept existed. Smaller models rank better so, mostly.

        Returns
        -------
        Model
            It scores, and cannot learn. It has no `decision`, because its scores are others.

        Raises
        ------
        ValueError
            If not exactly one size is given, it is negative, or `bytes` is less than a file without weights.
        DataError
            If `on` has no labels, or rows of one class only; if `refit` has no labels, no rows, or other features.
        """
        if sum(given is not None for given in (nonzeros, bytes, auc_loss)) != 1:
            raise ValueError("Model.prune: pass exactly one of nonzeros, bytes and auc_loss.")
        if (on is None) != (auc_loss is None):
            raise ValueError(
                "Model.prune: auc_loss and on must be given together: the loss allowed, and the rows to measure it on."
            )
        for word, value in (("nonzeros", nonzeros), ("bytes", bytes), ("auc_loss", auc_loss)):
            if value is not None and not value >= 0:
                raise ValueError(f"Model.prune: {word} must be >= 0, got {value}.")
        from rarestream import pruning

        header, arrays = self._file_parts("scoring")
        header.pop("decision", None)  # other weights give other scores
        size = nonzeros
        if on is not None and auc_loss is not None:
            on = pruning.repeatable(on)
            ranked = pruning.Ranked(self.weights(), self.rank_keys(), self._engine.scale_code)
            size = ranked.path(on, auc_loss=auc_loss).smallest(auc_loss)
        order = _native.ranked(self.rank_keys()[arrays["index"]])
        uncalibrated = {name: array for name, array in arrays.items() if name != CALIBRATION}
        if bytes is not None:
            if refit is None and len(modelfile.to_bytes(header, arrays)) > bytes:
                arrays = uncalibrated
            size = pruning.largest_size(header, arrays, order, bytes)
        if size is not None and size < len(order):  # its scores are others
            arrays = uncalibrated
        pruned = Model._of(decode(*pruning.cut(header, arrays, np.sort(order[:size])), "model"))
        if refit is not None:
            return pruned._refitted(refit)
        if on is not None and self.calibrate and pruned.calibration is None:
            pruned.calibrate_on(on)
        return pruned

    def _refitted(self, rows: Block | Iterable[Block]) -> Model:
        """Return this scoring-only model with weights that are learned anew, of the same features."""
        from rarestream import pruning

        def check(block: Block) -> None:
            _check("Model.prune", block)
            self._check_space("Model.prune", block.space)

        header, arrays = self._file_parts("scoring")
        engine, calibration = pruning.refit(self.learner, self.scale, self.weights(), rows, check)
        weight = engine.weights_at(arrays["index"], self._n_features).astype(arrays["weight"].dtype)
        changed = {**arrays, "weight": weight, "tally": engine.tally}
        refitted = Model._of(decode(*pruning.cut(header, changed, np.flatnonzero(weight)), "model"))
        refitted.calibration = calibration if self.calibrate else None
        return refitted

    def with_half_life(self, rows: float) -> Model:
        """Return a copy of the model that continues with another half-life, from all that was learned.

        The copy gives the same scores, up to rounding: only rows that are learned from now on make a difference. This
        model does not change; both may learn on, side by side. `DriftDetector` tells when that may be worth while.

        Parameters
        ----------
        rows : float, >= 100, or 0
            Number of rows after which a row counts half. 0: rows do not fade any more.

        Returns
        -------
        Model
            The copy. It shares the feature space with this model.

        Raises
        ------
        ValueError
            If the learner has no half-life, still races settings, or has others that cannot be combined with one.
        ModelFileError
            If the model was saved for scoring only.
        """
        copy = Model.from_bytes(self.to_bytes(self.kind))
        copy._engine = copy._engine.with_half_life(rows)
        copy._features, copy._space = self._features, self._space
        return copy

    # -- files

    def save(self, path: str | os.PathLike[str], kind: str = "resumable") -> None:
        """Save the model to a `.rare` file, which is written completely or not at all.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced.
        kind : {"resumable", "scoring"}, default "resumable"
            Whether the file has the whole state, or only the weights.

        Raises
        ------
        ModelFileError
            If the file cannot be written, or a scoring-only model is to be resumable.
        """
        modelfile.write(path, *self._file_parts(kind))

    def to_bytes(self, kind: str = "resumable") -> bytes:
        """Return the bytes that `save` would write.

        Parameters
        ----------
        kind : {"resumable", "scoring"}, default "resumable"
            As for `save`.

        Returns
        -------
        bytes
            The contents of the file.

        Raises
        ------
        ModelFileError
            If a scoring-only model is to be resumable.
        """
        return modelfile.to_bytes(*self._file_parts(kind))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Load a model from a `.rare` file. Learning on gives the same bits as never having stopped.

        Parameters
        ----------
        path : str or path
            A file that `save` has written.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is damaged, or is of a newer format.
        """
        return cls._of(decode(*modelfile.read(path), plain(path)))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "model") -> Model:
        """Load a model from the bytes of a file.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        name : str, default "model"
            Name of the file in error messages.

        Returns
        -------
        Model
            A model equal to the saved one.

        Raises
        ------
        ModelFileError
            As for `load`.
        """
        return cls._of(decode(*modelfile.from_bytes(data, name), name))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model.from_bytes, (self.to_bytes(self.kind),))

    def _file_parts(self, kind: str) -> FileParts:
        """Return the header and the arrays of a file, all of one moment."""
        with self._reading("save"):
            return encode(self._saved(), kind)

    def _saved(self) -> Saved:
        """Return everything of the model that a file stores; it shares memory with the model."""
        return Saved(
            self._engine,
            self.dtype,
            self._n_features,
            self.rows,
            self.positives,
            self.progress,
            self.order,
            self.source,
            self.metrics,
            self.chosen_by,
            self.pruned_from,
            self.features,
            self._progressive.calibration,
            self.calibrate,
            self.negatives_kept,
            self.decision,
        )

    # -- groups of rows that are learned apart and merged: rarestream/groups

    def _learn_in_group(self, block: Block, repeats: float) -> None:
        """Learn rows as `learn` does, but as if each came `repeats` times; their scores are not counted."""
        _check("train_group", block)
        if block.labels is None:
            raise DataError("train_group: the block has no labels.")
        self._begin_learning()
        try:
            if block.space is not self._space:
                self._join_space(block.space)
            self._check_slots("train_group", block)
            self._one = self._coef = None
            learned = self._engine.in_groups().learn_in_group(block, repeats)
            done = block if learned == len(block) else block[:learned]
            assert done.labels is not None
            self.rows += learned
            self.positives += int(np.count_nonzero(done.labels > 0))
            self._n_features = max(self._n_features, int(done.indices.max(initial=-1)) + 1)
        finally:
            self._gate.end_learning()
        if learned < len(block):
            raise RowError("train_group", learned, block.changed() or self._refusal(learned))

    def _change(self, features: NDArray[np.int32], rows: int) -> Change:
        """Return the numbers of some features, after a group has learned so many rows."""
        engine = self._engine.in_groups()
        numbers, largest = engine.numbers_at(features), engine.largest_at(features)
        return Change(rows, features, numbers, engine.tallies.copy(), largest, engine.settings_left())

    def _adopt(self, change: Change, positives: int) -> None:
        """Take over what groups have made of the state."""
        self._begin_learning()
        try:
            self._one = self._coef = None
            self._n_features = max(self._n_features, int(change.features.max(initial=-1)) + 1)
            dropped = self._engine.in_groups().adopt(change)
            self.rows += change.rows
            self.positives += positives
        finally:
            self._gate.end_learning()
        if dropped is not None:
            warnings.warn(SettingsDroppedWarning(dropped), stacklevel=3)

    def _compare(self, block: Block, groups: int) -> NDArray[np.float64]:
        """Return the scores of rows that no group has learned; a race compares its settings on them."""
        self._one = self._coef = None
        engine, scores = self._engine.in_groups().compared(block, self.rows // groups)
        if engine is not self._engine:
            self.chosen_by = ChosenBy(self.learner.name, self.rows)
            self._engine = engine
            engine.reserve(self._n_features)
        return scores

    # -- feature spaces

    def _join_space(self, space: Hashed | None) -> None:
        """Take over the space of a block to learn, or its names; DataError if the model has another space."""
        mine = self._check_space("Model.learn", space)
        if space is None:
            return
        if not isinstance(mine, Hashed):
            if self._n_features > space.slots:
                raise DataError(
                    f"Model.learn: the model has {self._n_features} features, but {_few_slots(space)} Make it with a "
                    "smaller n_features."
                )
            self._engine.reserve(space.slots, exactly=True)
            self._features = self._space = space
            self._n_features = space.slots
            return
        mine.take_names(space)

    def _check_space(self, where: str, space: Hashed | None) -> Space | None:
        """Return the model's space; DataError unless rows of the other one, None for column numbers, belong to it."""
        mine = self.features
        check_space(where, mine, space)
        return mine

    def _check_slots(self, where: str, block: Block) -> None:
        """Raise a DataError if a row has a slot that the model's space has not."""
        if self._space is not None and block.width > self._n_features:
            raise DataError(f"{where}: a row has slot {block.width - 1}, but {_few_slots(self._space)}")

    def _named_row(
        self,
        where: str,
        row: Mapping[str, Any],
        label: int | None = None,
        importance: float | None = None,
        *,
        names: bool = True,
        own_names: bool = False,
    ) -> Block:
        """Return a block of one row that is given by names.

        `names`: whether the model's space remembers them; `own_names`: a space of the row's own does.
        """
        mine = self.features
        if isinstance(mine, Columns):
            raise DataError(
                f"{where}: the row has names, but the model has {mine.describe()}. Pass indices and values, or use a "
                "model with features=Hashed()."
            )
        space = Hashed() if mine is None else mine
        if own_names or (not names and space.plan is None):
            space = space.fresh()
        rows = encode_rows(space, [row], names=names, where=where)
        if where != "Model.learn_one":
            return Block(*rows, own=True, space=space)
        return Block(*rows, *_label(label, importance), None, True, space)

    # -- implementation

    def _refusal(self, row: int) -> str:
        """Return the reason why a row was not learned."""
        before = f"The {row} rows before it were learned, it was not." if row else "Nothing was learned."
        # On the command line nothing is saved then, so there is no model to tell about.
        return overflow(self.learner, self.scale, self.dtype, advice(before, ""))

    def _begin_learning(self) -> None:
        if not self._gate.begin_learning():
            raise ModelBusyError(
                "Model.learn: another thread is learning, scoring or saving with this model. Learn from one thread, "
                "and score with a copy (Model.from_bytes(model.to_bytes())) meanwhile."
            )

    def _begin_scoring(self, what: str = "score") -> None:
        if not self._gate.begin_scoring():
            raise ModelBusyError(
                f"Model.{what}: another thread is learning with this model. Do it between two calls of learn, or with "
                "a copy made then (Model.from_bytes(model.to_bytes()))."
            )

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Context in which no thread can learn, so that what is read of the state is all of one moment."""
        self._begin_scoring(what)
        try:
            yield
        finally:
            self._gate.end_scoring()


def check_space(where: str, mine: Space | None, space: Hashed | None) -> None:
    """Raise a DataError unless rows of a space, None for column numbers, belong to that of a model, if it has one."""
    if mine is None or mine.compatible(space):
        return
    if space is None:
        way = "Read or make the rows as they were for training, with features=model.features."
    elif isinstance(mine, Hashed):
        way = f"Hash the rows with {advice(f'bits={mine.bits}', f'--bits {mine.bits}')}, or train a new model."
    else:
        way = "Use rows with column numbers, or train a new model on these."
    raise DataError(f"{where}: the rows have {described(space)}, but the model has {mine.describe()}. {way}")


def _check(where: str, block: Block) -> None:
    if not isinstance(block, Block):
        raise TypeError(
            f"{where}: takes a Block, got {type(block).__name__}. Block.of(X, labels) makes one of a matrix, an array "
            "or a frame of numbers."
        )


def _one_row(indices: ArrayLike, values: ArrayLike, label: int | None = None, importance: float | None = None) -> Block:
    """Return a block of one row, checked."""
    columns, entries = np.asarray(indices), values if type(values) is np.ndarray else numeric(values, "Model: values")
    starts = np.array([0, len(columns)], np.int64)
    rows = canonical(starts, columns if len(columns) else columns.astype(np.int32), entries, copy=False)
    if label is None:
        return Block(*rows[:4], own=rows[4])
    sign, weight = _label(label, importance)
    starts, columns, entries, width, own = rows
    return Block(starts, columns, entries, width, sign, weight, None, own)


def _label(label: int | None, importance: float | None) -> tuple[NDArray[np.int8], NDArray[np.float64] | None]:
    """Return the label and the importance of one row as arrays, checked."""
    if label not in (-1, 0, 1):
        raise DataError(f"Model.learn_one: labels are -1 and +1, or 0 and 1, got {label!r}.")
    weight = None
    if importance is not None:
        if not (importance == 0 or SMALLEST_IMPORTANCE <= importance <= LARGEST_IMPORTANCE):
            raise DataError(f"Model.learn_one: the row {importance_rule(importance)}")
        weight = np.array([importance], np.float64)
    return np.array([1 if label == 1 else -1], np.int8), weight


def _is_mapping(row: Any) -> bool:
    # The usual types of indices first: asking for a Mapping takes longer.
    return type(row) is dict or (type(row) not in (np.ndarray, list, tuple) and isinstance(row, Mapping))


def _few_slots(space: Hashed) -> str:
    return f"{space.describe()} have {space.slots:,} slots."
