"""Learning in groups: rows are divided between groups that learn side by side, and their states are merged.

Nothing here knows an engine such as Spark: `train_group` runs wherever the rows of a group are, `merge` where the state
is, and what passes between them are bytes. rarestream.spark is built on these; so would be anything else.
"""

from rarestream.groups.division import Division, auto_groups, auto_rounds, divide
from rarestream.groups.fitting import RoundsFit, fit_groups
from rarestream.groups.merging import Part, merge, merge_features, train_group
from rarestream.groups.receipt import Price, Receipt, RoundReceipt

__all__ = [
    "Division",
    "Part",
    "Price",
    "Receipt",
    "RoundReceipt",
    "RoundsFit",
    "auto_groups",
    "auto_rounds",
    "divide",
    "fit_groups",
    "merge",
    "merge_features",
    "train_group",
]
