"""How many days rows cover, by their times."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, DataError
from rarestream.evaluate import days_covered


def rows(*times: object) -> Block:
    return Block.of(np.eye(len(times)), tags=np.array(times))


@pytest.mark.parametrize(
    "times, days",
    [
        (("2026-01-31T06:00", "2026-02-01T18:00"), 1.5),
        (("2026-01-31", "2026-01-01"), 31),  # dates only: the last day counts
        (("20260131", "20260101"), 31),
        (("2026-01-31T00:00Z", "2026-02-01T00:00:00+01:00"), 23 / 24),
        ((1_700_000_000, 1_700_043_200), 0.5),
        (("1700000000.5", "1700086400.5"), 1),
        (("2026-01-31",), 1),
    ],
)
def test_days_are_from_the_first_to_the_last(times, days):
    assert days_covered([rows(*times)], "when") == pytest.approx(days)
    assert days_covered([rows(time) for time in times], "when") == pytest.approx(days)


@pytest.mark.parametrize(
    "times, said",
    [
        (("2026-01-31", "soon"), "when: row 2 has 'soon'; times are ISO dates"),
        (("2026-01-31", ""), "when: row 2 has ''"),
        ((1.7e12, 1.8e12), "when: row 1 has '1700000000000.0'"),
        (("nan", "1"), "when: row 1 has 'nan'"),
        (("2026-01-31T06:00", "2026-01-31T06:00"), "when: all rows have the same time"),
    ],
)
def test_what_is_no_time_is_an_error(times, said):
    with pytest.raises(DataError, match=said):
        days_covered([rows(*times)], "when")


def test_rows_without_tags_and_no_rows_are_errors():
    with pytest.raises(DataError, match="when: row 2 has no time"):
        days_covered([rows("2026-01-31"), Block.of(np.eye(1))], "when")
    with pytest.raises(DataError, match="when: there are no rows"):
        days_covered([], "when")
