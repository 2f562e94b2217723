"""Orientation: which features to complement, and whether everybody has a constant one.

A feature and its complement explain the same rows up to a constant, so the objective has an
optimum for each orientation; those of all orientations are exact functions of the sums
(starts-and-moves.md 12). Sets of features to complement are searched on the intercept that they leave,
then on the objective itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.ascent.coordinate import ACTIVE
from ibpdist.inference.ascent.params import OFF
from ibpdist.inference.moves import complement
from ibpdist.inference.moves._base import LEAST_GAIN, Proposal, Situation, exact
from ibpdist.inference.moves.relabel import Edit, Outcome, sums_after
from ibpdist.inference.starts.flips import descend, first_guess

Float = NDArray[np.float64]
Index = NDArray[np.intp]
Set = NDArray[np.bool_]

RANDOM_STARTS = 10
BEST = 2
"""Sets of each kind, with and without a constant, that get a full score."""
DOUBT = 20.0
"""Nats by which the value at fixed variances may be off."""
ROUNDS = 2
NO_ROWS = 1e-9
"""Rows that the intercept is worth before any are seen: columns may have none."""
RARE = 0.002
"""Share of the rows below which a combination counts as not occurring."""


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """The best orientation found, if it is better than the present one."""
    return exact("reorient", situation, best(situation, rng)) if situation.turnable else None


def best(situation: Situation, rng: np.random.Generator) -> Outcome | None:
    """The highest objective over the candidate sets, climbed by single changes; None: the present one."""
    search = Search(situation)
    found = max(search.candidates(rng), key=lambda at: search.score(*at))
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
        self.intercept = regression(situation, self.places)
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
        """One round of changes of the constant and of features that are in doubt, each kept if it gains."""
        if self.score(chosen, not constant) > self.score(chosen, constant) + LEAST_GAIN:
            constant = not constant
        for k in np.flatnonzero(self.intercept.changes(chosen, constant) > -DOUBT):
            other = chosen.copy()
            other[k] ^= True
            if self.score(other, constant) > self.score(chosen, constant) + LEAST_GAIN:
                chosen = other
        return chosen, constant

    def candidates(self, rng: np.random.Generator) -> list[tuple[Set, bool]]:
        """The present orientation, and the best of each kind, with and without a constant."""
        size = len(self.places)
        nobody = np.zeros(size, np.bool_)
        starts = [nobody, *self._starts(rng)]
        found = [(nobody, self.constant != OFF)]
        for constant in (False, True):
            ends = {end.tobytes(): end for end in (self.intercept.climb(f, constant) for f in starts)}
            order = sorted(ends.values(), key=lambda f: -self.intercept.value(f, constant))
            found += [(f, constant) for f in order[:BEST]]
        return found

    def _starts(self, rng: np.random.Generator) -> list[Set]:
        """Sets that leave a short intercept, from a guess and at random."""
        second = self.intercept.second.sum(axis=0)
        gram, lean = second[:-1, :-1], second[:-1, -1]
        starts = [first_guess(gram, lean)]
        starts += [rng.random(len(lean)) < 0.5 for _ in range(RANDOM_STARTS)]
        return [descend(gram, lean, start) for start in starts]

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
        if size == 0 or size - len(situation.params.ids) > max(situation.room, 0):
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


def regression(situation: Situation, places: Index) -> complement.Intercept:
    """Coefficients of a regression of x on the features at `places` and 1, columns in units of their noise.

    Columns with different noise share the covariance of the middle one.
    """
    params, observed = situation.params, situation.params.observation
    parents = np.stack([np.append(places, OFF), np.full(len(places) + 1, OFF)])
    edit = Edit.of(params.ids, parents, parents[0] == OFF, situation.next_id)
    sums = sums_after(edit, params, situation.sums, situation.total)
    ridge = np.append(float(np.median(observed.noise)) / observed.scale[places], NO_ROWS)
    spread = np.linalg.inv(sums.observation.gram + np.diag(ridge))
    second = np.zeros_like(spread)
    for g, covariance in enumerate(spread):
        columns = observed.group == g
        found = covariance @ (sums.observation.cross[:, columns] / np.sqrt(observed.noise[columns]))
        second[g] = found @ found.T
    on, rows = sums.entries.on[:-1], float(sums.observation.rows)
    return complement.Intercept(
        second=second,
        spread=spread,
        columns=np.bincount(observed.group).astype(np.float64),
        slack=float(np.median(observed.scale) / np.median(observed.noise)),
        # The odds of the predictive prior of the buffet, (N - m)! (m - 1)! / N! (priors.md 11).
        odds=np.log((on + 0.5) / (rows - on + 0.5)),
    )


def _key(chosen: Set, constant: bool) -> bytes:
    return np.append(chosen, constant).tobytes()
