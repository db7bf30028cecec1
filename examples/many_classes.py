"""Many classes, one against the rest: the AUC of each class, all learned in one pass over the rows.

Texts of five topics, one of them in a hundred texts: the rarer a class, the wider its interval.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Block, OneVsRest

draw = np.random.default_rng(0)
topics = np.array(["politics", "sport", "science", "art", "chess"])
rows = 6000
topic = draw.choice(5, rows, p=[0.5, 0.3, 0.14, 0.05, 0.01])  # chess is rare
own = 200 * topic[:, None] + draw.integers(0, 200, (rows, 2))  # two words of its topic
common = 1000 + draw.integers(0, 500, (rows, 12))  # and words of no topic
stray = draw.integers(0, 1000, (rows, 3))  # and words of any topic
words = np.hstack([own, common, stray])
texts = Block.of((np.arange(rows + 1) * words.shape[1], words.ravel(), np.ones(words.size)))

model = OneVsRest()
for start in range(0, rows, 500):
    model.learn(texts[start : start + 500], topics[topic[start : start + 500]])
print(f"macro AUC {float(model.macro_auc):.4f}")

figure, axes = plt.subplots(layout="constrained")
for place, name in enumerate(topics):
    auc = model.progress[name].auc
    axes.errorbar(place, auc, [[auc - auc.low], [auc.high - auc]], fmt="o", capsize=4, color="#0b3c6f")
    print(f"{name:9}{auc:.4f} [{auc.low:.4f}, {auc.high:.4f}], {int(np.sum(topic == place)):,} rows")
axes.set_xticks(range(5), [f"{name}\n{np.mean(topic == place):.0%}" for place, name in enumerate(topics)])
axes.grid(axis="x", visible=False)
axes.set(ylabel="progressive AUC", title="Five topics, one-vs-rest")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
