"""Which features are complements: the ones that leave no intercept (starts-and-moves.md 12).

Regress x on the features and 1 with no penalty on the coefficient of 1: the normal factor of the
coefficients has means phi and covariance S (feature and 1, last) in each column. Complementing the
set f is the same model in other words, in which the constant has the coefficient v'phi with
v = 1 on f and on the last place, and 0 elsewhere. So at fixed variances the part of the objective that
depends on the orientation is, exactly,

    sum_d log N(v' phi_d; 0, s0 + v' S_d v),

where s0 is the prior variance of the constant, 0 where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Set = NDArray[np.bool_]


@dataclass(frozen=True)
class Intercept:
    """What is known of the coefficients, by group of columns that share a covariance.

    `second` (group, feature + 1, feature + 1) sums phi phi' over the columns, `spread` of the same
    shape is S, `columns` (group) counts. `slack` is the prior variance of a constant, `odds` (feature)
    what the prior of z gains when a feature is complemented.
    """

    second: Float
    spread: Float
    columns: Float
    slack: float
    odds: Float

    def value(self, chosen: Set, constant: bool) -> float:
        """The objective of an orientation up to a constant, variances fixed."""
        v = np.append(chosen, True).astype(np.float64)
        size, width = v @ self.second @ v, v @ self.spread @ v + constant * self.slack
        return float(self._density(size, width) + self.odds @ chosen)

    def changes(self, chosen: Set, constant: bool) -> Float:
        """(feature) how the value changes when that one is added to the set, or taken out of it."""
        v, turn = np.append(chosen, True).astype(np.float64), 1.0 - 2.0 * chosen

        def moved(square: Float) -> tuple[Float, Float]:
            once = square @ v
            own = np.diagonal(square, axis1=1, axis2=2)[:, :-1]
            return once @ v, (once @ v)[:, None] + 2 * turn * once[:, :-1] + own

        (size, sizes), (width, widths) = moved(self.second), moved(self.spread)
        slack = constant * self.slack
        # The group axis is last in the density.
        after = self._density(np.maximum(sizes, 0.0).T, widths.T + slack)
        return np.asarray(after - self._density(size, width + slack) + turn * self.odds)

    def climb(self, chosen: Set, constant: bool) -> Set:
        """The best single change again and again, until none gains."""
        chosen = chosen.copy()
        for _ in range(4 * len(chosen)):
            change = self.changes(chosen, constant)
            best = int(np.argmax(change))
            if not change[best] > 1e-9 * (1.0 + abs(self.value(chosen, constant))):
                break
            chosen[best] ^= True
        return chosen

    def _density(self, size: Float, width: Float) -> Float:
        """Over groups, the last axis."""
        return np.asarray(-0.5 * (self.columns * np.log(width) + size / width).sum(axis=-1))
