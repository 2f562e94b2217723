"""Reference: expectations under Beta factors, the bounds of E log(1 - pi_k), the tail term.

tau (K, 2) are Beta parameters. Finite prior: pi_k ~ Beta(tau_k). Sticks: v_k ~ Beta(tau_k) and
pi_k = v_1 ... v_k. Equations are those of priors.md 2, 4, 6, 7, 8.
"""

from __future__ import annotations

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


def log_gamma_difference(x: Floats, b: Floats) -> Floats:
    """log Gamma(x + b) - log Gamma(x), without the cancellation of two logs of Gamma."""
    steps = np.arange(max(0, int(31 - np.min(x, initial=31))))
    shift = -np.log1p(np.expand_dims(b, -1) / np.add.outer(x, steps)).sum(axis=-1)
    x = x + len(steps)

    def rest(t: Floats) -> Floats:
        r = 1 / t
        return r * (1 / 12 - r**2 * (1 / 360 - r**2 * (1 / 1260 - r**2 * (1 / 1680 - r**2 / 1188))))

    return shift + (x - 0.5) * np.log1p(b / x) + b * np.log(x + b) - b + rest(x + b) - rest(x)


def digamma_difference(x: Floats, b: Floats) -> Floats:
    """digamma(x + b) - digamma(x), the derivative of the above in x, likewise."""
    low = np.expand_dims(x, -1) + np.arange(max(0, int(31 - np.min(x, initial=31))))
    high = low + np.expand_dims(b, -1)
    shift = (np.expand_dims(b, -1) / (low * high)).sum(axis=-1)
    x = x + low.shape[-1]

    def rest(t: Floats) -> Floats:
        r = 1 / t
        return r * (
            1 / 2 + r * (1 / 12 - r**2 * (1 / 120 - r**2 * (1 / 252 - r**2 * (1 / 240 - r**2 / 132))))
        )

    return shift + np.log1p(b / x) - rest(x + b) + rest(x)


def log_moment(tau: Floats, s: Floats) -> Floats:
    """log E pi^s for pi the product of independent Beta(tau_m), every real s >= 0 (any shape).

    Gamma(a + s) Gamma(a + b) / (Gamma(a) Gamma(a + b + s)) is symmetric in b and s; the ratios
    over the smaller of the two cancel least.
    """
    total = np.zeros(np.shape(s))
    for one, two in tau:
        less, more = np.minimum(two, s), np.maximum(two, s)
        total = total + log_gamma_difference(one, less) - log_gamma_difference(one + more, less)
    return total


def integral_nodes(tau: Floats, start: float) -> tuple[Floats, Floats]:
    """s and weights such that sum weights E pi^s is the integral of E pi^s / s over s > start.

    With s = start e^u the integrand is E pi^s; 24 Gauss-Legendre nodes on each unit of u, until
    it has fallen by a factor e^45.
    """
    first, units = log_moment(tau, np.float64(start)), 1
    while log_moment(tau, np.float64(start * exp(units))) > first - 45:
        units += 1
        if units > 600:
            raise ValueError("the sticks are too close to one for this integral")
    u = (np.arange(units)[:, None] + (NODES + 1) / 2).ravel()
    return start * np.exp(u), np.tile(NODE_WEIGHTS / 2, units)


def integral(tau: Floats, start: float) -> float:
    """The integral of E pi^s / s over s > start."""
    s, weights = integral_nodes(tau, start)
    return float((weights * np.exp(log_moment(tau, s))).sum())


def series(tau: Floats, terms: int) -> float:
    """- sum_{r <= terms} E pi^r / r, which is above E log(1 - pi)."""
    r = np.arange(1.0, terms + 1)
    return -float((np.exp(log_moment(tau, r)) / r).sum())


def convex_log_off(tau: Floats, terms: int = 50) -> Floats:
    """(K,) lower bound of E log(1 - pi_k): `terms` exact terms and the integral bound of the rest."""
    return np.array([series(tau[:k], terms) - integral(tau[:k], terms + 0.5) for k in range(1, len(tau) + 1)])


def convex_log_off_above(tau: Floats, terms: int = 50) -> Floats:
    """(K,) upper bound of E log(1 - pi_k), the other end of the interval of 3.4."""
    out = np.zeros(len(tau))
    for k in range(1, len(tau) + 1):
        first = exp(log_moment(tau[:k], np.float64(terms + 1))) / (terms + 1)
        out[k - 1] = series(tau[:k], terms) - integral(tau[:k], terms + 1.0) - first / 2
    return out


def exact_log_off(tau: Floats, terms: int = 300) -> Floats:
    """(K,) E log(1 - pi_k) to about twelve digits: Euler-Maclaurin added to the upper bound."""
    out = convex_log_off_above(tau, terms)
    s = terms + 1.0
    for k in range(1, len(tau) + 1):
        f = exp(log_moment(tau[:k], np.float64(s))) / s
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
        log_factor = sum(log_gamma_difference(tau[i, 0], floors[i]) for i in range(k))
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
    """(K, 2) gradient of the last entry of `convex_log_off`: sum of E pi^s times that of its log."""
    r = np.arange(1.0, terms + 1)
    s, weights = integral_nodes(tau, terms + 0.5)
    s, weights = np.concatenate([r, s]), np.concatenate([1 / r, weights])
    share = weights * np.exp(log_moment(tau, s))
    out = np.zeros(tau.shape)
    for k, (one, two) in enumerate(tau):
        less, more = np.minimum(two, s), np.maximum(two, s)
        slope = digamma_difference(one, less) - digamma_difference(one + more, less)
        out[k] = -(share * slope).sum(), (share * digamma_difference(one + two, s)).sum()
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
