"""The code of the page on clients runs against a service of the test, and the unit for systemd is valid."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests import children
from tests.client.services import Served
from tests.test_docs import HOME, blocks

pytest.importorskip("msgspec")
pytest.importorskip("starlette")

PAGE = HOME / "docs" / "client.md"
UNIT = HOME / "examples" / "rarestream.service"


def test_the_code_of_the_page_runs(tmp_path, capsys):
    served = Served(tmp_path)
    served.client().close()
    namespace: dict[str, object] = {"__name__": PAGE.stem}
    asked = 0
    for number, (language, code) in enumerate(blocks(PAGE), 1):
        code = code.replace("localhost:8080", f"127.0.0.1:{served.port}")
        if language == "python":
            exec(compile(code, f"{PAGE.name}, block {number}", "exec"), namespace)
        elif shutil.which("curl"):
            for line in code.splitlines():
                if line.startswith("curl "):
                    answer = json.loads(children.run(line, shell=True, check=True).stdout)
                    assert "error" not in answer, line
                    asked += 1
    assert asked == (4 if shutil.which("curl") else 0)
    assert "2000" in capsys.readouterr().out.splitlines()
    served.kill()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_valid(tmp_path):
    text = UNIT.read_text("utf-8")
    assert "/opt/rarestream/bin/rarestream serve " in text
    # The program must be there for the check.
    (tmp_path / UNIT.name).write_text(text.replace("/opt/rarestream/bin/rarestream", sys.executable))
    ended = children.run(["systemd-analyze", "verify", tmp_path / UNIT.name])
    assert (ended.returncode, ended.stderr) == (0, "")
