"""Numbers without scaling: what a model learns of a number as soft buckets, as a raw number, and as a category.

Positives are frequent for prices around 8. A raw number can only rise or fall; a category knows only the prices that
occurred; soft buckets give a continuous curve.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rarestream import Model, read

draw = np.random.default_rng(0)
prices = np.round(draw.lognormal(1.5, 1.2, 20_000), 1) + 0.1
chances = 0.02 + 0.2 * np.exp(-((np.log(prices / 8)) ** 2))
clicked = draw.random(20_000) < chances
sites = draw.integers(50, size=20_000)
rows = [
    {"price": float(price), "site": f"s{site}", "clicked": int(click)}
    for price, site, click in zip(prices, sites, clicked, strict=True)
]

grid = np.geomspace(0.3, 100, 120)
figure, axes = plt.subplots(layout="constrained")
axes.plot(grid, 0.02 + 0.2 * np.exp(-((np.log(grid / 8)) ** 2)), color="gray", lw=4, alpha=0.5, label="truth")
for name, options in (
    ("soft buckets", {}),
    ("raw number", {"numbers": "raw"}),
    ("category", {"categorical": ["price"]}),
):
    model = Model("dual-logistic")
    for block in read(rows, label="clicked", **options):
        model.learn(block)
    print(f"{name:14}progressive AUC {model.progress.auc:.4f}")
    axes.plot(
        grid, [model.probability_one({"price": round(float(price), 1), "site": "s1"}) for price in grid], label=name
    )
axes.set(xscale="log", xlabel="price", ylabel="probability", title="One number, three ways")
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
