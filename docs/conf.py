"""Settings of the documentation, built by `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from tables import FACTS, learner_facts, learner_table, page_of

from rarestream import Learner, __version__
from rarestream.learners import learner_classes

project = "rarestream"
copyright = "the rarestream developers"
version = release = __version__

extensions = ["myst_parser", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes in a docstring and documented members may be the same
suppress_warnings = ["ref.python"]  # the names of attributes in a docstring are no links: several classes have an `auc`
exclude_patterns = ["_build"]
default_role = "code"
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = f"rarestream {__version__}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_sidebars: dict[str, list[str]] = {"index": [], "reference": [], "start": []}  # pages without neighbours
html_theme_options: dict[str, Any] = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navigation_with_keys": True,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def plain(line: str) -> str:
    """Return a line of prose in which |w| and xbar_ are escaped, so that they are not markup; code is unchanged."""
    parts = line.split("`")
    parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def as_rst(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Convert plain-text docstrings: indented formulas and columns become literal blocks."""
    if isinstance(thing, type) and issubclass(thing, Learner) and "Parameters" not in lines:
        lines += settings_of(thing)
    if {"Parameters", "Attributes", "Returns", "Raises"} & set(lines):  # numpydoc form: napoleon converts it
        return
    paragraphs = [part.split("\n") for part in re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))]
    found: list[str] = []
    verbatim = False
    for paragraph in paragraphs:
        columns = sum(bool(re.match(r"\w+ {2,}\S", line)) for line in paragraph) > 1
        indented = all(line.startswith("  ") for line in paragraph)
        if columns or indented:
            margin = "" if indented else "    "
            found += [*([] if verbatim else ["::", ""]), *(margin + line for line in paragraph), ""]
        elif re.match(r"\[\d+\] ", paragraph[0]):
            papers = re.sub(r"\n +", " ", "\n".join(paragraph)).split("\n")
            found += [*(f"| {paper}" for paper in papers), ""]
        else:
            found += [*map(plain, paragraph), ""]
        verbatim = columns or indented
    lines[:] = found


def settings_of(cls: type[Learner]) -> list[str]:
    """Return the settings of a learner as the Parameters of a docstring, from its fields."""
    lines = ["", "Parameters", "----------"]
    for field in dataclasses.fields(cls):
        lines += [
            f"{field.name} : {field.metadata['rule']}, default {field.default!r}",
            f"    {field.metadata['help']}",
        ]
    return lines if dataclasses.fields(cls) else []


def short_types(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returned: str) -> Any:
    """Show NumPy's types under the names that they have in the source."""

    def short(text: str | None) -> str | None:
        if text is None:
            return None
        text = re.sub(r"_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]", "ArrayLike", text)
        return re.sub(r"[~\w.]*ndarray\[tuple\[[~\w.]*Any, \.\.\.\], [~\w.]*dtype\[(.+?)\]\]", r"NDArray[\1]", text)

    return short(signature), short(returned)


def from_registry(app: Any, page: str, source: list[str]) -> None:
    """Fill in what pages say of learners from the registry, so that a new learner is on all of them."""
    if page in ("learners/index", "reference"):
        classes = [f".. autoclass:: rarestream.{cls.__name__}" for cls in learner_classes()]
        adapters = [f".. autoclass:: rarestream.sklearn.{cls.__name__}Classifier" for cls in learner_classes()]
        of_river = [f".. autoclass:: rarestream.river.{cls.__name__}" for cls in learner_classes()]
        for mark, lines in (
            ("<!-- table of learners -->", learner_table(FACTS, lambda cls: f"{page_of(cls)}.md")),
            (".. learners", classes),
            (".. classifiers", adapters),
            (".. river classifiers", of_river),
        ):
            source[0] = source[0].replace(mark, "\n".join(lines))
    for cls in learner_classes():
        if page == f"learners/{page_of(cls)}":
            source[0] = source[0].replace("<!-- facts of the learner -->", "\n".join(learner_facts(cls)))


def registry_pages(*_: Any) -> list[str]:
    """Return the pages to build again, as the registry may have changed."""
    return ["learners/index", "reference", *(f"learners/{page_of(cls)}" for cls in learner_classes())]


def setup(app: Any) -> None:
    app.connect("source-read", from_registry)
    app.connect("env-get-outdated", registry_pages)
    app.connect("autodoc-process-signature", short_types)
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon takes the headings away
