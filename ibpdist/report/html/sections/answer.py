"""The head of the page: how many features there are, in one sentence, and the numbers to know first."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, label, sentence, tag
from ibpdist.report.html.measures import PERPLEXITY, perplexity
from ibpdist.report.html.numbers import COUNT, NATS, PERCENT, SCORE, VALUE, Form, Number
from ibpdist.report.html.ranking import HOLDOUT
from ibpdist.report.html.score import heldout
from ibpdist.report.html.sections import posterior


def headline(facts: Facts) -> Html:
    """4 features explain 86.8 % of the variance; of counts, what they predict; of a sampler, how many the
    draws have."""
    if facts.sampled:
        return posterior.headline(facts)
    active = facts.reduced("params/active", "sum")
    if facts.counts:
        return _predicting(facts, active)
    if not active.value:
        return join(active.html(COUNT), " features: nothing but noise was found")
    noun, verb = ("feature", " explains ") if active.value == 1 else ("features", " explain ")
    start = join(active.html(COUNT), f" {noun}")
    if not facts.has("diagnosis/explained_together"):
        return start
    return join(start, verb, facts.entry("diagnosis/explained_together").html(PERCENT), " of the variance")


def _predicting(facts: Facts, active: Number) -> Html:
    """8 features predict hidden tokens with perplexity 1,213.4."""
    one = active.value == 1
    words = [active.html(COUNT), " feature" if one else " features"]
    if not facts.predicts or not facts.entry("params/scored_tokens").value:
        return join(words)
    verb = " predicts" if one else " predict"
    return join(words, verb, " hidden tokens with perplexity ", own_perplexity(facts).html(PERPLEXITY))


def own_perplexity(facts: Facts) -> Number:
    """Of the tokens of the rows that the fit did not see."""
    return perplexity(facts.entry("params/score"))


def opening(facts: Facts) -> Html:
    """The data and the system of the fit."""
    rows, columns = facts.attribute("rows"), facts.attribute("columns")
    system = tag("span", facts.attrs["system"], data_variable="attrs/system")
    within = [rows.html(COUNT), " rows of ", columns.html(COUNT), " columns"]
    most = facts.attribute("truncation").html(COUNT)
    how: Child = [", which was given room for ", most, " features."]
    if facts.sampled:
        how = [": ", posterior.drawn(facts), "."]
    return sentence("Found in ", within, " by ", system, how, _chosen(facts))


def _chosen(facts: Facts) -> Child:
    if facts.summary is None:
        return None
    by = "held-out score" if heldout(facts) is not None else facts.measures.objective
    if HOLDOUT not in facts.summary.dims:
        fits = Number("summary/objective", float(facts.values("summary/objective").size), of="size")
        return [" The best of ", fits.html(COUNT), f" fits, by {by}, is shown."]
    at = facts.best_at.get(HOLDOUT, 0)
    size = facts.summary["objective"].isel({HOLDOUT: at}).size
    fits = Number("summary/objective", float(size), ((HOLDOUT, at),), "size")
    named = label(facts.summary[HOLDOUT].values[at], HOLDOUT)
    words = " Fits with different hold-outs cannot be compared. Shown is the best of the "
    return [words, fits.html(COUNT), " fits with hold-out ", named, f", by {by}."]


def glance(facts: Facts) -> Html:
    """The numbers to know first."""
    entries = [
        *(_of_draws(facts) if facts.sampled else _of_fit(facts)),
        _heldout(facts),
        ("steps made", facts.attribute("steps"), COUNT),
    ]
    return tag("dl", [_entry(words, n, form) for words, n, form in entries if n is not None], class_="glance")


Entry = tuple[str, Number | None, Form]


def _heldout(facts: Facts) -> Entry:
    score = heldout(facts)
    if not facts.counts:
        return "held-out score, nats a hidden cell", score, SCORE
    return "held-out perplexity", None if score is None else perplexity(score), PERPLEXITY


def _of_fit(facts: Facts) -> list[Entry]:
    found: list[Entry] = [
        ("features", facts.reduced("params/active", "sum"), COUNT),
        ("of the variance explained", _if(facts, "diagnosis/explained_together"), PERCENT),
        (_STABLE[facts.has("stability/returns")], stable(facts), COUNT),
    ]
    if not facts.predicts:
        return [*found, ("objective, nats", facts.attribute("objective"), NATS)]
    tokens = facts.entry("params/scored_tokens")
    known = own_perplexity(facts) if tokens.value else None
    return [*found, ("perplexity of hidden tokens", known, PERPLEXITY), ("hidden tokens", tokens, COUNT)]


def _of_draws(facts: Facts) -> list[Entry]:
    chains, each = posterior.sizes(facts)
    return [
        ("features, on average", facts.reduced("posterior/features", "mean"), VALUE),
        ("chains", chains, COUNT),
        ("draws of each chain", each, COUNT),
        ("largest R-hat", posterior.worst(facts), posterior.RHAT),
    ]


_STABLE = {False: "features that most other starts find", True: "features that come back in most subsamples"}


def stable(facts: Facts) -> Number | None:
    """Active features that enough of the other starts of a campaign, or of the subsamples, find."""
    return facts.reduced("stability/stable", "sum") if facts.has("stability/stable") else None


def _entry(words: str, number: Number, form: Form) -> Html:
    bare = number.html(form, unit=form is PERCENT)
    return tag("div", tag("dt", words), tag("dd", bare))


def _if(facts: Facts, variable: str) -> Number | None:
    return facts.entry(variable) if facts.has(variable) else None
