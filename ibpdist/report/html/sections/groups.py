"""How many features rows of two groups share."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, label, table, tag
from ibpdist.report.html.numbers import COUNT, NONE, fixed
from ibpdist.report.html.sections._base import Section

AMOUNT = fixed(2)


def body(facts: Facts) -> Html | None:
    if facts.groups is None or not facts.active:
        return None
    names = [str(name) for name in facts.groups["group"].values]
    largest = facts.reduced("groups/shared", "max").value
    places = range(len(names))
    head: list[Child] = ["group", "rows", "features of a row", *(label(name, "group") for name in names)]
    lines = [
        [label(names[g], "group"), *_own(facts, g), *(_cell(facts, g, h, largest) for h in places)]
        for g in places
    ]
    by = tag("span", str(facts.groups.attrs["by"]), data_label="covariate")
    lead = tag("p", "Rows are grouped by their covariate ", by, ".", class_="lead")
    caption = (
        "Features that a row of one group (line) shares with another row of a group (column), on average "
        "over the pairs."
    )
    return join(lead, table(caption, head, lines, class_="heat"))


def _own(facts: Facts, g: int) -> list[Child]:
    return [
        facts.entry("groups/rows", group=g).html(COUNT),
        facts.entry("groups/features", group=g).html(AMOUNT),
    ]


def _cell(facts: Facts, g: int, h: int, largest: float) -> Html:
    number = facts.entry("groups/shared", group=g, group_=h)
    if not number.known:
        return tag("span", NONE, class_="self")
    deep = f"--v:{number.value / largest if largest > 0 else 0.0:.3f}"
    return tag("span", number.html(AMOUNT), class_="cell", style=deep)


SECTION = Section("groups", "Features that groups of rows share", body)
