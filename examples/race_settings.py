"""A race of 24 settings in one pass over the data: how far each is behind the best, and which were retired.

Every setting scores each row before it learns it, so their AUCs can be compared on the same rows.
"""

import sys
import tempfile

import matplotlib.pyplot as plt

from rarestream import read
from rarestream.datasets import make_rare_stream
from rarestream.race import race

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/rows.svm"
    make_rare_stream(60_000, positives=0.05, seed=6).to_svmlight(path)
    found = race(read(path))
entrants = sorted(found.entrants, key=lambda entrant: entrant.behind)
print(f"winner: {entrants[0].learner}, AUC {entrants[0].auc:.4f}")

figure, axes = plt.subplots(layout="constrained")
for place, entrant in enumerate(entrants, 1):
    if entrant.retired_after is None:
        axes.errorbar(place, entrant.behind, 2 * entrant.error, fmt="o", color="#0b3c6f", capsize=2)
    else:
        axes.plot(place, entrant.behind, "x", color="#c2571a")
        note = f"{entrant.retired_after:,}"
        axes.text(place, entrant.behind + 0.003, note, rotation=90, ha="center", va="bottom", fontsize="x-small")
axes.plot([], [], "o", color="#0b3c6f", label="learned all rows (2 standard errors)")
axes.plot([], [], "x", color="#c2571a", label="retired after so many rows")
axes.margins(y=0.25)
axes.set(xlabel="place", ylabel="AUC behind the winner", title="24 settings, one pass")
axes.legend(loc="upper left")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
