"""A few kills; `make crash-test` has two hundred."""

from __future__ import annotations

import random
import shutil
import sys

import pytest

from tests.serve_kills.rounds import run_model

pytest.importorskip("uvicorn")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for processes")
@pytest.mark.parametrize(("name", "kills"), [("named", 4), ("racing", 4)])
def test_nothing_acknowledged_is_lost_though_the_service_is_killed(name, kills, tmp_path):
    found = run_model(name, random.Random(f"1 {name}"), tmp_path, kills)
    assert found.wrong == [] and found.kills == kills
    shutil.rmtree(tmp_path)
