"""The tables of a campaign: the best of each hold-out, each kind of fit, and every fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, label, table, tag
from ibpdist.report.html.numbers import COUNT, NATS, NONE, SCORE, Form, Number, fixed
from ibpdist.report.html.ranking import HOLDOUT, At, levels, ranked

ACROSS, RESTART = "truncation", "restart"
MOST = 400
"""Lines of a table."""
OPEN = 24
"""Lines of a table that is not folded away."""
FORMS: Mapping[str, Form] = {"objective": NATS, "heldout": SCORE, "seconds": fixed(2)}


def heads(facts: Facts) -> dict[str, str]:
    """Heads of columns by variable."""
    return {
        "objective": f"{facts.measures.objective}, nats",
        "heldout": f"held-out score, nats per {facts.measures.hidden}",
        "active": "active features",
        "seconds": "seconds",
    }


def settings(facts: Facts) -> list[At]:
    """Positions of every combination of what was swept but truncation and restart."""
    dims = [str(dim) for dim in facts.summary["objective"].dims if dim not in (ACROSS, RESTART)]
    sizes = [range(facts.summary.sizes[dim]) for dim in dims]
    return [dict(zip(dims, at, strict=True)) for at in product(*sizes)]


def worded(facts: Facts, dim: str, at: int) -> str:
    """K 20, noise column, lg-vi-infinite."""
    value = str(facts.summary[dim].values[at])
    return value if dim == "system" else f"{'K' if dim == ACROSS else dim} {value}"


def best_of_each(facts: Facts) -> Html | None:
    """The best fit of each hold-out, if several were swept."""
    if HOLDOUT not in facts.summary.dims:
        return None
    words = heads(facts)
    names = [name for name in words if _known(facts, name)]
    lines = [[_name(facts, at), _start(facts, at), *_numbers(facts, at, names)] for at in facts.bests]
    return table("The best fit of each hold-out.", ["fit", "start", *(words[name] for name in names)], lines)


def grid(facts: Facts) -> Html:
    """A line for each setting and truncation: the best of its restarts, and how they differ."""
    every = [at | {ACROSS: k} for at, k in product(settings(facts), range(facts.summary.sizes[ACROSS]))]
    words = heads(facts)
    head = ["fit", f"best {words['objective']}", "spread of restarts, nats"]
    head += [f"best {words['heldout']}"] if facts.scored else []
    head += ["active features"] + (["seconds, sum"] if facts.has("summary/seconds") else [])
    caption = "Restarts of the same settings together"
    if len(every) <= OPEN:
        return table(f"{caption}.", head, [list(_summed(facts, at)) for at in every])
    lines = [list(_summed(facts, at)) for at in _in_order(facts, every)[:MOST]]
    element = table(f"{caption}, {_first(facts)}.", head, lines)
    return _folded("Restarts of the same settings together", element, _cut(len(lines), len(every), "kinds"))


def every(facts: Facts) -> Html:
    """Fits as they stand in the summary, the best first, and all without a result."""
    good, lost = ranked(facts.summary)
    room = max(MOST - len(lost), MOST // 2)
    shown = [*good[:room], *lost[: MOST - min(len(good), room)]]
    names = [
        name
        for name in ("objective", "heldout", "active", "stable", "steps", "seconds")
        if _known(facts, name)
    ]
    facts_of_fits = [name for name in ("status", "stop", "seed") if facts.has(f"summary/{name}")]
    lines = [_line(facts, at, names, facts_of_fits) for at in shown]
    named = {"objective": facts.measures.objective}
    held = f"held-out score in {facts.measures.score.unit}, " if facts.scored else ""
    caption = f"Every fit, {_first(facts)}: {named['objective']} in nats, {held}time in seconds."
    head = ["fit", "start", *(named.get(name, name) for name in names), *facts_of_fits]
    element = table(caption, head, lines)
    return _folded("All fits", element, _cut(len(shown), len(good) + len(lost), "size"))


def _first(facts: Facts) -> str:
    within = " within each hold-out" if HOLDOUT in facts.summary.dims else ""
    return f"the best first{within}"


def _in_order(facts: Facts, every: list[At]) -> list[At]:
    """Kinds of fits by the best of their restarts, those without a result last."""
    dims, level = facts.summary["objective"].dims, levels(facts.summary)
    numbers = [level[tuple(at.get(str(dim), slice(None)) for dim in dims)] for at in every]
    best = [float(np.nanmax(one, initial=-np.inf)) for one in numbers]
    order = sorted(range(len(every)), key=lambda one: (every[one].get(HOLDOUT, 0), -best[one]))
    return [every[one] for one in order]


def _folded(title: str, element: Html, note: Html | None) -> Html:
    return tag("details", tag("summary", title), note, element)


def _cut(shown: int, whole: int, of: str) -> Html | None:
    """The note on fits that are not listed; fits without a result always are."""
    if shown == whole:
        return None
    count = Number("summary/objective", float(whole), of=of).html(COUNT)
    some = tag("span", f"{shown:,}", data_limit="lines")
    what = " kinds of fits" if of == "kinds" else " fits"
    also = "" if of == "kinds" else ", those without a result among them"
    return tag("p", "Of ", count, what, ", ", some, " are listed", also, "; all are in the summary.")


def _summed(facts: Facts, at: At) -> Iterator[Child]:
    def made(name: str, of: str, form: Form) -> Html:
        return facts.reduced(f"summary/{name}", of, **at).html(form, unit=False)

    yield _name(facts, at)
    yield made("objective", "max", NATS)
    yield made("objective", "spread", NATS)
    if facts.scored:
        yield made("heldout", "max", SCORE)
    low, high = (facts.reduced("summary/active", of, **at) for of in ("min", "max"))
    same = not low.known or low.value == high.value
    yield low.html(COUNT) if same else [low.html(COUNT), " to ", high.html(COUNT)]
    if facts.has("summary/seconds"):
        yield made("seconds", "sum", fixed(2))


def _line(facts: Facts, at: At, names: list[str], words: list[str]) -> list[Child]:
    where = ",".join(f"{dim}={k}" for dim, k in at.items())
    cells = [
        tag("span", _text(facts, name, at), data_variable=f"summary/{name}", data_index=where)
        for name in words
    ]
    best = tag("b", "best", class_="mark-best") if at in facts.bests else None
    return [[_name(facts, at), best], _start(facts, at), *_numbers(facts, at, names), *cells]


def _numbers(facts: Facts, at: At, names: list[str]) -> Iterator[Child]:
    for name in names:
        number = facts.entry(f"summary/{name}", **at)
        yield number.html(FORMS.get(name, COUNT), unit=False) if number.known else NONE


def _name(facts: Facts, at: Mapping[str, int]) -> Html:
    dims = [str(dim) for dim in facts.summary["objective"].dims if dim in at and dim != RESTART]
    return label(", ".join(worded(facts, dim, at[dim]) for dim in dims), "fit")


def _start(facts: Facts, at: At) -> Html:
    return tag("span", str(facts.summary[RESTART].values[at[RESTART]]), data_label="restart")


def _known(facts: Facts, name: str) -> bool:
    return facts.scored if name == "heldout" else facts.has(f"summary/{name}")


def _text(facts: Facts, name: str, at: At) -> str:
    held: Any = facts.summary[name].isel(at).values
    return str(held.item() if hasattr(held, "item") else held)
