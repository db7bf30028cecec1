"""State layouts of learners whose steps go along the class means: low_rank_weights.hpp, dense_weights.hpp in native."""

from __future__ import annotations

from rarestream.learners.state import Layout

# w = sigma (u + M alpha), M being the two class sums: sigma and alpha, then M'u, then M'M.
SPAN = Layout(
    columns={"u": 1, "u_low": 1, "sum_neg": 1, "sum_pos": 1},
    numbers=("sigma", "alpha_neg", "alpha_pos", "u_neg", "u_pos", "neg_neg", "neg_pos", "pos_neg", "pos_pos"),
    stacked=False,
)
# w itself, where every row passes over all of it; <w, sum> and <sum, sum>.
DENSE = Layout(
    columns={"w": 1, "sum_neg": 1, "sum_pos": 1},
    numbers=("dot_neg", "dot_pos", "square_neg", "square_pos"),
    stacked=True,
)
