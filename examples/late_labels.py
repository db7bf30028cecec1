"""Labels that come late: how long should a join wait? Share of labels found, and what the model is then worth.

Clicks take ten minutes on average. A short wait takes many positives for negatives; a long one learns later.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model
from rarestream.datasets import make_rare_stream
from rarestream.joining import LabelJoin

stream = make_rare_stream(12_000, positives=0.05, seed=5)
rows = list(stream.dicts())  # one event per second
delays = np.random.default_rng(0).exponential(600, len(rows))
labels = [(number + delays[number], True, number) for number, (_, label) in enumerate(rows) if label]
both = sorted(labels + [(float(number), False, number) for number in range(len(rows))])
test = list(stream.held_out(4_000).dicts())
minutes = [0.5, 2, 5, 10, 20, 60]
found, means = [], []
for wait in minutes:
    join, model = LabelJoin(wait * 60), Model("dual-logistic")
    decided = []
    for time, label, number in both:  # in the order of time
        key = str(number)
        decided += join.label(key, time, 1) if label else join.event(key, time, key.encode())
    decided += join.finish()
    for row in decided:
        model.learn_one(rows[int(row.payload)][0], 1 if row.matched else -1)
    found.append(np.mean([row.matched for row in decided]) * len(rows) / len(labels))
    means.append(np.mean([model.probability_one(row) for row, _ in test]))
    print(f"wait {wait:4} min: {found[-1]:.0%} of the labels, mean probability {means[-1]:.4f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(minutes, found, marker="o", label="labels found")
axes.plot(
    minutes, np.array(means) / np.mean([label for _, label in test]), marker="s", label="mean probability / truth"
)
axes.set(xscale="log", xlabel="minutes to wait", ylabel="share", title="Labels after 10 minutes on average")
axes.set_xticks(minutes, [f"{wait:g}" for wait in minutes])
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
