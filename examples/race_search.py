"""A grid search in which candidates share a pass: `RaceSearchCV` over learning rate and l1, as a heat map.

It has the interface of scikit-learn's `GridSearchCV` and gives its results, without a fit for every cell.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rarestream import datasets
from rarestream.sklearn import DualAveragingClassifier, FeatureSpace, RaceSearchCV

flights = pd.read_csv(datasets.load("flights"))
X = FeatureSpace(bits=16).fit_transform(flights.drop(columns="cancelled"))
y = flights["cancelled"] == "yes"

rates, l1s = [0.2, 0.8, 3.2, 12.8, 51.2], [0.0, 0.3, 1.0, 3.0, 10.0]
search = RaceSearchCV(DualAveragingClassifier(loss="logistic"), {"learning_rate": rates, "l1": l1s}, cv=3).fit(X, y)
print(search.best_params_, f"{search.best_score_:.4f}")

aucs = np.empty((len(l1s), len(rates)))
for setting, auc in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
    aucs[l1s.index(setting["l1"]), rates.index(setting["learning_rate"])] = auc

figure, axes = plt.subplots(layout="constrained")
axes.grid(visible=False)
axes.imshow(aucs, cmap="Blues", aspect="auto")
for (row, column), auc in np.ndenumerate(aucs):
    dark = auc > (aucs.min() + aucs.max()) / 2
    axes.text(column, row, f"{auc:.3f}", ha="center", va="center", color="white" if dark else "black", fontsize="small")
axes.set_xticks(range(len(rates)), rates)
axes.set_yticks(range(len(l1s)), l1s)
axes.set(xlabel="learning rate", ylabel="l1", title="Mean AUC of three folds")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
