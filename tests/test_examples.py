"""Each program in examples/ that draws a picture runs and draws it, and the gallery shows all of them.

Those that need more than the package, such as a broker, have tests of their own.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import pytest

from tests import children

HOME = Path(__file__).parent.parent
GALLERY = HOME / "docs" / "gallery"
ELSEWHERE = ("kafka_loop",)  # tests/client/test_kafka_loop.py
EXAMPLES = [path for path in sorted((HOME / "examples").glob("*.py")) if path.stem not in ELSEWHERE]


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_draws_its_picture(path: Path, tmp_path: Path):
    picture = tmp_path / "picture.png"
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "error::RuntimeWarning"}
    ended = children.run([sys.executable, path, picture], env=environment, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_is_short_and_uses_public_names_only(path: Path):
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree)
    assert 20 <= len(source.splitlines()) <= 60
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [one for one in (*names, *".".join(modules).split(".")) if one.startswith("_")] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_the_gallery_shows_an_example(path: Path):
    assert f"({path.stem}.svg)" in (GALLERY / "index.md").read_text("utf-8")
    page = (GALLERY / f"{path.stem}.md").read_text("utf-8")
    assert f"```{{literalinclude}} ../../examples/{path.name}\n" in page
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))) in page  # else: python docs/gallery/make.py
    picture = GALLERY / f"{path.stem}.svg"
    assert 0 < picture.stat().st_size <= 60_000
    assert "<svg" in picture.read_text("utf-8")


def test_the_gallery_shows_nothing_else():
    shown = re.findall(r"\]\((\w+)\.md\)", (GALLERY / "index.md").read_text("utf-8"))
    assert sorted(shown) == [path.stem for path in EXAMPLES]
    assert sorted(path.stem for path in GALLERY.glob("*.svg")) == [path.stem for path in EXAMPLES]
