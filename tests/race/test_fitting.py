"""Many settings over the same rows: a model or the reason for each."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, DataError, DualAveraging, FtrlAuc, FtrlProximal, Model, Opauc, Rda, Spam
from rarestream.errors import RowError
from rarestream.race.fitting import ManyFits, fit_many
from tests.strategies import block_of, random_block

ROWS = random_block(900, 60, 6, seed=3)
SETTINGS = [FtrlAuc(learning_rate=0.5), Spam(), DualAveraging(), FtrlProximal(l1=0.1), Rda()]


def pieces(_: int) -> list[Block]:
    return [ROWS[:200], ROWS[200:201], ROWS[201:]]


@pytest.mark.parametrize("scale", ["unit", "max"])
def test_each_setting_learns_what_a_model_of_its_own_would(scale):
    seen = []
    fits, seconds = fit_many(SETTINGS, pieces, scale=scale, n_features=60, watch=lambda *one: seen.append(one))
    assert seconds >= 0 and not fits.errors
    scores = fits.score(ROWS)
    for number, learner in enumerate(SETTINGS):
        alone = Model(learner, scale=scale)
        before = alone.learn(ROWS)
        assert np.allclose(np.concatenate([found[:, number] for _, found, _ in seen]), before, atol=1e-4)
        assert np.allclose(fits.model(number, 60).coef, alone.coef, atol=1e-4)
        assert np.allclose(scores[:, number], alone.score(ROWS), atol=1e-4)


def test_where_blocks_are_cut_does_not_matter():
    one, _ = fit_many(SETTINGS, pieces, n_features=60)
    other, _ = fit_many(SETTINGS, lambda _: [ROWS], n_features=60)
    for number in range(len(SETTINGS)):
        assert np.array_equal(one.model(number, 60).coef, other.model(number, 60).coef)


def test_passes_come_in_their_order():
    asked = []
    fits, _ = fit_many([DualAveraging()], lambda number: asked.append(number) or [ROWS], n_features=60, passes=3)
    assert asked == [0, 1, 2]
    alone = Model(DualAveraging())
    for number in range(3):
        alone.learn(ROWS, again=number > 0)
    assert np.allclose(fits.model(0, 60).coef, alone.coef, atol=1e-4)


def test_a_setting_that_overflows_drops_out_with_its_reason_and_changes_nothing_for_the_others():
    """Rows at 1e10 are too large for long steps, not for short ones."""
    large = Block.of((ROWS.indptr, ROWS.indices, ROWS.values * np.float32(1e10)), ROWS.labels)
    short, far = [FtrlProximal(learning_rate=rate) for rate in (1e-12, 3e-12)], FtrlProximal(learning_rate=1e6)
    fits, _ = fit_many([short[0], far, short[1]], lambda _: [large[:400], large[400:]], scale="none", n_features=60)
    assert list(fits.errors) == [1] and fits.left == [0, 2]
    with pytest.raises(RowError, match="overflows float32 with scale='none'"):
        fits.model(1, 60)
    assert np.isnan(fits.score(large)[:, 1]).all()
    without, _ = fit_many(short, lambda _: [large], scale="none", n_features=60)
    for number, same in ((0, 0), (2, 1)):
        assert np.array_equal(fits.model(number, 60).coef, without.model(same, 60).coef)


def test_a_reason_is_what_the_setting_says_itself():
    wide = block_of([{0: 1.0, 6000: 1.0}, {1: 1.0}], [1, -1])
    fits = ManyFits([Opauc(rank=0), DualAveraging()])
    fits.reserve(wide.width)
    scores = fits.learn(wide)
    assert np.isnan(scores[:, 0]).all() and np.isfinite(scores[:, 1]).all()
    with pytest.raises(DataError, match="rank=0 stores all pairs of at most 5,000 features"):
        fits.model(0, wide.width)


def test_nothing_is_learned_once_every_setting_has_dropped_out():
    far = Spam(learning_rate=1e30)
    seen = []
    fits, _ = fit_many([far], pieces, n_features=60, watch=lambda *one: seen.append(one))
    assert fits.left == [] and len(seen) == 1
    assert "grown beyond float32" in str(fits.errors[0])


def test_threads_change_no_bit():
    learners = [DualAveraging(learning_rate=rate) for rate in np.linspace(0.05, 2, 40)]
    found = []
    for threads in (1, 2):
        fits = ManyFits(learners, threads=threads)
        fits.reserve(60)
        found.append(fits.learn(ROWS))
        fits.close()
    assert np.array_equal(*found)
