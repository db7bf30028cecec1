"""A few seconds of what `make soak` does for ten minutes: too few to judge memory by."""

from __future__ import annotations

import random
import sys

import pytest

from tests.soak.__main__ import told
from tests.soak.soaking import soak

pytest.importorskip("uvicorn")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for memory")
def test_a_service_at_full_load_answers_everything_and_does_not_swell(tmp_path):
    found = soak(tmp_path, 10, random.Random(1), say=print)
    assert found.wrong == []
    assert min(found.requests, found.rows_learned, found.rows_scored, found.labels, found.messages) > 0
    assert found.growth < 0.5, told(found)
