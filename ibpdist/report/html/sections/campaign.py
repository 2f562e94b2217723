"""A campaign: objective and held-out score against truncation and restart, and every fit in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

import numpy as np

from ibpdist.catalog import SYSTEMS
from ibpdist.report.html.charts import COLOURS, Chart, Curve
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, figure, join, label, table, tag
from ibpdist.report.html.numbers import COUNT, NATS, NONE, SCORE, Form, Number, fixed
from ibpdist.report.html.score import heldout
from ibpdist.report.html.sections._base import Section

ACROSS, RESTART = "truncation", "restart"
MOST = 400
"""Lines of a table."""
At = dict[str, int]
MEASURES: tuple[tuple[str, str, str, Form], ...] = (
    ("heldout", "Held-out score", "nats per hidden cell", SCORE),
    ("objective", "Objective", "nats", NATS),
    ("active", "Active features", "features", COUNT),
    ("seconds", "Time of a fit", "seconds", fixed(2, "seconds")),
)


def body(facts: Facts) -> Html | None:
    if facts.summary is None:
        return None
    charts = [_chart(facts, *measure) for measure in MEASURES if facts.has(f"summary/{measure[0]}")]
    best = "A point is a fit; the line joins the best of its restarts, for time the quickest."
    lead = tag("p", "Against the truncation K. ", best, _cut(facts), _mixed(facts), class_="lead")
    return join(lead, tag("div", charts, class_="charts"), _grid(facts), _all(facts))


def settings(facts: Facts) -> list[At]:
    """Positions of every combination of what was swept but truncation and restart."""
    dims = [str(dim) for dim in facts.summary["objective"].dims if dim not in (ACROSS, RESTART)]
    sizes = [range(facts.summary.sizes[dim]) for dim in dims]
    return [dict(zip(dims, at, strict=True)) for at in product(*sizes)]


def drawn(facts: Facts) -> list[At]:
    """The settings that are drawn: the best ones when there are more than colours."""
    every = settings(facts)
    variable = "summary/heldout" if heldout(facts) is not None else "summary/objective"
    best = [facts.made(variable, "max", **at).value for at in every]
    ranked = np.argsort([-level if level == level else np.inf for level in best], kind="stable")
    return [every[at] for at in sorted(ranked[:COLOURS])]


def _cut(facts: Facts) -> Child:
    every = len(settings(facts))
    if every <= COLOURS:
        return None
    of = Number("summary/objective", float(every), of="settings").html(COUNT)
    return [" Drawn are the ", tag("span", str(COLOURS), data_limit="curves"), " best of ", of, " settings."]


def _mixed(facts: Facts) -> str | None:
    """A word about samplers, whose level is no bound."""
    kinds = {str(one) in SYSTEMS and SYSTEMS[str(one)].sampler for one in facts.summary["system"].values}
    if True not in kinds:
        return None
    apart = " It cannot be compared with that of other fits." if len(kinds) > 1 else ""
    return f" The objective of a sampler is the mean log joint density of its draws.{apart}"


def words(facts: Facts, at: Mapping[str, int]) -> str:
    """lg-vi-infinite, noise column: without the dims that have only one value, unless all have."""
    swept = {dim: k for dim, k in at.items() if facts.summary.sizes[dim] > 1} or at
    return ", ".join(_value(facts, dim, k) for dim, k in swept.items())


def _value(facts: Facts, dim: str, at: int) -> str:
    value = str(facts.summary[dim].values[at])
    return value if dim == "system" else f"{dim} {value}"


def _chart(facts: Facts, name: str, title: str, up: str, form: Form) -> Html | None:
    variable, places = f"summary/{name}", [str(k) for k in facts.summary[ACROSS].values]
    curves: list[Curve] = []
    for colour, at in enumerate(drawn(facts)):
        curves += _curves(facts, variable, at, colour, len(places))
    chart = Chart(
        f"{title} against truncation", "truncation K", up, form, curves, places, whole=form is COUNT
    )
    made = chart.html()
    caption = f"{title}." if form is COUNT else f"{title}, {up}."
    return None if made is None else figure(caption, made, chart.legend())


def _curves(facts: Facts, variable: str, at: At, colour: int, places: int) -> Iterator[Curve]:
    of = "min" if variable.endswith("seconds") else "max"
    restarts = facts.summary.sizes[RESTART]
    name = words(facts, at)
    fits = [
        (k + _aside(r, restarts), facts.one(variable, **at, truncation=k, restart=r))
        for k, r in product(range(places), range(restarts))
    ]
    line = [(float(k), facts.made(variable, of, **at, truncation=k)) for k in range(places)]
    if not variable.endswith("active"):
        yield Curve(name, line, colour)
    yield Curve(name, fits, colour, joined=False, marked=True)


def _aside(restart: int, restarts: int) -> float:
    """Restarts stand beside each other, so that none hides another."""
    return 0.3 * (restart / (restarts - 1) - 0.5) if restarts > 1 else 0.0


def _grid(facts: Facts) -> Html:
    """A line for each setting and truncation: the best of its restarts, and how they differ."""
    has = facts.has
    head = ["fit", "best objective, nats", "spread of restarts, nats"]
    head += ["best held-out score, nats per cell"] if has("summary/heldout") else []
    head += ["active features"] + (["seconds, sum"] if has("summary/seconds") else [])
    lines = [
        list(_summed(facts, at | {ACROSS: k}))
        for at, k in islice(product(settings(facts), range(facts.summary.sizes[ACROSS])), MOST)
    ]
    return table("Restarts of the same settings together.", head, lines)


def _summed(facts: Facts, at: At) -> Iterator[Child]:
    def made(name: str, of: str, form: Form) -> Html:
        return facts.made(f"summary/{name}", of, **at).html(form, unit=False)

    yield _fit_name(facts, at)
    yield made("objective", "max", NATS)
    yield made("objective", "spread", NATS)
    if facts.has("summary/heldout"):
        yield made("heldout", "max", SCORE)
    yield [made("active", "min", COUNT), " to ", made("active", "max", COUNT)]
    if facts.has("summary/seconds"):
        yield made("seconds", "sum", fixed(2))


def _fit_name(facts: Facts, at: Mapping[str, int]) -> Html:
    return label(", ".join(_worded(facts, dim, k) for dim, k in at.items() if dim != RESTART), "fit")


def _worded(facts: Facts, dim: str, at: int) -> str:
    return f"K {facts.summary[dim].values[at]}" if dim == ACROSS else _value(facts, dim, at)


def _all(facts: Facts) -> Html:
    """Every fit, as it stands in the summary."""
    dims = [str(dim) for dim in facts.summary["objective"].dims]
    every = list(np.ndindex(*(facts.summary.sizes[dim] for dim in dims)))
    names = [
        name
        for name in ("objective", "heldout", "active", "steps", "seconds")
        if facts.has(f"summary/{name}")
    ]
    told = [name for name in ("status", "stop", "seed") if facts.has(f"summary/{name}")]
    lines = [_one(facts, dict(zip(dims, at, strict=True)), names, told) for at in every[:MOST]]
    caption = "Every fit: objective in nats, held-out score in nats per hidden cell, time in seconds."
    made = table(caption, ["fit", "start", *names, *told], lines)
    more = Number("summary/objective", float(len(every)), of="size").html(COUNT)
    cut = (
        tag("p", "Of ", more, " fits the first are listed; all are in the summary.")
        if len(every) > MOST
        else None
    )
    return tag("details", tag("summary", "All fits"), made, cut)


_FORMS: Mapping[str, Form] = {"objective": NATS, "heldout": SCORE, "seconds": fixed(2)}


def _one(facts: Facts, at: At, names: list[str], told: list[str]) -> list[Child]:
    start = tag("span", str(facts.summary[RESTART].values[at[RESTART]]), data_label="restart")
    numbers: list[Child] = []
    for name in names:
        number = facts.one(f"summary/{name}", **at)
        numbers.append(number.html(_FORMS.get(name, COUNT), unit=False) if number.known else NONE)
    where = ",".join(f"{dim}={k}" for dim, k in at.items())
    said = [
        tag("span", _text(facts, name, at), data_variable=f"summary/{name}", data_index=where)
        for name in told
    ]
    return [_fit_name(facts, at), start, *numbers, *said]


def _text(facts: Facts, name: str, at: At) -> str:
    held: Any = facts.summary[name].isel(at).values
    return str(held.item() if hasattr(held, "item") else held)


SECTION = Section("campaign", "The campaign", body)
