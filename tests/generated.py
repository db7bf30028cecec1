"""Files that follow from the registry of learners: three stubs for type checkers, which module has which learner, and the
README's table of learners.

python -m tests.generated            writes those that are out of date: `make lint` and `make test` do
python -m tests.generated --check    writes nothing, and fails if one is out of date: the same, if CI is set
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
from pathlib import Path

import rarestream
from rarestream.adapters import river, sklearn
from rarestream.adapters.space import PARAMETERS
from rarestream.learners import Learner, learner_classes, learner_names
from rarestream.learners.registry import learner_class

HOME = Path(__file__).parent.parent
sys.path.insert(0, str(HOME / "docs"))

from tables import learner_table, page_of  # noqa: E402

WRITTEN_BY = "Written by tests/generated.py."


def files() -> dict[Path, str]:
    """The text of each file."""
    package, readme = HOME / "src" / "rarestream", HOME / "README.md"
    return {
        package / "__init__.pyi": _of_rarestream(),
        package / "sklearn.pyi": _of_sklearn(),
        package / "river.pyi": _of_river(),
        package / "learners" / "index.py": _index(),
        readme: _with_table(readme.read_text("utf-8")),
    }


def outdated() -> list[str]:
    """The files that a learner or a public name is missing from, or that have one too many."""
    return [
        str(path.relative_to(HOME))
        for path, text in files().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def _of_rarestream() -> str:
    module_of = {name: getattr(rarestream, name).__module__ for name in rarestream.__all__ if name != "__version__"}
    module_of["__version__"] = "rarestream._version"
    imports = sorted(f"from {module} import {name} as {name}" for name, module in module_of.items())
    return f'"""The public names of rarestream. {WRITTEN_BY}"""\n\n' + _lines(imports) + "\n" + _all(rarestream.__all__)


def _index() -> str:
    own = "rarestream.learners."
    names = {name: learner_class(name)[0].__module__.removeprefix(own) for name in learner_names()}
    classes = {cls.__name__: cls.__module__.removeprefix(own) for cls in learner_classes()}
    modules = sorted(path.stem for path in (HOME / "src/rarestream/learners").glob("*.py") if path.stem != "__init__")
    return (
        f'"""The modules of this package, and which learner each has, by name and by class. {WRITTEN_BY}"""\n'
        + "\nMODULES = {\n"
        + _lines([f'    "{name}",' for name in modules])
        + "}\n"
        + "".join(
            f"\n{title} = {{\n" + _lines([f'    "{name}": "{table[name]}",' for name in sorted(table)]) + "}\n"
            for title, table in (("NAMES", names), ("CLASSES", classes))
        )
    )


def _of_sklearn() -> str:
    classes = learner_classes()
    imports = [
        "from rarestream.adapters.search import RaceSearchCV as RaceSearchCV",
        "from rarestream.adapters.sklearn import StreamClassifier",
        "from rarestream.adapters.space import TableTransformer",
        *sorted(f"from {cls.__module__} import {cls.__name__}" for cls in classes),
    ]
    names = sorted([*(f"{cls.__name__}Classifier" for cls in classes), "FeatureSpace", "RaceSearchCV"])
    about = "Classifiers for scikit-learn, a search over their settings, and a transformer."
    return (
        f'"""{about} {WRITTEN_BY}"""\n\n'
        "from collections.abc import Sequence\nfrom typing import Any, ClassVar\n\n"
        + _lines(imports)
        + "\n"
        + _all(names)
        + "".join(_class(cls, f"{cls.__name__}Classifier", sklearn.StreamClassifier) for cls in classes)
        + _feature_space()
    )


def _of_river() -> str:
    classes = learner_classes()
    imports = [
        "from rarestream.adapters.river import RollingAuc as RollingAuc",
        "from rarestream.adapters.river import StreamClassifier",
        "from rarestream.adapters.river import StreamingAuc as StreamingAuc",
        "from rarestream.learners import Learner",
    ]
    names = sorted([*(cls.__name__ for cls in classes), "RollingAuc", "StreamingAuc"])
    return (
        f'"""Classifiers for River, and two metrics. {WRITTEN_BY}"""\n\n'
        "from typing import Any, ClassVar\n\n"
        + _lines(imports)
        + "\n"
        + _all(names)
        + "".join(_class(cls, cls.__name__, river.StreamClassifier, "Learner") for cls in classes)
    )


def _with_table(readme: str) -> str:
    """The README with the table of the learners there are now."""
    table = learner_table(
        ["objective", "cost", "published", "sparse", "paper"], lambda cls: f"docs/learners/{page_of(cls)}.md"
    )
    return re.sub(r"(?<=<!-- learners -->\n).*?(?=<!-- end -->)", lambda _: _lines(table), readme, flags=re.DOTALL)


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _all(names: list[str]) -> str:
    return "__all__ = [\n" + _lines([f'    "{name}",' for name in names]) + "]\n"


def _class(learner: type[Learner], name: str, base: type, learner_type: str | None = None) -> str:
    own = [(field.name, _type(field)) for field in dataclasses.fields(learner)]
    common = [(field.name, _type(field)) for field in dataclasses.fields(base)]
    parameters = "".join(f"        {name}: {kind} = ...,\n" for name, kind in own + common)
    attributes = "".join(f"    {name}: {kind}\n" for name, kind in own)
    return (
        f"\nclass {name}({base.__name__}):\n"
        f"    learner: ClassVar[type[{learner_type or learner.__name__}]]\n"
        f"{attributes}"
        f"    def __init__(\n        self,\n        *,\n{parameters}    ) -> None: ...\n"
    )


def _feature_space() -> str:
    kinds = {name: "Sequence[str]" if info.kind is tuple else info.kind.__name__ for name, info in PARAMETERS.items()}
    attributes = "".join(f"    {name}: {kind}\n" for name, kind in kinds.items())
    parameters = "".join(f"        {name}: {kind} = ...,\n" for name, kind in kinds.items())
    return (
        "\nclass FeatureSpace(TableTransformer):\n"
        f"{attributes}"
        f"    def __init__(\n        self,\n        *,\n{parameters}    ) -> None: ...\n"
    )


def _type(field: dataclasses.Field[object]) -> str:
    kind = field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)
    return f"{kind} | None" if field.default is None and kind != "Any" and "None" not in kind else kind


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the files that are out of date.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is out of date")
    check = parser.parse_args().check
    found = outdated()
    if check:
        sys.exit(f"{' and '.join(found)}: out of date. Run `make lint` and commit them." if found else 0)
    for name in found:
        (HOME / name).write_text(files()[HOME / name], "utf-8")
        print(f"{name}: written again; commit it.")


if __name__ == "__main__":
    main()
