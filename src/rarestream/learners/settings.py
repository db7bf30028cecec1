"""The settings of learners: what values are allowed, and the line that documents each."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any


def positive(default: Any, says: str, least: float = sys.float_info.min, most: float = sys.float_info.max) -> Any:
    """A setting that is a number > 0, in a range with which states stay finite. `says`: its line in the docs."""
    return _number(default, says, "> 0", least, most)


def non_negative(default: Any, says: str, most: float = sys.float_info.max) -> Any:
    """A setting that is a number >= 0, in a range with which states stay finite."""
    return _number(default, says, ">= 0", 0.0, most)


def _number(default: Any, says: str, rule: str, least: float, most: float) -> Any:
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "range": (least, most)})


def whole(default: int, says: str, least: int = 0, most: int = 2**53) -> Any:
    """A setting that must be a whole number, not below `least` nor above `most`: kernels take it as a double."""
    rule = f"a whole number >= {least}" if most == 2**53 else f"a whole number between {least} and {most}"
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "least": least, "most": most})


def one_of(default: str, says: str, *choices: str) -> Any:
    """A setting that is one of a few words."""
    rule = "one of " + ", ".join(repr(choice) for choice in choices)
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "choices": choices})


def switch(default: bool, says: str) -> Any:
    """A setting that is True or False."""
    return dataclasses.field(default=default, metadata={"says": says, "rule": "True or False"})


# Of learners whose coordinate is a pair {z, n}: with rates and penalties in these ranges, all steps that the core lets
# pass (STEP_LIMIT in native/learn.hpp) leave finite pairs, in float32 too.
RATES = {"least": 1e-12, "most": 1e6}
STRENGTHS = {"most": 1e6}
