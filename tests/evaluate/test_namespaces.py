"""The share of each namespace in the scores of a model, and its weights by name."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, DataError, Hashed, Model
from rarestream.evaluate.namespaces import changed_weights, largest_weights, namespace_shares
from rarestream.learners import make_learner


def rows(count: int = 600) -> tuple[list[dict[str, object]], list[int]]:
    draw = np.random.default_rng(7)
    found, labels = [], []
    for _ in range(count):
        site = int(draw.integers(0, 12))
        found.append({"site": f"s{site}", "ad": f"a{draw.integers(0, 4)}", "price": float(draw.random() * 9)})
        labels.append(1 if draw.random() < (0.6 if site < 3 else 0.05) else -1)
    return found, labels


@pytest.fixture(scope="module")
def trained() -> tuple[Model, Block]:
    block = Block.of_dicts(*rows())
    model = Model(make_learner("dual-logistic"))
    model.learn(block)
    return model, block


@pytest.mark.parametrize("scale", ["unit", "max", "none"])
def test_contributions_sum_to_the_scores_and_are_those_of_explain(scale):
    block = Block.of_dicts(*rows(100))
    model = Model(make_learner("dual-logistic"), scale=scale)
    model.learn(block)
    added = model.contributions(block)
    assert np.add.reduceat(added, block.indptr[:-1]) == pytest.approx(model.score(block), rel=1e-5)
    row = model.explain(block)[3]
    here = added[block.indptr[3] : block.indptr[4]]
    assert sorted(here, key=abs, reverse=True) == [term.contribution for term in row.terms]


def test_contributions_of_other_features_are_refused(trained):
    model, _ = trained
    with pytest.raises(DataError, match="column numbers"):
        model.contributions(Block.of(np.ones((2, 3))))


def test_shares_on_rows_are_those_of_the_variances(trained):
    model, block = trained
    shares = {share.namespace: share for share in namespace_shares(model, [block[:250], block[250:]])}
    assert set(shares) == {"site", "ad", "price"}
    added = model.contributions(block)
    names = model.features.names.names(block.indices)
    row_of = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    variances = {}
    for namespace in shares:
        mine = np.array([name.startswith(f"{namespace}^") for name in names])
        variances[namespace] = np.bincount(row_of[mine], added[mine], len(block)).var()
    for namespace, share in shares.items():
        assert share.share == pytest.approx(variances[namespace] / sum(variances.values()))
    assert shares["site"].share > 0.5


def test_shares_without_rows_are_those_of_the_squared_weights(trained):
    model, _ = trained
    living = np.flatnonzero(model.coef).astype(np.int32)
    names = model.features.names.names(living)
    shares = namespace_shares(model)
    assert [share.share for share in shares] == sorted((share.share for share in shares), reverse=True)
    for share in shares:
        mine = [slot for slot, name in zip(living, names, strict=True) if name.startswith(f"{share.namespace}^")]
        assert share.weights == len(mine)
        assert share.share == pytest.approx(
            np.square(model.coef[mine], dtype=float).sum() / np.square(model.coef, dtype=float).sum()
        )


def test_features_without_names_are_one_namespace():
    block = Block.of_dicts(*rows(100), features=Hashed(names=False))
    model = Model(make_learner("dual-logistic"))
    model.learn(block)
    assert [share.namespace for share in namespace_shares(model)] == [None]


def test_column_numbers_have_no_namespaces():
    model = Model(make_learner("dual-logistic"))
    model.learn(Block.of(np.eye(4), [1, -1, 1, -1]))
    assert namespace_shares(model) == []
    with pytest.raises(DataError, match="have no namespaces"):
        largest_weights(model, 3, "site")


def test_weights_by_namespace(trained):
    model, _ = trained
    found = largest_weights(model, 5, "ad")
    assert all(name.startswith("ad = ") for name in model.feature_names([weight.feature for weight in found]))
    assert [abs(weight.weight) for weight in found] == sorted((abs(weight.weight) for weight in found), reverse=True)
    with pytest.raises(DataError, match="there are 'ad', 'price', 'site'"):
        largest_weights(model, 5, "page")


def test_models_of_other_features_are_not_compared(trained):
    model, block = trained
    assert changed_weights(model, model, 5) == []
    other = Model(make_learner("dual-logistic"))
    other.learn(Block.of_dicts(*rows(50), features=Hashed(18)))
    with pytest.raises(DataError, match="22 bits, the other hashed features with 18 bits"):
        changed_weights(model, other, 5)
    short = Model(make_learner("dual-logistic"))
    short.learn(block[:100])
    for weight in changed_weights(model, short, 5):
        assert weight.weight == model.coef[weight.feature] and weight.other == short.coef[weight.feature]
