"""Absorb: a feature that looks like a sum of others, given to those others and dropped.

If A_r = sum_j s_j A_j with every s_j 1 or -1, then z_r A_r is nothing new: rows are explained as
well by z_j + s_j z_r in place of z_j, without r. That is two-valued, and the exclusive or of j and
r up to a complement, if r and j never occur together or cover all rows (s = 1), or if one holds
the other (s = -1). It undoes what merges and splits are for (starts-and-moves.md 17): a feature in two
halves, a feature that stands for two others where both occur, the four combinations of two features in
place of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.ascent.params import OFF
from ibpdist.inference.moves._base import Proposal, Situation
from ibpdist.inference.moves.rebase import oriented
from ibpdist.inference.moves.relabel import Edit, rows_seen, table
from ibpdist.inference.moves.reorient import constant_at

Float = NDArray[np.float64]
Index = NDArray[np.intp]

PASSES = 30
TRIALS = 3
RARE = 0.01
"""Share of the rows below which a combination counts as not occurring."""
CLOSE = 0.5
"""Share of a feature's squared length that the others may leave."""
CELLS = {1: (0, 3), -1: (1, 2)}
"""Combinations of which one must not occur, by sign: both or neither, only one or only the other."""


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """The most promising absorption; after refusals the next one."""
    if not situation.turnable or not situation.params.observation.mean.any():
        return None
    found = (situation.evaluate(edit) for edit in edits(situation))
    better = sorted((o for o in found if o.objective > situation.objective), key=lambda o: -o.objective)
    if situation.tries >= min(TRIALS, len(better)):
        return None
    edit = oriented(situation, better[situation.tries].edit, rng)
    return Proposal("absorb", situation.evaluate(edit).params, passes=PASSES)


def edits(situation: Situation) -> Iterator[Edit]:
    """One for each feature that can be absorbed; their sums are near those of the rows, not exact."""
    features, constant = np.arange(len(situation.params.ids)), constant_at(situation)
    places = features[features != constant]
    seen = rows_seen(situation.params, situation.sums)
    most = int(np.argmax(seen))
    cells = table(situation.sums.observation.gram[most], float(seen[most])) <= RARE * seen[most]
    for gone, signs in relations(situation, places):
        if all(cells[list(CELLS[sign]), gone, j].any() for j, sign in signs.items()):
            kept = np.delete(features, gone)
            other = np.where(np.isin(kept, list(signs)), gone, OFF)
            flip = np.zeros(len(kept), np.bool_)
            yield Edit.of(situation.params.ids, np.stack([kept, other]), flip, situation.next_id)


def relations(situation: Situation, places: Index) -> Iterator[tuple[int, dict[int, int]]]:
    """Features that are near a signed sum of others: their place, and signs by place."""
    observed = situation.params.observation
    a = observed.mean[places] / np.sqrt(observed.noise)
    gram = a @ a.T
    if not np.trace(gram) > 0:
        return
    inverse = np.linalg.inv(gram + 1e-9 * np.trace(gram) * np.eye(len(places)))
    for at, gone in enumerate(places):
        weights = np.rint(-inverse[at] / inverse[at, at])
        weights[at] = 0
        left = a[at] - weights @ a
        if weights.any() and np.abs(weights).max() == 1 and left @ left < CLOSE * gram[at, at]:
            yield int(gone), {int(places[j]): int(weights[j]) for j in np.flatnonzero(weights)}
