"""Describing features anew: z' = flip xor z_a xor z_b, and everything that follows from the sums.

With z_0 = 1 the constant, a feature that is kept, complemented or constant is a linear function
of (z, z_0), so its sums are linear in the old ones (starts-and-moves.md 10): with z' = L (z, z_0),
G' = L G L', P' = L P, m' = L m. Globals and objective are functions of the sums (linear-gaussian.md 5), so
the objective of such an edit is exact without a pass over the rows. An exclusive or is linear
when one of the four combinations of its parents does not occur (starts-and-moves.md 10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import (
    OFF,
    GaussianModel,
    GaussianModelParams,
    GaussianModelSums,
    ModelSums,
)
from ibpdist.model.observations._base import RowSums
from ibpdist.model.observations.dictionary import known
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.weights._base import slab_at

Float = NDArray[np.float64]
Index = NDArray[np.intp]
Ids = NDArray[np.int64]

RELATIONS = np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 2.0]])
"""z_k xor z_l in (z_k, z_l, 1) when both, only k, only l, or neither never occurs."""


@dataclass(frozen=True)
class Edit:
    """The new features in order: `ids` (feature), `parents` (parent, feature) ids of old features,
    -1 the one that is off everywhere, `flip` (feature).

    Keep is (k, -1, False), complement (k, -1, True), the constant (-1, -1, True), exclusive or
    (k, l, False). A kept feature keeps its id, every other one has an id that was never used.
    """

    ids: Ids
    parents: Ids
    flip: NDArray[np.bool_]

    @classmethod
    def of(cls, old: Ids, parents: Index, flip: NDArray[np.bool_], next_id: int) -> Edit:
        """From positions of the parents among the `old` ids; -1 stays."""
        named = np.where(parents == OFF, OFF, old[parents]).astype(np.int64)
        kept = ~flip & (parents[0] != OFF) & (parents[1] == OFF)
        fresh = next_id + np.cumsum(~kept) - 1
        return cls(np.where(kept, named[0], fresh), named, flip)

    @classmethod
    def keep(cls, old: Ids, places: Index) -> Edit:
        """Only the features at these places."""
        parents = np.stack([places, np.full_like(places, OFF)])
        return cls.of(old, parents, np.zeros(len(places), np.bool_), next_id=0)

    def places(self, old: Ids) -> Index:
        """(parent, feature) positions of the parents among the `old` ids; -1 for the feature that is off."""
        where = {int(name): at for at, name in enumerate(old)}
        return np.array([[where.get(int(name), OFF) for name in row] for row in self.parents], np.intp)


@dataclass(frozen=True)
class Outcome:
    """An edit carried out: updated parameters, their objective, and the sums they were made from.

    Sums are those of the rows as they are, before a stretch that the parameters may ask for.
    """

    edit: Edit
    params: GaussianModelParams
    objective: float
    sums: GaussianModelSums


def evaluate(
    model: GaussianModel, edit: Edit, params: GaussianModelParams, sums: GaussianModelSums, total: Float
) -> Outcome:
    """Carry out an edit; `total` (column) is the sum of the observed cells of x."""
    after = sums_after(edit, params, sums, total)
    return Outcome(edit, *params_after(model, edit, params, after), after)


def params_after(
    model: GaussianModel, edit: Edit, params: GaussianModelParams, sums: GaussianModelSums
) -> tuple[GaussianModelParams, float]:
    """Parameters of the new features at their optimum given the new sums, and the objective."""
    made, info = Coordinate(model, len(edit.ids)).update(blank(model, edit, params), sums, Draws(0))
    return made, info.objective


def blank(model: GaussianModel, edit: Edit, params: GaussianModelParams) -> GaussianModelParams:
    """Parameters of the new features before they see their sums: only variances and mass are known."""
    places = edit.places(params.ids)[0]
    return replace(
        params,
        prior=model.prior.resized(params.prior, len(edit.ids), places),
        observation=_without_dictionary(params.observation, places),
        ids=edit.ids,
        **_lineage(edit, params),
        on=np.zeros(len(edit.ids)),
        weights=slab_at(params.weights, places),
    )


def sums_after(
    edit: Edit, params: GaussianModelParams, sums: GaussianModelSums, total: Float
) -> GaussianModelSums:
    """The sums of the new features.

    Exact for keep, complement and constant, as long as no two new features share a parent. For an
    exclusive or, counts and products are off by at most what the rarest combination of its
    parents amounts to, and its entropy is a guess: the sum of theirs, which it cannot exceed.
    """
    places, seen = edit.places(params.ids), rows_seen(params, sums)
    linear = combination(places, edit.flip, sums.observation.gram, seen)
    return ModelSums(
        entries=_entries(linear, places, sums.entries, float(sums.observation.rows)),
        observation=_observed(linear, places, sums.observation, seen, total, params.observation),
    )


def rows_seen(params: GaussianModelParams, sums: GaussianModelSums) -> Float:
    """(group) number of rows in which a group of columns is observed."""
    found: Float = params.observation.rows_seen(float(sums.observation.rows))
    return found


def combination(places: Index, flip: NDArray[np.bool_], gram: Float, seen: Float) -> Float:
    """L (new feature, old feature + 1): the new features as linear functions of the old ones and 1."""
    old, most = gram.shape[1], int(np.argmax(seen))
    made = np.zeros((places.shape[1], old + 1))
    for row, (k, j) in enumerate(places.T):
        if OFF in (k, j):
            made[row, [p for p in (k, j) if p != OFF]] = 1.0
        else:
            made[row, [k, j, old]] = RELATIONS[int(np.argmin(table(gram[most], seen[most])[:, k, j]))]
    made[flip] *= -1.0
    made[flip, old] += 1.0
    return made


def table(gram: Float, rows: float) -> Float:
    """(4, feature, feature) rows with both features, only the first, only the second, neither."""
    on = np.diagonal(gram)
    one, other = on[:, None] - gram, on[None, :] - gram
    return np.stack([gram, one, other, rows - one - other - gram])


def _entries(linear: Float, places: Index, entries: RowSums, rows: float) -> RowSums:
    """Counts, and entropies and costs of the parents: those of 1 - z are those of z."""

    def inherited(of: Float) -> Float:
        found: Float = np.append(of, 0.0)[places].sum(axis=0)
        return found

    on = linear @ np.append(entries.on, rows)
    return RowSums(
        on=np.clip(on, 0.0, rows),
        first=linear @ np.append(entries.first, rows),
        second=np.maximum(linear @ np.append(entries.second, rows), 0.0),
        entropy=inherited(entries.entropy),
        cost=inherited(entries.cost),
    )


def _observed(
    linear: Float, places: Index, sums: GaussianSums, seen: Float, total: Float, params: GaussianParams
) -> GaussianSums:
    """Gram matrices and cross products; those of an exclusive or have its count on the diagonal."""
    groups, features = len(sums.gram), linear.shape[0]
    both = np.flatnonzero((places != OFF).all(axis=0))
    gram = np.empty((groups, features, features))
    for g in range(groups):
        count = np.append(np.diagonal(sums.gram[g]), seen[g])
        wide = np.zeros((len(count), len(count)))
        wide[:-1, :-1], wide[-1], wide[:, -1] = sums.gram[g], count, count
        gram[g] = linear @ wide @ linear.T
        gram[g, both, both] = (linear @ count)[both]
    cross = linear @ np.concatenate([sums.cross, sums.totals(total)[None]])
    return sums.edited(gram, cross, linear, params)


def _lineage(edit: Edit, params: GaussianModelParams) -> dict[str, NDArray[np.int64] | NDArray[np.bool_]]:
    """Parents and flips for row state; those of kept features stay what they were."""
    where = {int(name): at for at, name in enumerate(params.ids)}
    parents, flip = edit.parents.copy(), edit.flip.copy()
    for new, name in enumerate(edit.ids):
        if int(name) in where:
            parents[:, new], flip[new] = params.parents[:, where[int(name)]], params.flip[where[int(name)]]
    return {"parents": parents, "flip": flip}


def _without_dictionary(params: GaussianParams, first: Index) -> GaussianParams:
    """Nothing known of the features but their scale: that of the first parent, of a new one the median.

    Scales are those before the last stretch, as the sums are.
    """
    scale = params.scale / params.stretch**2
    nothing = np.zeros((len(first), params.mean.shape[1]))
    return known(params, nothing, np.append(scale, np.median(scale))[first])
