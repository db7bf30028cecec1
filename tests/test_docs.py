"""Every ```python block of README.md and docs/ runs, and so does every `rarestream` line of their ```sh blocks.

The blocks of a page run in order, in one namespace, in an empty folder in which each data file that the page names is
there, with a few hundred rows to learn. Pages that need a session of Spark run in tests/spark/test_pages.py, those
that need brokers in tests/readers/live/test_pages.py, the one that needs a service in tests/client/test_pages.py, and
the tutorials, which make their own data, in tests/test_tutorials.py.
"""

from __future__ import annotations

import ast
import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import zstandard

import rarestream
from rarestream.learners import learner_classes
from tests import children

HOME = Path(__file__).parent.parent
PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
TUTORIALS = sorted(page for page in PAGES if page.parent.name == "tutorials" and page.stem != "index")
WITH_SPARK = ("spark",)
WITH_BROKERS = ("live-brokers",)
WITH_SERVICE = ("client",)
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATA_FILE = re.compile(r"[\w/-]+\.(?:svm|csv|jsonl|parquet|vw)(?:\.(?:gz|bz2|xz|zst))?\b")
COMPRESSED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def name(page: Path) -> str:
    return page.stem


def blocks(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text("utf-8"))


def rows(seed: int, count: int = 400, features: int = 200) -> bytes:
    """svmlight rows with a signal: which features a row has says something of its label."""
    truth = np.random.default_rng(0).normal(size=features)
    generator = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        columns = np.sort(generator.choice(features, 12, replace=False))
        label = 1 if truth[columns].sum() + generator.normal() > 2 else -1
        lines.append(f"{label} " + " ".join(f"{column + 1}:1" for column in columns))
    return "\n".join([*lines, ""]).encode()


def clicks(seed: int, count: int = 400) -> list[dict[str, object]]:
    """Rows of a table with a signal, one column of each kind."""
    generator = np.random.default_rng(seed)
    found: list[dict[str, object]] = []
    for number in range(count):
        site, age = int(generator.integers(8)), int(generator.integers(18, 80))
        price = round(float(generator.lognormal(2)), 2)
        clicked = int(generator.random() < (0.6 if site < 2 else 0.1))
        when = f"2026-01-{1 + number % 28:02}T{number % 24:02}:00"
        device, title = ("ios", "android", "web")[site % 3], f"offer {site} of the day"
        found.append({"clicked": clicked, "site": f"s{site}.com", "device": device, "age": age, "price": price})
        found[-1] |= {"when": when, "title": title, "weight": 1.5, "id": f"r{number}"}
    return found


def table(suffix: str, seed: int) -> bytes:
    """The rows of `clicks` in a format."""
    rows = clicks(seed)
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix == ".vw":
        lines = [
            f"{row['clicked']} |site {row['site']} |device {row['device']} |price p:{row['price']}" for row in rows
        ]
        return "\n".join([*lines, ""]).encode()
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        out = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out)
        return out.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def put_data(named: str) -> None:
    for seed, name in enumerate(sorted(set(DATA_FILE.findall(named)))):
        path = Path(name)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        compress = COMPRESSED.get(path.suffix, bytes)
        suffix = (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix
        path.write_bytes(compress(rows(seed) if suffix == ".svm" else table(suffix, seed)))


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if blocks(page) and page not in TUTORIALS and name(page) not in WITH_SPARK + WITH_BROKERS + WITH_SERVICE
    ],
    ids=name,
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page(page, tmp_path, monkeypatch)


def run_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    put_data("\n".join(code for _, code in blocks(page)))
    namespace: dict[str, object] = {"__name__": page.stem}
    for number, (language, code) in enumerate(blocks(page), 1):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)
        else:
            for line in code.splitlines():
                if line.startswith("rarestream "):
                    ended = children.run(line, shell=True)
                    assert ended.returncode == 0, f"{page.name}: {line}\n{ended.stderr}"


def test_the_reference_has_every_public_name():
    reference = (HOME / "docs" / "reference.md").read_text("utf-8")
    assert ".. learners" in reference  # which the site fills from the registry
    public = set(rarestream.__all__) - {"__version__"} - {cls.__name__ for cls in learner_classes()}
    assert {name for name in public if not re.search(rf"::\s+rarestream\.{name}\b", reference)} == set()


@pytest.mark.parametrize("cls", learner_classes(), ids=lambda cls: cls.__name__)
def test_every_learner_has_a_page(cls):
    module = cls.__module__.rpartition(".")[2]
    page = (HOME / "docs" / "learners" / f"{module.replace('_', '-')}.md").read_text("utf-8")
    assert "<!-- facts of the learner -->" in page  # which the site fills from `about`
    assert f"rarestream.learners.{module}" in page  # its maths
    assert f"rarestream.{cls.__name__}" in page
    assert all(cls.about)


def test_the_diagram_of_the_architecture_shows_the_layers_that_are_checked():
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    layers = [re.findall(r"rarestream\.(\w+)", layer) for layer in contract["layers"]]
    diagram = (HOME / "docs" / "architecture.svg").read_text("utf-8")
    shown = re.findall(r'<g class="layer">(.*?)</g>', diagram, re.DOTALL)
    assert [re.findall(r'class="name">(\w+)<', layer) for layer in shown] == layers


@pytest.mark.parametrize("page", [page for page in PAGES if "{literalinclude}" in page.read_text("utf-8")], ids=name)
def test_the_source_that_a_page_includes_is_there(page: Path):
    for path, options in INCLUDE.findall(page.read_text("utf-8")):
        source = (page.parent / path).read_text("utf-8")
        for option, text in re.findall(r"^:([\w-]+): (.*)$", options, re.MULTILINE):
            if option == "pyobject":
                assert text in defined_names(source), f"{path} has no {text}"
            elif option in ("start-at", "start-after", "end-at", "end-before"):
                assert text.strip('"') in source, f"{path} has no line with {text}"


def defined_names(source: str) -> set[str]:
    """Functions and classes of a module, and the methods of its classes."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found
