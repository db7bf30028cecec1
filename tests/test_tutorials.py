"""The tutorials in docs/tutorials run as a reader follows them, from top to bottom in an empty folder, and print what they show.

The blocks of a page run in order: ```python in one namespace, of ```sh the lines that begin with a command of COMMANDS. A
```text block is what the block before it prints. Its words must be those that are printed; numbers may differ, as times and
versions of other packages do. A service that a page starts runs on a free port until the page starts it again, or ends.
The page on Spark runs in tests/spark/test_pages.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import children
from tests.export.scorers import node
from tests.readers.live.brokers import free_port
from tests.test_docs import TUTORIALS, WITH_SPARK, name

COMMANDS = ("rarestream ", "curl ", "node ", "head ")
FENCE = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Runs the blocks of a page in the current folder."""

    def __init__(self, page: Path) -> None:
        self.page, self.port = page, free_port()
        self.namespace: dict[str, object] = {"__name__": page.stem}
        self.service: children.Child | None = None

    def run(self, language: str, code: str) -> str:
        """Run a block and return what it prints, under the port that the page names."""
        here = code.replace("localhost:8080", f"127.0.0.1:{self.port}")
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(here, f"{self.page.name}: {code.splitlines()[0]}", "exec"), self.namespace)
            return printed.getvalue()
        lines = [line for line in here.splitlines() if line.startswith(COMMANDS)]
        found = "".join(self.command(line) for line in lines)
        return found.replace(f"127.0.0.1:{self.port}", "127.0.0.1:8080")

    def command(self, line: str) -> str:
        if line.startswith("rarestream serve "):
            self.stop()
            self.service = children.Child(f"exec {line} --port {self.port}", shell=True, stderr=subprocess.STDOUT)
            for said in self.service.lines():
                if "serves on" in said:
                    return self.service.seen
            raise AssertionError(f"{line}\n{self.service.seen}")
        if line.startswith("node "):
            line = f"{node()} {line.removeprefix('node ')}"
        ended = children.run(line, shell=True, stderr=subprocess.STDOUT)
        assert ended.returncode == 0, f"{self.page.name}: {line}\n{ended.stdout}"
        return ended.stdout if ended.stdout.endswith("\n") else ended.stdout + "\n"

    def stop(self) -> None:
        """What Ctrl-C does."""
        if self.service is not None:
            self.service.send_signal(signal.SIGINT)
            self.service.communicate()
            self.service = None


def words(text: str) -> list[str]:
    """What a text says but for its numbers, units of time and speed, and lines of tables."""
    text = re.sub(r"[-+]?\d[\d.,]*(e-?\d+)?( ?(ms|s|us|min))?\b", "#", text)
    text = re.sub(r"# [kM] rows/s", "# rows/s", text)
    return re.sub(r"[-=+]{3,}", " ", text).split()


@pytest.mark.parametrize("page", [page for page in TUTORIALS if name(page) not in WITH_SPARK], ids=name)
def test_a_tutorial_runs_and_prints_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if "\ncurl " in page.read_text("utf-8") and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    reader, printed = Reader(page), ""
    for language, text in FENCE.findall(page.read_text("utf-8")):
        if language == "text":
            assert words(text) == words(printed), f"{page.name} shows\n{text}\nand this is printed:\n{printed}"
        else:
            printed = reader.run(language, text)
    reader.stop()


def test_the_index_lists_every_tutorial():
    index = (TUTORIALS[0].parent / "index.md").read_text("utf-8")
    assert [page.stem for page in TUTORIALS if f"({page.name})" not in index] == []
