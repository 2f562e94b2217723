"""Xor: a feature gives way to what tells it from another, z_k <- z_k xor z_l, in all rows at once.

Flips change one entry at a time. Where a feature is the union of two others, and two more take
away what rows with one of them have too much, every row is well explained and no single entry can change.
Such ways to tell the same rows differ by a few steps of this kind.

The pair is chosen without looking and the step undoes itself, so it is taken with the ratio of p(X, Z) after
and before, dictionary and prevalences integrated out (samplers.md 11): a function of sums over the rows.
Where features that no row has do not exist, a step that would leave such a feature is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ibpdist.base.structs import Array, Nothing, dims, replace, struct
from ibpdist.data._base import Chunk
from ibpdist.model.observations import dictionary
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.intercept import RowTotals
from ibpdist.model.observations.rotation import Family
from ibpdist.model.observations.tiles import tile_rows

Float = NDArray[np.float64]
Pairs = NDArray[np.int64]


@struct
class XorSums:
    """Of the columns that pairs of features would make: how many rows have them; by group of columns, how
    many of the rows observed there have them and a feature, or two of them; and their products with x."""

    on: Array = dims("pair")
    gram: Array = dims("group pair feature")
    among: Array = dims("group pair pair_")
    cross: Array = dims("pair column")


@dataclass(frozen=True)
class FeatureSums:
    """Sums over the rows for a draw of z: counts `on` (feature), and those of the observation."""

    on: Float
    sums: GaussianSums

    def log_joint(self, params: GaussianParams, share: float) -> float:
        """log p(X, Z) but for what does not depend on Z; given the variances and groups of `params`."""
        rotated = dictionary.rotations(params, self.sums, Family.STRUCTURED)
        fit = sum(r.evidence(params.noise[r.columns]) for r in rotated)
        return float(fit + betaln(self.on + share, self.sums.rows - self.on + 1).sum())

    def with_column(self, k: int, xors: XorSums, pair: int) -> FeatureSums:
        """With the column of a pair in place of feature k."""
        on, gram, cross = self.on.copy(), self.sums.gram.copy(), self.sums.cross.copy()
        on[k], cross[k] = xors.on[pair], xors.cross[pair]
        gram[:, k] = gram[:, :, k] = xors.gram[:, pair]
        gram[:, k, k] = xors.among[:, pair, pair]
        first = self.sums.first
        if not isinstance(first, Nothing):
            counts = first.on.copy()
            counts[:, k] = xors.among[:, pair, pair]
            first = RowTotals(counts)
        return FeatureSums(on, replace(self.sums, gram=gram, cross=cross, first=first))


def pairs_of(features: int, count: int, rng: np.random.Generator) -> Pairs:
    """(pair, 2) at most `count` pairs of places, without a place in common."""
    some = min(count, features // 2)
    return rng.permutation(features)[: 2 * some].reshape(some, 2)


def columns_of(z: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
    """(pair, row) z_k xor z_l."""
    return np.asarray(np.abs(z[pairs[:, 0]] - z[pairs[:, 1]]))


def xor_sums(chunk: Chunk, z: NDArray[Any], pairs: Pairs, group: NDArray[np.intp]) -> XorSums:
    """Of the rows of a chunk, z (feature, row)."""
    new, x = columns_of(z, pairs), chunk.x
    first = np.unique(group, return_index=True)[1]
    # With cells missing in other chunks there are several groups, all of them seen here.
    seen = np.ones((chunk.rows, len(first))) if chunk.observed is None else chunk.observed[:, first]
    size, cross = tile_rows(x.shape[1], x.dtype.itemsize), np.zeros((len(pairs), x.shape[1]))
    for at in range(0, chunk.rows if len(pairs) else 0, size):
        cross += new[:, at : at + size] @ x[at : at + size]
    both = np.concatenate([z, new])
    shared = np.array([[both @ (column[:, None] * seen) for column in new]], np.float64)
    shared = shared.reshape(len(pairs), len(both), len(first)).transpose(2, 0, 1)
    return XorSums(
        on=new.sum(axis=1, dtype=np.float64),
        gram=np.ascontiguousarray(shared[:, :, : len(z)]),
        among=np.ascontiguousarray(shared[:, :, len(z) :]),
        cross=cross,
    )


def try_xor(
    current: FeatureSums,
    xors: XorSums,
    pairs: Pairs,
    params: GaussianParams,
    share: float,
    rng: np.random.Generator,
) -> tuple[FeatureSums, NDArray[np.bool_]]:
    """The sums after each pair was tried, and which of them were taken."""
    taken, coins = np.zeros(len(pairs), np.bool_), np.log(rng.random(len(pairs)))
    here = current.log_joint(params, share) if len(pairs) else 0.0
    for pair, (k, _) in enumerate(pairs):
        if xors.on[pair] + share == 0:
            continue
        new = current.with_column(k, xors, pair)
        there = new.log_joint(params, share)
        if coins[pair] < there - here:
            current, here, taken[pair] = new, there, True
            gram = xors.gram.copy()
            gram[:, :, k] = xors.among[:, :, pair]
            xors = replace(xors, gram=gram)
    return current, taken
