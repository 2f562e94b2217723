"""Reference: exact log evidence of tiny problems, by enumeration over Z (linear-gaussian.md 14).

    log p(x) = log sum_Z p(Z) p(x | Z),   p(x | Z) = prod_d N(x_od; 0, psi_d I + Y_o diag(s) Y_o')

with o the observed rows of column d, Y = Z for unit weights and Y = Z W, W integrated out by
quadrature, for normal weights. p(Z) is one of `log_p_finite`, `log_p_sticks`; the
Indian buffet process is summed over the numbers of features of each history instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import comb, factorial, lgamma, log, pi

import numpy as np
from scipy.integrate import dblquad, quad
from scipy.special import logsumexp
from scipy.stats import poisson

from tests.support.reference_model import Bools, Floats

# --- p(x | Z) ---


def log_normal(x: Floats, covariance: Floats) -> float:
    """log N(x; 0, covariance)."""
    if len(x) == 0:
        return 0.0
    _, logdet = np.linalg.slogdet(covariance)
    return float(-(len(x) * log(2 * pi) + logdet + x @ np.linalg.solve(covariance, x)) / 2)


def log_p_x_given_y(x: Floats, mask: Bools, y: Floats, psi: Floats, s: Floats) -> float:
    """A integrated out, observed cells only."""
    total = 0.0
    for d in range(x.shape[1]):
        seen = mask[:, d]
        covariance = psi[d] * np.eye(seen.sum()) + (y[seen] * s) @ y[seen].T
        total += log_normal(x[seen, d], covariance)
    return total


def weight_nodes(nodes: int) -> tuple[Floats, Floats]:
    """Points and weights for expectations under N(0, 1): the trapezoidal rule in t, w = sinh t.

    p(x | w) has poles near the real line where Gauss-Hermite with 80 nodes is wrong in the sixth
    digit; this reaches the eighth with 30.
    """
    t = np.linspace(-2.7, 2.7, nodes)
    w = np.sinh(t)
    shares = np.exp(-(w**2) / 2) * np.cosh(t) * (t[1] - t[0]) / np.sqrt(2 * pi)
    return w, shares


def log_p_x_given_z_normal(
    x: Floats, mask: Bools, z: Floats, psi: Floats, s: Floats, nodes: int = 30
) -> float:
    """As above with w ~ N(0, 1) of the entries that are on integrated out, `nodes` points each."""
    on = np.argwhere(z > 0)
    points, shares = weight_nodes(nodes)
    logs = []
    for choice in product(range(nodes), repeat=len(on)):
        y = z.copy()
        for (n, k), i in zip(on, choice, strict=True):
            y[n, k] = points[i]
        weight = sum(log(shares[i]) for i in choice)
        logs.append(weight + log_p_x_given_y(x, mask, y, psi, s))
    return float(logsumexp(logs))


# --- p(Z) ---


def log_p_finite(z: Floats, mass: float) -> float:
    """Prevalences integrated out: prod_k (mass / K) B(m_k + mass / K, N - m_k + 1)."""
    rows, features = z.shape
    total = 0.0
    for on in z.sum(axis=0):
        one, two = on + mass / features, rows - on + 1
        total += log(mass / features) + lgamma(one) + lgamma(two) - lgamma(one + two)
    return float(total)


def log_p_sticks(z: Floats, mass: float) -> float:
    """Truncated stick-breaking, exactly: expand every (1 - pi_k)^(N - m_k) and use E v^a = mass / (mass + a).

    The signs alternate, so this is for a handful of rows.
    """
    rows, features = z.shape
    on = z.sum(axis=0).astype(int)
    total = 0.0
    for powers in product(*(range(rows - m + 1) for m in on)):
        term = 1.0
        for k in range(features):
            term *= comb(rows - on[k], powers[k]) * (-1) ** powers[k]
            power = sum(on[i] + powers[i] for i in range(k, features))
            term *= mass / (mass + power)
        total += term
    return log(total)


def log_p_sticks_quadrature(z: Floats, mass: float) -> float:
    """The same for K <= 2 by quadrature over the sticks."""
    rows, features = z.shape
    on = z.sum(axis=0)

    def density(u: float) -> float:
        return u ** on[0] * (1 - u) ** (rows - on[0]) * mass * u ** (mass - 1)

    def joint(v: float, u: float) -> float:
        pi_2 = u * v
        return density(u) * pi_2 ** on[1] * (1 - pi_2) ** (rows - on[1]) * mass * v ** (mass - 1)

    if features == 1:
        return log(quad(density, 0, 1, epsabs=1e-13, epsrel=1e-12)[0])
    return log(dblquad(joint, 0, 1, 0, 1, epsabs=1e-12, epsrel=1e-10)[0])


# --- p(x) ---


def all_z(rows: int, features: int) -> Iterator[Floats]:
    """Every binary (rows, features) matrix."""
    for bits in product((0.0, 1.0), repeat=rows * features):
        yield np.array(bits).reshape(rows, features)


def log_evidence(
    x: Floats,
    mask: Bools,
    psi: Floats,
    s: Floats,
    mass: float,
    prior: Callable[[Floats, float], float] = log_p_finite,
    weights: str = "unit",
    nodes: int = 30,
) -> float:
    """log p(x) of the finite or truncated model with K = len(s) features."""
    logs = []
    for z in all_z(len(x), len(s)):
        if weights == "unit":
            given = log_p_x_given_y(x, mask, z, psi, s)
        else:
            given = log_p_x_given_z_normal(x, mask, z, psi, s, nodes)
        logs.append(prior(z, mass) + given)
    return float(logsumexp(logs))


def history_rates(rows: int, mass: float) -> list[tuple[Floats, float]]:
    """The 2^N - 1 nonzero histories (N,), each with the Poisson rate of its number of features."""
    out = []
    for bits in product((0.0, 1.0), repeat=rows):
        on = int(sum(bits))
        if on:
            rate = mass * factorial(rows - on) * factorial(on - 1) / factorial(rows)
            out.append((np.array(bits), rate))
    return out


def compositions(parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every tuple of `parts` counts with sum at most `most`."""
    if parts == 0:
        yield ()
        return
    for first in range(most + 1):
        for rest in compositions(parts - 1, most - first):
            yield (first, *rest)


def log_evidence_ibp(
    x: Floats, mask: Bools, psi: Floats, s: float, mass: float, missed: float = 1e-9
) -> float:
    """log p(x) of the Indian buffet process with unit weights, N <= 3; every feature has scale `s`.

    Matrices with so many features that their prior probability is below `missed` are left out,
    so the value is a hair below the truth.
    """
    histories = history_rates(len(x), mass)
    expected = sum(rate for _, rate in histories)
    most = int(poisson.isf(missed, expected)) + 1
    logs = []
    for numbers in compositions(len(histories), most):
        columns = [h for (h, _), number in zip(histories, numbers, strict=True) for _ in range(number)]
        y = np.array(columns).T if columns else np.zeros((len(x), 0))
        prior = sum(
            number * log(rate) - rate - lgamma(number + 1)
            for (_, rate), number in zip(histories, numbers, strict=True)
        )
        logs.append(prior + log_p_x_given_y(x, mask, y, psi, np.full(y.shape[1], s)))
    return float(logsumexp(logs))
