"""Reference: expectations under Beta factors, the bounds of E log(1 - pi_k), the tail term.

tau (K, 2) are Beta parameters. Finite prior: pi_k ~ Beta(tau_k). Sticks: v_k ~ Beta(tau_k) and
pi_k = v_1 ... v_k. Equations are those of vibp sections 2 and 3.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import exp, expm1, inf, log, log1p

import numpy as np
from scipy.special import betaln, digamma, logsumexp, polygamma

from tests.support.reference_model import Floats

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)


def beta_kl(tau: Floats, mass: float) -> float:
    """sum_k KL(Beta(tau_k) || Beta(mass, 1)); pass mass / K for the finite prior."""
    total = 0.0
    for one, two in tau:
        entropy = betaln(one, two) - (one - 1) * digamma(one) - (two - 1) * digamma(two)
        entropy += (one + two - 2) * digamma(one + two)
        total -= entropy + log(mass) + (mass - 1) * (digamma(one) - digamma(one + two))
    return float(total)


def finite_log_on(tau: Floats) -> Floats:
    """(K,) E log pi_k."""
    return np.array([digamma(one) - digamma(one + two) for one, two in tau])


def finite_log_off(tau: Floats) -> Floats:
    """(K,) E log(1 - pi_k)."""
    return np.array([digamma(two) - digamma(one + two) for one, two in tau])


def stick_log_on(tau: Floats) -> Floats:
    """(K,) a_k = E log pi_k (3.1)."""
    return np.array([sum(finite_log_on(tau)[: k + 1]) for k in range(len(tau))])


# --- multinomial bound (3.2) ---


def multinomial_weights(tau: Floats) -> Floats:
    """(K, K) the optimal q_ki, row k over i <= k."""
    features = len(tau)
    w = np.zeros(features)
    for i in range(features):
        w[i] = digamma(tau[i, 1]) + sum(digamma(tau[j, 0]) for j in range(i))
        w[i] -= sum(digamma(tau[j, 0] + tau[j, 1]) for j in range(i + 1))
    q = np.zeros((features, features))
    for k in range(features):
        for i in range(k + 1):
            q[k, i] = exp(w[i] - logsumexp(w[: k + 1]))
    return q


def multinomial_log_off(tau: Floats, q: Floats | None = None) -> Floats:
    """(K,) the bound of E log(1 - pi_k) at q, by default its optimum."""
    q = multinomial_weights(tau) if q is None else q
    out = np.zeros(len(tau))
    for k in range(len(tau)):
        for j in range(k + 1):
            out[k] += q[k, j] * digamma(tau[j, 1])
            out[k] += sum(q[k, j + 1 : k + 1]) * digamma(tau[j, 0])
            out[k] -= sum(q[k, j : k + 1]) * digamma(tau[j, 0] + tau[j, 1])
            out[k] -= q[k, j] * log(q[k, j]) if q[k, j] > 0 else 0.0
    return out


# --- series, convex bound (3.4), Taylor interval (3.3) ---


@lru_cache(maxsize=100_000)
def log_gamma_difference(x: float, b: float) -> float:
    """log Gamma(x + b) - log Gamma(x), without the cancellation of two logs of Gamma."""
    shift = 0.0
    while x < 30:
        shift -= log1p(b / x)
        x += 1

    def rest(t: float) -> float:
        return 1 / (12 * t) - 1 / (360 * t**3) + 1 / (1260 * t**5) - 1 / (1680 * t**7) + 1 / (1188 * t**9)

    return shift + (x - 0.5) * log1p(b / x) + b * log(x + b) - b + rest(x + b) - rest(x)


def log_moment(tau: Floats, s: float) -> float:
    """log E pi^s for pi the product of independent Beta(tau_m), any real s >= 0."""
    return sum(
        log_gamma_difference(float(one), float(two)) - log_gamma_difference(float(one) + s, float(two))
        for one, two in tau
    )


def moment_slopes(tau: Floats, s: float) -> Floats:
    """(K, 2) derivatives of log_moment with respect to tau."""
    out = np.zeros(tau.shape)
    for k, (one, two) in enumerate(tau):
        both = digamma(one + two) - digamma(one + two + s)
        out[k] = digamma(one + s) - digamma(one) + both, both
    return out


def tail_nodes(tau: Floats, start: float) -> list[tuple[float, float]]:
    """(s, weight) such that sum weight E pi^s is the integral of E pi^s / s over s > start.

    With s = start e^u the integrand is E pi^s; 24 Gauss-Legendre nodes on each unit of u, until
    what is left no longer counts.
    """
    nodes: list[tuple[float, float]] = []
    total = 0.0
    for left in count():
        if left > 600:
            raise ValueError("the sticks are too close to one for this integral")
        piece = [
            (start * exp(left + (node + 1) / 2), weight / 2)
            for node, weight in zip(NODES, NODE_WEIGHTS, strict=True)
        ]
        value = sum(weight * exp(log_moment(tau, s)) for s, weight in piece)
        nodes, total = nodes + piece, total + value
        if value <= 1e-18 * total or total == 0:
            return nodes
    return nodes


def integral_tail(tau: Floats, start: float) -> float:
    """The integral of E pi^s / s over s > start."""
    return sum(weight * exp(log_moment(tau, s)) for s, weight in tail_nodes(tau, start))


def series(tau: Floats, terms: int) -> float:
    """- sum_{r <= terms} E pi^r / r, which is above E log(1 - pi)."""
    return -sum(exp(log_moment(tau, r)) / r for r in range(1, terms + 1))


def convex_log_off(tau: Floats, terms: int = 50) -> Floats:
    """(K,) lower bound of E log(1 - pi_k): `terms` exact terms and the integral bound of the rest."""
    return np.array(
        [series(tau[:k], terms) - integral_tail(tau[:k], terms + 0.5) for k in range(1, len(tau) + 1)]
    )


def convex_log_off_above(tau: Floats, terms: int = 50) -> Floats:
    """(K,) upper bound of E log(1 - pi_k), the other end of the interval of 3.4."""
    out = np.zeros(len(tau))
    for k in range(1, len(tau) + 1):
        first = exp(log_moment(tau[:k], terms + 1)) / (terms + 1)
        out[k - 1] = series(tau[:k], terms) - integral_tail(tau[:k], terms + 1.0) - first / 2
    return out


def exact_log_off(tau: Floats, terms: int = 300) -> Floats:
    """(K,) E log(1 - pi_k) to about twelve digits: Euler-Maclaurin added to the upper bound."""
    out = convex_log_off_above(tau, terms)
    s = terms + 1.0
    for k in range(1, len(tau) + 1):
        f = exp(log_moment(tau[:k], s)) / s
        slope = sum(digamma(one + s) - digamma(one + two + s) for one, two in tau[:k]) - 1 / s
        out[k - 1] += f * slope / 12
    return out


def taylor_log_off(tau: Floats, terms: int) -> tuple[Floats, Floats]:
    """(K,) and (K,) ends of the Taylor interval with the Hurwitz zeta tail (3.3)."""
    upper = np.array([series(tau[:k], terms) for k in range(1, len(tau) + 1)])
    lower = np.full(len(tau), -inf)
    for k in range(1, len(tau) + 1):
        floors = [int(two) for _, two in tau[:k]]
        if sum(floors) == 0:
            continue
        log_factor = sum(log_gamma_difference(float(tau[i, 0]), float(floors[i])) for i in range(k))
        lower[k - 1] = upper[k - 1] - exp(log_factor + log_hurwitz_zeta(1.0 + sum(floors), terms + 1.0))
    return lower, upper


def log_hurwitz_zeta(power: float, start: float) -> float:
    """log sum_{i >= 0} (start + i)^-power: a thousand terms, then Euler-Maclaurin."""
    logs = [-power * log(start + i) for i in range(1000)]
    end = start + 1000
    logs.append((1 - power) * log(end) - log(power - 1) + log1p((power - 1) / (2 * end)))
    return float(logsumexp(logs))


# --- the tail of the Indian buffet process (3.6) ---


def mean_prevalence(tau: Floats) -> Floats:
    """(K,) E pi_k of the sticks."""
    return np.cumprod(tau[:, 0] / (tau[:, 0] + tau[:, 1]))


def tail_rate(p: float, rows: int) -> float:
    """h_N(p) = sum_{j <= N} (1 - (1 - p)^j) / j."""
    return sum(-expm1(j * log1p(-p)) / j if p < 1 else 1 / j for j in range(1, rows + 1))


def tail_term(tau: Floats, mass: float, rows: int) -> float:
    """- mass h_N(E pi_K), a lower bound of log P(no row has a feature beyond K)."""
    return -mass * tail_rate(float(mean_prevalence(tau)[-1]), rows)


# --- the part of the bound that depends on the sticks, and its gradient (3.5) ---


def stick_log_off(tau: Floats, kind: str, terms: int) -> Floats:
    """(K,) what stands for E log(1 - pi_k): "convex", "multinomial" or "exact"."""
    if kind == "convex":
        return convex_log_off(tau, terms)
    return {"multinomial": multinomial_log_off, "exact": exact_log_off}[kind](tau)


def stick_objective(
    tau: Floats, on: Floats, rows: int, mass: float, kind: str = "convex", terms: int = 50, tail: bool = True
) -> float:
    """E log p(z | v) - KL(q(v) || p(v)) + tail."""
    log_on, log_off = stick_log_on(tau), stick_log_off(tau, kind, terms)
    total = sum(on[k] * log_on[k] + (rows - on[k]) * log_off[k] for k in range(len(tau)))
    total -= beta_kl(tau, mass)
    return float(total + (tail_term(tau, mass, rows) if tail else 0.0))


def stick_gradient(
    tau: Floats, on: Floats, rows: int, mass: float, kind: str = "convex", terms: int = 50, tail: bool = True
) -> Floats:
    """(K, 2) derivatives of `stick_objective` for the bounds "convex" and "multinomial"."""
    if kind not in {"convex", "multinomial"}:
        raise ValueError(f"no gradient for the bound {kind!r}")
    if kind == "multinomial":
        out = conjugate_gradient(tau, multinomial_sticks(on, rows, mass, multinomial_weights(tau)))
    else:
        target = np.array([[mass + sum(on[k:]), 1.0] for k in range(len(tau))])
        out = conjugate_gradient(tau, target)
        for k in range(1, len(tau) + 1):
            out[:k] += (rows - on[k - 1]) * convex_gradient(tau[:k], terms)
    if tail:
        p = float(mean_prevalence(tau)[-1])
        slope = -mass * -expm1(rows * log1p(-p))
        out[:, 0] += slope * (1 / tau[:, 0] - 1 / tau.sum(axis=1))
        out[:, 1] -= slope / tau.sum(axis=1)
    return out


def conjugate_gradient(tau: Floats, target: Floats) -> Floats:
    """(K, 2) gradient in tau of a bound that Beta(target) would maximise."""
    both = (target - tau).sum(axis=1) * polygamma(1, tau.sum(axis=1))
    return (target - tau) * polygamma(1, tau) - both[:, None]


def convex_gradient(tau: Floats, terms: int) -> Floats:
    """(K, 2) gradient of the last entry of `convex_log_off`."""
    nodes = [(float(r), 1 / r) for r in range(1, terms + 1)] + tail_nodes(tau, terms + 0.5)
    out = np.zeros(tau.shape)
    for s, weight in nodes:
        out -= weight * exp(log_moment(tau, s)) * moment_slopes(tau, s)
    return out


def multinomial_sticks(on: Floats, rows: int, mass: float, q: Floats) -> Floats:
    """(K, 2) the maximiser in tau of the bound without tail at fixed multinomial q (3.2)."""
    features = len(on)
    off = rows - on
    tau = np.zeros((features, 2))
    for k in range(features):
        tau[k, 0] = mass + sum(on[k:])
        for j in range(k + 1, features):
            tau[k, 0] += off[j] * sum(q[j, i] for i in range(k + 1, j + 1))
        tau[k, 1] = 1 + sum(off[j] * q[j, k] for j in range(k, features))
    return tau
