"""The settings of learners: dataclass fields with the values that are allowed, and a line of documentation for each."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any


def positive(default: Any, help: str, least: float = sys.float_info.min, most: float = sys.float_info.max) -> Any:
    """Declare a number > 0, between `least` and `most`, so that states stay finite; `help` documents it."""
    return _number(default, help, "> 0", least, most)


def non_negative(default: Any, help: str, most: float = sys.float_info.max) -> Any:
    """Declare a number >= 0, up to `most`, so that states stay finite."""
    return _number(default, help, ">= 0", 0.0, most)


def zero_or(default: float, help: str, least: float, most: float) -> Any:
    """Declare a number between `least` and `most`, or 0 for none."""
    return _number(default, help, f"0 or between {least:g} and {most:g}", least, most, or_zero=True)


def _number(default: Any, help: str, rule: str, least: float, most: float, or_zero: bool = False) -> Any:
    metadata = {"help": help, "rule": rule, "range": (least, most), "or_zero": or_zero}
    return dataclasses.field(default=default, metadata=metadata)


def whole(default: int, help: str, least: int = 0, most: int = 2**53) -> Any:
    """Declare a whole number between `least` and `most`; kernels take it as a double, which is exact up to 2^53."""
    rule = f"a whole number >= {least}" if most == 2**53 else f"a whole number between {least} and {most}"
    return dataclasses.field(default=default, metadata={"help": help, "rule": rule, "least": least, "most": most})


def one_of(default: str, help: str, *choices: str) -> Any:
    """Declare a choice of a few words."""
    rule = "one of " + ", ".join(repr(choice) for choice in choices)
    return dataclasses.field(default=default, metadata={"help": help, "rule": rule, "choices": choices})


def switch(default: bool, help: str) -> Any:
    """Declare a setting that is True or False."""
    return dataclasses.field(default=default, metadata={"help": help, "rule": "True or False"})


# For learners whose coordinate is a pair {z, n}: with rates and penalties in these ranges, all steps that the core
# accepts (STEP_LIMIT in native/learn.hpp) leave finite pairs, in float32 too.
RATES = {"least": 1e-12, "most": 1e6}
STRENGTHS = {"most": 1e6}
HALF_LIVES = {"least": 100.0, "most": 1e12}  # rows
