"""The stick problem: objective and gradient against the reference, the solver, the start."""

import numpy as np
import pytest

from ibpdist.priors import _convex, _mass, _multinomial, _sticks, _taylor
from ibpdist.priors._beta import beta_entropy, fisher, log_moments
from ibpdist.priors._sticks import Problem
from tests.support.prior_cases import STICKS, numeric_gradient, random_counts
from tests.support.reference_sticks import (
    mean_prevalence,
    multinomial_sticks,
    multinomial_weights,
    stick_gradient,
    stick_objective,
    tail_rate,
)

LOWER = {"convex": _convex.lower, "multinomial": _multinomial.lower, "taylor": _taylor.lower}
COUNTS = np.array([83.0, 40.0, 39.5, 2.0, 0.3])
TAU = STICKS["used, then unused"]


def problem(
    kind: str, on: np.ndarray = COUNTS, rows: float = 120.0, mass: float | None = 1.4
) -> _sticks.Problem:
    return Problem(on=on, rows=rows, mass=mass, lower=LOWER[kind])


def test_moments_of_beta_factors_by_quadrature() -> None:
    x, w = np.polynomial.legendre.leggauss(150)
    v, w = 0.5 + 0.5 * x, 0.5 * w
    for one, two in [(2.0, 3.5), (40.0, 6.0), (3.0, 2.0)]:
        density = v ** (one - 1) * (1 - v) ** (two - 1)
        density /= density @ w
        tau = np.array([[one, two]])
        log_on, log_off = log_moments(tau)
        assert log_on[0] == pytest.approx((density * np.log(v)) @ w, rel=1e-6)
        assert log_off[0] == pytest.approx((density * np.log1p(-v)) @ w, rel=1e-6)
        assert beta_entropy(tau)[0] == pytest.approx(-(density * np.log(density)) @ w, rel=1e-6)


def test_fisher_is_the_slope_of_the_log_moments() -> None:
    information = fisher(TAU)
    for side, other in np.ndindex(2, 2):
        numeric = numeric_gradient(lambda tau, s=side: float(log_moments(tau)[s].sum()), TAU)[:, other]
        assert information[:, side, other] == pytest.approx(numeric, rel=1e-5)


def test_objective_equals_the_reference() -> None:
    """With the bound multinomial to rounding; with convex between the reference's and the truth."""
    on, rows, mass = COUNTS, 120, 1.4
    value, _ = problem("multinomial").value(TAU)
    assert value == pytest.approx(stick_objective(TAU, on, rows, mass, "multinomial"), rel=1e-11)
    value, _ = problem("convex").value(TAU)
    exact = stick_objective(TAU, on, rows, mass, "exact", terms=300)
    assert 0 <= exact - value + 1e-9 < 1e-4
    assert value > stick_objective(TAU, on, rows, mass, "convex", terms=50) - 1e-4


def test_gradient_equals_the_reference() -> None:
    _, slope = problem("multinomial").value(TAU)
    expected = stick_gradient(TAU, COUNTS, 120, 1.4, "multinomial")
    assert slope == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("mass", [1.4, None])
@pytest.mark.parametrize("kind", LOWER)
@pytest.mark.parametrize("name", ["few rows", "used, then unused", "small sides"])
def test_gradient_by_differences(kind: str, mass: float | None, name: str) -> None:
    """Also with the mass profiled out: the slope at its best value (envelope theorem)."""
    tau = STICKS[name]
    posed = problem(kind, on=COUNTS[: len(tau)], mass=mass)
    _, slope = posed.value(tau)
    numeric = numeric_gradient(lambda at: posed.value(at)[0], tau)
    assert np.abs((slope - numeric) * tau).max() < 2e-6 * max(1.0, np.abs(numeric * tau).max())


