"""The commands of docs/serve.md, typed as they are there, against a service that runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.children import run
from tests.serve.programs import serving

PAGE = Path(__file__).parent.parent.parent / "docs" / "serve.md"
TYPED = re.compile(r"^\$ (.*)$", re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    train, serve, *commands = TYPED.findall(PAGE.read_text("utf-8"))
    assert train.startswith("rarestream train ") and serve.startswith("rarestream serve ")
    run(train, shell=True, check=True)
    said = []
    with serving(*serve.split()[2:]) as program:
        for command in commands:
            typed = command.replace("127.0.0.1:8080", f"127.0.0.1:{program.port}")
            done = run(typed.replace("curl ", "curl -sS --fail-with-body ", 1), shell=True, check=True)
            if command.startswith("curl"):
                said.append(json.loads(done.stdout) if done.stdout else None)
            else:
                said.append(done.stdout)
    assert len(said[0]["scores"]) == 1 and len(said[1]["scores"]) == 2 and said[2]["learned"] == 1
    assert said[3]["stored"] == 1 and said[4]["learned"] == 1
    assert (tmp_path / "today.rare").exists()
    assert len(said[-1].split()) == 2  # lines of standard input
