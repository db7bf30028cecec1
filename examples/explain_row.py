"""Why this score? What each feature of one flight adds to its score, in the names of the columns."""

import sys

import matplotlib.pyplot as plt

from rarestream import Model, datasets, read

model = Model()
for block in read(datasets.load("flights"), label="cancelled"):
    model.learn(block)
flight = {"departs": "2013-12-31T20:00", "airline": "Envoy Air", "origin": "LGA", "destination": "ORD"}
flight |= {"temperature": 30, "humidity": 92, "wind": 21, "precipitation": 0.05, "visibility": 2.5}
print(f"score {model.score_one(flight):.3f}, probability {model.probability_one(flight):.3f}")

terms = model.explain_one(flight).terms[:10][::-1]
names = [term.name for term in terms]
added = [term.contribution for term in terms]
figure, axes = plt.subplots(layout="constrained")
axes.barh(names, added, color=["#c2571a" if one > 0 else "#0b3c6f" for one in added])
axes.axvline(0, color="gray", lw=1)
axes.grid(axis="y", visible=False)
axes.set(xlabel="added to the score", title="One flight, ten largest terms")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
else:
    plt.show()
