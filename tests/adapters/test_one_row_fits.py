"""partial_fit and decision_function of one row at a time: as of many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from rarestream import DataError
from rarestream.sklearn import DualAveragingClassifier
from tests.strategies import random_block


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_rows_alone_are_learned_and_scored_as_many_are(kind):
    block = random_block(120, 40, 5, seed=2)
    X, y = kind(block.to_csr(40)), np.where(block.labels > 0, "spam", "ham")
    whole, singly = DualAveragingClassifier(), DualAveragingClassifier()
    whole.partial_fit(X, y, classes=["ham", "spam"])
    for i in range(len(y)):
        singly.partial_fit(X[[i]], y[[i]], classes=["ham", "spam"] if i == 0 else None)
    assert whole.model_.to_bytes() == singly.model_.to_bytes()
    assert np.array_equal(whole.decision_function(X), [singly.decision_function(X[[i]])[0] for i in range(len(y))])
    assert np.array_equal(whole.predict(X), [singly.predict(X[[i]])[0] for i in range(len(y))])


def test_a_row_alone_that_is_no_row_is_refused_as_ever():
    model = DualAveragingClassifier().fit(csr_array(np.eye(4)), [0, 1, 0, 1])
    row = csr_array(np.array([[0.0, 2.0, 0.0, 1.0]]))
    for _ in range(3):
        model.partial_fit(row, [1])
        assert len(model.decision_function(row)) == 1
    before = model.model_.to_bytes()
    row.data[0] = np.nan
    with pytest.raises(ValueError, match="nan"):
        model.partial_fit(row, [1])
    row.data[0] = 2.0
    row.indices[1] = 9
    with pytest.raises(DataError, match="a row has feature index 9, but the matrix says it has 4 columns"):
        model.partial_fit(row, [1])
    with pytest.raises(DataError, match="feature index 9"):
        model.decision_function(row)
    assert model.model_.to_bytes() == before