def test_best_mass_is_the_best() -> None:
    learned = problem("convex", mass=None)
    best = learned.best_mass(TAU)
    rest = tail_rate(float(mean_prevalence(TAU)[-1]), 120) - float(log_moments(TAU)[0].sum())
    assert best == pytest.approx((len(TAU) + 1) / (0.1 + rest), rel=1e-12)
    top = learned.value(TAU)[0]
    for factor in (0.5, 0.99, 1.01, 2.0):
        fixed = problem("convex", mass=factor * best).value(TAU)[0] + _mass.log_prior(factor * best)
        assert fixed < top


@pytest.mark.parametrize("kind", LOWER)
def test_solution_is_stationary_from_any_start(kind: str) -> None:
    posed = problem(kind)
    starts = [
        np.tile([1.4, 1.0], (5, 1)),
        _sticks.from_counts(COUNTS, 120.0, 1.4),
        np.stack([1.4 + COUNTS, 121 - COUNTS], axis=1),
    ]
    values = []
    for start in starts:
        tau = _sticks.solve(posed, start)
        value, slope = posed.value(tau)
        step = np.linalg.solve(fisher(tau), slope[:, :, None])[:, :, 0]
        assert 0.5 * float(np.sum(step * slope)) < 1e-8 * abs(value)
        values.append(value)
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_tighter_bound_gives_a_higher_optimum() -> None:
    values = []
    for kind in ("multinomial", "convex"):
        posed = problem(kind)
        tau = _sticks.solve(posed, _sticks.from_counts(COUNTS, 120.0, 1.4))
        values.append(posed.value(tau)[0])
    assert values[1] > values[0] + 1.0


def test_start_from_ratios_of_counts() -> None:
    """vibp 3.6: one fixed-point iteration from v_k = m_k / m_{k-1} is within 2.5 nats (K=20, N=1000)."""
    rng = np.random.default_rng(2)
    mass, rows = 4.0, 1000
    for _ in range(4):
        share = np.cumprod(rng.random(20) ** (1 / mass))
        on = np.sort(rng.binomial(rows, share).astype(float))[::-1]
        near, far = _sticks.from_counts(on, rows, mass), np.stack([mass + on, 1 + rows - on], axis=1)
        posed = problem("multinomial", on, rows, mass)
        best = posed.value(_sticks.solve(posed, near))[0]
        once = [multinomial_sticks(on, rows, mass, multinomial_weights(tau)) for tau in (near, far)]
        assert best - posed.value(once[0])[0] < 2.5
        assert best - posed.value(once[1])[0] > 30


def test_start_has_the_ratios_as_means() -> None:
    tau = _sticks.from_counts(np.array([4e5, 2e5, 1e5]), 1e6, 1e-9)
    assert tau[:, 0] / tau.sum(axis=1) == pytest.approx([0.4, 0.5, 0.5], rel=1e-4)
    assert np.all(_sticks.from_counts(np.array([5.0, 5.0, 0.0]), 5.0, 2.0)[:, 1] >= 1)


def test_dropping_sticks_keeps_the_means_of_the_others() -> None:
    keep = np.array([False, True, True, False, True])
    made = _sticks.drop(TAU, keep)
    assert mean_prevalence(made) == pytest.approx(mean_prevalence(TAU)[keep], rel=1e-12)
    assert made.sum(axis=1) == pytest.approx(TAU.sum(axis=1)[keep])
    assert np.all(made > 0)
    assert _sticks.drop(TAU, np.ones(5, dtype=bool)) == pytest.approx(TAU, rel=1e-10)


@pytest.mark.parametrize("kind", ["convex", "multinomial"])
def test_four_million_rows(kind: str) -> None:
    """Solved: a second solve gains nothing, the used sticks sit at the ratios of the counts."""
    rng = np.random.default_rng(8)
    on = np.sort(random_counts(rng, 40, 4_000_000))[::-1]
    posed = problem(kind, on, 4e6, None)
    tau = _sticks.solve(posed, _sticks.from_counts(on, 4e6, 3.0))
    value = posed.value(tau)[0]
    assert posed.value(_sticks.solve(posed, tau))[0] - value < 1e-10 * abs(value)
    used = on > 1000
    assert mean_prevalence(tau)[used] == pytest.approx(on[used] / 4e6, rel=0.02 if kind == "convex" else 0.1)
