"""AUC against the number of weights that are kept: one pass over validation rows gives it at 50 sizes.

The smallest model that loses at most 0.005 AUC on these rows is marked.
"""

import sys

import matplotlib.pyplot as plt

from rarestream import Model
from rarestream.datasets import make_rare_stream
from rarestream.evaluate import path

stream = make_rare_stream(100_000, positives=0.02, seed=1)
model = Model("dual-logistic")
for block in stream:
    model.learn(block)
valid = list(stream.held_out(30_000))

found = path(model, valid)
size = found.smallest(auc_loss=0.005)
small = model.prune(nonzeros=size)
print(f"{size:,} of {model.nonzeros:,} weights lose at most 0.005 of AUC {found.full:.4f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(found.sizes, found.aucs, label="largest weights only")
axes.axhline(found.full, color="gray", lw=1)
axes.annotate(f"all {model.nonzeros:,} weights", (found.sizes[-1], found.full + 0.004), ha="right", color="#555555")
axes.axvline(size, color="#c2571a", ls="--", label=f"{size:,} weights: 0.005 lost")
axes.set(xscale="log", xlabel="weights", ylabel="AUC of held-out rows", title="Pruning")
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
