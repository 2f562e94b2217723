"""Normal weights: w ~ N(0, 1), the sparse factor analysis of `factors.md`.

q(z, w) is joint: given z = 1, w is normal; given z = 0 it stays at its prior and costs
nothing. w is integrated out of the update of z (kernels/respond.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from ibpdist.kernels import respond
from ibpdist.rules import Rule
from ibpdist.weights._base import WeightSums

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Normal:
    name: ClassVar[str] = "normal"
    keeps: ClassVar[bool] = True
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def respond(self) -> respond.Normal:
        return respond.Normal()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z * w

    def score(self, sums: WeightSums) -> dict[str, float]:
        return {"weights": -float(sums.cost.sum())}

    def sample(self, features: int, rows: int, normals: Matrix) -> Matrix:
        return normals.reshape(features, rows)
