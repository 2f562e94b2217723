"""Which features the restarts of a campaign find again, and which come back in subsamples of the rows."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, table, tag
from ibpdist.report.html.numbers import NONE, PERCENT, WHOLE_PERCENT, Number, fixed
from ibpdist.report.html.portraits import name
from ibpdist.report.html.sections._base import Section

MOST = 24
"""Other starts of the table."""
ALIKE = fixed(2)


def body(facts: Facts) -> Html | None:
    if not facts.shown or not facts.has("stability/stability"):
        return None
    restarts = list(_restarts(facts))
    head: list[Child] = [
        "feature",
        "found in",
        *(tag("span", text, data_label="restart") for _, text in restarts),
    ]
    lines = [_line(facts, k, [at for at, _ in restarts]) for k in facts.shown]
    lead = tag(
        "p",
        "The best fit is compared with the other starts of the same settings. A feature that other starts "
        "find again is a property of the data; one that they do not find may be an accident of this start.",
        class_="lead",
    )
    return join(lead, table(_caption(facts), head, lines, class_="heat"))


def _caption(facts: Facts) -> Html:
    """What the table shows, and when a feature counts as found."""
    limit = tag("span", f"{facts.stability.attrs['matched']:g}", data_limit="match")
    return join(
        "Share of the other starts that find a feature, and the cosine of the closest feature of each. A "
        "start finds a feature, and its cell is shaded, when the two differ by a root mean square below ",
        limit,
        " feature standard deviations.",
    )


def _restarts(facts: Facts) -> list[tuple[int, str]]:
    if not facts.has("stability/similarity"):
        return []
    count = facts.stability.sizes["restart"]
    return [(at, f"start {facts.stability['restart'].values[at]}") for at in range(min(count, MOST))]


def _line(facts: Facts, k: int, restarts: list[int]) -> list[Child]:
    again = facts.stability_of("stability", k)
    share = NONE if again is None else again.html(WHOLE_PERCENT)
    return [name(facts, k), share, *(_cell(facts, k, at) for at in restarts)]


def _cell(facts: Facts, k: int, restart: int) -> Html:
    number, present = (facts.stability_of(name, k, restart=restart) for name in ("similarity", "present"))
    return _shaded(number, present)


def _shaded(number: Number | None, present: Number | None) -> Html:
    """The cosine of two features, shaded when they are the same."""
    if number is None or present is None or not number.known:
        return tag("span", NONE, class_="self")
    if not present.value:
        return tag("span", number.html(ALIKE), class_="self")
    deep = f"--v:{min(max(number.value, 0.0), 1.0):.3f}"
    return tag("span", number.html(ALIKE), class_="cell", style=deep)


def subsamples(facts: Facts) -> Html | None:
    """Of a single run: the share of the subsamples that find each feature, and what each of them finds."""
    if not facts.shown or not facts.has("stability/returns"):
        return None
    held = facts.result["stability"]
    parts = range(min(held.sizes["subsample"], MOST))
    heads = [tag("span", f"subsample {at + 1}", data_label="subsample") for at in parts]
    lines = [
        [name(facts, k), _share(facts, k), _agreement(facts, k), *(_part(facts, k, at) for at in parts)]
        for k in facts.shown
    ]
    lead = tag(
        "p",
        "The same model was fitted to subsamples of the rows. A feature that comes back does not depend on "
        "which rows were measured; the others may be combinations that these rows happen to favour.",
        class_="lead",
    )
    caption = join(
        "Share of the subsamples in which a feature comes back, the share of their rows in which both fits "
        "agree who has it, and the cosine of the closest feature of each subsample. A feature comes back, "
        "and its cell is shaded, when the cosine is above ",
        tag("span", f"{held.attrs['matched']:g}", data_limit="match"),
        ".",
    )
    head: list[Child] = ["feature", "comes back in", "same rows", *heads]
    return join(lead, table(caption, head, lines, class_="heat"))


def _share(facts: Facts, k: int) -> Child:
    again = facts.stability_of("returns", k)
    return NONE if again is None else again.html(WHOLE_PERCENT)


def _agreement(facts: Facts, k: int) -> Child:
    at = [int(one) for one in facts.result["stability"]["feature"].values].index(k)
    number = facts.reduced("stability/agreement", "mean", feature=at)
    return number.html(PERCENT) if number.known else NONE


def _part(facts: Facts, k: int, subsample: int) -> Html:
    number, present = (facts.stability_of(what, k, subsample=subsample) for what in ("similarity", "present"))
    return _shaded(number, present)


SECTION = Section("stability", "What other starts find", body)
SUBSAMPLES = Section("subsamples", "What subsamples find", subsamples)
