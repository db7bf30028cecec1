"""Who races: settings from a word, a list or a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from rarestream.learners import Learner, make_learner
from rarestream.learners.auto import Auto
from rarestream.learners.ftrl_auc import FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal

MOST = 1024


def entrants(settings: str | Sequence[Learner | str]) -> list[Learner]:
    """The learners that race: those of "auto", or a list of learners or of their names."""
    if isinstance(settings, str) and settings != "auto":
        raise ValueError(f'race: settings are "auto" or a list of learners, got {settings!r}.')
    found = Auto.candidates() if isinstance(settings, str) else [_learner(one) for one in settings]
    unique = list(dict.fromkeys(found))
    if not unique:
        raise ValueError('race: there are no settings to race. Pass some learners, or "auto".')
    if len(unique) > MOST:
        raise ValueError(f"race: at most {MOST} settings race at once, got {len(unique)}. Race a thinner grid first.")
    return unique


def grid(name: str, **values: Any) -> list[Learner]:
    """Every combination of some values of a learner's settings: grid("ftrl-auc", learning_rate=[0.1, 1], l1=[0, 1])."""
    lists = [list(one) if isinstance(one, Sequence) and not isinstance(one, str) else [one] for one in values.values()]
    return [make_learner(name, **dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*lists)]


def rivals() -> list[Learner]:
    """FTRL-AUC and FTRL-Proximal at eight learning rates each, without penalties: to race against the default set."""
    rates = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
    return [FtrlAuc(learning_rate=rate, l1=0.0) for rate in rates] + [
        FtrlProximal(learning_rate=rate, l1=0.0) for rate in rates
    ]


def _learner(given: Any) -> Learner:
    if isinstance(given, str):
        given = make_learner(given)
    if not isinstance(given, Learner):
        raise TypeError(f"race: settings are learners such as DualAveraging(learning_rate=0.5), got {given!r}.")
    if given.name == "auto":
        raise ValueError("race: auto is a race itself; it cannot be one of the settings.")
    return given
