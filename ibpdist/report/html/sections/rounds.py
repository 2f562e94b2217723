"""The rounds that the features of a beta process come from."""

from __future__ import annotations

import numpy as np

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, table, tag
from ibpdist.report.html.numbers import NONE, WHOLE_PERCENT
from ibpdist.report.html.portraits import name
from ibpdist.report.html.sections._base import Section

MOST = 24
"""Rounds of the table."""
LEAST = 0.005
"""The least probability of a round that is shown."""
DRAWN = "The round of each feature in the last draw of the first chain; in other draws it may be another."


def body(facts: Facts) -> Html | None:
    if not facts.shown or not facts.has("params/round_chance"):
        return None
    likely = facts.values("params/round_chance")[facts.shown].max(axis=0) >= LEAST
    last = min(int(np.flatnonzero(likely).max(initial=0)) + 1, MOST)
    head: list[Child] = ["feature", *(tag("span", f"round {r + 1}", data_label="round") for r in range(last))]
    lines = [[name(facts, k), *(_cell(facts, k, r) for r in range(last))] for k in facts.shown]
    known = (
        "Chains draw the rounds"
        if facts.sampled
        else "A fit knows the rounds only by how frequent features are"
    )
    lead = tag(
        "p",
        "A beta process makes its features in rounds: the later the round, the fewer rows have the feature "
        f"on average. {known}.",
        class_="lead",
    )
    caption = DRAWN if facts.sampled else "How likely each feature is to come from each round, in per cent."
    return join(lead, table(caption, head, lines, class_="heat"))


def _cell(facts: Facts, k: int, r: int) -> Html:
    number = facts.entry("params/round_chance", feature=k, round=r)
    if not number.value >= LEAST:
        return tag("span", NONE, class_="self")
    deep = f"--v:{min(number.value, 1.0):.3f}"
    return tag("span", number.html(WHOLE_PERCENT, unit=False), class_="cell", style=deep)


SECTION = Section("rounds", "Rounds of the features", body)
