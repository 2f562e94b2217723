"""How the fit progressed: the objective and the number of features step by step, and the moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ibpdist.report.html.charts import COLOURS, Chart, Curve
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, figure, join, table, tag
from ibpdist.report.html.numbers import COUNT, NATS, Form, Number
from ibpdist.report.html.sections._base import Section
from ibpdist.report.moves import tallies
from ibpdist.runs import variables

EARLY = 0.05
"""Share of the steps that may lie below the frame, so that the rest can be seen."""
OF_A_FIT = ("sticks", "tail", "z entropy", "prediction")
"""Terms that a log joint density does not have; a chain that began with a fit has them in its first steps."""


def body(facts: Facts) -> Html | None:
    if not facts.has("trace/objective") or not facts.values("trace/objective").size:
        return None
    level, made_of = (_prediction(facts), None) if facts.predicts else (_objective(facts), _terms(facts))
    charts = [level, _active(facts) if facts.has("trace/active") else None]
    return join(tag("div", charts, class_="charts"), _moves(facts), made_of)


def _chains(facts: Facts) -> list[dict[str, int]]:
    """Positions of the chains of a sampler; one of no dims for a fit."""
    objective = facts.result["trace"]["objective"]
    return [{"chain": at} for at in range(objective.sizes["chain"])] if "chain" in objective.dims else [{}]


def _curve(facts: Facts, name: str, words: str, colour: int) -> Iterator[Curve]:
    """A curve, one for each of several chains."""
    steps = facts.result["trace"]["step"].values
    chains = _chains(facts)
    for more, chain in enumerate(chains):
        points = [
            (float(step), facts.entry(f"trace/{name}", step=at, **chain)) for at, step in enumerate(steps)
        ]
        label = f"{words}, chain {more}" if len(chains) > 1 else words
        yield Curve(label, points, (colour + more) % COLOURS)


def _objective(facts: Facts) -> Html | None:
    curves = list(_curve(facts, "objective", "log joint" if facts.sampled else "objective", 0))
    if facts.has("trace/bound") and len(curves) == 1:
        same = np.array_equal(facts.values("trace/bound"), facts.values("trace/objective"))
        curves += [] if same else _curve(facts, "bound", "bound", 1)
    if facts.counts and facts.sampled:
        curves = [_without_start(facts, curve, at) for curve, at in zip(curves, _chains(facts), strict=True)]
    return _drawn(facts, curves, "log joint density" if facts.sampled else "objective", NATS)


def _without_start(facts: Facts, curve: Curve, chain: dict[str, int]) -> Curve:
    """The steps of a chain of counts alone: the fit that it begins with predicts hidden tokens, and what that
    is worth cannot stand beside a log joint density."""
    if not facts.has("trace/warming"):
        return curve
    steps = enumerate(curve.points)
    own = [p for at, p in steps if facts.entry("trace/warming", step=at, **chain).value != 1]
    return replace(curve, points=own)


def _prediction(facts: Facts) -> Html | None:
    """Of counts: how well the tokens that a fit does not see are predicted."""
    tokens = facts.entry("params/scored_tokens").value
    steps = facts.result["trace"]["step"].values
    numbers = (facts.entry("trace/objective", step=at) for at in range(len(steps)))
    points = [
        (float(step), Number(one.variable, one.value / max(tokens, 1.0), one.index, "a token"))
        for step, one in zip(steps, numbers, strict=True)
    ]
    return _drawn(facts, [Curve("", points)], facts.measures.objective, facts.measures.score)


def _drawn(facts: Facts, curves: list[Curve], what: str, form: Form) -> Html | None:
    low, least = _level(curves, EARLY), _level(curves, 0.0)
    chart = Chart(f"The {what} after each step", "step", form.unit, form, curves, low=low)
    words = f"The {what} after each step, in {form.unit}. "
    cut = "The first steps lie below the frame." if low > least else None
    return figure([words, _kept(facts), cut], chart.html(), chart.legend())


def _level(curves: list[Curve], share: float) -> float:
    """What `share` of the steps lie below, of the lowest curve; of a few steps none do."""
    levels = [[y.value for _, y in curve.known] for curve in curves]
    lows = (float(np.quantile(one, share if len(one) * share > 1 else 0)) for one in levels if one)
    return min(lows, default=0.0)


def _kept(facts: Facts) -> Child:
    """Of a sampler: where the draws begin that are kept."""
    if not facts.sampled:
        return None
    first = facts.entry("posterior/step", draw=0).html(COUNT)
    return ["Draws are kept from step ", first, " on. "]


def _active(facts: Facts) -> Html | None:
    several = len(_chains(facts)) > 1
    curves = list(_curve(facts, "active", "active features" if several else "", 0 if several else 2))
    chart = Chart("Active features after each step", "step", "features", COUNT, curves, whole=True)
    return figure("Active features after each step.", chart.html(), chart.legend())


def _moves(facts: Facts) -> Html | None:
    counts = tallies(facts.result["trace"], list(facts.attrs.get("moves", [])))
    if not counts:
        return None
    names = list(facts.attrs["moves"])
    lines: list[list[Child]] = []
    for one in counts:
        at = (("move", names.index(one.name) + 1),)
        numbers = (
            Number("trace/move", float(one.tried), at, "tried").html(COUNT),
            Number("trace/accepted", float(one.accepted), at, "accepted").html(COUNT),
            Number("trace/gain", one.gain, at, "gained").html(NATS, unit=False),
        )
        lines.append([one.name, *numbers])
    caption = "Changes that single steps cannot make: how often each was tried, kept, and what it gained."
    return table(caption, ["move", "tried", "kept", "gained, nats"], lines)


def terms(facts: Facts) -> list[str]:
    """What the objective, or of a sampler the log joint density, is the sum of."""
    without = OF_A_FIT if facts.sampled else ()
    return [name for name in variables.TERMS if facts.has(f"trace/{name}") and name not in without]


def _terms(facts: Facts) -> Html | None:
    sums = {"objective": "log joint"} if facts.sampled else {"bound": "bound", "objective": "objective"}
    names = {name: name for name in terms(facts)}
    names |= {name: words for name, words in sums.items() if facts.has(f"trace/{name}")}
    chains, last = _chains(facts), len(facts.result["trace"]["step"]) - 1
    lines = [[words, *(_term(facts, name, last, chain) for chain in chains)] for name, words in names.items()]
    head: list[Child] = ["term", "nats"]
    if len(chains) > 1:
        head = ["term", *(tag("span", f"chain {at}, nats", data_label="chain") for at in range(len(chains)))]
    what = "log joint density" if facts.sampled else "objective"
    element = table(f"Terms of the {what} after the last step.", head, lines)
    return tag("details", tag("summary", f"What the {what} is made of"), element)


def _term(facts: Facts, name: str, step: int, chain: dict[str, int]) -> Html:
    return facts.entry(f"trace/{name}", step=step, **chain).html(NATS, unit=False)


SECTION = Section("trace", "How the fit progressed", body)
