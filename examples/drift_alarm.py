"""An alarm when the AUC falls: after row 60,000 the world is another one, and a detector notices.

The detector is given the scores that rows had before they were learned. False alarms have a stated rate.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model, WindowedAuc
from rarestream.datasets import make_rare_stream
from rarestream.metrics import DriftDetector

before = make_rare_stream(60_000, positives=0.05, seed=1)
after = make_rare_stream(60_000, positives=0.05, seed=2)  # other weights

model, window = Model("dual-logistic"), WindowedAuc(8_192)
detector = DriftDetector(positives_between_false_alarms=100_000)
rows, aucs, alarm = [], [], None
for block in (piece[start : start + 1024] for piece in [*before, *after] for start in range(0, len(piece), 1024)):
    scores = model.learn(block)
    window.add(block.labels, scores)
    rows.append(model.rows)
    aucs.append(float(window.auc))
    if detector.count(block.labels, scores) and alarm is None:
        alarm = detector.alarm
        print(
            f"alarm at row {alarm.row:,}: AUC {alarm.before:.3f}, from about row {alarm.begin:,} on {alarm.after:.3f}"
        )

figure, axes = plt.subplots(layout="constrained")
axes.plot(np.array(rows[8:]) / 1000, aucs[8:], label="AUC of the last 8,192 rows")
axes.axvline(60, color="gray", lw=1, label="the change")
if alarm is not None:
    axes.axvline(alarm.row / 1000, color="#c2571a", ls="--", label=f"alarm, row {alarm.row:,}")
axes.set(xlabel="thousand rows", ylabel="AUC", title="An alarm")
axes.set_ylim(bottom=0.75)
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
