"""Settings of the documentation, built by `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

import re
from typing import Any

from rarestream import __version__, learner_names, make_learner
from rarestream.learners import learner_classes

project = "rarestream"
copyright = "the rarestream developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes in a docstring and documented members may be the same
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
html_theme_options: dict[str, Any] = {
    "show_toc_level": 2,
    "navbar_align": "left",
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


def short_types(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returned: str) -> Any:
    """Show NumPy's types under the names that they have in the source."""

    def short(text: str | None) -> str | None:
        if text is None:
            return None
        text = re.sub(r"_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]", "ArrayLike", text)
        return re.sub(r"[~\w.]*ndarray\[tuple\[[~\w.]*Any, \.\.\.\], [~\w.]*dtype\[(.+?)\]\]", r"NDArray[\1]", text)

    return short(signature), short(returned)


def from_registry(app: Any, page: str, source: list[str]) -> None:
    """Fill in the lists of learners from the registry, so that a new learner is in all of them."""
    if page not in ("learners/index", "reference"):
        return
    classes = [f".. autoclass:: rarestream.{cls.__name__}" for cls in learner_classes()]
    adapters = [f".. autoclass:: rarestream.sklearn.{cls.__name__}Classifier" for cls in learner_classes()]
    for mark, lines in (
        ("<!-- table of learners -->", learner_table()),
        (".. learners", classes),
        (".. classifiers", adapters),
    ):
        source[0] = source[0].replace(mark, "\n".join(lines))


def learner_table() -> list[str]:
    head = ["class", "names", "objective", "cost per row", "in the authors' code", "weights", "returns", "paper"]
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for cls in learner_classes():
        names = [name for name in learner_names() if type(make_learner(name)) is cls]
        page = cls.__module__.rpartition(".")[2].replace("_", "-")
        cells = [f"[`{cls.__name__}`]({page}.md)", ", ".join(f"`{name}`" for name in names), *cls.about]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def setup(app: Any) -> None:
    app.connect("source-read", from_registry)
    app.connect("env-get-outdated", lambda *_: ["learners/index", "reference"])  # the registry may have changed
    app.connect("autodoc-process-signature", short_types)
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon takes the headings away
