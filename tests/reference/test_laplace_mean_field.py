"""The report's Laplace factors of infinite ICA, and how far below the free form they end (ica.md 2)."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from tests.support.laplace_mean_field import Laplaces, fitted, objective, own_best, own_value
from tests.support.model_cases import Case, algorithm, begin, chunked, sweep
from tests.support.planted_sources import SourceProblem

NOISE, SCALE, MASS, FEATURES = 0.09, 1.0, 2.0, 5


@pytest.fixture(scope="module")
def planted():
    return SourceProblem(4, NOISE**0.5).planted


@pytest.fixture(scope="module")
def report(planted):
    """The report's factors from the planted sources."""
    z, w = planted.z.T.astype(float), planted.w.T
    start = Laplaces(
        x=planted.x,
        nu=np.clip(z, 0.001, 0.999),
        mu=np.where(z > 0, w, 0.0),
        eta=np.full(w.shape, 0.3),
        phi=planted.mixing,
        var=np.full(FEATURES, 1e-3),
        tau=np.column_stack([MASS / FEATURES + z.sum(axis=0), 1 + len(z) - z.sum(axis=0)]),
        noise=NOISE,
        scale=SCALE,
        mass=MASS,
    )
    return fitted(start, 60)


@pytest.mark.parametrize(
    ("nu", "a", "b"), [(1.0, 5.0, 4.0), (1.0, 0.5, 0.2), (0.5, 20.0, -15.0), (1e-3, 3.0, 2.0)]
)
def test_one_signal_is_where_its_part_of_the_objective_is_highest(nu, a, b):
    mu, eta = own_best(np.array([nu]), np.array([a]), np.array([b]))
    found = minimize(
        lambda at: -own_value(nu, a, b, at[0], np.exp(at[1])), [0.1 * np.sign(b), -0.5], method="Nelder-Mead"
    )
    assert own_value(nu, a, b, mu[0], eta[0]) >= -found.fun - 1e-8


def test_what_a_signal_costs_is_its_divergence_from_the_prior():
    """KL(Laplace(mu, eta) || Laplace(0, 1)) by quadrature."""
    mu, eta = 0.7, 0.4

    def inside(s):
        log_q = -abs(s - mu) / eta - np.log(2 * eta)
        return np.exp(log_q) * (log_q + abs(s) + np.log(2))

    paid = quad(inside, -20, 20, points=[0, mu], limit=200)[0]
    assert -own_value(0.0, 1.0, 0.0, mu, eta) - 1 == pytest.approx(paid, rel=1e-8)


def test_the_report_s_objective_never_falls(report):
    _, values = report
    assert np.diff(values).min() >= -1e-9 * np.abs(values).max()
    assert values[-1] > values[0] + 1


def test_the_free_form_ends_far_above(planted, report):
    """From the same start, with the same variances and dictionary factors."""
    q, values = report
    case = Case(weights="laplace", family="factorised", noise=NOISE, scale=SCALE, mass=MASS)
    alg, chunks = algorithm(case, FEATURES), chunked(planted.x)
    params, (state,), _ = begin(alg, chunks)
    params = replace(params, observation=replace(params.observation, mean=planted.mixing))
    states = [replace(state, z=planted.z.astype(float), w=planted.w.copy())]
    for step in range(1, 61):
        states, sums = sweep(alg, chunks, states, params, Draws(0, step))
        params, info = alg.update(params, sums, Draws(0, step))
    assert objective(q) == pytest.approx(values[-1], rel=1e-12)
    assert 100 < info.objective - values[-1] < 200
