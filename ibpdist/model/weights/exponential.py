"""Exponential weights: w ~ Exp(1) on w > 0, factors whose activities are positive (factors.md 11).

q(z, w) is joint: given z = 1, w has the density of a normal cut at zero; given z = 0 it stays at its prior
and costs nothing. w is integrated out of the update of z (kernels/exponential.py).
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
from ibpdist.kernels import exponential
from ibpdist.model.weights._balanced import BalancedWeights
from ibpdist.model.weights._base import RowDensity, Slab

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Exponential(BalancedWeights):
    name: ClassVar[str] = "exponential"
    counts: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True
    density: ClassVar[RowDensity] = RowDensity.SAMPLED
    second: ClassVar[float] = 2.0
    signed: ClassVar[bool] = False
    default_start: ClassVar[str] = "best"
    most_features: ClassVar[int] = 80
    fit_settings: ClassVar[Mapping[str, object]] = {
        "noise": "auto",
        "scale": "feature",
        "intercept": True,
        "row_noise": "learn",
    }
    rows_have: ClassVar[str] = "have positive weights"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def respond(self) -> exponential.Exponential:
        return exponential.Exponential()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z * w

    def variance(self, chance: Matrix) -> Matrix:
        """E y^2 - (E y)^2, as the mean of y is not zero."""
        return np.asarray(chance * (self.second - chance))

    def neg_log_prior(self, w: Matrix) -> Matrix:
        return np.asarray(np.where(w >= 0, w, np.inf))

    def sample(self, features: int, rows: int, normals: Matrix, slab: Slab | Nothing = NOTHING) -> Matrix:
        """Quantiles of the probabilities of the normals, exact in both tails."""
        return np.asarray(-log_ndtr(-normals), normals.dtype).reshape(features, rows)
