"""The paper's numbers: its tables and the points of its figures, as published.json holds them.

    table1          set: n, n_pos, n_neg, d, k
    table2          seconds, sparse_ratio, auc: set: method: mean and standard deviation of ten trials
    table3          "0.1", "0.05": set: method: mean and standard deviation of the AUC
    figure2, 5, 7, 8, 9, 10    set: method: rows, test_auc; rows count from 1
    figure3         set: method: seconds, test_auc
    figure4, 11     set: method: test_auc, sparse_ratio, one of each per lambda; 11 has those of figure 6
    grids           "farm-ads/ftrl_auc": means over ten trials of every setting that was tried

2, 7 and 9 were read off the printed curves; the others are the authors' files.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def numbers() -> dict[str, Any]:
    """Return the published numbers. They are cached: do not change them."""
    found: dict[str, Any] = json.loads(files("rarestream.reproduce").joinpath("published.json").read_text("utf-8"))
    return found
