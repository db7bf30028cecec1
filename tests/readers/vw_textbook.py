"""Vowpal Wabbit text to rows, in plain Python: written only to be read, and to be compared with the core."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from tests.features.textbook import murmur3

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f]")


class Row(NamedTuple):
    line: int
    label: float | None
    importance: float
    tag: str
    slots: dict[int, float]


class BadLineError(Exception):
    pass


def parse(text: bytes, bits: int) -> tuple[list[Row], list[int]]:
    """The rows of a text, and the numbers of the lines that are none."""
    rows, bad = [], []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.removesuffix(b"\r").strip(b" \t"):
            continue
        try:
            rows.append(parse_line(line.removesuffix(b"\r"), number, bits))
        except BadLineError:
            bad.append(number)
    return rows, bad


def parse_line(line: bytes, number: int, bits: int) -> Row:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise BadLineError from None
    if CONTROL.search(text) or "|" not in text:
        raise BadLineError
    head, *namespaces = text.split("|")
    label, importance, tag = parse_head(head)
    sums: dict[int, float] = {}
    for namespace in namespaces:
        for hashed, value in parse_namespace(namespace):
            slot = hashed & (1 << bits) - 1
            sums[slot] = sums.get(slot, 0.0) + value
    return Row(number, label, importance, tag, {slot: float(float32(sums[slot])) for slot in sorted(sums)})


def parse_head(head: str) -> tuple[float | None, float, str]:
    """Label, importance and tag from what is before the first bar."""
    words = [word for word in head.split(" ") if word]
    tag = ""
    if "\t" in head:
        raise BadLineError
    if words and (not head.endswith(" ") or words[-1].startswith("'")):
        tag = words.pop().removeprefix("'")
    if len(words) > 3:
        raise BadLineError
    label, importance, base = [number(word) for word in words] + [None, 1.0, 0.0][len(words) :]
    if base != 0 or not (importance == 0 or 1e-100 <= importance <= 1e12):
        raise BadLineError
    return label, importance, tag


def parse_namespace(text: str) -> list[tuple[int, float]]:
    """The features of a namespace: hash and value."""
    first, *words = re.split("[ \t]", text)
    namespace, has_scale, written = first.partition(":")
    if has_scale and not namespace:
        raise BadLineError
    scale = number(written) if has_scale else 1.0
    float32(scale)
    seed = murmur3(namespace, 0)
    found, unnamed = [], 0
    for word in filter(None, words):
        name, has_value, written = word.partition(":")
        value = float32(scale * number(written) if has_value else scale)
        if name:
            hashed = murmur3(name, seed)
        else:
            hashed = seed + unnamed
            unnamed += 1
        if value != 0:
            found.append((hashed & 0xFFFFFFFF, float(value)))
    return found


def number(word: str) -> float:
    if not NUMBER.fullmatch(word) or math.isinf(float(word)):
        raise BadLineError
    return float(word)


def float32(value: float) -> np.float32:
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not np.isfinite(narrow):
        raise BadLineError
    return narrow
