"""The words that tell spam from other text messages: the largest weights of a model of the packaged messages."""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model, datasets, read

model = Model("dual-logistic")
for block in read(datasets.load("sms"), label="label", text=["message"]):
    model.learn(block)
print(f"progressive AUC {model.progress.auc}")

order = np.argsort(model.coef)
chosen = np.concatenate([order[:8], order[-8:]])
names = [name.split("=", 1)[-1].strip() for name in model.feature_names(chosen)]
weights = model.coef[chosen]
print(" ".join(names[::-1]))

figure, axes = plt.subplots(layout="constrained")
axes.barh(np.arange(16), weights, color=["#c2571a" if weight > 0 else "#0b3c6f" for weight in weights])
axes.set_yticks(np.arange(16), names, fontsize="small")
axes.axvline(0, color="gray", lw=1)
axes.grid(axis="y", visible=False)
axes.set(xlabel="weight (right: spam)", title="Words that count")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
