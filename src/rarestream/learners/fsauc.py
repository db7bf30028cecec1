"""FSAUC: fast stochastic AUC maximisation, in stages.

The saddle point of SOLAM, solved in m + 1 stages; each starts where the mean of the one before
it is, with shorter steps and tighter bounds. With s = <w, x> and p the share of positives so
far, this row included:

    y = +1:  g_w = (1 - p) (s - a - 1 - alpha) x,    g_a = -(1 - p) (s - a),
             g_alpha = -(1 - p) (s + p alpha)
    y = -1:  g_w = p (s - b + 1 + alpha) x,          g_b = -p (s - b),
             g_alpha = p (s - (1 - p) alpha)

v = (w, a, b) takes a step -eta g, alpha a step +eta g. Then, in this order,

    |w|_1 <= r,    |a|, |b| <= r,    |alpha| <= 2 r,
    |v - v_1|_2 <= R,    |alpha - alpha_1| <= D,

where v_1, alpha_1 are those the stage started from. The first starts from 0 with eta = g,
R = 2 sqrt(3) r, D = 2 sqrt(2) R. After n_0 rows the next starts from v_1 = the mean of the
stage's v (each after its step), alpha_1 = <w_1, xbar_- - xbar_+>, R / 2 and, with
L = log(12 / 0.1), q = min(p, 1 - p), K = 2 + sqrt(2 L), beta = 9 in the first stage:

    D = 2 sqrt(2) R + 12 sqrt(2) K r / sqrt(q n_0 - sqrt(2 n_0 L)),
    beta' = 9 + 288 K^2 / (q - sqrt(2 L / n_0)),    eta <- min(sqrt(beta' / beta) / 2, 1) eta.

Where a root or the last bracket is not positive, D or beta' is 1e7. With n = `expected_rows`,

    m = floor(log2(2 n / log2 n) / 2) - 1,    n_0 = floor(n / m);

what is left over, and whatever comes beyond n rows, is the last stage.

The weights of the model, those of `coef`, `score` and files, are the mean of w over the stage,
which before the stage's first row is that of the stage before; the gradient is that of the
current iterate.

The l1 ball is projected on as [2] does it for sparse rows: with theta the sum of all thresholds
so far, w = sign(u) (|u| - theta), so that a row changes theta, u of its own coordinates and of
those that the threshold brings to zero. Of the living, |u| is kept side by side to find these.
The sum of w over n rows is lazy: past + sign(u) (n |u| - sum theta). |w - w_1|_2 is kept up.

A row of importance h counts as h rows learned at one score: p, xbar and the mean count it h
times, and its eta is h times as long. It is one row of its stage whatever h.

Where this differs from the text of [1]: it ends after m stages; that the rows left over are a
stage of their own, and that its mean is returned, is so in the code of the FTRL-AUC paper.

[1] Liu, Zhang, Chen, Wang, Yang. Fast Stochastic AUC Maximization with O(1/n)-Convergence
    Rate. ICML 2018.
[2] Duchi, Shalev-Shwartz, Singer, Chandra. Efficient Projections onto the l1-Ball for Learning
    in High Dimensions. ICML 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import positive, whole
from rarestream.learners.state import Layout, State, padded

LAYOUT = Layout(
    columns={"u": 1, "past": 1, "centre": 1, "sum_neg": 1, "sum_pos": 1},
    numbers=(
        *("saddle_a", "saddle_b", "alpha", "a_centre", "b_centre", "alpha_centre"),
        *("eta", "width", "alpha_width", "beta", "stage", "stage_rows"),
        *("n", "thetas", "a_sum", "b_sum", "theta", "sizes", "living", "near", "far", "along"),
    ),
)


LEAST_STAGED = 44  # fewest rows that stages can be planned for


@register("fsauc")
@dataclass(frozen=True, kw_only=True)
class Fsauc(Learner):
    """FSAUC of Liu et al. (ICML 2018): the model is the mean of the stage's iterates, within an l1 ball."""

    learning_rate: float = positive(0.5, "Learning rate of the first stage: g.", least=1e-12, most=1e12)
    radius: float = positive(1000.0, "Maximum l1 norm of the weights: r.", least=1e-12, most=1e12)
    expected_rows: int = whole(10000, "Number of rows to plan the stages for: n.", LEAST_STAGED)

    about: ClassVar[About] = About(
        title="FSAUC",
        objective="square loss on pairs",
        cost="O(k); O(k + non-zero weights) while its l1 constraint is active",
        published="O(d)",
        sparse="almost none",
        returns="mean of the stage's iterates",
        paper="Liu, Zhang, Chen, Wang, Yang 2018, Algorithms 1 and 2",
    )

    def expecting(self, rows: int, features: int) -> dict[str, Any]:
        return {"expected_rows": max(LEAST_STAGED, rows)}

    @property
    def layout(self) -> Layout:
        return LAYOUT

    @property
    def stages(self) -> int:
        """m: how many stages have an end."""
        n = self.expected_rows
        return math.floor(math.log2(2 * n / math.log2(n)) / 2) - 1

    def kernel_settings(self) -> list[float]:
        return [self.radius, float(self.stages), float(self.expected_rows // self.stages)]

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        state = super().start(slots, dtype, largest)
        tally = self.tally(state)
        tally["eta"] = self.learning_rate
        tally["width"] = 2 * math.sqrt(3) * self.radius
        tally["alpha_width"] = 2 * math.sqrt(2) * tally["width"]
        tally["beta"] = 9
        return state

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        """Of the weights that are not zero: their coordinates and |u|; and where each coordinate stands among them."""
        at, place = np.zeros(slots, np.int32), np.zeros(slots, np.int32)
        return {"living": at, "size": np.zeros(slots, dtype), "place": place}

    def grown(self, state: State, slots: int) -> State:
        wider = {name: padded(part, slots) for name, part in state.extra.items()}
        return state.grown(slots)._replace(extra=wider)

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return {"living": state.extra["living"][: int(self.tally(state)["living"])]}

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        living, sizes = saved["living"], abs(state.table[:, 0])
        if living.dtype != np.int32 or not np.array_equal(np.sort(living), np.flatnonzero(sizes)):
            raise ValueError("array 'living' must hold every feature whose 'u' is not zero, once")
        if len(living) != self.tally(state)["living"]:
            raise ValueError("its number of living weights is wrong")
        state.extra["living"][: len(living)] = living
        state.extra["size"][: len(living)] = sizes[living]
        state.extra["place"][living] = np.arange(1, len(living) + 1)
        return state
