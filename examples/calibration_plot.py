"""Are the probabilities right? Predicted probability against the share of positives, in bins, with intervals.

The model calibrates itself while it learns. The rows shown were not learned.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model
from rarestream.datasets import make_rare_stream
from rarestream.metrics import calibration_error, reliability

stream = make_rare_stream(100_000, positives=0.05, seed=2)
model = Model()
for block in stream:
    model.learn(block)
test = list(stream.held_out(50_000))
labels = np.concatenate([block.labels for block in test])
probabilities = np.concatenate([model.probability(block) for block in test])

bins = reliability(labels, probabilities, bins=12)
print(f"calibration error {float(calibration_error(labels, probabilities)):.4f}, positives {np.mean(labels > 0):.4f}")

figure, axes = plt.subplots(layout="constrained")
ends = [bins.probability.min(), bins.probability.max()]
axes.plot(ends, ends, color="gray", lw=1, label="perfect")
errors = [bins.share - bins.share_low, bins.share_high - bins.share]
axes.errorbar(bins.probability, bins.share, errors, fmt="o", capsize=3, color="#0b3c6f", label="95 % interval")
axes.set(xscale="log", yscale="log", title="Calibration, 5 % positives")
axes.set(xlabel="predicted probability", ylabel="share of positives")
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
