"""A campaign: objective and held-out score against truncation and restart; its tables are in fits.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ibpdist.catalog.systems import SYSTEMS
from ibpdist.report.html.charts import COLOURS, Chart, Curve
from ibpdist.report.html.facts import Facts, Values
from ibpdist.report.html.markup import Child, Html, figure, join, tag
from ibpdist.report.html.numbers import COUNT, NATS, Form, Number, fixed
from ibpdist.report.html.ranking import HOLDOUT, At, levels
from ibpdist.report.html.sections import fits
from ibpdist.report.html.sections._base import Section
from ibpdist.report.html.sections.fits import ACROSS, RESTART, settings, worded

PLACE = 0.84
"""How much of the way to the next truncation is for the points of one."""
Measure = tuple[str, str, str, Form]
"""Variable, title, unit and format of a chart."""


def body(facts: Facts) -> Html | None:
    if facts.summary is None:
        return None
    charts = [_chart(facts, *measure) for measure in _measures(facts) if facts.has(f"summary/{measure[0]}")]
    best = "Each point is one fit; the line joins the best restart at each K (for time, the quickest)."
    sentences = [best, _cut(facts), _mixed(facts), _apart(facts)]
    lead = tag("p", "Against the truncation K. ", sentences, class_="lead")
    tables = fits.best_of_each(facts), fits.grid(facts), fits.every(facts)
    return join(lead, tag("div", charts, class_="charts"), *tables)


def _measures(facts: Facts) -> tuple[Measure, ...]:
    score, objective = facts.measures.score, facts.measures.objective
    return (
        ("heldout", "Held-out score", score.unit, score),
        ("objective", f"{objective[0].upper()}{objective[1:]}", "nats", NATS),
        ("active", "Active features", "features", COUNT),
        ("seconds", "Time of a fit", "seconds", fixed(2, "seconds")),
    )


def drawn(facts: Facts) -> list[At]:
    """The settings with a result, the best when there are more than colours, of each hold-out as many."""
    every = settings(facts)
    dims, level = facts.summary["objective"].dims, levels(facts.summary)
    best = [_highest(level[tuple(at.get(str(dim), slice(None)) for dim in dims)]) for at in every]
    order = sorted(np.flatnonzero(np.isfinite(best)).tolist(), key=lambda one: -best[one])
    counts: Counter[int] = Counter()
    place = {}
    for one in order:
        held = every[one].get(HOLDOUT, 0)
        place[one], counts[held] = counts[held], counts[held] + 1
    chosen = sorted(order, key=lambda one: place[one])[:COLOURS]
    return [every[one] for one in sorted(chosen)]


def _highest(level: Values) -> float:
    return float(np.nanmax(level, initial=-np.inf))


def _cut(facts: Facts) -> Child:
    every = len(settings(facts))
    if every <= COLOURS:
        return None
    of = Number("summary/objective", float(every), of="settings").html(COUNT)
    return [
        " Drawn are the ",
        tag("span", str(len(drawn(facts))), data_limit="curves"),
        " best of ",
        of,
        " settings.",
    ]


def _mixed(facts: Facts) -> str | None:
    """A remark on samplers, whose objective is not a bound."""
    kinds = {str(one) in SYSTEMS and SYSTEMS[str(one)].sampler for one in facts.summary["system"].values}
    if True not in kinds:
        return None
    apart = " It cannot be compared with that of other fits." if len(kinds) > 1 else ""
    return f" The objective of a sampler is the mean log joint density of its draws.{apart}"


def _apart(facts: Facts) -> str | None:
    if HOLDOUT not in facts.summary.dims:
        return None
    return (
        " Fits with different hold-outs cannot be compared: they saw different cells and are scored on "
        "different ones."
    )


def words(facts: Facts, at: At) -> str:
    """lg-vi-infinite, noise column: without the dims that have only one value, unless all have."""
    swept = {dim: k for dim, k in at.items() if facts.summary.sizes[dim] > 1} or at
    return ", ".join(worded(facts, dim, k) for dim, k in swept.items())


def _chart(facts: Facts, name: str, title: str, up: str, form: Form) -> Html | None:
    variable, places = f"summary/{name}", [str(k) for k in facts.summary[ACROSS].values]
    curves: list[Curve] = []
    shown, whole = drawn(facts), form is COUNT
    for colour, at in enumerate(shown):
        room = Room.of(colour, len(shown)) if whole else Room()
        curves += _curves(facts, variable, at, colour, room)
    chart = Chart(f"{title} against truncation", "truncation K", up, form, curves, places, whole=whole)
    drawing = chart.html()
    apart = ", settings side by side" if len(shown) > 1 else ""
    caption = f"{title}{apart}." if whole else f"{title}, {up}."
    return None if drawing is None else figure(caption, drawing, chart.legend())


@dataclass(frozen=True)
class Room:
    """Where around a place the restarts of a setting stand side by side, so that none hides another."""

    middle: float = 0.0
    width: float = 0.3

    @classmethod
    def of(cls, at: int, settings: int) -> Room:
        """Of one of several settings: of counts many are the same, and the settings hide each other."""
        share = PLACE / settings
        return cls(share * (at + 0.5) - PLACE / 2, min(cls.width, 0.6 * share))

    def place(self, restart: int, restarts: int) -> float:
        return self.middle + (self.width * (restart / (restarts - 1) - 0.5) if restarts > 1 else 0.0)


def _curves(facts: Facts, variable: str, at: At, colour: int, room: Room) -> Iterator[Curve]:
    """The fits of a setting, and a line but for counts, of which the most is not the best."""
    of = "min" if variable.endswith("seconds") else "max"
    places, restarts = range(facts.summary.sizes[ACROSS]), facts.summary.sizes[RESTART]
    name = words(facts, at)
    curves = [
        (k + room.place(r, restarts), facts.entry(variable, **at, truncation=k, restart=r))
        for k, r in product(places, range(restarts))
    ]
    line = [(float(k), facts.reduced(variable, of, **at, truncation=k)) for k in places]
    if not variable.endswith("active"):
        yield Curve(name, line, colour)
    yield Curve(name, curves, colour, joined=False, marked=True)


SECTION = Section("campaign", "The campaign", body)
