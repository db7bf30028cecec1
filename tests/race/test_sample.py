"""The sample that settings are compared on: even, each class apart, never too large."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream.race.sample import Sample
from tests.strategies import examples


def filled(labels, room, cuts=()):
    """A sample of rows whose only score is their number."""
    sample = Sample(1, room)
    numbers = np.arange(len(labels), dtype=np.float32)[:, np.newaxis]
    for start, stop in zip([0, *cuts], [*cuts, len(labels)], strict=True):
        sample.add(start, labels[start:stop], numbers[start:stop], None)
    return sample


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from([-1, 1, -1, -1]), max_size=300), st.sampled_from([2, 4, 8, 64]), st.data())
def test_every_so_many_th_row_of_a_class_is_kept_wherever_blocks_are_cut(drawn, room, data):
    labels = np.array(drawn, np.int8)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(labels)), max_size=4)))
    whole, cut = filled(labels, room).since(0), filled(labels, room, cuts).since(0)
    np.testing.assert_array_equal(whole.scores, cut.scores)
    for label in (-1, 1):
        rows = np.flatnonzero(labels == label)
        kept = whole.scores[whole.labels == label, 0].astype(int)
        every = 1
        while len(rows[::every]) >= room:
            every *= 2
        np.testing.assert_array_equal(kept, rows[::every])


def test_rows_before_a_number_are_left_out():
    labels = np.array([1, -1] * 50, np.int8)
    found = filled(labels, 64).since(40)
    assert sorted(found.scores[:, 0]) == list(range(40, 100))
    assert found.fewest == 30
    assert not filled(labels, 64).thinned
    assert filled(labels, 50).thinned


def test_importances_stay_with_their_rows_and_rows_of_none_are_left_out():
    sample = Sample(1, 8)
    sample.add(0, np.array([1, -1, 1], np.int8), np.zeros((3, 1), np.float32), np.array([2.0, 0.0, 0.5]))
    sample.add(3, np.array([-1], np.int8), np.zeros((1, 1), np.float32), None)
    found = sample.since(0)
    assert found.labels.tolist() == [-1, 1, 1]
    assert found.importances is not None
    assert found.importances.tolist() == [1.0, 2.0, 0.5]
