"""The features, one card each, and a table of how frequent they are and what they explain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibpdist.report.html.charts import bar
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, table, tag
from ibpdist.report.html.numbers import COUNT, NONE, PERCENT, VALUE, WHOLE_PERCENT, Form, Number, fixed
from ibpdist.report.html.portraits import TOP, limit, name, portrait
from ibpdist.report.html.sections._base import Section

ROWS = fixed(0, "rows")


def cards(facts: Facts) -> Html | None:
    """Pictures, or the columns with the largest values; features of counts are lists of words instead."""
    if not facts.shown or not facts.has(f"{facts.feature_node}/mean") or facts.listed:
        return None
    kind = "pictures" if facts.image else "listed spans" if facts.sampled else "listed"
    elements = [_card(facts, k) for k in facts.shown]
    return join(_how(facts), tag("div", elements, class_=f"cards {kind}"), left_out(facts))


def frequencies(facts: Facts) -> Html | None:
    if not facts.shown:
        return None
    columns = list(_columns(facts))
    head: list[Child] = ["feature", *(words for words, _, _, _ in columns)]
    lines = [[name(facts, k), *(_cell(facts, one, k) for one in columns)] for k in facts.shown]
    caption = _matched(facts) if facts.sampled else TOKENS_ADD_UP if facts.counts else ADD_UP
    return join(table(caption, head, lines, class_="bars"), left_out(facts))


ADD_UP = (
    "Prevalence is the share of the rows that have a feature. Shares of the variance of features that "
    "occur together do not add up."
)


TOKENS_ADD_UP = (
    "Prevalence is the share of the rows that have a feature. Shares of the tokens of all features add up "
    "to one."
)


def _matched(facts: Facts) -> Html:
    """The note on the features of a sampler."""
    return join(
        "Features of the draws are matched to those of the likeliest draw. The share of the rows is the mean "
        "over the draws that have the feature; from and to are its ", ends(facts), " quantiles."
    )  # fmt: skip


def ends(facts: Facts) -> Child:
    """5 % and 95 %."""
    low, high = (f"{100 * end:.0f}\u00a0%" for end in facts.features.attrs["interval"])
    return [tag("span", low, data_limit="interval"), " and ", tag("span", high, data_limit="interval")]


def rows_with(facts: Facts, k: int) -> Number:
    """Expected rows that have feature k."""
    share = facts.entry(f"{facts.feature_node}/prevalence", feature=k)
    return Number(share.variable, share.value * float(facts.attrs["rows"]), share.index, "rows")


def left_out(facts: Facts) -> Html | None:
    """The note on features that are not listed."""
    more = facts.active[len(facts.shown) :]
    if facts.sampled:
        return _seldom(facts)
    if not more:
        return None
    count = Number("params/active", float(len(more)), of="not shown").html(COUNT)
    if facts.counts:
        most = token_share(facts, more[0]).html(PERCENT)
        return tag("p", count, " more features are not shown; each has at most ", most, " of the tokens.")
    least = facts.entry("params/prevalence", feature=more[-1]).html(VALUE)
    return tag("p", count, " more features are not shown; the least frequent has prevalence ", least, ".")


def token_share(facts: Facts, k: int) -> Number:
    """The share of the tokens of all features that feature k has."""
    tokens = facts.values("params/tokens")
    share = float(tokens[k]) / max(float(tokens.sum()), np.finfo(float).tiny)
    return Number("params/tokens", share, (("feature", k),), "share of all")


def _seldom(facts: Facts) -> Html | None:
    """The note on features over draws that are not listed; rare ones never are."""
    share = facts.values("features/share")
    more = len(share) - len(facts.shown)
    if not more:
        return None
    count = Number("features/share", float(more), of="not shown").html(COUNT)
    most = facts.entry("features/share", feature=len(facts.shown)).html(PERCENT)
    return tag("p", count, " more features are not shown; at most ", most, " of the draws have one of them.")


def _how(facts: Facts) -> Html:
    if facts.image is None:
        count = tag("span", str(TOP), data_limit="columns")
        more: Child = ", ± standard deviation." if facts.uncertain else "."
        if facts.sampled:
            more = [": mean over the draws that have it, and in brackets ", ends(facts), " quantiles."]
        words: Child = ["The ", count, " columns with the largest values of each feature", more]
        return tag("p", words, class_="lead")
    most = limit(facts)
    high, wide = (tag("span", str(size), data_label="image") for size in facts.image)
    scale = [fixed_ends(most), tag("i", class_="scale", aria_hidden="true"), most.html(VALUE)]
    return tag(
        "p",
        ["Columns drawn as images of ", high, " × ", wide, ". "],
        tag("span", "One scale for all: ", scale, " (blue below zero, red above).", class_="key"),
        class_="lead",
    )


def fixed_ends(most: Number) -> Html:
    """The lower end of the scale, as far below zero as the upper is above."""
    return Number(most.variable, -most.value, of="minus the " + most.of).html(VALUE)


def _card(facts: Facts, k: int) -> Html:
    prevalence = facts.entry(f"{facts.feature_node}/prevalence", feature=k)
    lines: list[Child] = [
        tag("h3", name(facts, k, capital=True)),
        portrait(facts, k),
        tag("p", bar(prevalence.value), class_="meter"),
    ]
    flags = [tag("p", word, class_="flag") for word in _flags(facts, k)]
    return tag("article", lines, known_of(facts, k), flags, class_="card")


def known_of(facts: Facts, k: int) -> list[Html]:
    """Lines of a card: in how many rows the feature is, what it explains, and where it is found again."""
    prevalence = facts.entry(f"{facts.feature_node}/prevalence", feature=k)
    lines = [tag("p", prevalence.html(PERCENT), " of the rows", class_="fact")]
    if facts.sampled:
        share = facts.entry("features/share", feature=k).html(WHOLE_PERCENT)
        lines.append(tag("p", "in ", share, " of the draws", class_="fact"))
    if facts.has("diagnosis/explained"):
        share = facts.entry("diagnosis/explained", feature=k).html(PERCENT)
        lines.append(tag("p", "explains ", share, " of the variance", class_="fact"))
    again = facts.stability_of("stability", k)
    if again is not None:
        lines.append(tag("p", "found in ", again.html(WHOLE_PERCENT), " of other starts", class_="fact"))
    back = facts.stability_of("returns", k)
    if back is not None:
        lines.append(
            tag("p", "comes back in ", back.html(WHOLE_PERCENT), " of the subsamples", class_="fact")
        )
    return lines


def _flags(facts: Facts, k: int) -> Iterator[str]:
    for variable, word in (
        ("constant", "in every row"),
        ("idle", "explains nothing"),
        ("rare", "barely used"),
    ):
        if facts.has(f"diagnosis/{variable}") and bool(facts.values(f"diagnosis/{variable}")[k]):
            yield word


Column = tuple[str, str, Form, float]
"""Words of the head, variable, form, the value that a full bar stands for, or 0 without a bar."""
OVER_DRAWS: tuple[Column, ...] = (
    ("share of the draws, %", "features/share", PERCENT, 1.0),
    ("share of the rows, %", "features/prevalence", PERCENT, 1.0),
    ("from, %", "features/prevalence_low", PERCENT, 0.0),
    ("to, %", "features/prevalence_high", PERCENT, 0.0),
    ("rows, expected", "", fixed(1), 0.0),
)


def _columns(facts: Facts) -> Iterator[Column]:
    if facts.sampled:
        yield from OVER_DRAWS
        return
    if facts.counts:
        yield "share of the tokens, %", "params/tokens", PERCENT, token_share(facts, facts.shown[0]).value
    yield "share of the rows, %", "params/prevalence", PERCENT, 1.0
    yield "rows, expected", "", fixed(1), 0.0
    if facts.has("params/chance"):
        yield "chance in a new row, %", "params/chance", PERCENT, 0.0
    if facts.has("diagnosis/explained"):
        yield "of the variance, %", "diagnosis/explained", PERCENT, 1.0
    if facts.has("stability/stability"):
        yield "other starts that find it, %", "stability/stability", PERCENT, 1.0
    if facts.has("stability/returns"):
        yield "subsamples in which it comes back, %", "stability/returns", PERCENT, 1.0


def _cell(facts: Facts, column: Column, k: int) -> Child:
    _, variable, form, full = column
    number = _number(facts, variable, k)
    if number is None or not number.known:
        return NONE
    shown = number.html(form, unit=False)
    return [shown, bar(number.value / full)] if full else shown


def _number(facts: Facts, variable: str, k: int) -> Number | None:
    if variable.startswith("stability/"):
        return facts.stability_of(variable.partition("/")[2], k)
    if variable == "params/tokens":
        return token_share(facts, k)
    return facts.entry(variable, feature=k) if variable else rows_with(facts, k)


CARDS = Section("features", "The features", cards)
FREQUENCIES = Section("prevalence", "How common each feature is", frequencies)
