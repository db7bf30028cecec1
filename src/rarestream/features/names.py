"""What a user should know of the names of a hashed space: slots that several names share, and names that were lost."""

from __future__ import annotations

import math

from rarestream.errors import advice
from rarestream.features.space import MAX_BITS, Hashed

MANY_COLLISIONS = 0.01  # share of the names


def name_problem(space: Hashed) -> tuple[str, str] | None:
    """Return what is the case with the names of a space and what to do, as sentences; None if all is well.

    With n names in 2^b slots, about n / 2^(b + 1) of the names share their slot with an earlier one.
    """
    names = space.names
    if names is None:
        return None
    known = len(names)  # those that share a slot, too
    if names.collisions > MANY_COLLISIONS * known and space.bits < MAX_BITS:
        wanted = min(MAX_BITS, max(space.bits + 1, math.ceil(math.log2(known / (2 * MANY_COLLISIONS)))))
        return (
            f"{names.collisions:,} of {known:,} features share a slot with another one, so they share a weight.",
            f"Use more slots: {advice(f'bits={wanted}', f'--bits {wanted}')}.",
        )
    if names.full:
        return (
            f"the names of {names.lost:,} features are not known: the memory for names is full.",
            "They are learned like the others and are shown as the number of their slot.",
        )
    return None
