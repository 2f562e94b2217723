"""E v^s of single sticks, its slopes in log tau and what its curvature needs.

With psi the digamma function, c(x) = psi(x + s) - psi(x) and t(x) = psi'(x) - psi'(x + s), the
slopes of log E v^s are tau_1 (c(tau_1) - c(tau_+)) and -tau_2 c(tau_+), and its second
derivatives are those of a difference of two functions, one of tau_1, one of tau_+.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibpdist.model.priors._beta import Vector


@dataclass(frozen=True)
class Powers:
    """Over (feature, term), a term being an s: `mean` E v^s, `slope` (feature, side, term).

    `sag` (2, feature, term) is t at tau_1 and at tau_+.
    """

    mean: Vector
    slope: Vector
    sag: Vector

    def bend(self, tau: Vector, later: Vector, slope: Vector) -> Vector:
        """(feature, side, side) sums over s of `later` times the second derivatives of log E v^s.

        `slope` (feature, side) are the same sums of the slopes.
        """
        one, both = np.einsum("kj,ikj->ik", later, self.sag)
        found = np.empty((len(tau), 2, 2))
        found[:, 0, 0] = both - one
        found[:, 0, 1] = found[:, 1, 0] = found[:, 1, 1] = both
        found *= tau[:, :, None] * tau[:, None, :]
        found[:, [0, 1], [0, 1]] += slope
        return found


def whole(tau: Vector, steps: Vector, room: int = 0) -> Powers:
    """For s = 1, 2, ... (`steps` is s - 1), by products; `room` more terms are left empty."""
    features, terms = len(tau), len(steps)
    near = np.empty((2, features, terms))
    np.add(tau[:, :1], steps, out=near[0])
    np.add(near[0], tau[:, 1:], out=near[1])
    np.divide(1.0, near, out=near)
    fail = tau[:, 1:] * near[1]
    made = Powers(
        np.empty((features, terms + room)),
        np.empty((features, 2, terms + room)),
        np.empty((2, features, terms + room)),
    )
    np.cumprod(near[1] / near[0], axis=1, out=made.mean[:, :terms])
    np.cumsum(tau[:, :1] * near[0] * fail, axis=1, out=made.slope[:, 0, :terms])
    np.cumsum(-fail, axis=1, out=made.slope[:, 1, :terms])
    np.cumsum(near * near, axis=2, out=made.sag[:, :, :terms])
    return made
