"""How sure is an AUC when positives are rare? Its 95 % interval against the number of positives.

The scores are those of one trained model; only the number of test rows grows.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model
from rarestream.datasets import make_rare_stream
from rarestream.metrics import auc_interval

stream = make_rare_stream(50_000, positives=0.01, seed=4)
model = Model("dual-logistic")
for block in stream:
    model.learn(block)
test = list(stream.held_out(200_000))
labels = np.concatenate([block.labels for block in test])
scores = np.concatenate([model.score(block) for block in test])
at = np.flatnonzero(labels > 0)  # the rows that are positive

counts = [10, 20, 50, 100, 200, 500, 1000]
found = [auc_interval(labels[: at[count]], scores[: at[count]]) for count in counts]
for count, one in zip(counts, found, strict=True):
    print(f"{count:5} positives: AUC {one:.3f}, {one.low:.3f} to {one.high:.3f}")
figure, axes = plt.subplots(layout="constrained")
axes.fill_between(counts, [one.low for one in found], [one.high for one in found], alpha=0.25, label="95 % interval")
axes.plot(counts, found, marker="o", label="AUC")
axes.set(xscale="log", xlabel="positives among the test rows", ylabel="AUC", title="What few positives can tell")
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
