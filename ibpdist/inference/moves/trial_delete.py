"""Trial deletes: features that explain little, dropped and the others given time to take over.

What others can take over is told from the sums. A row without feature l may use others in its
place: one or two of them, with either sign. What that leaves of its length, as a share of what
the feature explains, is lost for good. Trials that would lose many times the price of the
pattern are not begun.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.moves import delete
from ibpdist.inference.moves._base import Proposal, Situation, pattern_cost

Float = NDArray[np.float64]
Index = NDArray[np.intp]

TRIALS = 6
PASSES = 8
HOPELESS = 5.0
"""Prices of the pattern, on top of `delete.DOUBT`, whose loss no trial wins back.

Measured on all trials of 58 fits of the recovery benchmark, 17 of them begun at rows of the data so that they
go wrong: it would have spared none of 53 that were accepted, and 322 of 611 that were refused. 52 fits ended
with it where they ended without it.
"""


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """Without the next feature in order; `situation.tries` were refused before."""
    order = candidates(situation)
    if situation.tries >= len(order):
        return None
    found = delete.drop(situation.model, situation.params, situation.sums, int(order[situation.tries]))
    return Proposal("trial delete", found.params, found.sums, None, PASSES)


def candidates(situation: Situation, most: int = TRIALS) -> Index:
    """Places of the features that explain least and are not hopeless.

    None where only one feature is left, or no row was met.
    """
    entries, rows = situation.sums.entries, float(situation.sums.observation.rows)
    if len(entries.on) < 2 or not rows:
        return np.zeros(0, np.intp)
    worth, cost = explained(situation), price(situation)
    rarer = np.minimum(entries.on, rows - entries.on) / np.maximum(entries.on, 1.0)
    lost = worth * rarer * left_by_others(situation)
    ranked = np.argsort(worth, kind="stable")
    return ranked[(lost <= HOPELESS * cost + delete.DOUBT)[ranked]][:most]


def price(situation: Situation) -> Float:
    """(feature) nats that its pattern costs: N H(prevalence)."""
    rows = float(situation.sums.observation.rows)
    return rows * pattern_cost(situation.sums.entries.on / rows)


def explained(situation: Situation) -> Float:
    """(feature) what is lost without it, and the price of its pattern (starts-and-moves.md 15)."""
    return price(situation) - delete.gains(situation.model, situation.params, situation.sums)


def left_by_others(situation: Situation) -> Float:
    """(feature) share of its squared length, in units of the noise, that up to two others leave.

    |a - s b - t c|^2 = |a|^2 + |b|^2 + |c|^2 - 2 s a.b - 2 t a.c + 2 s t b.c for signs s and t; a
    feature beside both signs of itself stands for fewer than two.
    """
    observed = situation.params.observation
    whole = observed.mean / np.sqrt(observed.noise)
    gram, signs = whole @ whole.T, np.repeat([1.0, -1.0], len(whole))
    both = np.outer(signs, signs) * np.tile(gram, (2, 2))
    length, share = gram.diagonal(), np.ones(len(whole))
    for at in range(len(whole)):
        others = np.tile(np.arange(len(whole)) != at, 2)
        one = (np.tile(length, 2) - 2 * signs * np.tile(gram[at], 2))[others]
        two = one[:, None] + one + 2 * both[np.ix_(others, others)]
        np.fill_diagonal(two, one)
        least = min(0.0, float(two.min(initial=0.0)))
        share[at] = max(length[at] + least, 0.0) / length[at] if length[at] > 0 else 0.0
    return share
