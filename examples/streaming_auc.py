"""AUC of a million scores in bounded memory: exact at first, then with a certified bound on its own error.

The true error, which needs all scores in memory to be known, is far below the bound.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import StreamingAuc, auc

draw = np.random.default_rng(0)
rows = 1_000_000
labels = np.where(draw.random(rows) < 0.1, 1, -1)
scores = draw.normal(size=rows) + (labels > 0)

streaming = StreamingAuc()
seen, bounds, errors = [], [], []
for start in range(0, rows, 50_000):
    end = start + 50_000
    streaming.add(labels[start:end], scores[start:end])
    seen.append(end / 1000)
    bounds.append(streaming.auc.bound)
    errors.append(abs(float(streaming.auc) - auc(labels[:end], scores[:end])))
print(f"AUC {streaming.auc:.6f}, bound {bounds[-1]:.1e}, true error {errors[-1]:.1e}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(seen, bounds, label="certified bound")
axes.plot(seen, errors, label="true error")
axes.set(yscale="log", xlabel="thousand rows", ylabel="error of the AUC", title="Streaming AUC")
axes.set_ylim(top=3e-3)
axes.legend(loc="upper right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
