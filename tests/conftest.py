"""RARESTREAM_NATIVE names another build of the compiled core to test in place of the installed one: the sanitized one."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.children import end_all

if path := os.environ.get("RARESTREAM_NATIVE"):
    spec = importlib.util.spec_from_file_location("rarestream._native", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["rarestream._native"] = module
    spec.loader.exec_module(module)

# Slow machines and sanitized builds must not fail a property for being slow.
# In CI the examples are the same each time, so that a change is judged by what it changes; at a desk they are new ones.
settings.register_profile("rarestream", deadline=None, print_blob=True, derandomize="CI" in os.environ)
# Sanitizers look for other things than properties do, and are slow: a few examples, and no search for a smaller one.
settings.register_profile(
    "sanitized", settings.get_profile("rarestream"), max_examples=7, phases=set(Phase) - {Phase.shrink}
)
settings.load_profile("sanitized" if path else "rarestream")


@pytest.fixture(autouse=True)
def no_child_outlives_its_test() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def tab_format(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The format of tests/extra_formats/tab.py, as if its module were in the package; returns its name."""
    from rarestream.readers import formats

    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(Path(__file__).parent / "extra_formats")])
    yield "tab"
    sys.modules.pop("rarestream.readers.formats.tab", None)
    vars(formats).pop("tab", None)
