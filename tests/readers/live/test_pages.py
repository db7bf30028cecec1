"""The code of the page on brokers runs, with brokers of the test in place of those of the page."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import rarestream
from tests import children
from tests.test_docs import HOME, blocks

pytest.importorskip("confluent_kafka")
pytest.importorskip("redis")

pytest_plugins = ["tests.readers.live.broker_fixtures"]
PAGE = HOME / "docs" / "live-brokers.md"


def test_the_code_of_the_page_runs(kafka, redis_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    redis_server.client().flushall()
    kafka.tell("create", "clicks", 4)

    def here(code: str) -> str:
        code = code.replace("localhost:9092", kafka.host).replace("localhost:6379", f"localhost:{redis_server.port}")
        return code.replace("port=6379", f"port={redis_server.port}").replace("idle=60.0", "idle=1.0")

    namespace: dict[str, object] = {"__name__": PAGE.stem}
    commands = []
    for number, (language, code) in enumerate(blocks(PAGE), 1):
        if language == "python":
            exec(compile(here(code), f"{PAGE.name}, block {number}", "exec"), namespace)
        else:  # they follow what the other blocks write
            commands += [line for line in here(code).splitlines() if line.startswith("rarestream ")]
    assert namespace["model"].rows == 2000  # type: ignore[attr-defined]
    assert len(commands) == 2
    for command in commands:
        ended = children.run(f"{command} --stop-after 1s", shell=True)
        assert ended.returncode == 0, f"{command}\n{ended.stderr}"
    # The first one continues with the model of the page, and finds no new row.
    found = [rarestream.Model.load(name).rows for name in ("clicks.rare", "others.rare")]
    assert found == [2000, 2000]
