"""Tables of learners for the documentation and the README, made from the registry."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rarestream import Learner, learner_names, make_learner
from rarestream.learners import learner_classes

FACTS = {  # the fields of a learner's `about`, as the tables name them
    "objective": "objective",
    "cost": "cost per row",
    "published": "in the authors' code",
    "sparse": "zero weights",
    "returns": "returns",
    "paper": "paper",
}


def page_of(cls: type[Learner]) -> str:
    """Return the name of a learner's page."""
    return cls.__module__.rpartition(".")[2].replace("_", "-")


def names_of(cls: type[Learner]) -> str:
    """Return the names of a learner in the registry, as code."""
    return ", ".join(f"`{name}`" for name in learner_names() if type(make_learner(name)) is cls)


def learner_facts(cls: type[Learner]) -> list[str]:
    """Return the table at the top of a learner's page."""
    rows = [f"| {FACTS[field]} | {getattr(cls.about, field)} |" for field in FACTS]
    return [f"| name | {names_of(cls)} |", "|---|---|", *rows]


def learner_table(fields: Collection[str], link: Callable[[type[Learner]], str]) -> list[str]:
    """Return a table of all learners, ours first: some fields of `about`, and a link to each learner's page."""
    head = ["learner", "name", *(FACTS[field] for field in fields)]
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for cls in sorted(learner_classes(), key=lambda cls: not cls.about.paper.startswith("ours")):
        cells = [f"[`{cls.__name__}`]({link(cls)})", names_of(cls), *(getattr(cls.about, field) for field in fields)]
        rows.append("| " + " | ".join(cells) + " |")
    return rows
