"""The stub of `rarestream.sklearn`, whose classes are made from the registry and so cannot be seen by type checkers.

python -m tests.stubs      writes it again, after a learner or a setting was added
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rarestream.adapters.sklearn import StreamClassifier
from rarestream.learners import Learner, learner_classes

PATH = Path(__file__).parent.parent / "src" / "rarestream" / "sklearn.pyi"

HEAD = '''\
"""scikit-learn classifiers, one per learner, and a search over their settings. Written by `python -m tests.stubs`."""

from typing import Any, ClassVar

{imports}

__all__ = {names}
'''


def text() -> str:
    """The whole stub."""
    classes = learner_classes()
    imports = [
        "from rarestream.adapters.search import RaceSearchCV as RaceSearchCV",
        "from rarestream.adapters.sklearn import StreamClassifier",
        *sorted(f"from {cls.__module__} import {cls.__name__}" for cls in classes),
    ]
    names = sorted([*(f"{cls.__name__}Classifier" for cls in classes), "RaceSearchCV"])
    listed = "[\n" + "".join(f'    "{name}",\n' for name in names) + "]"
    return HEAD.format(imports="\n".join(imports), names=listed) + "".join(_class(cls) for cls in classes)


def _class(learner: type[Learner]) -> str:
    own = [(field.name, _type(field)) for field in dataclasses.fields(learner)]
    common = [(field.name, _type(field)) for field in dataclasses.fields(StreamClassifier)]
    parameters = "".join(f"        {name}: {kind} = ...,\n" for name, kind in own + common)
    attributes = "".join(f"    {name}: {kind}\n" for name, kind in own)
    return (
        f"\nclass {learner.__name__}Classifier(StreamClassifier):\n"
        f"    learner: ClassVar[type[{learner.__name__}]]\n"
        f"{attributes}"
        f"    def __init__(\n        self,\n        *,\n{parameters}    ) -> None: ...\n"
    )


def _type(field: dataclasses.Field[object]) -> str:
    kind = str(field.type)
    return f"{kind} | None" if field.default is None and kind != "Any" and "None" not in kind else kind


if __name__ == "__main__":
    PATH.write_text(text())
