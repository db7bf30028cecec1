"""How many bits does hashing need? AUC of the same stream, with names hashed to 2^bits slots.

With few bits different names share a slot, and their weights are mixed.
"""

import sys

import matplotlib.pyplot as plt

from rarestream import Model, datasets, read

bits = [4, 6, 8, 10, 12, 14, 16, 18]
figure, axes = plt.subplots(layout="constrained")
for name, options in (
    ("sms, words", {"label": "label", "text": ["message"]}),
    ("flights, columns", {"label": "cancelled"}),
):
    aucs = []
    for count in bits:
        model = Model("dual-logistic")
        for block in read(datasets.load(name.split(",")[0]), bits=count, **options):
            model.learn(block)
        aucs.append(float(model.progress.auc))
    axes.plot(bits, aucs, marker="o", label=name)
    print(name, " ".join(f"{count}:{auc:.3f}" for count, auc in zip(bits, aucs, strict=True)))
axes.set(xlabel="bits", ylabel="progressive AUC", title="Hashing to 2^bits slots")
axes.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
