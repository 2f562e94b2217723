"""Which features occur together."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, table, tag
from ibpdist.report.html.numbers import NONE, WHOLE_PERCENT, Number
from ibpdist.report.html.portraits import name
from ibpdist.report.html.rows import Seen
from ibpdist.report.html.sections._base import Section

MOST = 24
"""Features of the table; it has a cell for each pair."""


def body(facts: Facts) -> Html | None:
    shown = facts.shown[:MOST]
    seen = facts.seen
    if seen is None or len(shown) < 2:
        return None
    head: list[Child] = ["of the rows with", *(name(facts, j, small=True) for j in shown)]
    lines = [[name(facts, k), *(_cell(facts, seen, k, j) for j in shown)] for k in shown]
    caption = "How many of the rows with one feature (line) have the other as well (column), in per cent."
    heat = table(caption, head, lines, class_="heat")
    if len(facts.active) == len(shown):
        return heat
    count = tag("span", str(MOST), data_limit="pairs")
    return join(heat, tag("p", "Only the ", count, f" {facts.measures.first} are compared."))


def share(facts: Facts, seen: Seen, k: int, j: int) -> Number:
    """The share of the rows with feature k that have j, by the products of their probabilities."""
    with_k = seen.together[k, k]
    value = float(seen.together[k, j] / with_k) if with_k else float("nan")
    return Number(f"{facts.row_node}/z", value, (("feature", k), ("feature_", j)), "share together")


def _cell(facts: Facts, seen: Seen, k: int, j: int) -> Html:
    if k == j:
        return tag("span", NONE, class_="self")
    number = share(facts, seen, k, j)
    deep = f"--v:{min(number.value, 1.0) if number.known else 0.0:.3f}"
    return tag("span", number.html(WHOLE_PERCENT, unit=False), class_="cell", style=deep)


SECTION = Section("together", "Features that occur together", body)
