"""The class that an adapter has for each learner: the learner's settings and the adapter's own, all documented."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rarestream.learners import Learner

Described = Mapping[str, tuple[str, str]]  # the type and the meaning of parameters


def class_of(learner: type[Learner], base: type, name: str, module: str, common: Described, more: str = "    ") -> type:
    """Return a dataclass of the settings of a learner and the fields of `base`.

    Parameters
    ----------
    learner : type
        The learner; it becomes the attribute `learner`.
    base : type
        A dataclass, the base class of those of all learners.
    name, module : str
        Its public address, where pickle finds it.
    common : mapping
        The types and meanings of the fields of `base`.
    more : str
        What its docstring ends with.
    """
    settings = dataclasses.fields(learner)
    parameters = [(field.name, _kind(field), field.metadata["help"], field.default) for field in settings]
    parameters += [(field.name, *common[field.name], field.default) for field in dataclasses.fields(base)]
    described = "".join(
        f"    {name} : {kind}, default={default!r}\n        {help}\n" for name, kind, help, default in parameters
    )
    made = dataclasses.make_dataclass(
        name,
        [(field.name, Any, dataclasses.field(default=field.default)) for field in settings],
        bases=(base,),
        namespace={
            "learner": learner,
            "__module__": module,
            "__doc__": f"{learner.__doc__}\n\n    Parameters\n    ----------\n{described}{more}",
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
