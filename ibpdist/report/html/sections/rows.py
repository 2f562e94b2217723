"""The rows that belong to each feature most."""

from __future__ import annotations

from collections.abc import Sequence

from ibpdist.report.html.facts import Facts, Values
from ibpdist.report.html.markup import Child, Html, label, table, tag
from ibpdist.report.html.numbers import NONE, VALUE, WHOLE_PERCENT, Number
from ibpdist.report.html.portraits import name
from ibpdist.report.html.rows import Best
from ibpdist.report.html.sections._base import Section


def body(facts: Facts) -> Html | None:
    seen = facts.seen
    if seen is None or not facts.shown or (facts.sampled and facts.scaled):
        return None
    labels = facts.labels("row", "rows")
    lines = [[name(facts, k), _list(facts, k, seen.best[k], labels)] for k in facts.shown]
    return table(_caption(facts), ["feature", "rows"], lines, class_="rows")


def _caption(facts: Facts) -> str:
    words = "Rows dominated by each feature, the most typical first"
    if facts.counts:
        return f"{words}: the share of the tokens of the row that it has, and how many these are."
    weight = "; × its weight in the row." if facts.has("rows/w") else "."
    return f"{words}; % is its share of what all features explain in that row{weight}"


def _list(facts: Facts, k: int, best: Sequence[Best], labels: Values | None) -> Child:
    if not best:
        return f"{NONE} no row has it with more than even chance"
    return tag("ul", [tag("li", _row(facts, k, one, labels)) for one in best])


def _row(facts: Facts, k: int, one: Best, labels: Values | None) -> Child:
    said = label(f"row {one.row}" if labels is None else labels[one.row], "row")
    at = (("row", one.row), ("feature", k))
    share = Number(f"{facts.row_node}/z", one.share, at, "share of the row").html(WHOLE_PERCENT)
    return [said, " ", tag("small", share, _amount(facts, one, at))]


def _amount(facts: Facts, one: Best, at: tuple[tuple[str, int], ...]) -> Child:
    """The weight of a feature in a row, if it has one; of counts the tokens."""
    if facts.counts:
        return [", ", Number("rows/w", one.z * one.w, at, "times z").html(VALUE), " tokens"]
    return [" × ", Number("rows/w", one.w, at).html(VALUE)] if facts.has("rows/w") else None


SECTION = Section("rows", "Most typical rows of each feature", body)
