"""Xor: a feature gives way to what tells it from another, z_k <- z_k xor z_l, in all rows at once.

Rows in turn change one entry at a time. Where a feature is the union of two others, and two more take
away what rows with one of them have too much, every row is well explained and no single entry can change.
Such ways to tell the same rows differ by a few steps of this kind.

The pair is chosen without looking and the step undoes itself, so it is taken with the ratio of p(X, Z) after
and before, dictionary and prevalences integrated out (vibp 1). Where features that no row has do not
exist, a step that would leave such a feature is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ibpdist.kernels.buffet import Law, is_own
from ibpdist.observations.rotation import Family, Rotation

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """x (row, column) without gaps, the noise of each column, and the law of who has what."""

    x: Float
    noise: Float
    law: Law

    @cached_property
    def squares(self) -> Float:
        found: Float = np.einsum("nd,nd->d", self.x, self.x)
        return found

    def log_joint(self, z: Float, cross: Float) -> float:
        """log p(X, Z) but for what does not depend on z (feature, row); `cross` is z x."""
        gram = z @ z.T
        on, scale = np.diagonal(gram), np.full(len(z), self.law.scale)
        told = Rotation.of(slice(None), gram, cross, self.squares, scale, Family.STRUCTURED)
        prior = betaln(on + self.law.share, self.law.rows - on + 1).sum()
        return told.evidence(self.noise) + float(prior)


def recombined(
    rows: Rows, z: Float, cross: Float, tries: int, rng: np.random.Generator
) -> tuple[Float, Float]:
    """z (feature, row) after so many tries, and z x, from what they were."""
    if len(z) < 2 or not tries:
        return z, cross
    here = rows.log_joint(z, cross)
    for _ in range(tries):
        k, other = rng.choice(len(z), 2, replace=False)
        coin = np.log(rng.random())
        row = np.abs(z[k] - z[other])
        if is_own(rows.law, row.sum()):
            continue
        new, new_cross = z.copy(), cross.copy()
        new[k], new_cross[k] = row, row @ rows.x
        there = rows.log_joint(new, new_cross)
        if coin < there - here:
            z, cross, here = new, new_cross, there
    return z, cross
