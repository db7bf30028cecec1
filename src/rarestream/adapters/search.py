"""RaceSearchCV: what GridSearchCV does, with the candidates side by side in lanes.

The training rows of a fold are passed over once for a batch of up to 32 candidates (engines/lanes.py), and so are its
test rows. The candidates of a batch have the same scale, order of rows and number of passes. A candidate that cannot
share a pass is fitted by itself. A lane gives the result of a fit, up to the rounding of float32; everything around the
fits is scikit-learn's: folds, scorers, ranks, the handling of fits that fail.
"""

from __future__ import annotations

import math
import numbers
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from rarestream.adapters.sklearn import StreamClassifier
from rarestream.blocks import Block
from rarestream.engines.lanes import WIDTH
from rarestream.metrics import Calibration, StreamingAuc, auc
from rarestream.metrics.rows import ScoredRows
from rarestream.race.fitting import MAX_GROUP, fit_many
from rarestream.system import machine_memory

PIECE = 8192  # rows that are learned in one call
LANE = 8  # bytes of a lane in a coordinate: z and n
SHOWN = 3  # candidates that a warning names
UNKNOWN_WIDTH = 1 << 20  # of rows that a pipeline makes: what scikit-learn's hashing gives

Candidate = Any  # a StreamClassifier, or a Pipeline that ends with one

Folds = Sequence[tuple[Any, Any]]  # the training and test rows of each
Record = dict[str, Any]  # of one candidate on one fold, as GridSearchCV keeps it


