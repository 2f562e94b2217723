"""The lower bound of b_k = E log(1 - pi_k) by convexity (vibp 3.4), the default.

-b_k is the sum over r of f(r) = M_k(r) / r with M_k(s) = E pi_k^s, and f is completely
monotone. The first terms are summed. For the rest 1/t + 1/2 + t/12 >= 1/(1 - e^-t) gives

    sum_{r >= s0} f(r) <= int_{s0}^inf f ds + f(s0)/2 - f'(s0)/12,

which is off by less than f'''(s0)/720, about 1e-8 M_k(s0). The integral is taken over
u = log(s / s0) with Gauss-Legendre nodes that all sticks share, so M_k is a running product
over sticks. b_1 is known exactly and used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import polygamma

from ibpdist.priors._beta import Vector, log_moments
from ibpdist.priors._gamma import digamma_rest, log_gamma_rest

TERMS = 32
SPLIT = TERMS + 1.0
"""s0. Arguments of gamma functions at the nodes exceed 30: their Stirling series is exact."""

_PANEL, _ORDER = 4.0, 16
_STEPS = np.arange(TERMS + 1.0)
_SUMMED = np.append(1 / (_STEPS[:-1] + 1), 0.5 / SPLIT + 1 / (12 * SPLIT**2))


@dataclass(frozen=True)
class Moments:
    """Of single sticks at r = 1 .. s0 and at the nodes: log E v^s and its slopes in tau."""

    log: Vector
    slope: tuple[Vector, Vector]


def lower(tau: Vector, off: Vector) -> tuple[Vector, Vector]:
    """(feature,) bounds of b and the gradient (feature, side) of sum_k off_k b_k."""
    nodes, weights = _grid(_panels(tau))
    each = _moments(tau, nodes)
    power = np.exp(np.cumsum(each.log, axis=0))
    last = power[:, TERMS] / (12 * SPLIT)
    edge, edge_slope = _edge(tau)
    edge = np.cumsum(edge)
    bound = edge * last - power @ weights
    bound[0] = log_moments(tau)[1][0]
    used = off.copy()
    used[0] = 0.0
    weighted = power * (used[:, None] * weights)
    weighted[:, TERMS] -= used * edge * last
    later = _from_here(weighted)
    gradient = np.stack([-np.sum(later * slope, axis=1) for slope in each.slope], axis=1)
    gradient += _from_here(used * last)[:, None] * edge_slope
    return bound, gradient + off[0] * _first(tau)


def _first(tau: Vector) -> Vector:
    """Gradient of b_1 = psi(tau_12) - psi(tau_1+)."""
    found = np.zeros_like(tau)
    found[0] = -polygamma(1, tau[0].sum())
    found[0, 1] += polygamma(1, tau[0, 1])
    return found


def _from_here(values: Vector) -> Vector:
    """Sums over this stick and the later ones."""
    found: Vector = np.cumsum(values[::-1], axis=0)[::-1]
    return found


def _panels(tau: Vector) -> int:
    """How far out the nodes must reach: M_2 falls at least as (tau_+ / s)^2 from s = tau_+ on."""
    reach = np.log(1e7 * (1 + np.max(tau[:, 0]) + np.max(tau[:, 1])) / SPLIT)
    return int(np.ceil(reach / _PANEL))


@cache
def _grid(panels: int) -> tuple[Vector, Vector]:
    """s - s0 at the nodes, and the weights of r = 1 .. s0 followed by those of the nodes."""
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    u = (_PANEL * (np.arange(panels)[:, None] + 0.5 + 0.5 * x)).ravel()
    return SPLIT * np.expm1(u), np.concatenate([_SUMMED, np.tile(0.5 * _PANEL * w, panels)])


def _moments(tau: Vector, nodes: Vector) -> Moments:
    """(feature, terms + nodes): products for integer r, ratios of gamma functions beyond."""
    a, b = tau[:, :1], tau[:, 1:]
    fail = b / (a + b + _STEPS)
    log = -np.cumsum(np.log1p(b / (a + _STEPS)), axis=1)
    slope_b = np.cumsum(-1 / (a + b + _STEPS), axis=1)
    slope_a = np.cumsum(fail / (a + _STEPS), axis=1)
    ratio, more_a, more_b = _ratio(a + SPLIT, b, nodes)
    return Moments(
        np.concatenate([log, log[:, -1:] + ratio], axis=1),
        (
            np.concatenate([slope_a, slope_a[:, -1:] + more_a], axis=1),
            np.concatenate([slope_b, slope_b[:, -1:] + more_b], axis=1),
        ),
    )


def _ratio(x: Vector, b: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
    """log of G(x+d) G(x+b) / (G(x) G(x+b+d)) with its slopes in x (b, d fixed) and in b.

    The difference of four Stirling series, arranged so that nothing large cancels.
    """
    y = x + b
    near, far = np.log1p(d * b / (x * (y + d))), np.log1p(d / y)
    log = (x - 0.5) * near - b * far - d * np.log1p(b / (x + d))
    log += log_gamma_rest(x + d) - log_gamma_rest(x) - log_gamma_rest(y + d) + log_gamma_rest(y)
    over_y = digamma_rest(y + d) - digamma_rest(y)
    return log, near + digamma_rest(x + d) - digamma_rest(x) - over_y, -far - over_y


def _edge(tau: Vector) -> tuple[Vector, Vector]:
    """Slope in s of log E v^s at s0, for each stick, and its gradient in tau."""
    x, y = tau[:, 0] + SPLIT, tau.sum(axis=1) + SPLIT
    value = -np.log1p(tau[:, 1] / x) + digamma_rest(x) - digamma_rest(y)
    over = polygamma(1, y)
    return value, np.stack([polygamma(1, x) - over, -over], axis=1)
