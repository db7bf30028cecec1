"""scikit-learn's own checks of every classifier, in its default and in other settings, of the transformer and of the search."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rarestream.adapters.sklearn import classifiers
from rarestream.sklearn import (
    DualAveragingClassifier,
    FeatureSpace,
    FtrlAucClassifier,
    FtrlProximalClassifier,
    RaceSearchCV,
)

# SPAUC's first steps have length 2: too long for these checks' few rows of two dense features, unless mu shortens them soon.
OTHERWISE = {"SpaucClassifier": {"mu": 0.1}}
CLASSIFIERS = [
    *(cls(**OTHERWISE.get(name, {})) for name, cls in classifiers().items()),
    DualAveragingClassifier(loss="logistic"),
    FtrlAucClassifier(scale="max", dtype="float64"),
    FtrlProximalClassifier(scale="none", intercept=False, l1=0.01),
    DualAveragingClassifier(max_passes=3, shuffle=True, random_state=0),
    DualAveragingClassifier(features=FeatureSpace(bits=12)),
]

# These checks fit the rows shuffled, with weights, against the rows in order, repeated. Weight 0 being absence holds to
# the bit (test_sklearn.py); the rest cannot, for two reasons: a one-pass learner depends on the order of the rows, and
# a row of weight 2 takes its two steps from one score, as all learners here define it, not from two.
ORDER = "a one-pass learner depends on the order of rows, and learns a row of weight 2 at one score"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}
WEIGHTS = "rows of weight 1000 make steps of OPAUC 1000 times as long: it refuses them"


def expected(estimator):
    if type(estimator).__name__ == "OpaucClassifier":
        return {**EXPECTED, "check_class_weight_classifiers": WEIGHTS}
    return EXPECTED


TRANSFORMERS = [FeatureSpace(bits=12), FeatureSpace(bits=8, names=False, numbers="raw")]
SEARCHES = [
    RaceSearchCV(DualAveragingClassifier(), {"learning_rate": [0.1, 1.0]}, cv=2),
    RaceSearchCV(FtrlProximalClassifier(), {"l1": [0.0, 0.1]}, scoring=None, cv=2),
]


@parametrize_with_checks([*CLASSIFIERS, *TRANSFORMERS, *SEARCHES], expected_failed_checks=expected)
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
