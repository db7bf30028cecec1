"""The numbers of native/span.hpp when the shared directions are the two class sums.

w = sigma (u + M alpha): sigma and alpha, then M'u, then M'M.
"""

SPAN = (
    "sigma",
    "alpha_neg",
    "alpha_pos",
    "u_neg",
    "u_pos",
    "neg_neg",
    "neg_pos",
    "pos_neg",
    "pos_pos",
)
