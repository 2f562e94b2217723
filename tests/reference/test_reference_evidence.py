"""The reference's exact evidence, and that no bound is above it."""

from dataclasses import replace
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta, multivariate_normal, norm

from tests.support.covering import everyday
from tests.support.reference import (
    bound,
    fill,
    log_evidence,
    log_evidence_ibp,
    log_p_finite,
    log_p_sticks,
    log_p_sticks_quadrature,
    log_p_x_given_y,
    log_p_x_given_z_normal,
    random_state,
    sweep,
    tail_rate,
    update_dictionary,
    update_tau,
)
from tests.support.reference_evidence import all_z, history_rates

PSI, S, MASS = np.array([0.4, 0.9]), np.array([1.3, 0.7]), 1.4


def problem(rows, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    mask = np.ones((rows, 2), dtype=bool)
    if missing:
        mask[0, 1] = False
    return np.where(mask, rng.normal(size=(rows, 2)) * 1.5, np.nan), mask


# --- the pieces ---


@pytest.mark.parametrize("prior", [log_p_finite, log_p_sticks])
@pytest.mark.parametrize(("rows", "features"), [(1, 1), (3, 2), (2, 3), (4, 2)])
def test_probabilities_of_z_sum_to_one(prior, rows, features):
    logs = [prior(z, MASS) for z in all_z(rows, features)]
    assert logsumexp(logs) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("features", [1, 2])
def test_stick_prior_equals_quadrature(features):
    for z in list(all_z(3, features))[:: 5 if features == 2 else 1]:
        assert log_p_sticks(z, MASS) == pytest.approx(log_p_sticks_quadrature(z, MASS), abs=1e-6)


@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_priors_of_z_equal_sampling(prior):
    rng = np.random.default_rng(1)
    size = 200_000
    v = rng.beta(MASS / 2 if prior == "finite" else MASS, 1, (size, 2))
    pi = v if prior == "finite" else np.cumprod(v, axis=1)
    draws = rng.random((size, 2, 2)) < pi[:, None, :]
    exact = log_p_finite if prior == "finite" else log_p_sticks
    for z in all_z(2, 2):
        share = (draws == z).all(axis=(1, 2)).mean()
        p = exp(exact(z, MASS))
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / size)


def test_likelihood_of_z_is_a_normal_over_observed_rows():
    x, mask = problem(3, 2, missing=True)
    z = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    expected = multivariate_normal(np.zeros(3), PSI[0] * np.eye(3) + (z * S) @ z.T).logpdf(x[:, 0])
    expected += multivariate_normal(np.zeros(2), PSI[1] * np.eye(2) + (z[1:] * S) @ z[1:].T).logpdf(x[1:, 1])
    assert log_p_x_given_y(x, mask, z, PSI, S) == pytest.approx(expected, rel=1e-12)


def test_marginal_likelihood_in_the_trace_form():
    """Section 1 and erratum E5: the exponent is a trace, M = Z'Z + c I."""
    x, mask = problem(3, 3)
    z, noise, scale = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), 0.4, 1.3
    m = z.T @ z + noise / scale * np.eye(2)
    fit = np.trace(x.T @ (np.eye(3) - z @ np.linalg.inv(m) @ z.T) @ x)
    value = -3 * np.log(2 * np.pi) - (3 - 2) * np.log(noise) - 2 * np.log(scale)
    value += -np.log(np.linalg.det(m)) - fit / (2 * noise)
    exact = log_p_x_given_y(x, mask, z, np.full(2, noise), np.full(2, scale))
    assert exact == pytest.approx(value, rel=1e-12)


def test_weights_integrated_out_equal_adaptive_quadrature():
    x, mask = problem(1, 4)
    value = quad(
        lambda w: norm.pdf(w) * exp(log_p_x_given_y(x, mask, np.array([[w]]), PSI, S[:1])),
        -12,
        12,
        points=[0],
        epsrel=1e-11,
    )[0]
    z = np.ones((1, 1))
    assert log_p_x_given_z_normal(x, mask, z, PSI, S[:1]) == pytest.approx(np.log(value), abs=1e-7)
    assert log_p_x_given_z_normal(x, mask, 0 * z, PSI, S[:1]) == log_p_x_given_y(x, mask, 0 * z, PSI, S[:1])


def test_histories_of_the_buffet():
    """The rates add to mass x H_N features, and to N x mass entries that are on."""
    for rows in (1, 2, 3):
        histories = history_rates(rows, MASS)
        assert sum(rate for _, rate in histories) == pytest.approx(MASS * sum(1 / np.arange(1, rows + 1)))
        assert sum(rate * h.sum() for h, rate in histories) == pytest.approx(rows * MASS)


# --- the evidence equals sampling from the prior ---


def buffet(rows, mass, rng):
    """One matrix of the Indian buffet process, customer by customer."""
    columns = []
    for i in range(1, rows + 1):
        columns = [[*c, float(rng.random() < sum(c) / i)] for c in columns]
        columns += [[0.0] * (i - 1) + [1.0]] * rng.poisson(mass / i)
    return np.array(columns).T.reshape(rows, len(columns))


