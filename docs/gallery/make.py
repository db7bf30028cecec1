"""Draw the pictures of the gallery, and write the page that lists them.

    python docs/gallery/make.py [NAME ...]

Runs each program in `examples` (or those that are named) and writes docs/gallery/NAME.svg, then docs/gallery/index.md.
Needs matplotlib, pandas and scikit-learn; takes about a minute. The same programs give the same files.
"""

from __future__ import annotations

import ast
import os
import runpy
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
LARGEST = 60_000  # bytes of a picture
GROUPS = {
    "Learn": {
        "learning_curve": "Learning curves",
        "race_settings": "A race of settings",
        "race_search": "Grid search in one pass",
        "many_classes": "Many classes",
        "soft_buckets": "Numbers as soft buckets",
        "hash_bits": "Bits for hashing",
    },
    "Look inside": {
        "spam_words": "Words of spam",
        "explain_row": "Explain a row",
        "prune_curve": "Prune a model",
    },
    "Measure and decide": {
        "calibration_plot": "Calibration",
        "cost_curve": "Costs and threshold",
        "few_positives": "Few positives",
        "streaming_auc": "Streaming AUC",
    },
    "Streams": {
        "drift_half_life": "Drift and half-lives",
        "drift_alarm": "An alarm on drift",
        "late_labels": "Late labels",
    },
}
TITLES = {name: title for group in GROUPS.values() for name, title in group.items()}
# Colours that have contrast on white and are different in grey; lines differ in style, too.
STYLE: dict[str, Any] = {
    "figure.figsize": (4.8, 3.2),
    "figure.facecolor": "white",
    "font.size": 10,
    "svg.hashsalt": "rarestream",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#e4e7eb",
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
LINES = {"color": ["#0b3c6f", "#c2571a", "#2f8f7a", "#111111"], "linestyle": ["-", "--", "-.", ":"]}
HEAD = """# Gallery

Short programs, each of which runs as it is and draws one picture; click on one to see its source. They use only what is
in the package: its data sets, or a generated stream. `python examples/NAME.py picture.png` writes the picture to a
file; without a name of a file it is shown.

<style>
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 1rem; }
.gallery { margin: 1rem 0 2rem; }
.gallery p { margin: 0; border: 1px solid var(--pst-color-border, #c5cdd6); border-radius: 0.4rem; overflow: hidden; }
.gallery p:hover { border-color: var(--pst-color-primary, #0b3c6f); }
.gallery a { display: block; height: 100%; text-decoration: none; color: inherit; }
.gallery img { display: block; width: 100%; height: auto; margin-bottom: 0.4rem; background: white !important; }
.gallery a > span, .gallery a > strong { font-size: 0.9rem; }
.gallery a > span { display: block; padding: 0.5rem 0.7rem; line-height: 1.35; }
</style>
"""


def main() -> None:
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # which keeps the date out of the files
    import matplotlib as mpl
    from cycler import cycler

    mpl.use("Agg")
    for name in sys.argv[1:] or TITLES:
        picture = HERE / f"{name}.svg"
        settings: Any = {**STYLE, "axes.prop_cycle": cycler(**LINES)}
        with mpl.rc_context(settings):
            draw(name, picture)
        size = picture.stat().st_size
        print(f"{picture.name}: {size:,} bytes")
        if size > LARGEST:
            raise SystemExit(f"{picture.name} has more than {LARGEST:,} bytes.")
    (HERE / "index.md").write_text(page(), "utf-8")
    for name in TITLES:
        (HERE / f"{name}.md").write_text(page_of(name), "utf-8")


def draw(name: str, picture: Path) -> None:
    """Run an example that saves its figure."""
    from matplotlib import pyplot

    given, sys.argv = sys.argv, [name, str(picture)]
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        sys.argv = given
        pyplot.close("all")


def described(name: str) -> str:
    """Return the docstring of an example."""
    return ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))) or ""


def page() -> str:
    """Return the page of the gallery: a grid of cards."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f'## {group}\n\n<div class="gallery">\n')
        for name in names:
            about = described(name).split("\n\n")[0].replace("\n", " ")
            parts.append(f"[![{TITLES[name]}]({name}.svg)\n**{TITLES[name]}.** {about}]({name}.md)\n")
        parts.append("</div>\n")
    toctree = "\n".join(TITLES)
    parts.append(f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{toctree}\n```\n")
    return "\n".join(parts)


def page_of(name: str) -> str:
    """Return the page of an example: its picture, what it shows, its source."""
    return f"""# {TITLES[name]}

{described(name)}

![{TITLES[name]}]({name}.svg)

```{{literalinclude}} ../../examples/{name}.py
:language: python
```
"""


if __name__ == "__main__":
    main()
