"""A few kills of each source; `make kill-test` has a hundred."""

from __future__ import annotations

import random
import shutil

import pytest

from tests.live_kills.rounds import SOURCES, run_source
from tests.readers.live.brokers import require_redis


@pytest.mark.parametrize("name", SOURCES)
def test_every_row_is_learned_once_though_the_program_is_killed(name, tmp_path):
    if name == "redis":
        require_redis()
    if name.startswith("kafka"):
        pytest.importorskip("confluent_kafka")
    found = run_source(name, random.Random(f"1 {name}"), tmp_path, 3)
    assert found.wrong == [] and found.kills == 3
    shutil.rmtree(tmp_path)
