"""Unit weights: a row has a feature or not; y = z."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.kernels import respond
from ibpdist.model.weights._base import FixedWeights, RowDensity, Slab, WeightSums

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Unit(FixedWeights):
    name: ClassVar[str] = "unit"
    counts: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False
    density: ClassVar[RowDensity] = RowDensity.INDEPENDENT
    second: ClassVar[float] = 1.0
    signed: ClassVar[bool] = False
    default_start: ClassVar[str] = "spectral"
    most_features: ClassVar[int] = 1000
    fit_settings: ClassVar[Mapping[str, object]] = {}
    rows_have: ClassVar[str] = "are present or absent"
    rules: ClassVar[frozenset[Rule]] = frozenset(Rule)

    def respond(self) -> respond.Unit:
        return respond.Unit()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z

    def variance(self, chance: Matrix) -> Matrix:
        return np.asarray(chance * (1 - chance))

    def neg_log_prior(self, w: Matrix) -> Matrix:
        return np.zeros_like(w)

    def score(self, sums: WeightSums, slab: Slab | Nothing) -> dict[str, float]:
        return {}

    def sample(self, features: int, rows: int, normals: Matrix, slab: Slab | Nothing = NOTHING) -> Matrix:
        return np.ones((features, rows), dtype=normals.dtype)
