"""The settings of a race: those of "auto", a list, or a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from rarestream.learners import Learner, make_learner
from rarestream.learners.auto import Auto
from rarestream.learners.ftrl_auc import FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal

MAX_SETTINGS = 1024


def entrants(settings: str | Sequence[Learner | str]) -> list[Learner]:
    """Return the learners to race, each once: those of "auto", or a list of learners or of their names."""
    if isinstance(settings, str) and settings != "auto":
        raise ValueError(f'race: settings are "auto" or a list of learners, got {settings!r}.')
    learners = Auto.candidates() if isinstance(settings, str) else [_learner(setting) for setting in settings]
    unique = list(dict.fromkeys(learners))
    if not unique:
        raise ValueError('race: there are no settings to race. Pass some learners, or "auto".')
    if len(unique) > MAX_SETTINGS:
        raise ValueError(
            f"race: at most {MAX_SETTINGS} settings can race, got {len(unique)}. Use a coarser grid first."
        )
    return unique


def grid(name: str, **values: Any) -> list[Learner]:
    """Return a learner for every combination of some values of its settings.

    Parameters
    ----------
    name : str
        Name of the learner, such as "ftrl-auc".
    **values
        A value or a list of values for each setting, such as `learning_rate=[0.1, 1], l1=[0, 1]`.

    Returns
    -------
    list of Learner
        The values of the last setting change first.

    Raises
    ------
    ValueError
        If the name or a setting is unknown, or a value is out of its range.
    """
    lists = [
        list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for value in values.values()
    ]
    return [make_learner(name, **dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*lists)]


def rivals() -> list[Learner]:
    """Return FTRL-AUC and FTRL-Proximal at eight learning rates each, without penalties."""
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
