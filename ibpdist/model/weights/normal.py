"""Normal weights: w ~ N(0, 1), sparse factor analysis (factors.md 1).

q(z, w) is joint: given z = 1, w is normal; given z = 0 it stays at its prior and costs
nothing. w is integrated out of the update of z (kernels/respond.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.kernels import respond
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import RowDensity, WeightSums

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Normal:
    name: ClassVar[str] = "normal"
    has_weights: ClassVar[bool] = True
    density: ClassVar[RowDensity] = RowDensity.CLOSED
    second: ClassVar[float] = 1.0
    signed: ClassVar[bool] = True
    default_start: ClassVar[str] = "principal"
    most_features: ClassVar[int] = 80
    fit_settings: ClassVar[Mapping[str, object]] = {"noise": "column", "scale": "feature"}
    rows_have: ClassVar[str] = "have weights"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def respond(self) -> respond.Normal:
        return respond.Normal()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z * w

    def best_length(self, on: Matrix, second: Matrix, beside: Evidence) -> Matrix:
        """Parameter expansion (factors.md 3): with q = 1/c^2 the objective has, beside constants,

            (on + cells) / 2 log q - (second + squares) / 2 q,

        the entropies and the weights' prior, and of the dictionary what `beside` says; its other terms
        do not change, as the scale goes with the square of the length. So this is its maximum.
        """
        return np.asarray(np.sqrt((second + beside.squares) / (on + beside.cells)))

    def rescaled(self, sums: WeightSums, on: Matrix, second: Matrix, lengths: Matrix) -> WeightSums:
        """KL(N(m/c, v/c^2) || N(0, 1)) less that of N(m, v)."""
        return WeightSums(cost=sums.cost + 0.5 * second * (lengths**-2.0 - 1) + on * np.log(lengths))

    def variance(self, chance: Matrix) -> Matrix:
        return chance

    def neg_log_prior(self, w: Matrix) -> Matrix:
        return np.asarray(0.5 * (w * w + respond.LOG_2PI))

    def score(self, sums: WeightSums) -> dict[str, float]:
        return {"weights": -float(sums.cost.sum())}

    def sample(self, features: int, rows: int, normals: Matrix) -> Matrix:
        return normals.reshape(features, rows)
