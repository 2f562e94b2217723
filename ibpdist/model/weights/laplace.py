"""Laplace weights: w ~ Laplace(0, 1), independent components (factors.md 7).

q(z, w) is joint: given z = 1, w has the density of two normals cut at zero; given z = 0 it stays at its prior
and costs nothing. w is integrated out of the update of z (kernels/laplace.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.kernels import laplace
from ibpdist.model.weights._balanced import BalancedWeights
from ibpdist.model.weights._base import RowDensity, Slab

Matrix = NDArray[Any]
LOG_2 = float(np.log(2))


@dataclass(frozen=True)
class Laplace(BalancedWeights):
    name: ClassVar[str] = "laplace"
    counts: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True
    density: ClassVar[RowDensity] = RowDensity.SAMPLED
    second: ClassVar[float] = 2.0
    signed: ClassVar[bool] = True
    two_sided: ClassVar[bool] = True
    default_start: ClassVar[str] = "independent"
    most_features: ClassVar[int] = 80
    fit_settings: ClassVar[Mapping[str, object]] = {"noise": "one", "scale": "feature"}
    rows_have: ClassVar[str] = "have Laplace weights"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def respond(self) -> laplace.Laplace:
        return laplace.Laplace()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z * w

    def variance(self, chance: Matrix) -> Matrix:
        return np.asarray(2.0 * chance)

    def neg_log_prior(self, w: Matrix) -> Matrix:
        return np.asarray(np.abs(w) + LOG_2)

    def sample(self, features: int, rows: int, normals: Matrix, slab: Slab | Nothing = NOTHING) -> Matrix:
        """Quantiles of the probabilities of the normals, exact in both tails."""
        size = -(log_ndtr(-np.abs(normals)) + LOG_2)
        return np.asarray(np.copysign(size, normals), normals.dtype).reshape(features, rows)
