"""Reference: every update, one entry, column or feature at a time (linear-gaussian.md 6, priors.md 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, log

import numpy as np
from scipy.optimize import minimize

from tests.support.reference_bound import log_off, log_on
from tests.support.reference_model import (
    Floats,
    State,
    cells,
    column_cells,
    column_error,
    counts,
    cross,
    gram,
    mean_y,
    pair_a,
)
from tests.support.reference_sticks import (
    finite_log_on,
    mean_prevalence,
    stick_gradient,
    stick_objective,
    tail_rate,
)

# --- z and w ---


def linear(state: State, n: int, k: int) -> float:
    """Coefficient of y_nk in E log p(x_n | y_n), all else averaged."""
    x, _, mask = cells(state)
    y = mean_y(state.nu, state.m)
    total = 0.0
    for d in range(len(state.psi)):
        if mask[n, d]:
            others = sum(
                y[n, j] * pair_a(state.phi, state.sigma, d, k, j) for j in range(y.shape[1]) if j != k
            )
            total += (state.phi[k, d] * x[n, d] - others) / state.psi[d]
    return float(total)


def quadratic(state: State, n: int, k: int) -> float:
    """Coefficient of - y_nk^2 / 2 in E log p(x_n | y_n)."""
    mask = cells(state)[2]
    return float(
        sum(
            pair_a(state.phi, state.sigma, d, k, k) / state.psi[d]
            for d in range(len(state.psi))
            if mask[n, d]
        )
    )


def decide(logit: float, rule: str) -> float:
    """E z from its log odds: the mean, or the mode (ties are off)."""
    if rule == "mode":
        return 1.0 if logit > 0 else 0.0
    return 1 / (1 + exp(-logit)) if logit > 0 else exp(logit) / (1 + exp(logit))


def respond_unit(log_odds: float, b: float, a: float, rule: str = "mean") -> tuple[float, float, float]:
    """(nu, m, s2) of one entry with unit weights: log odds + b - a / 2."""
    return decide(log_odds + b - a / 2, rule), 1.0, 0.0


def respond_normal(log_odds: float, b: float, a: float, rule: str = "mean") -> tuple[float, float, float]:
    """(nu, m, s2) of one entry with normal weights, w integrated out of z (factors.md 2)."""
    s2 = 1 / (1 + a)
    m = s2 * b
    return decide(log_odds + log(s2) / 2 + m**2 / (2 * s2), rule), m, s2


RESPOND = {"unit": respond_unit, "normal": respond_normal}


def update_entry(state: State, n: int, k: int, rule: str = "mean") -> State:
    """q(z_nk, w_nk) given all others."""
    log_odds = log_on(state)[k] - log_off(state)[k]
    answer = RESPOND[state.weights](log_odds, linear(state, n, k), quadratic(state, n, k), rule)
    nu, m, s2 = state.nu.copy(), state.m.copy(), state.s2.copy()
    nu[n, k], m[n, k], s2[n, k] = answer
    return replace(state, nu=nu, m=m, s2=s2)


def sweep(state: State, rule: str = "mean") -> State:
    """One Gauss-Seidel sweep: features in order, every row."""
    odds = log_on(state) - log_off(state)
    for k in range(state.nu.shape[1]):
        for n in range(state.nu.shape[0]):
            answer = RESPOND[state.weights](odds[k], linear(state, n, k), quadratic(state, n, k), rule)
            nu, m, s2 = state.nu.copy(), state.m.copy(), state.s2.copy()
            nu[n, k], m[n, k], s2[n, k] = answer
            state = replace(state, nu=nu, m=m, s2=s2)
    return state


def fill(state: State) -> State:
    """Factors of the latent missing cells: mean E y_n phi_d, variance psi_d."""
    mean = np.zeros(state.x.shape)
    y = mean_y(state.nu, state.m)
    for n, d in np.argwhere(~state.mask):
        mean[n, d] = sum(y[n, k] * state.phi[k, d] for k in range(y.shape[1]))
    variance = np.where(state.mask, 0.0, np.broadcast_to(state.psi, state.x.shape))
    return replace(state, fill_mean=mean, fill_var=variance)


# --- dictionary ---


def solve_dictionary(g: Floats, p: Floats, psi: Floats, s: Floats, structured: bool) -> tuple[Floats, Floats]:
    """phi (K, D) and sigma (D, K, K) from G (D, K, K) and P (K, D); the means are the same for both."""
    features, columns = p.shape
    phi, sigma = np.zeros((features, columns)), np.zeros((columns, features, features))
    for d in range(columns):
        phi[:, d] = np.linalg.solve(g[d] + psi[d] * np.diag(1 / s), p[:, d])
        if structured:
            sigma[d] = np.linalg.inv(g[d] / psi[d] + np.diag(1 / s))
        else:
            sigma[d] = np.diag([1 / (1 / s[k] + g[d, k, k] / psi[d]) for k in range(features)])
    return phi, sigma


def update_dictionary(state: State, structured: bool = True) -> State:
    """The (phi, sigma) block."""
    x, _, mask = cells(state)
    g, p = gram(state.nu, state.m, state.s2, mask), cross(state.nu, state.m, x, mask)
    phi, sigma = solve_dictionary(g, p, state.psi, state.s, structured)
    return replace(state, phi=phi, sigma=sigma)


# --- prevalences and sticks ---


def finite_tau(on: Floats, rows: int, mass: float) -> Floats:
    """(K, 2) tau_k1 = mass / K + m_k, tau_k2 = 1 + N - m_k."""
    return np.array([[mass / len(on) + count, 1 + rows - count] for count in on])


def start_sticks(on: Floats, rows: int, mass: float) -> Floats:
    """(K, 2) near the optimum when the counts fall: v_k about m_k / m_{k-1}, m_0 = N (3.6)."""
    before = [float(rows), *on[:-1]]
    return np.array([[mass + m, 1 + max(0.0, b - m)] for m, b in zip(on, before, strict=True)])


def maximise_sticks(
    tau: Floats, on: Floats, rows: int, mass: float, kind: str = "convex", terms: int = 50, tail: bool = True
) -> Floats:
    """(K, 2) a maximiser of `stick_objective` from `tau`, over log tau: BFGS, then Newton."""

    def negative(logs: Floats) -> tuple[float, Floats]:
        at = np.exp(logs).reshape(tau.shape)
        slopes = stick_gradient(at, on, rows, mass, kind, terms, tail) * at
        return -stick_objective(at, on, rows, mass, kind, terms, tail), -slopes.ravel()

    options = {"gtol": 1e-6, "maxiter": 200}
    logs = minimize(negative, np.log(tau).ravel(), jac=True, method="BFGS", options=options).x
    for _ in range(5):
        before, slopes = negative(logs)
        if np.abs(slopes).max() < 1e-9:
            break
        step = newton_step(negative, logs)
        after, others = negative(logs + step)
        if after <= before + 1e-13 * abs(before) and np.abs(others).max() < np.abs(slopes).max():
            logs = logs + step
    return np.exp(logs).reshape(tau.shape)


def newton_step(value: Callable[[Floats], tuple[float, Floats]], at: Floats) -> Floats:
    """Minus Hessian^-1 gradient, the Hessian from central differences of the gradient."""
    hessian = np.zeros((len(at), len(at)))
    for i in range(len(at)):
        away = np.zeros(len(at))
        away[i] = 1e-5
        hessian[i] = (value(at + away)[1] - value(at - away)[1]) / 2e-5
    return -np.linalg.solve((hessian + hessian.T) / 2, value(at)[1])


def update_tau(state: State) -> State:
    """q of the prevalences (closed form) or of the sticks (solved), with the bound and tail in use."""
    on, rows = counts(state.nu), len(state.x)
    if state.prior == "finite":
        return replace(state, tau=finite_tau(on, rows, state.mass))
    settings = (state.log_off, state.terms, state.tail)
    return replace(state, tau=maximise_sticks(state.tau, on, rows, state.mass, *settings))


def sort_features(state: State) -> State:
    """Features by falling count, tau staying with the position (9.6)."""
    order = np.argsort(-counts(state.nu), kind="stable")
    return replace(
        state,
        nu=state.nu[:, order],
        m=state.m[:, order],
        s2=state.s2[:, order],
        phi=state.phi[order],
        sigma=state.sigma[:, order][:, :, order],
        s=state.s[order],
    )


# --- variances and mass (9.3) ---


def update_noise(state: State, noise: str = "one", pseudo: float = 0.0, value: float = 0.0) -> State:
    """psi = (E + c v0) / (cells + c), over all columns or for each; c = 0 is without a prior."""
    errors, numbers = column_error(state), column_cells(state)
    if noise == "one":
        errors, numbers = np.full(len(errors), errors.sum()), np.full(len(numbers), numbers.sum())
    return replace(state, psi=(errors + pseudo * value) / (numbers + pseudo))


def update_scale(state: State, scale: str = "one", pseudo: float = 0.0, value: float = 0.0) -> State:
    """s = (E |A|^2 + c v0) / (entries + c), over all features or for each."""
    features, columns = state.phi.shape
    squares = np.array(
        [sum(pair_a(state.phi, state.sigma, d, k, k) for d in range(columns)) for k in range(features)]
    )
    if scale == "one":
        return replace(
            state, s=np.full(features, (squares.sum() + pseudo * value) / (features * columns + pseudo))
        )
    return replace(state, s=(squares + pseudo * value) / (columns + pseudo))


def mass_factor(
    tau: Floats, rows: int, prior: str, tail: bool, shape: float = 1.0, rate: float = 1.0
) -> tuple[float, float]:
    """(shape, rate) of the Gamma that is proportional to exp(bound) in the mass."""
    logs = float(sum(finite_log_on(tau)))
    if prior == "finite":
        return shape + len(tau), rate - logs / len(tau)
    extra = tail_rate(float(mean_prevalence(tau)[-1]), rows) if tail else 0.0
    return shape + len(tau), rate - logs + extra


def update_mass(state: State, shape: float = 1.0, rate: float = 1.0) -> State:
    """The mode of that Gamma; shape 1 and rate 0 give the point estimates without a prior."""
    shape, rate = mass_factor(state.tau, len(state.x), state.prior, state.tail, shape, rate)
    return replace(state, mass=(shape - 1) / rate)
