"""The lower bound of b_k = E log(1 - pi_k) by convexity (priors.md 6), the default.

-b_k is the sum over r of f(r) = M_k(r) / r with M_k(s) = E pi_k^s, and f is completely
monotone. The first terms are summed. For the rest 1/t + 1/2 + t/12 >= 1/(1 - e^-t) gives

    sum_{r >= s0} f(r) <= int_{s0}^inf f ds + f(s0)/2 - f'(s0)/12,

which is off by less than f'''(s0)/720, about 1e-8 M_k(s0). The integral is taken over
u = log(s / s0) with Gauss-Legendre nodes that all sticks share, so M_k is a running product
over sticks. It ends where M_2(s) is no digit of M_2(1) any more: M_k(s) / M_k(1) falls with k.
b_1 is known exactly and used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ibpdist.model.priors._beta import Sticks, Vector
from ibpdist.model.priors._bound import Bend, Bound, from_here
from ibpdist.model.priors._gamma import digamma_rest, log_gamma_rest, tetragamma_far, trigamma_far
from ibpdist.model.priors._powers import Powers, whole

TERMS = 32
SPLIT = TERMS + 1.0
"""s0. Arguments of gamma functions at the nodes exceed 30: their Stirling series is exact."""

_PANEL, _ORDER, _SHORT_ORDER = 4.0, 20, 16
_ENDS = (0.0, 0.5, 1.0, 2.0, *np.arange(_PANEL, 65.0, _PANEL))
"""Where the integral may end, in u: one short panel, or whole ones. Off by less than 1e-13 of b_k."""

_NOTHING = -37.0
"""log of what no digit of 1 shows."""

_STEPS = np.arange(SPLIT)
_SUMMED = np.append(1 / (_STEPS[:-1] + 1), 0.5 / SPLIT + 1 / (12 * SPLIT**2))


@dataclass(frozen=True)
class _Edge:
    """E_k = d log M_k / ds at s0, single sticks: value, slope (feature, side), sag as in Powers."""

    value: Vector
    slope: Vector
    sag: Vector


def lower(at: Sticks, off: Vector) -> Bound:
    """The bounds; the gradient and curvature of sum_k off_k b_k come as minus those of the series."""
    nodes, weights = _grid(_end(at.tau))
    each, edge = _moments(at, nodes)
    power = np.empty_like(each.mean)
    np.cumprod(each.mean, axis=0, out=power)
    last = power[:, TERMS] / (12 * SPLIT)
    fall = np.cumsum(edge.value)
    value = fall * last - power @ weights
    value[0] = at.log[0, 1]
    used = off.copy()
    used[0] = 0.0
    weight = np.zeros_like(at.tau)
    weight[0, 1] = off[0]
    power *= used[:, None]
    power *= weights
    power[:, TERMS] -= used * fall * last
    later, kept = from_here(power), -from_here(used * last)
    slope = np.einsum("kj,kij->ki", later, each.slope)

    def bend() -> Bend:
        return _bend(at.tau, each, edge, later, kept, slope)

    return Bound(value, weight, -slope - kept[:, None] * edge.slope, bend)


def _bend(tau: Vector, each: Powers, edge: _Edge, later: Vector, kept: Vector, slope: Vector) -> Bend:
    """Products of slopes, once for every s and twice for the edge; second derivatives in the blocks."""
    corner = each.slope[:, :, TERMS, None]
    tip = edge.slope[:, :, None]
    share = kept[:, None, None]
    left = np.concatenate([later[:, None, :] * each.slope, share * tip, share * corner], axis=2)
    right = np.concatenate([each.slope, corner, tip], axis=2)
    blocks = each.bend(tau, later, slope)
    bare = Powers(np.empty(0), np.empty(0), edge.sag[:, :, None])
    blocks += bare.bend(tau, kept[:, None], kept[:, None] * edge.slope)
    return Bend(left, right, blocks)


def _end(tau: Vector) -> int:
    """The first of the ends where M_2(s) / M_2(1) is below 1e-16, or the last."""
    pairs = [(a, a + b) for a, b in tau[:2].tolist()]
    lgamma = math.lgamma

    def fallen(s: float) -> float:
        return sum(lgamma(a + s) - lgamma(a + 1) - lgamma(p + s) + lgamma(p + 1) for a, p in pairs)

    for place, u in enumerate(_ENDS):
        if fallen(SPLIT * math.exp(u)) < _NOTHING:
            return place
    return len(_ENDS) - 1


@cache
def _grid(end: int) -> tuple[Vector, Vector]:
    """s - s0 at s0 and the nodes, and the weights of r = 1 .. s0 followed by those of the nodes."""
    panels = math.ceil(_ENDS[end] / _PANEL)
    x, w = np.polynomial.legendre.leggauss(_ORDER if _ENDS[end] >= _PANEL else _SHORT_ORDER)
    width = _ENDS[end] / max(1, panels)
    u = (width * (np.arange(panels)[:, None] + 0.5 + 0.5 * x)).ravel()
    nodes = np.append(0.0, SPLIT * np.expm1(u))
    return nodes, np.concatenate([_SUMMED, np.tile(0.5 * width * w, panels)])


def _moments(at: Sticks, nodes: Vector) -> tuple[Powers, _Edge]:
    """(feature, terms + nodes): products for integer s, ratios of gamma functions beyond."""
    tau, more = at.tau, len(nodes) - 1
    made = whole(tau, _STEPS, more)
    start = np.stack([tau[:, 0], at.both])[:, :, None] + SPLIT
    r = 1 / (start + nodes)
    rest, tri = digamma_rest(r), trigamma_far(r)
    if more:
        _beyond(made, tau, start, nodes[1:], r, rest, tri)
    one, both = tri[:, :, 0]
    value = -np.log1p(tau[:, 1] * r[0, :, 0]) + rest[0, :, 0] - rest[1, :, 0]
    return made, _Edge(value, tau * np.stack([one - both, -both], axis=1), -tetragamma_far(r[:, :, 0]))


def _beyond(
    made: Powers, tau: Vector, start: Vector, d: Vector, r: Vector, rest: Vector, tri: Vector
) -> None:
    """Fill in the nodes: log of G(x+d) G(x+b) / (G(x) G(x+b+d)) at x = tau_1 + s0, b = tau_2.

    The difference of four Stirling series, arranged so that nothing large cancels.
    """
    b, x = tau[:, 1:], start[0]
    first, there = r[:, :, :1], r[:, :, 1:]
    near, far = np.log1p(d * b * first[0] * there[1]), np.log1p(d * first[1])
    small = log_gamma_rest(r[0]) - log_gamma_rest(r[1])
    log = (x - 0.5) * near - b * far - d * np.log1p(b * there[0]) + small[:, 1:] - small[:, :1]
    gone = rest[:, :, 1:] - rest[:, :, :1]
    np.multiply(np.exp(log), made.mean[:, TERMS, None], out=made.mean[:, TERMS + 1 :])
    one = tau[:, :1] * (near + gone[0] - gone[1])
    np.add(one, made.slope[:, 0, TERMS, None], out=made.slope[:, 0, TERMS + 1 :])
    np.subtract(made.slope[:, 1, TERMS, None], b * (far + gone[1]), out=made.slope[:, 1, TERMS + 1 :])
    sag = made.sag[:, :, TERMS, None] + tri[:, :, :1] - tri[:, :, 1:]
    made.sag[:, :, TERMS + 1 :] = sag
