"""How the fits of a campaign are ranked: by held-out score where they have one, else by objective.

Fits with different hold-outs saw different cells and are scored on different ones: each hold-out has
a ranking of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.campaigns.campaign import comparable

HOLDOUT = "holdout"
At = dict[str, int]
Levels = NDArray[np.float64]


def holdouts(summary: Any) -> list[At]:
    """The position of each hold-out when several are swept, else one of no dims."""
    return [{HOLDOUT: at} for at in range(summary.sizes[HOLDOUT])] if HOLDOUT in summary.dims else [{}]


def levels(summary: Any) -> Levels:
    """(dims of the objective) what a fit is ranked by within its hold-out, NaN without a result."""
    made = np.full(summary["objective"].shape, np.nan)
    dims = summary["objective"].dims
    for at in holdouts(summary):
        place = tuple(at.get(str(dim), slice(None)) for dim in dims)
        made[place] = _level(summary.isel(at))
    return made


def bests(summary: Any) -> list[At]:
    """The position of the best fit of each hold-out that has one."""
    dims, every = [str(dim) for dim in summary["objective"].dims], levels(summary)
    places = []
    for at in holdouts(summary):
        here = np.full(every.shape, -np.inf)
        place = tuple(at.get(dim, slice(None)) for dim in dims)
        here[place] = np.where(np.isfinite(every[place]), every[place], -np.inf)
        if here.size and here.max() > -np.inf:
            best = np.unravel_index(int(here.argmax()), here.shape)
            places.append(dict(zip(dims, map(int, best), strict=True)))
    return places


def ranked(summary: Any) -> tuple[list[At], list[At]]:
    """All fits, the best first within each hold-out, and those without a result."""
    dims, every = [str(dim) for dim in summary["objective"].dims], levels(summary)
    objective = summary["objective"].values
    places = [tuple(map(int, place)) for place in np.ndindex(every.shape)]
    ended = [place for place in places if np.isfinite(objective[place])]
    at = dims.index(HOLDOUT) if HOLDOUT in dims else None

    def key(place: tuple[int, ...]) -> tuple[int, bool, float]:
        known = bool(np.isfinite(every[place]))
        level = every[place] if known else objective[place]
        return 0 if at is None else place[at], not known, -float(level)

    lost = [place for place in places if not np.isfinite(objective[place])]
    good, bad = (
        [dict(zip(dims, one, strict=True)) for one in some] for some in (sorted(ended, key=key), lost)
    )
    return good, bad


def _level(part: Any) -> Levels:
    """The level of fits with one hold-out."""
    objective = part["objective"]
    held = part["heldout"].transpose(*objective.dims).values if "heldout" in part else np.array(np.nan)
    if np.isfinite(held).any():
        return np.asarray(held, np.float64)
    systems = objective["system"].broadcast_like(objective).transpose(*objective.dims).values
    return np.asarray(comparable(objective.values, systems), np.float64)
