"""RaceSearchCV: the results of GridSearchCV, from lanes."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError, UndefinedMetricWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, ParameterGrid, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline

import rarestream.adapters.search as search_module
import rarestream.sklearn
from rarestream.adapters.sklearn import StreamClassifier, classifiers
from rarestream.sklearn import (
    DualAveragingClassifier,
    FtrlAucClassifier,
    FtrlProximalClassifier,
    RaceSearchCV,
    SpamClassifier,
)
from tests.strategies import random_block

D = 120
RATES = {"learning_rate": [0.02, 0.1, 0.5, 2.0]}


def rows(n=900, seed=0):
    block = random_block(n, D, 6, seed)
    return block.to_csr(D), (block.labels > 0).astype(int)


@pytest.fixture
def fits(monkeypatch):
    """Which classifiers were fitted by themselves."""
    fitted = []
    fit = StreamClassifier.fit

    def counted(self, *given, **params):
        fitted.append(self)
        return fit(self, *given, **params)

    monkeypatch.setattr(StreamClassifier, "fit", counted)
    return fitted


def agree(race, grid, close=1e-4):
    """Everything that GridSearchCV found, but for times and rounding."""
    one, other = race.cv_results_, grid.cv_results_
    assert list(one) == list(other)
    assert one["params"] == other["params"]
    for name in one:
        if name.startswith("param_"):
            assert one[name].dtype == other[name].dtype
            assert np.array_equal(one[name].mask, other[name].mask)
            assert one[name].tolist() == other[name].tolist()
        elif name.endswith("_score") and not name.startswith("rank"):
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=close, err_msg=name)
        elif name.endswith("_time"):
            assert (one[name] >= 0).all() and one[name].shape == other[name].shape
    means = other["mean_test_score"]
    clear = np.abs(means[:, None] - means) > 2 * close
    ahead = one["rank_test_score"][:, None] < one["rank_test_score"]
    assert np.array_equal(ahead & clear, (other["rank_test_score"][:, None] < other["rank_test_score"]) & clear)
    assert race.best_params_ == grid.best_params_
    assert race.best_index_ == grid.best_index_
    assert race.n_splits_ == grid.n_splits_
    assert race.multimetric_ is False


def both(estimator, grid, X, y, fit=None, **settings):
    settings = {"scoring": "roc_auc", "cv": 3, **settings}
    race = RaceSearchCV(estimator, grid, **settings).fit(X, y, **(fit or {}))
    other = GridSearchCV(estimator, grid, **settings).fit(X, y, **(fit or {}))
    agree(race, other)
    return race, other


# -- the same as GridSearchCV


@pytest.mark.parametrize(
    "estimator, grid",
    [
        (
            DualAveragingClassifier(),
            {**RATES, "loss": ["auc", "logistic"], "l1": [0.0, 0.05], "rate_power": [1.0, 2.0]},
        ),
        (FtrlAucClassifier(), {**RATES, "l1": [0.0, 0.01], "l2": [0.0, 0.1]}),
        (FtrlProximalClassifier(), {**RATES, "intercept": [True, False], "beta": [0.5, 1.0]}),
        (DualAveragingClassifier(), {}),
        (DualAveragingClassifier(), {"learning_rate": np.geomspace(0.01, 10, 75)}),
    ],
    ids=["dual averaging", "ftrl-auc", "ftrl-proximal", "no parameters", "several batches"],
)
def test_finds_what_grid_search_finds(estimator, grid, fits):
    X, y = rows()
    race = RaceSearchCV(estimator, grid, cv=3).fit(X, y)
    assert len(fits) == 1  # the best one, on all rows
    agree(race, GridSearchCV(estimator, grid, scoring="roc_auc", cv=3).fit(X, y))


def test_candidates_that_differ_in_more_than_a_lane_can():
    X, y = rows()
    grid = [
        {**RATES, "scale": ["unit", "max", "none"], "threshold": [None, 0.1]},
        {**RATES, "max_passes": [1, 2], "shuffle": [True], "random_state": [0, 1, np.random.RandomState(5)]},
    ]
    both(DualAveragingClassifier(), grid, X, y)


def test_a_random_state_of_the_estimator_is_the_start_of_every_fit():
    X, y = rows()
    both(DualAveragingClassifier(shuffle=True, random_state=np.random.RandomState(3), max_passes=2), RATES, X, y)


@pytest.mark.parametrize("scoring", [None, "accuracy", "average_precision", "neg_brier_score"])
def test_other_scorers_are_given_the_classifier_of_each_lane(scoring, fits):
    X, y = rows()
    if scoring == "neg_brier_score":  # which needs probabilities
        scoring = make_scorer(
            lambda y, s: -np.mean((y - 1 / (1 + np.exp(-s))) ** 2), response_method="decision_function"
        )
    race, _ = both(
        DualAveragingClassifier(threshold=0.01), {**RATES, "loss": ["auc", "logistic"]}, X, y, scoring=scoring
    )
    assert len(fits) == 1 + 8 * 3 + 1
    assert race.score(X, y) == race.scorer_(race.best_estimator_, X, y)


def test_the_classifier_of_a_lane_is_as_if_fitted_by_itself():
    X, y = rows()
    frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(D)])
    labels = np.where(y > 0, "yes", "no")
    seen = {}

    def scorer(estimator, X, y):
        assert isinstance(X, pd.DataFrame) and y.dtype.kind in "UO"
        seen[estimator.learning_rate] = estimator
        return estimator.score(X, y)

    split = [(np.arange(600), np.arange(600, 900))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RaceSearchCV(DualAveragingClassifier(max_passes=2), RATES, scoring=scorer, cv=split).fit(frame, labels)
    for rate, lane in seen.items():
        alone = DualAveragingClassifier(max_passes=2, learning_rate=rate).fit(frame[:600], labels[:600])
        assert lane.get_params() == alone.get_params()
        assert (lane.t_, lane.n_iter_, lane.n_features_in_) == (1200, 2, D)
        assert lane.model_.positives == alone.model_.positives
        assert list(lane.feature_names_in_) == list(frame.columns)
        assert list(lane.classes_) == ["no", "yes"]
        np.testing.assert_allclose(lane.coef_, alone.coef_, atol=1e-4)
        np.testing.assert_allclose(lane.intercept_, alone.intercept_, atol=1e-4)
        assert lane.progress_auc_ == pytest.approx(alone.progress_auc_, abs=1e-4)
        assert lane.predict(frame[600:]).tolist() == alone.predict(frame[600:]).tolist()


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy"])
def test_training_scores(scoring):
    X, y = rows()
    both(DualAveragingClassifier(), {**RATES, "dtype": ["float32"]}, X, y, return_train_score=True, scoring=scoring)


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy"])
def test_sample_weights_are_split_with_the_rows(scoring):
    X, y = rows()
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    race, grid = both(
        FtrlAucClassifier(), RATES, X, y, {"sample_weight": weights}, scoring=scoring, return_train_score=True
    )
    unweighted = RaceSearchCV(FtrlAucClassifier(), RATES, cv=3).fit(X, y)
    assert race.best_score_ != unweighted.best_score_
    assert race.best_estimator_.model_.to_bytes() == grid.best_estimator_.model_.to_bytes()


@pytest.mark.parametrize(
    "cv",
    [None, 4, StratifiedKFold(3, shuffle=True, random_state=1), TimeSeriesSplit(3), GroupKFold(3)],
    ids=lambda cv: type(cv).__name__,
)
def test_any_folds(cv):
    X, y = rows()
    groups = {"groups": np.arange(len(y)) % 7} if isinstance(cv, GroupKFold) else {}
    both(DualAveragingClassifier(), RATES, X, y, groups, cv=cv)


@pytest.mark.parametrize(
    "as_given",
    [
        lambda X: X.tocoo(),
        lambda X: sp.csc_matrix(X),
        lambda X: X.toarray(),
        lambda X: X.toarray().tolist(),
        lambda X: pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(D)]),
        lambda X: pl.DataFrame(X.toarray(), schema=[f"f{j}" for j in range(D)]),
    ],
    ids=["coo", "csc", "dense", "lists", "pandas", "polars"],
)
def test_rows_in_any_form(as_given):
    X, y = rows(300)
    plain = RaceSearchCV(DualAveragingClassifier(), RATES, cv=3).fit(X, y)
    given = as_given(X)
    other = RaceSearchCV(DualAveragingClassifier(), RATES, cv=3).fit(given, y.tolist())
    assert np.array_equal(plain.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert np.array_equal(plain.decision_function(X), other.decision_function(given))
    assert hasattr(other, "feature_names_in_") == hasattr(given, "columns")


def test_metadata_that_is_routed():
    X, y = rows()
    weights = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = DualAveragingClassifier().set_fit_request(sample_weight=True)
        scorer = make_scorer(roc_auc_score, response_method="decision_function").set_score_request(sample_weight=True)
        both(estimator, RATES, X, y, {"sample_weight": weights}, scoring=scorer)


def test_threads_change_nothing():
    X, y = rows()
    grid = {"learning_rate": np.geomspace(0.01, 10, 40), "dtype": ["float32"], "scale": ["unit", "max"]}
    one, two = (RaceSearchCV(DualAveragingClassifier(), grid, cv=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_batches_get_smaller_where_memory_is_short(monkeypatch):
    X, y = rows(300)
    grid = {"learning_rate": np.geomspace(0.01, 10, 40)}
    roomy = RaceSearchCV(DualAveragingClassifier(), grid, cv=3).fit(X, y)
    monkeypatch.setattr(search_module, "machine_memory", lambda: 2 * D * 8 * 20)
    sizes = []
    fit_many = search_module.fit_many

    def watched(learners, *args, **named):
        sizes.append(len(learners))
        return fit_many(learners, *args, **named)

    monkeypatch.setattr(search_module, "fit_many", watched)
    short = RaceSearchCV(DualAveragingClassifier(), grid, cv=3).fit(X, y)
    assert sizes == [16, 16, 8] * 3
    assert np.array_equal(roomy.cv_results_["mean_test_score"], short.cv_results_["mean_test_score"])


# -- candidates without a lane


@pytest.mark.parametrize(
    "estimator, grid, alone, why",
    [
        (DualAveragingClassifier(), {**RATES, "dtype": ["float32", "float64"]}, 4, "lanes are float32, not float64"),
        (
            FtrlAucClassifier(),
            {**RATES, "means": ["lazy", "exact"]},
            4,
            "FtrlAuc cannot share a pass with these settings",
        ),
        (SpamClassifier(), RATES, 4, "Spam cannot share a pass: .*and 1 more"),
    ],
    ids=["float64", "exact means", "spam"],
)
def test_a_candidate_without_a_lane_is_fitted_by_itself_and_named(estimator, grid, alone, why, fits):
    X, y = rows()
    count = len(ParameterGrid(grid))
    with pytest.warns(UserWarning, match=f"of {count} candidates are fitted one by one, because .*{why}") as told:
        race = RaceSearchCV(estimator, grid, cv=3).fit(X, y)
    assert len(fits) == alone * 3 + 1
    assert len(told) == 1
    assert told[0].filename == __file__
    agree(race, GridSearchCV(estimator, grid, scoring="roc_auc", cv=3).fit(X, y))


@pytest.mark.parametrize("name", sorted(classifiers()))
def test_every_classifier_can_be_searched(name):
    X, y = rows(120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        race, _ = both(getattr(rarestream.sklearn, name)(), {"scale": ["unit", "max"]}, X, y)
    assert race.predict(X).shape == (120,)


def test_a_lane_that_overflows_does_not_stop_the_others(fits):
    X, y = rows(300)
    X = X * 1e10
    grid = {"learning_rate": [1e-12, 1e6], "l1": [0.0]}
    estimator = FtrlProximalClassifier(scale="none")
    with pytest.warns(FitFailedWarning):
        race = RaceSearchCV(estimator, grid, cv=3).fit(X, y)
    assert len(fits) == 1  # the refit
    assert np.isfinite(race.cv_results_["mean_test_score"]).tolist() == [True, False]
    with pytest.warns(FitFailedWarning):
        agree(race, GridSearchCV(estimator, grid, scoring="roc_auc", cv=3).fit(X, y))


# -- as an estimator


def test_without_refit_there_is_nothing_to_predict_with():
    X, y = rows(300)
    race, grid = both(DualAveragingClassifier(), RATES, X, y, refit=False)
    for name in ("best_estimator_", "refit_time_", "classes_", "predict", "decision_function"):
        assert not hasattr(race, name) and not hasattr(grid, name)
    with pytest.raises(AttributeError):
        race.predict(X)
    assert race.best_score_ == pytest.approx(grid.best_score_, abs=1e-4)


def test_refit_may_choose_the_best_itself():
    X, y = rows(300)
    race, _ = both(DualAveragingClassifier(), RATES, X, y, refit=lambda results: 2)
    assert race.best_index_ == 2
    assert race.best_estimator_.learning_rate == 0.5
    assert not hasattr(race, "best_score_")


def test_delegates_to_the_best_estimator():
    X, y = rows(300)
    race, grid = both(DualAveragingClassifier(), RATES, X, y)
    assert race.best_estimator_.model_.to_bytes() == grid.best_estimator_.model_.to_bytes()
    assert np.array_equal(race.predict(X), race.best_estimator_.predict(X))
    assert np.array_equal(race.decision_function(X), race.best_estimator_.decision_function(X))
    assert race.score(X, y) == pytest.approx(roc_auc_score(y, race.decision_function(X)))
    assert race.classes_.tolist() == [0, 1]
    assert race.n_features_in_ == D
    assert race.refit_time_ > 0


def test_is_cloned_set_and_pickled_as_any_estimator():
    X, y = rows(300)
    race = RaceSearchCV(DualAveragingClassifier(), RATES, cv=3, verbose=0)
    assert set(race.get_params(deep=False)) == {
        "estimator",
        "param_grid",
        "scoring",
        "cv",
        "refit",
        "n_jobs",
        "verbose",
        "error_score",
        "return_train_score",
    }
    twin = clone(race).set_params(estimator__l1=0.1, cv=2)
    assert twin.estimator.l1 == 0.1 and race.estimator.l1 == 0.0
    with pytest.raises(NotFittedError):
        race.predict(X)
    race.fit(X, y)
    again = pickle.loads(pickle.dumps(race))
    assert type(again) is RaceSearchCV and RaceSearchCV.__module__ == "rarestream.sklearn"
    assert np.array_equal(again.decision_function(X), race.decision_function(X))
    assert isinstance(race, GridSearchCV)


def test_a_search_in_a_pipeline():
    rng = np.random.default_rng(0)
    spam = rng.random(300) < 0.3
    texts = [
        " ".join(rng.choice(["prize", "word", "other"], 6, p=[0.3, 0.4, 0.3] if s else [0.1, 0.5, 0.4])) for s in spam
    ]
    pipeline = make_pipeline(HashingVectorizer(n_features=2**10), RaceSearchCV(DualAveragingClassifier(), RATES, cv=3))
    assert pipeline.fit(texts, spam).score(texts, spam) > 0.6


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_a_search_around_a_pipeline(scoring):
    rng = np.random.default_rng(0)
    spam = rng.random(300) < 0.3
    words = ["prize", "word", "other"]
    texts = [" ".join(rng.choice(words, 6, p=[0.3, 0.4, 0.3] if s else [0.1, 0.5, 0.4])) for s in spam]
    fits = []

    class Counting(HashingVectorizer):
        def fit_transform(self, X, y=None):
            fits.append(len(X))
            return super().fit_transform(X, y)

    steps = [("words", Counting(n_features=2**10)), ("learn", DualAveragingClassifier())]
    grid = {"learn__learning_rate": [0.05, 0.2, 1.0], "learn__l1": [0.0, 0.01], "words__binary": [False, True]}
    race = RaceSearchCV(Pipeline(steps), grid, cv=3, scoring=scoring)
    weights = rng.choice([1.0, 2.0], 300)
    race.fit(texts, spam, learn__sample_weight=weights)
    assert len(fits) == 2 * 3 + 1  # not 12 * 3 + 1
    search = GridSearchCV(Pipeline(steps), grid, cv=3, scoring=scoring)
    search.fit(texts, spam, learn__sample_weight=weights)
    assert race.cv_results_["params"] == search.cv_results_["params"]
    assert race.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=1e-4)
    assert race.predict_proba(texts).shape == (300, 2)
    alone = RaceSearchCV(make_pipeline(DualAveragingClassifier()), {"dualaveragingclassifier__l1": [0.0, 0.1]}, cv=2)
    assert alone.fit(*rows(100)).best_score_ > 0


def test_candidates_of_different_classes_weights_and_of_early_stopping():
    X, y = rows(300)
    grid = {"class_weight": [None, "balanced", {1: 5.0}], "pos_label": [None, 0], "learning_rate": [0.1, 0.5]}
    race = RaceSearchCV(DualAveragingClassifier(), grid, cv=3, scoring="neg_log_loss").fit(X, y)
    search = GridSearchCV(DualAveragingClassifier(), grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert race.cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=1e-4)
    with pytest.warns(UserWarning, match="with early_stopping or warm_start each has passes of its own"):
        RaceSearchCV(DualAveragingClassifier(early_stopping=True, max_passes=2), RATES, cv=2).fit(X, y)


# -- what is printed


def test_verbose_prints_a_line_for_every_batch_of_every_fold(capsys):
    X, y = rows(300)
    RaceSearchCV(DualAveragingClassifier(), RATES, cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
    grid = {"learning_rate": [0.1, 0.2, 0.3, 0.4], "scale": ["unit", "max"]}
    with pytest.warns(UserWarning, match="one by one"):
        RaceSearchCV(DualAveragingClassifier(), [grid, {"dtype": ["float64"]}], cv=3, verbose=1).fit(X, y)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "Fitting 3 folds for each of 9 candidates, in lanes of 4, 4, 1 one by one"
    assert len(lines) == 9
    assert lines[0].startswith("[1/9] fold 1 of 3, candidate 9: ")
    assert lines[-1].startswith("[9/9] fold 3 of 3, 4 candidates in lanes: ") and lines[-1].endswith(" s")


def test_a_terminal_shows_how_many_rows_are_done(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    X, y = rows(300)
    RaceSearchCV(DualAveragingClassifier(max_passes=2), RATES, cv=3, verbose=1).fit(X, y)
    out = capsys.readouterr().out
    assert "\r200 of 1,200 rows" in out and "\r1,200 of 1,200 rows" in out


# -- what is refused, and what fails


@pytest.mark.parametrize("estimator", [LogisticRegression(), make_pipeline(LogisticRegression())])
def test_needs_one_of_our_classifiers(estimator):
    X, y = rows(30)
    with pytest.raises(TypeError, match="must be a classifier of rarestream.sklearn, such as DualAveragingClassifier"):
        RaceSearchCV(estimator, {}).fit(X, y)


@pytest.mark.parametrize("grid", [[], {"learning_rate": []}])
def test_an_empty_grid_is_refused(grid):
    X, y = rows(30)
    with pytest.raises(ValueError, match="nothing to fit|non-empty"):
        RaceSearchCV(DualAveragingClassifier(), grid).fit(X, y)


def test_unknown_parameters_are_refused():
    X, y = rows(30)
    with pytest.raises(ValueError, match="Invalid parameter 'speed'"):
        RaceSearchCV(DualAveragingClassifier(), {"speed": [1]}).fit(X, y)


@pytest.mark.parametrize("scoring", [["roc_auc", "accuracy"], {"auc": "roc_auc"}, lambda clf, X, y: {"a": 1.0}])
def test_several_metrics_are_refused(scoring):
    X, y = rows(90)
    with pytest.raises(ValueError, match="one (metric|number).*use GridSearchCV"):
        RaceSearchCV(DualAveragingClassifier(), RATES, scoring=scoring, refit=False).fit(X, y)


@pytest.mark.parametrize(
    "wrong", [{"scoring": "speed"}, {"error_score": "ignore"}, {"n_jobs": 1.5}, {"cv": "many"}, {"refit": 3}]
)
def test_other_settings_are_checked_in_fit(wrong):
    X, y = rows(30)
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of RaceSearchCV"):
        RaceSearchCV(DualAveragingClassifier(), RATES, **wrong).fit(X, y)


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy"])
def test_a_training_fold_of_one_class_fails_as_in_grid_search(scoring):
    X, y = rows(90)
    y = np.sort(y)
    ones = np.flatnonzero(y)
    folds = [(ones[5:], np.arange(10)), (np.arange(80), np.arange(80, 90)), (np.arange(0, 90, 2), np.arange(1, 90, 2))]
    with pytest.warns(FitFailedWarning, match="(?s)4 of 12 fits failed; their scores are set to nan.*holds one class"):
        race = RaceSearchCV(DualAveragingClassifier(), RATES, scoring=scoring, cv=folds).fit(X, y)
    with pytest.warns(FitFailedWarning):
        grid = GridSearchCV(DualAveragingClassifier(), RATES, scoring=scoring, cv=folds).fit(X, y)
    agree(race, grid)
    assert np.isnan(race.cv_results_["split0_test_score"]).all()
    with pytest.raises(ValueError, match="two classes are needed"):
        RaceSearchCV(DualAveragingClassifier(), RATES, cv=folds, error_score="raise").fit(X, y)
    with pytest.warns(FitFailedWarning):
        zero = RaceSearchCV(DualAveragingClassifier(), RATES, cv=folds, error_score=0.0).fit(X, y)
    assert not zero.cv_results_["split0_test_score"].any()


def test_a_test_fold_of_one_class_is_scored_as_in_grid_search():
    X, y = rows(90)
    folds = [(np.arange(90), np.flatnonzero(y)), (np.arange(0, 90, 2), np.arange(1, 90, 2))]
    with pytest.warns(UndefinedMetricWarning):
        race = RaceSearchCV(DualAveragingClassifier(), RATES, cv=folds).fit(X, y)
    assert np.isnan(race.cv_results_["split0_test_score"]).all()
    assert np.isfinite(race.cv_results_["split1_test_score"]).all()


def test_a_candidate_that_breaks_a_rule_fails_alone():
    X, y = rows(300)
    grid = {"learning_rate": [-1.0, 0.1, 1.0]}
    with pytest.warns(FitFailedWarning, match="(?s)3 of 9 fits failed.*learning_rate must be > 0"):
        race = RaceSearchCV(DualAveragingClassifier(), grid, cv=3).fit(X, y)
    assert np.isfinite(race.cv_results_["mean_test_score"]).tolist() == [False, True, True]
    assert race.best_params_["learning_rate"] > 0


def test_if_all_fits_fail_the_error_says_why():
    X, y = rows(30)
    with pytest.raises(ValueError, match="(?s)all the 9 fits failed.*scale must be one of"):
        RaceSearchCV(DualAveragingClassifier(scale="huge"), {"l1": [0, 1, 2]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="(?s)all the 12 fits failed.*two classes|number of classes"):
        RaceSearchCV(DualAveragingClassifier(), RATES, cv=3).fit(X, np.zeros(30))


def test_a_scorer_that_fails_is_told_of():
    X, y = rows(90)

    def scorer(clf, X, y):
        if clf.learning_rate > 1:
            raise RuntimeError("no score today")
        return 0.5

    with pytest.warns(UserWarning, match="(?s)Scoring failed.*no score today"):
        race = RaceSearchCV(DualAveragingClassifier(), RATES, scoring=scorer, cv=3).fit(X, y)
    assert np.isfinite(race.cv_results_["mean_test_score"]).tolist() == [True, True, True, False]
    with pytest.raises(RuntimeError, match="no score today"):
        RaceSearchCV(DualAveragingClassifier(), RATES, scoring=scorer, cv=3, error_score="raise").fit(X, y)


def test_callbacks_are_refused_rather_than_forgotten():
    with pytest.raises(NotImplementedError, match="callbacks"):
        RaceSearchCV(DualAveragingClassifier(), RATES).set_callbacks()
