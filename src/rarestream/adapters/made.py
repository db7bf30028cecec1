"""The class that an adapter has for each learner: the learner's settings and the adapter's own, all documented."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from typing import Any

from rarestream.learners import Learner

HEADING = "Parameters\n----------\n"


def class_of(learner: type[Learner], base: type, name: str, module: str, more: str = "") -> type:
    """Return a dataclass of the settings of a learner and the fields of `base`.

    Parameters
    ----------
    learner : type
        The learner; it becomes the attribute `learner`.
    base : type
        A dataclass, the base class of those of all learners. Its docstring ends with its parameters.
    name, module : str
        Its public address, where pickle finds it.
    more : str
        What its docstring ends with.
    """
    settings = dataclasses.fields(learner)
    own = "".join(
        f"{field.name} : {_kind(field)}, default {field.default!r}\n    {field.metadata['help']}\n"
        for field in settings
    )
    common = inspect.cleandoc(base.__doc__ or "").partition(HEADING)[2]
    described = f"{inspect.cleandoc(learner.__doc__ or '')}\n\n{HEADING}{own}{common}\n\n{inspect.cleandoc(more)}"
    made = dataclasses.make_dataclass(
        name,
        [(field.name, Any, dataclasses.field(default=field.default)) for field in settings],
        bases=(base,),
        namespace={
            "learner": learner,
            "__module__": module,
            "__doc__": textwrap.indent(described, "    ").strip() + "\n",
        },
        kw_only=True,
        eq=False,
        repr=False,
    )
    made.__module__ = module
    return made


def _kind(field: dataclasses.Field[Any]) -> str:
    if "choices" in field.metadata:
        return "{" + ", ".join(repr(choice) for choice in field.metadata["choices"]) + "}"
    return "float or None" if field.default is None else type(field.default).__name__
