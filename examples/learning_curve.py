"""Progressive AUC of three learners on the same rare stream, row by row, against the best possible AUC.

`auto` needs no settings: it races 24 of them on the first rows. The other two learn with their defaults.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model
from rarestream.datasets import make_rare_stream

stream = make_rare_stream(100_000, positives=0.02, seed=3)
figure, axes = plt.subplots(layout="constrained")
for name in ("auto", "dual-logistic", "ftrl-proximal"):
    model = Model(name)
    rows, aucs = [], []
    for block in stream:
        model.learn(block)  # every row is scored before it is learned
        rows.append(model.rows)
        aucs.append(float(model.progress.auc))
    axes.plot(np.array(rows) / 1000, aucs, label=f"{name} {aucs[-1]:.4f}")
    print(f"{name:14}{aucs[-1]:.4f}")
best = stream.best_auc()
axes.axhline(best, color="gray", lw=1)
axes.annotate(f"best possible {best:.4f}", (100, best), ha="right", va="bottom", color="#555555")
axes.set(xlabel="thousand rows", ylabel="progressive AUC", title="Learning curves, 2 % positives")
axes.set_ylim(top=best + 0.02)
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
