"""The pictures of generated streams are drawn, of a few rows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "datasets_pictures.py"


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("datasets_pictures", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "rows"), [("share", 8000), ("drift", 2 * 8192), ("noise", 1000), ("delays", 1000)])
def test_a_picture_is_drawn(pictures, tmp_path, name, rows):
    path = tmp_path / f"{name}.svg"
    figure = getattr(pictures, name)(rows)
    figure.savefig(path)
    assert all(axes.get_xlabel() for axes in figure.axes)
    assert path.stat().st_size > 5000
