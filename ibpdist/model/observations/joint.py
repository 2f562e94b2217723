"""Rows that have every feature: all weights of a row at once, with one normal factor (factors.md 5).

Where z = 1 everywhere, q(w_n) = N(S F_n, S) with S = (I + Gamma)^-1 is the exact conditional given
q(A), shared by all rows that are observed in the same columns: no sweep over features, and no
trace of where the rows began. With a factor for each weight alone the fit would be another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.tiles import Entries, Pass

Matrix = NDArray[Any]
Float = NDArray[np.float64]


class JointPass(Pass):
    """A pass that solves for the weights of a row instead of sweeping over them."""

    def entries_of(
        self, pull: Matrix, gamma: Float, starts: NDArray[np.intp], part: Entries
    ) -> tuple[Float, Float, Matrix]:
        features = len(gamma[0])
        sums = np.zeros((4, len(gamma), features))
        grams = np.empty(gamma.shape)
        part.z1[:] = 1
        for i, (a, b) in enumerate(pairwise(starts)):
            spread = np.linalg.inv(np.eye(features) + gamma[i])
            part.w1[:, a:b] = spread.astype(pull.dtype) @ pull[:, a:b]
            mean = part.w1[:, a:b].astype(np.float64)
            grams[i] = mean @ mean.T + (b - a) * spread
            second = np.diagonal(grams[i])
            # -log |S| belongs to all features together: an equal share for each.
            share = np.linalg.slogdet(spread)[1] / features
            sums[0, i], sums[2, i], sums[3, i] = b - a, 0.5 * (second - (b - a) * (1 + share)), second
        return sums, grams, part.w1


@dataclass(frozen=True)
class Joint(Gaussian):
    """The Gaussian observation, for rows that have every feature."""

    name: ClassVar[str] = "gaussian_joint"
    dense: ClassVar[bool] = True
    passes: ClassVar[type[Pass]] = JointPass
    by_rows: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
