"""Trial deletes: features that explain little, dropped and the others given time to take over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.moves import delete
from ibpdist.moves._base import Proposal, Situation, pattern_cost

Index = NDArray[np.intp]

TRIALS = 6
PASSES = 8


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """Without the next feature in order; `situation.tries` were refused before."""
    order = candidates(situation)
    if situation.tries >= len(order):
        return None
    found = delete.drop(situation.model, situation.params, situation.sums, int(order[situation.tries]))
    return Proposal("trial delete", found.params, found.sums, None, PASSES)


def candidates(situation: Situation, most: int = TRIALS) -> Index:
    """Places of the features that explain least: the loss by deletion, and what the pattern costs.

    A feature pays N H(prevalence) for its pattern; what is lost without it and this price is
    what it explains (starts.md 2 F). None where only one feature is left,
    or no row was met.
    """
    entries, rows = situation.sums.entries, float(situation.sums.observation.rows)
    if len(entries.on) < 2 or not rows:
        return np.zeros(0, np.intp)
    explained = rows * pattern_cost(entries.on / rows) - delete.gains(
        situation.model, situation.params, situation.sums
    )
    return np.argsort(explained, kind="stable")[:most]
