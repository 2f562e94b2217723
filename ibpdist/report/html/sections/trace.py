"""How the fit got there: the objective and the number of features step by step, and the moves."""

from __future__ import annotations

import numpy as np

from ibpdist.report.html.charts import Chart, Curve
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, figure, join, table, tag
from ibpdist.report.html.numbers import COUNT, NATS, Number
from ibpdist.report.html.sections._base import Section
from ibpdist.report.moves import tallies

EARLY = 0.05
"""Share of the steps that may lie below the frame, so that the rest can be seen."""
APART = {"objective", "bound", "active", "magnitude", "trial", "move", "gain", "accepted", "settled", "heat"}
"""What a trace holds besides the terms of the objective."""


def body(facts: Facts) -> Html | None:
    if not facts.has("trace/objective") or not len(facts.values("trace/objective")):
        return None
    charts = [_objective(facts), _active(facts) if facts.has("trace/active") else None]
    return join(tag("div", charts, class_="charts"), _moves(facts), _terms(facts))


def _curve(facts: Facts, name: str, words: str, colour: int) -> Curve:
    steps = facts.result["trace"]["step"].values
    made = [(float(step), facts.one(f"trace/{name}", step=at)) for at, step in enumerate(steps)]
    return Curve(words, made, colour)


def _objective(facts: Facts) -> Html | None:
    curves = [_curve(facts, "objective", "objective", 0)]
    if facts.has("trace/bound"):
        bound = _curve(facts, "bound", "bound", 1)
        curves += [bound] if bound.points != curves[0].points else []
    values = facts.values("trace/objective")
    low = float(np.quantile(values, EARLY)) if len(values) > 1 / EARLY else None
    chart = Chart("The objective after each step", "step", "nats", NATS, curves, low=low)
    words = "The objective after each step, in nats. "
    cut = "The first steps lie below the frame." if low is not None and values.min() < low else None
    return figure([words, cut], chart.html(), chart.legend())


def _active(facts: Facts) -> Html | None:
    chart = Chart(
        "Active features after each step",
        "step",
        "features",
        COUNT,
        [_curve(facts, "active", "", 2)],
        whole=True,
    )
    return figure("Active features after each step.", chart.html())


def _moves(facts: Facts) -> Html | None:
    found = tallies(facts.result["trace"], list(facts.attrs.get("moves", [])))
    if not found:
        return None
    names = list(facts.attrs["moves"])
    lines: list[list[Child]] = []
    for one in found:
        at = (("move", names.index(one.name) + 1),)
        numbers = (
            Number("trace/move", float(one.tried), at, "tried").html(COUNT),
            Number("trace/accepted", float(one.accepted), at, "accepted").html(COUNT),
            Number("trace/gain", one.gain, at, "gained").html(NATS, unit=False),
        )
        lines.append([one.name, *numbers])
    caption = "Changes that single steps cannot make: how often each was tried, kept, and what it gained."
    return table(caption, ["move", "tried", "kept", "gained, nats"], lines)


def _terms(facts: Facts) -> Html | None:
    names = [str(name) for name in facts.result["trace"].data_vars if name not in APART]
    names += [name for name in ("bound", "objective") if facts.has(f"trace/{name}")]
    last = len(facts.values("trace/objective")) - 1
    lines = [[name, facts.one(f"trace/{name}", step=last).html(NATS, unit=False)] for name in names]
    made = table("Terms of the objective after the last step.", ["term", "nats"], lines)
    return tag("details", tag("summary", "What the objective is made of"), made)


SECTION = Section("trace", "How the fit got there", body)
