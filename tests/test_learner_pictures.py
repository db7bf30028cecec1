"""Each page of a learner has a picture, and it is the one that docs/learners/pictures.py draws."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "learners"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learner_pictures", FOLDER / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a NamedTuple of the module looks up its types
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_when_to_use_the_learner_and_shows_a_small_picture(page: str, pictures: ModuleType):
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    assert "## When to use it" in text
    assert f"]({page}.svg)" in text
    picture = FOLDER / f"{page}.svg"
    assert picture.stat().st_size <= 40_000
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    assert root.find("{http://www.w3.org/2000/svg}rect").get("fill") == "#ffffff"  # the same on light and dark pages
    assert page in pictures.PAGES


@pytest.mark.parametrize("page", ["dual-averaging", "rda"])
def test_the_same_version_draws_the_same_picture(page: str, pictures: ModuleType):
    _, svg = pictures.picture(page)
    assert svg == (FOLDER / f"{page}.svg").read_text("utf-8")
