"""Orientation: which features to complement, and whether everybody has a constant one.

A feature and its complement explain the same rows up to a constant, so the objective has an
optimum for each orientation; those of all orientations are exact functions of the sums
(starts.md 2 D). Sets of features to complement are searched on the intercept that they leave,
then on the objective itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.algorithms.coordinate import ACTIVE
from ibpdist.algorithms.params import OFF
from ibpdist.moves import flips
from ibpdist.moves._base import LEAST_GAIN, Proposal, Situation, exact
from ibpdist.moves.edit import Edit, Outcome, sums_after

Float = NDArray[np.float64]
Index = NDArray[np.intp]
Set = NDArray[np.bool_]

RANDOM_STARTS = 10
BEST = 2
ROUNDS = 2
RARE = 0.002
"""Share of the rows below which a combination counts as not occurring."""


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """The best orientation found, if it is better than the present one."""
    return exact("reorient", situation, best(situation, rng)) if situation.turnable else None


def best(situation: Situation, rng: np.random.Generator) -> Outcome | None:
    """The highest objective over the candidate sets, climbed by single changes; None: the present one."""
    search = Search(situation)
    candidates = [(f, constant) for f in search.candidates(rng) for constant in (False, True)]
    found = max(candidates, key=lambda at: search.score(*at))
    for _ in range(ROUNDS):
        before, found = found, search.climb(*found)
        if np.array_equal(before[0], found[0]) and before[1] == found[1]:
            break
    return search.outcome(*found)


class Search:
    """The orientations of a situation, each evaluated once.

    `places` are the features that can be complemented: all but a constant one, at `constant`.
    """

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.constant = constant_at(situation)
        features = np.arange(len(situation.params.ids))
        self.places = features[features != self.constant]
        self._known: dict[bytes, float] = {}

    def score(self, chosen: Set, constant: bool) -> float:
        """The exact objective with these features complemented; minus infinity where there is no room."""
        key = _key(chosen, constant)
        if key not in self._known:
            self._known[key] = self._evaluate(chosen, constant)
        return self._known[key]

    def outcome(self, chosen: Set, constant: bool) -> Outcome | None:
        """The edit carried out; None for the present orientation."""
        if self._is_present(chosen, constant):
            return None
        return self.situation.evaluate(self.edit(chosen, constant))

    def climb(self, chosen: Set, constant: bool) -> tuple[Set, bool]:
        """One round of changes of the constant and of single features, each kept if it gains."""
        reached = self.score(chosen, constant)
        if self.score(chosen, not constant) > reached + LEAST_GAIN:
            constant = not constant
        for k in range(len(chosen)):
            other = chosen.copy()
            other[k] ^= True
            if self.score(other, constant) > self.score(chosen, constant) + LEAST_GAIN:
                chosen = other
        return chosen, constant

    def candidates(self, rng: np.random.Generator) -> list[Set]:
        """None complemented, and the best two sets by the intercept that they leave."""
        gram, lean = intercept(self.situation, self.places)
        size = len(self.places)
        nobody = np.zeros(size, np.bool_)
        starts = [nobody, flips.first_guess(gram, lean)]
        starts += [rng.random(size) < 0.5 for _ in range(RANDOM_STARTS)]
        ends = sorted((flips.descend(gram, lean, start) for start in starts), key=lambda end: end[1])
        distinct = {end[0].tobytes(): end[0] for end in ends}
        return [nobody, *list(distinct.values())[:BEST]]

    def edit(self, chosen: Set, constant: bool) -> Edit:
        """Complement the chosen, with or without the constant; a constant feature there is stays itself."""
        parents, flip = self.places, chosen
        if constant:
            parents, flip = np.append(parents, self.constant), np.append(flip, self.constant == OFF)
        order = np.argsort(np.where(parents == OFF, len(parents), parents), kind="stable")
        parents = np.stack([parents[order], np.full_like(parents, OFF)])
        return Edit.of(self.situation.params.ids, parents, flip[order], self.situation.next_id)

    def _evaluate(self, chosen: Set, constant: bool) -> float:
        situation, size = self.situation, len(chosen) + constant
        capacity = situation.model.prior.capacity(situation.params.prior)
        if size == 0 or (capacity is not None and size > capacity):
            return -np.inf
        if self._is_present(chosen, constant):
            return situation.reached
        return situation.evaluate(self.edit(chosen, constant)).objective

    def _is_present(self, chosen: Set, constant: bool) -> bool:
        return not chosen.any() and constant == (self.constant != OFF)


def constant_at(situation: Situation) -> int:
    """Place of the feature that all rows have but for rare ones, or -1."""
    on, rows = situation.sums.entries.on, float(situation.sums.observation.rows)
    place = int(np.argmax(on))
    return place if rows - on[place] < max(ACTIVE, RARE * rows) else OFF


def intercept(situation: Situation, places: Index) -> tuple[Float, Float]:
    """Gram matrix (feature, feature) of the coefficients of a regression of x on the features at
    `places` and 1, and their products with that of 1; columns in units of their noise."""
    observed = situation.params.observation
    parents = np.stack([np.append(places, OFF), np.full(len(places) + 1, OFF)])
    edit = Edit.of(situation.params.ids, parents, parents[0] == OFF, situation.next_id)
    sums = sums_after(edit, situation.params, situation.sums, situation.total).observation
    made = np.zeros((len(places) + 1, len(places) + 1))
    for g, gram in enumerate(sums.gram):
        columns = observed.group == g
        noise = observed.noise[columns]
        ridge = float(np.median(noise)) / np.append(observed.scale[places], np.inf)
        found = np.linalg.solve(gram + np.diag(ridge), sums.cross[:, columns]) / np.sqrt(noise)
        made += found @ found.T
    return made[:-1, :-1], made[:-1, -1]


def _key(chosen: Set, constant: bool) -> bytes:
    return np.append(chosen, constant).tobytes()
