"""No choice: every row has every feature, which leaves factor analysis (priors.md 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, struct
from ibpdist.model.priors._base import Number, PriorSums, Vector

CERTAIN = 500.0
"""Log odds of what is certain: no evidence outweighs them, and arithmetic stays finite."""


@struct("always-params", since=1)
class AlwaysParams:
    log_on: Array = dims("feature")
    log_off: Array = dims("feature")
    mass: Array = dims()


@dataclass(frozen=True)
class Always:
    """Has no settings, and nothing to learn."""

    name: ClassVar[str] = "always"
    dense: ClassVar[bool] = True
    number: ClassVar[Number] = Number.GIVEN
    uses_truncation: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    fit_settings: ClassVar[Mapping[str, object]] = {}

    def init(self, features: int, rows: int) -> AlwaysParams:
        none = np.zeros(features)
        return AlwaysParams(log_on=none, log_off=none - CERTAIN, mass=np.asarray(float(features)))

    def log_odds(self, params: AlwaysParams) -> Vector:
        return np.asarray(params.log_on - params.log_off)

    def expected(self, params: AlwaysParams) -> Vector:
        return np.ones(len(params.log_on))

    def update(
        self, params: AlwaysParams, sums: PriorSums, rule: Rule, rng: np.random.Generator
    ) -> AlwaysParams:
        return params

    def score(self, params: AlwaysParams, sums: PriorSums) -> dict[str, float]:
        """Zero where every row has every feature."""
        return {"z prior": float((sums.rows - sums.on) @ params.log_off)}

    def select(self, params: AlwaysParams, keep: NDArray[np.intp]) -> AlwaysParams:
        return self.init(len(keep), 0)

    def capacity(self, params: AlwaysParams) -> None:
        return None

    def resized(
        self, params: AlwaysParams, features: int, continued: NDArray[np.intp] | None = None
    ) -> AlwaysParams:
        return self.init(features, 0)

    def describe(self, params: AlwaysParams, order: NDArray[np.intp]) -> Named:
        return {"mass": ((), np.asarray(params.mass))}

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        return np.ones(features)