@pytest.mark.parametrize("rows", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_evidence_of_the_buffet_equals_sampling(rows):
    rng = np.random.default_rng(5)
    x, mask = problem(rows, 6, missing=True)
    mass = 0.6
    values = []
    for _ in range(4000):
        y = buffet(rows, mass, rng)
        values.append(exp(log_p_x_given_y(x, mask, y, PSI, np.full(y.shape[1], 1.3))))
    error = np.std(values) / np.sqrt(len(values))
    assert abs(exp(log_evidence_ibp(x, mask, PSI, 1.3, mass)) - np.mean(values)) < 5 * error


def test_truncated_sticks_approach_the_buffet():
    x, mask = problem(2, 7)
    limit = log_evidence_ibp(x, mask, PSI, 1.3, 0.5)
    gaps = [abs(log_evidence(x, mask, PSI, np.full(k, 1.3), 0.5, log_p_sticks) - limit) for k in (1, 3, 5)]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_evidence_equals_sampling(prior, weights):
    rng = np.random.default_rng(8)
    x, mask = problem(2, 9, missing=True)
    size = 20_000
    v = rng.beta(MASS / 2 if prior == "finite" else MASS, 1, (size, 2))
    pi = v if prior == "finite" else np.cumprod(v, axis=1)
    y = (rng.random((size, 2, 2)) < pi[:, None, :]).astype(float)
    if weights == "normal":
        y *= rng.normal(size=y.shape)
    values = np.array([exp(log_p_x_given_y(x, mask, at, PSI, S)) for at in y])
    exact = log_evidence(
        x, mask, PSI, S, MASS, log_p_finite if prior == "finite" else log_p_sticks, weights, nodes=8
    )
    assert abs(exp(exact) - values.mean()) < 5 * values.std() / np.sqrt(size)


# --- no bound is above ---


def at_problem(seed, prior, weights, missing, rows, features, log_off="convex"):
    """A random q for a problem that is the same for every seed; the bound is the truncated model's."""
    x, mask = problem(rows, 10, missing != "complete")
    state = random_state(seed, rows, features, 2, prior, weights, structured=seed % 2 == 0)
    state = replace(state, x=x, mask=mask, psi=PSI, s=S[:features], mass=MASS, tail=False, log_off=log_off)
    return fill(state) if missing == "latent" else state


def optimised(state, passes=6):
    """Rounds of the updates of q; problem and hyperparameters stay."""
    for _ in range(passes):
        state = sweep(state)
        if state.fill_mean is not None:
            state = fill(state)
        state = update_tau(update_dictionary(state))
    return state


CASES = [
    *product(("finite", "sticks"), ("unit",), ("complete", "masked", "latent"), ((3, 2),)),
    *product(("finite", "sticks"), ("normal",), ("complete", "masked", "latent"), ((2, 1), (1, 2))),
]


@pytest.mark.parametrize(("prior", "weights", "missing", "shape"), everyday(CASES, 1))
def test_bound_is_below_the_evidence(prior, weights, missing, shape):
    first = at_problem(0, prior, weights, missing, *shape)
    exact = log_evidence(
        first.x,
        first.mask,
        PSI,
        first.s,
        MASS,
        log_p_finite if prior == "finite" else log_p_sticks,
        weights,
        nodes=20,
    )
    for seed in range(30):
        state = at_problem(seed, prior, weights, missing, *shape)
        assert bound(state) < exact
    best = max(bound(optimised(at_problem(seed, prior, weights, missing, *shape))) for seed in range(2))
    assert exact - 3 < best < exact


@pytest.mark.parametrize("log_off", ["convex", pytest.param("multinomial", marks=pytest.mark.slow)])
def test_bound_with_tail_is_below_the_evidence_of_the_buffet(log_off):
    x, mask = problem(3, 10, missing=True)
    exact = log_evidence_ibp(x, mask, PSI, 1.3, 0.6)
    for seed in range(30):
        state = at_problem(seed, "sticks", "unit", "masked", 3, 2, log_off)
        state = replace(state, s=np.full(2, 1.3), mass=0.6, tail=True)
        assert bound(state) < exact
        if seed < 2:
            assert exact - 4 < bound(optimised(state)) < exact


def test_bound_without_tail_can_exceed_the_evidence_of_the_buffet():
    """Erratum E11: X = 0, mass 3, K = 1: "bound" -6.154 above the exact -7.576; -8.95 with E h_N(pi)."""
    x, mask, psi = np.zeros((2, 3)), np.ones((2, 3), dtype=bool), np.full(3, 0.6)
    exact = log_evidence_ibp(x, mask, psi, 1.3, 3.0)
    assert exact == pytest.approx(-7.576, abs=5e-4)
    state = random_state(0, 2, 1, 3, "sticks")
    state = replace(state, x=x, mask=mask, psi=psi, s=np.array([1.3]), mass=3.0)
    without = optimised(replace(state, tail=False), 30)
    assert bound(without) == pytest.approx(-6.154, abs=5e-4)
    law = beta(*without.tau[0])
    mean_rate = quad(lambda p: tail_rate(p, 2) * law.pdf(p), 0, 1)[0]
    assert bound(without) - 3 * mean_rate == pytest.approx(-8.95, abs=5e-3)
    with_tail = bound(replace(without, tail=True))
    assert with_tail < bound(without) - 3 * mean_rate < bound(optimised(state, 30)) < exact
    truncated = log_evidence(x, mask, psi, np.array([1.3]), 3.0, log_p_sticks)
    assert exact < bound(without) < truncated