class RaceSearchCV(GridSearchCV):  # type: ignore[misc]
    """GridSearchCV for the classifiers of this package, many times as fast: candidates share passes over the rows.

    Settings of `DualAveraging`, `FtrlProximal` and `FtrlAuc` (except means="exact") with dtype="float32" can share a
    pass. Any other candidate is fitted by itself, with a warning. The results are those of GridSearchCV up to the
    rounding of float32, in the same attributes.

    Parameters
    ----------
    estimator : classifier of rarestream.sklearn, or a Pipeline that ends with one
        Candidates of a pipeline share the fits of its first steps too, as far as these have the same parameters.
    param_grid : dict or list of dicts
        Values to try for each parameter, as in GridSearchCV.
    scoring : str, callable or None, default='roc_auc'
        The metric to maximise; None is the accuracy. The AUC is computed for all candidates of a batch together; any
        other scorer gets their fitted classifiers one after the other, those of a pipeline with the rows as its first
        steps transform them. Several metrics at once are not supported.
    n_jobs : int or None, default=None
        Number of batches that run at once, in threads. None is one, -1 one per core.
    refit : bool or callable, default=True
        Whether the best candidate is fitted again, on all rows. A callable takes `cv_results_` and returns the index of
        the best one.
    cv : int, splitter, iterable or None, default=None
        The folds. None is five, stratified and in order.
    verbose : int, default=0
        With 1 or more, a line is printed for every batch of every fold.
    error_score : 'raise' or number, default=nan
        The score of a candidate on a fold that it cannot be fitted on.
    return_train_score : bool, default=False
        Whether training rows are scored too.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in GridSearchCV. The times of a candidate are those of its batch, divided by the number of its candidates.
    best_estimator_, best_params_, best_score_, best_index_
        The best candidate: fitted on all rows, its parameters, its mean test score, its place in `cv_results_`.
    scorer_, n_splits_, refit_time_, multimetric_
        As in GridSearchCV; `multimetric_` is False.
    classes_, n_features_in_, feature_names_in_
        Those of `best_estimator_`.
    """

    __module__ = "rarestream.sklearn"  # its public address, where pickle finds it

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = "roc_auc",
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all candidates on all folds, then the best one on all rows.

        Parameters
        ----------
        X, y
            As for `fit` of the classifiers.
        **params
            `sample_weight`, the importance of each row, in the folds too, with a pipeline as STEP__sample_weight;
            `groups`, which the splitter gets.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If the estimator is neither a classifier of rarestream.sklearn nor a pipeline that ends with one.
        ValueError
            If there is nothing to fit, all fits fail, or several metrics are given.
        """
        self._check()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(params)
        splitter = check_cv(self.cv, y, classifier=True)
        folds = list(splitter.split(X, y, **routed.splitter.split))
        settings = list(ParameterGrid(self.param_grid))
        if not folds or not settings:
            raise ValueError(f"RaceSearchCV: {len(settings)} candidates on {len(folds)} folds leave nothing to fit.")
        candidates = [clone(self.estimator).set_params(**clone(setting, safe=False)) for setting in settings]
        scorer = check_scoring(self.estimator, self.scoring)
        batches = self._batches(settings, candidates, X)
        trials = _Trials(
            candidates=candidates,
            X=X,
            y=y,
            folds=folds,
            fit_params=routed.estimator.fit,
            score_params=routed.scorer.score,
            scorer=scorer,
            by_auc=self.scoring == "roc_auc",
            error_score=self.error_score,
            train_scores=self.return_train_score,
            progress=_Progress(self.verbose, folds, batches, candidates),
        )
        jobs = [(fold, batch) for fold in range(len(folds)) for batch in batches]
        done = Parallel(n_jobs=self.n_jobs, require="sharedmem")(delayed(trials.run)(*job) for job in jobs)
        record_of = {
            (number, fold): record
            for (fold, batch), records in zip(jobs, done, strict=True)
            for number, record in zip(batch.numbers, records, strict=True)
        }
        records = [record_of[number, fold] for number in range(len(settings)) for fold in range(len(folds))]
        _warn_of_failures(records, self.error_score)
        self.cv_results_ = self._format_results(settings, len(folds), records)
        self.n_splits_, self.scorer_, self.multimetric_ = len(folds), scorer, False
        self._choose(X, y, routed.estimator.fit)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False  # candidates are compared by the AUC of two classes
        return tags

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Raise NotImplementedError: candidates that share a pass have no fits of their own. See `verbose`."""
        raise NotImplementedError("RaceSearchCV: callbacks are not supported, because candidates share their fits.")

    # -- implementation

    def _check(self) -> None:
        self._validate_params()
        if not isinstance(_last(self.estimator), StreamClassifier):
            raise TypeError(
                "RaceSearchCV: the estimator must be a classifier of rarestream.sklearn, such as "
                f"DualAveragingClassifier(), or a pipeline that ends with one, got {self.estimator!r}. For other "
                "estimators use GridSearchCV."
            )
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                f"RaceSearchCV: scoring is one metric, got {self.scoring!r}. For several use GridSearchCV."
            )

    def _batches(self, settings: Sequence[Mapping[str, Any]], candidates: Sequence[Candidate], X: Any) -> list[_Batch]:
        """Return the candidates in batches of about equal size; those that cannot share a pass one by one."""
        together: defaultdict[Any, list[int]] = defaultdict(list)
        alone: list[int] = []
        reasons: defaultdict[str, list[int]] = defaultdict(list)
        width = 1
        for number, (given, whole) in enumerate(zip(settings, candidates, strict=True)):
            candidate = _last(whole)
            try:
                why = _why_alone(candidate)
                width = max(width, candidate._width(X) if candidate is whole else UNKNOWN_WIDTH)
            except (TypeError, ValueError):  # invalid settings: fit will raise the error
                alone.append(number)
                continue
            if why:
                alone.append(number)
                reasons[why].append(number)
                continue
            # A random state is copied for every fit, so candidates with the same one have the same order of rows.
            features = None if candidate.features is None else repr(sorted(candidate.features.get_params().items()))
            prefix = "" if candidate is whole else f"{whole.steps[-1][0]}__"
            random = given.get(f"{prefix}random_state", _last(self.estimator).random_state)
            order = random if isinstance(random, numbers.Integral) else id(random)
            common = (
                candidate.scale,
                candidate.max_passes,
                bool(candidate.shuffle),
                order if candidate.shuffle else None,
            )
            others = repr(sorted((name, repr(value)) for name, value in given.items() if not name.startswith(prefix)))
            balanced = repr(candidate.class_weight), repr(candidate.pos_label)
            alike = (*common, features, others if prefix else None, balanced)
            together[alike].append(number)
        for why, those in reasons.items():
            named = ", ".join(str(settings[number]) for number in those[:SHOWN])
            more = f" and {len(those) - SHOWN} more" if len(those) > SHOWN else ""
            warnings.warn(
                f"RaceSearchCV: {len(those)} of {len(settings)} candidates are fitted one by one, because {why}: "
                f"{named}{more}.",
                stacklevel=3,
            )
        most = self._most_lanes(width)
        batches = [_Batch([number], in_lanes=False) for number in alone]
        for those in together.values():
            size = math.ceil(len(those) / math.ceil(len(those) / most) / WIDTH) * WIDTH
            batches += [_Batch(those[first : first + size], in_lanes=True) for first in range(0, len(those), size)]
        return batches

    def _most_lanes(self, d: int) -> int:
        """Return the largest batch: those that run at once fit in half of the memory."""
        eights: int = machine_memory() // 2 // (d * LANE * WIDTH * effective_n_jobs(self.n_jobs))
        return min(MAX_GROUP, max(eights, 1) * WIDTH)

    def _choose(self, X: Any, y: Any, fit_params: Mapping[str, Any]) -> None:
        results = self.cv_results_
        self.best_index_ = self._select_best_index(self.refit, "score", results)
        if not callable(self.refit):
            self.best_score_ = results["mean_test_score"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]
        if not self.refit:
            return
        self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        began = time.perf_counter()
        self.best_estimator_.fit(X, y, **fit_params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _last(estimator: Any) -> Any:
    """Return the last step of a pipeline; any other estimator as it is."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _why_alone(candidate: StreamClassifier) -> str | None:
    """Return why a candidate cannot share a pass; None if it can."""
    if candidate.early_stopping or candidate.warm_start:
        return "with early_stopping or warm_start each has passes of its own"
    learner = candidate._new_model(0).learner
    if candidate.dtype != "float32":
        return f"lanes are float32, not {candidate.dtype}"
    if learner.lane() is None:
        name = type(learner).__name__
        some = type(learner)().lane() is not None
        return f"{name} cannot share a pass{' with these settings' if some else ''}"
    return None


class _Batch(NamedTuple):
    """Candidates that are fitted together, or one that is fitted alone."""

    numbers: list[int]
    in_lanes: bool


class _Part(NamedTuple):
    """Some of the rows, as they were given."""

    X: Any
    y: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]


@dataclass(frozen=True)
class _Trials:
    """Fits and scores candidates on folds. Any number of threads may run at once."""

    candidates: Sequence[Candidate]
    X: Any
    y: Any
    folds: Folds
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    scorer: Any
    by_auc: bool
    error_score: Any
    train_scores: bool
    progress: _Progress

    def run(self, fold: int, batch: _Batch) -> list[Record]:
        """Return a record of each candidate of the batch."""
        began = time.perf_counter()
        records = self._records(fold, batch)
        self.progress.finished(fold, batch, time.perf_counter() - began)
        return records

    def _records(self, fold: int, batch: _Batch) -> list[Record]:
        train, test = self.folds[fold]
        share = 1 / len(batch.numbers)
        began = time.perf_counter()
        rows = self._part(train)
        try:
            fitted = self._together(batch, rows) if batch.in_lanes else self._alone(batch, rows)
        except Exception as error:
            if batch.in_lanes and isinstance(error, MemoryError):  # alone, they may fit
                return [
                    record
                    for number in batch.numbers
                    for record in self._records(fold, _Batch([number], in_lanes=False))
                ]
            if self.error_score == "raise":
                raise
            fit_time = share * (time.perf_counter() - began)
            return [self._failure(error, fit_time) for _ in batch.numbers]
        fit_time = share * (time.perf_counter() - began)
        began = time.perf_counter()
        scores = self._scores(fitted, self._part(test))
        score_time = share * (time.perf_counter() - began)
        train_scores = self._scores(fitted, rows) if self.train_scores else scores
        return [
            {
                "fit_error": None,
                "fit_time": fit_time,
                "score_time": score_time,
                "test_scores": test_score,
                "train_scores": train_score,
            }
            if error is None
            else self._failure(error, fit_time)
            for error, test_score, train_score in zip(fitted.errors(), scores, train_scores, strict=True)
        ]

    def _failure(self, error: Exception, fit_time: float) -> Record:
        """Return the record of a candidate that could not be fitted."""
        if self.error_score == "raise":
            raise error
        text = "".join(traceback.format_exception(error))
        record = {"fit_error": text, "fit_time": fit_time, "score_time": 0.0}
        return {**record, "test_scores": self.error_score, "train_scores": self.error_score}

    def _part(self, rows: Any) -> _Part:
        return _Part(
            _safe_indexing(self.X, rows),
            None if self.y is None else _safe_indexing(self.y, rows),
            _check_method_params(self.X, self.fit_params, rows),
            _check_method_params(self.X, self.score_params, rows),
        )

    def _alone(self, batch: _Batch, rows: _Part) -> _Alone:
        [number] = batch.numbers
        return _Alone(clone(self.candidates[number]).fit(rows.X, rows.y, **rows.fit_params))

    def _together(self, batch: _Batch, rows: _Part) -> _Together:
        candidates = [self.candidates[number] for number in batch.numbers]
        return _Together(candidates, rows, self.progress, keep_progress=not self.by_auc)

    def _scores(self, fitted: _Alone | _Together, rows: _Part) -> list[float]:
        rows = fitted.transformed(rows)
        if self.by_auc and isinstance(fitted, _Together):
            try:
                return fitted.aucs(rows)
            except ValueError:
                pass  # one class, or invalid rows: the scorer handles them as in GridSearchCV
        estimators = fitted.estimators()
        return [math.nan if estimator is None else self._score(estimator, rows) for estimator in estimators]

    def _score(self, estimator: Candidate, rows: _Part) -> float:
        try:
            score = self.scorer(estimator, rows.X, rows.y, **rows.score_params)
        except Exception:
            if self.error_score == "raise":
                raise
            warnings.warn(
                f"Scoring failed. The score on this train-test partition for these parameters will be set to "
                f"{self.error_score}. Details: \n{traceback.format_exc()}",
                stacklevel=2,
            )
            return float(self.error_score)
        try:
            return float(score)
        except TypeError:
            raise ValueError(
                f"RaceSearchCV: scoring must return one number, got {score!r}. For several use GridSearchCV."
            ) from None


class _Alone(NamedTuple):
    """A candidate fitted by itself."""

    estimator: Candidate

    def errors(self) -> list[Exception | None]:
        return [None]

    def transformed(self, rows: _Part) -> _Part:
        return rows

    def estimators(self) -> Iterator[Candidate | None]:
        yield self.estimator


class _Together:
    """Candidates fitted in shared passes, as `StreamClassifier.fit` fits each of them."""

    def __init__(self, wholes: Sequence[Candidate], rows: _Part, progress: _Progress, keep_progress: bool) -> None:
        candidates: list[StreamClassifier] = [_last(whole) for whole in wholes]
        self._steps: Pipeline | None = None  # the first steps of a pipeline, fitted
        if candidates[0] is not wholes[0]:
            rows = self._through_first_steps(wholes[0], rows)
        self._candidates = candidates
        self._head = clone(candidates[0])  # what the candidates have in common
        block, self._classes = self._head._training_rows(rows.X, rows.y, **rows.fit_params)
        if block.labels is None:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        learners = [candidate._new_model(0).learner for candidate in candidates]
        self._space = block.space
        self._width = self._head.n_features_in_ if block.space is None else block.space.slots
        self._progress = [(StreamingAuc(), Calibration()) for _ in candidates]
        passes = self._head._passes(block)

        def watch(piece: Block, scores: NDArray[np.float32], number: int) -> None:
            if keep_progress and number == 0:
                self._count(piece, scores)
            progress.learned(len(piece))

        self._fits, _ = fit_many(
            learners,
            lambda _: _pieces(next(passes)),
            scale=self._head.scale,
            n_features=self._width,
            passes=self._head.max_passes,
            watch=watch,
        )
        assert block.labels is not None
        self._rows = len(block)
        self._positives = int(np.count_nonzero(block.labels > 0))

    def _through_first_steps(self, pipeline: Any, rows: _Part) -> _Part:
        """Fit the first steps of a pipeline, and return the rows as they transform them."""
        prefix = f"{pipeline.steps[-1][0]}__"
        own = {name.removeprefix(prefix): value for name, value in rows.fit_params.items() if name.startswith(prefix)}
        others = {name: value for name, value in rows.fit_params.items() if not name.startswith(prefix)}
        if len(pipeline.steps) == 1:
            return rows._replace(fit_params=own)
        self._steps = clone(pipeline[:-1])
        return rows._replace(X=self._steps.fit_transform(rows.X, rows.y, **others), fit_params=own)

    def transformed(self, rows: _Part) -> _Part:
        """Return rows as the classifiers take them."""
        return rows if self._steps is None else rows._replace(X=self._steps.transform(rows.X))

    def _count(self, block: Block, scores: NDArray[np.float32]) -> None:
        assert block.labels is not None
        for counters, own in zip(self._progress, scores.T.astype(np.float64, order="C"), strict=True):
            if not np.isnan(own).any():  # nan: the candidate has dropped out
                for counter in counters:
                    counter.count(ScoredRows(block.labels, own, block.importances))

    def errors(self) -> list[Exception | None]:
        """Return why candidates could not be fitted; None for those that could."""
        return [self._fits.errors.get(number) for number in range(len(self._candidates))]

    def aucs(self, rows: _Part) -> list[float]:
        """Return the AUC of each candidate on some rows; nan for those that could not be fitted."""
        block = self._head._rows_to_score(rows.X, self._space)
        labels = self._head._signed(column_or_1d(rows.y), self._classes)
        scores = np.concatenate([self._fits.score(piece) for piece in _pieces(block)])
        weights = rows.score_params.get("sample_weight")
        return [
            math.nan if number in self._fits.errors else auc(labels, own, weights)
            for number, own in enumerate(np.ascontiguousarray(scores.T))
        ]

    def estimators(self) -> Iterator[StreamClassifier | None]:
        """Yield the candidates, each as if it had been fitted by itself; None for those that could not be."""
        columns = {name: value for name, value in vars(self._head).items() if name.endswith("_in_")}
        passes = self._head.max_passes
        for lane, candidate in enumerate(self._candidates):
            if lane in self._fits.errors:
                yield None
                continue
            model = self._fits.model(lane, self._width)
            model.rows, model.positives = passes * self._rows, passes * self._positives
            model.progress, model.calibration = self._progress[lane]
            fitted = clone(candidate)
            vars(fitted).update(columns)
            fitted._start(model, self._classes, passes)
            yield fitted


def _pieces(block: Block) -> Iterator[Block]:
    return (block[first : first + PIECE] for first in range(0, len(block), PIECE))


def _warn_of_failures(records: Sequence[Record], error_score: Any) -> None:
    """Warn of fits that failed; ValueError if all did."""
    errors = Counter(record["fit_error"] for record in records if record["fit_error"])
    failed = errors.total()
    if not failed:
        return
    details = "\n".join(f"{count} of them with this error:\n{error}" for error, count in errors.items())
    if failed == len(records):
        raise ValueError(f"RaceSearchCV: all the {failed} fits failed.\n{details}")
    warnings.warn(
        f"RaceSearchCV: {failed} of {len(records)} fits failed; their scores are set to {error_score}. Pass "
        f"error_score='raise' to see where.\n{details}",
        FitFailedWarning,
        stacklevel=3,
    )


class _Progress:
    """What `verbose` prints: a line for each batch, and on a terminal the number of rows so far."""

    def __init__(
        self, verbose: int, folds: Folds, batches: Sequence[_Batch], candidates: Sequence[StreamClassifier]
    ) -> None:
        self._verbose = verbose > 0
        self._live = self._verbose and sys.stdout.isatty()
        self._folds = len(folds)
        self._jobs, self._done = len(folds) * len(batches), 0
        together = [batch.numbers for batch in batches if batch.in_lanes]
        passes = sum(_last(candidates[numbers[0]]).max_passes for numbers in together)
        self._rows, self._learned = passes * sum(len(train) for train, _ in folds), 0
        self._lock = threading.Lock()
        if self._verbose:
            sizes = ", ".join(str(len(numbers)) for numbers in together) or "none"
            alone = len(batches) - len(together)
            print(
                f"Fitting {len(folds)} folds for each of {len(candidates)} candidates, in lanes of {sizes}"
                + (f", {alone} one by one" if alone else "")
            )

    def learned(self, rows: int) -> None:
        if not self._live:
            return
        with self._lock:
            self._learned += rows
            print(f"\r{self._learned:,} of {self._rows:,} rows", end="", flush=True)

    def finished(self, fold: int, batch: _Batch, seconds: float) -> None:
        if not self._verbose:
            return
        with self._lock:
            self._done += 1
            what = (
                f"{len(batch.numbers)} candidates in lanes" if batch.in_lanes else f"candidate {batch.numbers[0] + 1}"
            )
            line = f"[{self._done}/{self._jobs}] fold {fold + 1} of {self._folds}, {what}: {seconds:.2f} s"
            print(f"\r{line:<60}" if self._live else line, flush=True)
