"""The features of counts: a card each, with the words that have the largest shares of it."""

from __future__ import annotations

from ibpdist.report.html.charts import bar
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Html, join, label, tag
from ibpdist.report.html.numbers import PERCENT
from ibpdist.report.html.portraits import name
from ibpdist.report.html.sections._base import Section
from ibpdist.report.html.sections.features import known_of, left_out, token_share
from ibpdist.report.words import largest, word_of

TOP = 10
"""Words that are listed for a feature."""


def body(facts: Facts) -> Html | None:
    if not facts.shown or not facts.listed:
        return None
    count = tag("span", str(TOP), data_limit="words")
    by = ": mean over the draws that have it." if facts.sampled else ", features with most tokens first."
    lead = tag("p", "The ", count, " words with the largest shares of each feature", by, class_="lead")
    cards = [_card(facts, k) for k in facts.shown]
    return join(lead, tag("div", cards, class_="cards words"), left_out(facts))


def _card(facts: Facts, k: int) -> Html:
    heading = tag("h3", name(facts, k, capital=True))
    return tag("article", heading, _tokens(facts, k), _words(facts, k), known_of(facts, k), class_="card")


def _tokens(facts: Facts, k: int) -> Html | None:
    """How many of the tokens the feature has; draws tell of their own features alone."""
    if facts.sampled:
        return None
    return tag("p", token_share(facts, k).html(PERCENT), " of the tokens", class_="fact")


def _words(facts: Facts, k: int) -> Html:
    shares = facts.values(f"{facts.feature_node}/mean")[k]
    top = largest(shares, TOP)
    lines = [_word(facts, k, int(d), float(shares[d] / (shares[top[0]] or 1.0))) for d in top]
    return tag("ul", lines, class_="columns", aria_label=f"Words with the largest shares of feature {k}")


def _word(facts: Facts, k: int, d: int, length: float) -> Html:
    number = facts.entry(f"{facts.feature_node}/mean", feature=k, column=d)
    value = tag("span", number.html(PERCENT), class_="value")
    return tag("li", label(word_of(facts.columns, d), "column"), bar(length), value)


SECTION = Section("words", "Words of the features", body)
