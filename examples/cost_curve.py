"""What a threshold costs: a missed cancellation costs 20, a false alarm 1; the cheapest threshold is marked.

The model learns the first 16,000 flights; the threshold is chosen on the next 6,000.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model, datasets, read
from rarestream.metrics import choose_threshold

FALSE_ALARM, MISSED = 1, 20
model = Model()
scores, labels = [], []
for block in read(datasets.load("flights"), label="cancelled", rows=2000):
    if model.rows < 16_000:
        model.learn(block)
    elif len(scores) < 3:
        scores.append(model.score(block))
        labels.append(block.labels)
score, positive = np.concatenate(scores), np.concatenate(labels) > 0
decision = choose_threshold(positive, score, costs=(FALSE_ALARM, MISSED))
print(f"threshold {decision.threshold:.3f}: recall {decision.recall:.3f}, precision {decision.precision:.3f}")

thresholds = np.linspace(np.quantile(score, 0.5), score.max(), 200)
alarms = np.array([np.mean((score >= t) & ~positive) for t in thresholds]) * FALSE_ALARM
missed = np.array([np.mean((score < t) & positive) for t in thresholds]) * MISSED
figure, axes = plt.subplots(layout="constrained")
axes.plot(thresholds, alarms + missed, label="both")
axes.plot(thresholds, alarms, label="false alarms")
axes.plot(thresholds, missed, label="missed cancellations")
axes.axvline(decision.threshold, color="gray", lw=1)
axes.annotate("cheapest ", (decision.threshold, 0), ha="right", color="#555555")
axes.set(xlabel="threshold", ylabel="cost per flight", title="Costs 1 : 20")
axes.set_ylim(top=1.3 * axes.get_ylim()[1])
axes.legend(loc="upper right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
