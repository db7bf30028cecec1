"""A stream whose truth turns over: a half-life lets old rows fade, so that the model follows.

AUC of the last 16,384 rows, each scored before it was learned. A half-life that is too short forgets too much.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import DualAveraging, Model, WindowedAuc
from rarestream.datasets import make_rare_stream

stream = make_rare_stream(200_000, positives=0.05, drift=60_000, seed=1)
figure, axes = plt.subplots(layout="constrained")
for half_life, name in ((0, "none"), (2_000, "2,000 rows"), (16_000, "16,000 rows")):
    model = Model(DualAveraging(loss="logistic", half_life=half_life), calibrate=False)
    window = WindowedAuc(16_384)
    rows, aucs = [], []
    for block in stream:
        window.add(block.labels, model.learn(block))
        rows.append(model.rows)
        aucs.append(float(window.auc))
    axes.plot(np.array(rows[1:]) / 1000, aucs[1:], label=f"half-life {name}")
    print(f"half-life {name:12}AUC of the last rows {aucs[-1]:.4f}")
axes.set(xlabel="thousand rows", ylabel="AUC of the last 16,384 rows", title="Drift")
axes.set_ylim(bottom=axes.get_ylim()[0] - 0.07)
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
