"""Reference: every term of the bound, from the parameters of q (linear-gaussian.md 3, priors.md 4)."""

from __future__ import annotations

from math import e, lgamma, log, pi

import numpy as np

from tests.support.reference_model import (
    Floats,
    State,
    cells,
    column_cells,
    column_error,
    counts,
    cross,
    gram,
)
from tests.support.reference_sticks import (
    beta_kl,
    finite_log_off,
    finite_log_on,
    stick_log_off,
    stick_log_on,
    tail_term,
)


def log_on(state: State) -> Floats:
    """(K,) E log pi_k."""
    return finite_log_on(state.tau) if state.prior == "finite" else stick_log_on(state.tau)


def log_off(state: State) -> Floats:
    """(K,) E log(1 - pi_k), or the bound of it in use."""
    if state.prior == "finite":
        return finite_log_off(state.tau)
    return stick_log_off(state.tau, state.log_off, state.terms)


def likelihood(state: State) -> float:
    """sum over cells of E log N(x_nd; y_n A_.d, psi_d)."""
    errors, numbers = column_error(state), column_cells(state)
    return float(
        sum(
            -numbers[d] / 2 * log(2 * pi * state.psi[d]) - errors[d] / (2 * state.psi[d])
            for d in range(len(state.psi))
        )
    )


def dictionary(state: State) -> float:
    """E log p(A) + H[q(A)] = - sum_d KL(N(phi_d, sigma_d) || N(0, diag s))."""
    features, columns = state.phi.shape
    total = 0.0
    for d in range(columns):
        total += np.linalg.slogdet(state.sigma[d])[1] / 2 + features / 2
        for k in range(features):
            second = state.phi[k, d] ** 2 + state.sigma[d, k, k]
            total -= log(state.s[k]) / 2 + second / (2 * state.s[k])
    return float(total)


def z_prior(state: State) -> float:
    """E log p(z | pi)."""
    on, off = log_on(state), log_off(state)
    rows, features = state.nu.shape
    return float(
        sum(
            state.nu[n, k] * on[k] + (1 - state.nu[n, k]) * off[k]
            for n in range(rows)
            for k in range(features)
        )
    )


def sticks(state: State) -> float:
    """- KL of the prevalences (finite) or sticks to their prior."""
    first = state.mass / len(state.tau) if state.prior == "finite" else state.mass
    return -beta_kl(state.tau, first)


def z_entropy(state: State) -> float:
    """H[q(z)]."""
    return float(sum(-p * log(p) for nu in state.nu.flat for p in (nu, 1 - nu) if p > 0))


def weights(state: State) -> float:
    """- sum nu KL(N(m, s2) || N(0, 1)); unit weights cost nothing (4.3's idea, normal slab)."""
    if state.weights == "unit":
        return 0.0
    rows, features = state.nu.shape
    total = 0.0
    for n in range(rows):
        for k in range(features):
            mean, variance = state.m[n, k], state.s2[n, k]
            cost = (mean**2 + variance - 1 - log(variance)) / 2 if state.cost is None else state.cost[n, k]
            total -= state.nu[n, k] * cost
    return float(total)


def tail(state: State) -> float:
    """- mass h_N(E pi_K) when the bound is one of the Indian buffet process, else nothing."""
    return tail_term(state.tau, state.mass, len(state.x)) if state.tail else 0.0


def filled(state: State) -> float:
    """Entropy of the factors of latent missing cells."""
    _, variances, _ = cells(state)
    return float(sum(log(2 * pi * e * v) / 2 for v in variances.flat if v > 0))


TERMS = {
    "likelihood": likelihood,
    "dictionary": dictionary,
    "z_prior": z_prior,
    "sticks": sticks,
    "z_entropy": z_entropy,
    "weights": weights,
    "tail": tail,
    "filled": filled,
}


def bound_terms(state: State) -> dict[str, float]:
    """Every term of the bound by name, without the priors of variances and mass."""
    return {name: term(state) for name, term in TERMS.items()}


def bound(state: State) -> float:
    """Their sum: a lower bound of log p(x)."""
    return sum(bound_terms(state).values())


def pseudo_prior(variance: float, pseudo: float, value: float) -> float:
    """- (c / 2)(log v + v0 / v): `pseudo` = c cells that were seen to vary by `value` = v0."""
    return -pseudo / 2 * (log(variance) + value / variance)


def mass_prior(mass: float, shape: float = 1.0, rate: float = 1.0) -> float:
    """log Gamma(mass; shape, rate)."""
    return shape * log(rate) - lgamma(shape) + (shape - 1) * log(mass) - rate * mass


def collapsed_dictionary(state: State) -> float:
    """L_A of 9.2: likelihood + dictionary at the structured optimum of q(A), from the statistics.

    With column noise, feature scales and missing cells; not for latent cells.
    """
    x, _, mask = cells(state)
    g, p = gram(state.nu, state.m, state.s2, mask), cross(state.nu, state.m, x, mask)
    total = 0.0
    for d in range(len(state.psi)):
        psi, number = state.psi[d], mask[:, d].sum()
        squares = sum(x[n, d] ** 2 for n in range(len(x)) if mask[n, d])
        root = np.sqrt(state.s)
        inner = np.eye(len(root)) + root[:, None] * g[d] * root[None, :] / psi
        fit = p[:, d] @ np.linalg.solve(g[d] + psi * np.diag(1 / state.s), p[:, d])
        total += (
            -number / 2 * log(2 * pi * psi) - np.linalg.slogdet(inner)[1] / 2 - (squares - fit) / (2 * psi)
        )
    return float(total)


def collapsed_finite(nu: Floats, mass: float) -> float:
    """z_prior + sticks of the finite model at the optimal tau (9.6)."""
    rows, features = nu.shape
    total = 0.0
    for on in counts(nu):
        one, two = mass / features + on, 1 + rows - on
        total += log(mass / features) + lgamma(one) + lgamma(two) - lgamma(one + two)
    return float(total)
