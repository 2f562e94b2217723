"""The reference's Beta expectations and bounds of E log(1 - pi), by quadrature, sampling and differences."""

from itertools import permutations
from math import log

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import digamma, zeta
from scipy.stats import beta

from tests.support.reference import (
    beta_kl,
    convex_log_off,
    convex_log_off_above,
    exact_log_off,
    finite_log_off,
    finite_log_on,
    maximise_sticks,
    mean_prevalence,
    multinomial_log_off,
    multinomial_sticks,
    multinomial_weights,
    start_sticks,
    stick_gradient,
    stick_log_on,
    stick_objective,
    tail_rate,
    tail_term,
    taylor_log_off,
)
from tests.support.reference_sticks import (
    digamma_difference,
    log_gamma_difference,
    log_hurwitz_zeta,
    log_moment,
)

TAUS = [
    np.array([[2.0, 1.5], [1.2, 3.0]]),
    np.array([[5.0, 0.7], [0.9, 0.8]]),
    np.array([[30.0, 2.0], [12.0, 1.0]]),
]
LONG = np.array([[4.0, 2.0], [3.5, 1.2], [2.0, 5.0], [1.3, 1.0]])

FAR = [(500.0, 200.0), (0.2, 40.0), (9001.0, 1.0), (1e5, 1e5), (0.3, 1e4), (3e6, 7e3), (2.0, 1e6)]
"""Large counts, and the ends of the range."""


@pytest.mark.parametrize("tau", TAUS)
def test_expectations_of_one_beta_equal_quadrature(tau):
    for k, (one, two) in enumerate(tau):
        law = beta(one, two)
        on = quad(lambda p, law=law: np.log(p) * law.pdf(p), 0, 1)[0]
        off = quad(lambda p, law=law: np.log1p(-p) * law.pdf(p), 0, 1)[0]
        assert finite_log_on(tau)[k] == pytest.approx(on, abs=1e-7)
        assert finite_log_off(tau)[k] == pytest.approx(off, abs=1e-7)


@pytest.mark.parametrize("mass", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("tau", TAUS)
def test_kl_of_betas_equals_quadrature(tau, mass):
    expected = 0.0
    for one, two in tau:
        q, p = beta(one, two), beta(mass, 1)
        expected += quad(lambda v, q=q, p=p: q.pdf(v) * (q.logpdf(v) - p.logpdf(v)), 0, 1)[0]
    assert beta_kl(tau, mass) == pytest.approx(expected, abs=1e-6)
    assert beta_kl(np.array([[mass, 1.0]]), mass) == pytest.approx(0.0, abs=1e-12)


def test_log_on_of_sticks_is_the_corrected_e6():
    """Erratum E6: the printed term gives -0.777 for what is -2.281."""
    tau = TAUS[0]
    draws = np.random.default_rng(0).beta(tau[:, 0], tau[:, 1], (200_000, 2))
    logs = np.log(draws).sum(axis=1)
    value = stick_log_on(tau)[1]
    assert value == pytest.approx(-2.281, abs=5e-4)
    assert abs(value - logs.mean()) < 5 * logs.std() / np.sqrt(len(logs))
    printed = digamma(tau[:, 1]).sum() - digamma(tau[1].sum())
    assert abs(printed - logs.mean()) > 1


@pytest.mark.parametrize("tau", [*(pytest.param(tau, marks=pytest.mark.slow) for tau in TAUS[:2]), TAUS[2]])
def test_exact_log_off_equals_quadrature_over_both_sticks(tau):
    first, second = beta(*tau[0]), beta(*tau[1])
    value, error = dblquad(
        lambda v, u: np.log1p(-u * v) * first.pdf(u) * second.pdf(v), 0, 1, 0, 1, epsabs=1e-7
    )
    assert exact_log_off(tau)[1] == pytest.approx(value, abs=max(1e-6, 2 * error))


def test_exact_log_off_of_the_first_stick_is_closed_form():
    for tau in [*TAUS, LONG, *(np.array([pair]) for pair in FAR)]:
        assert exact_log_off(tau)[0] == pytest.approx(finite_log_off(tau)[0], rel=1e-12, abs=1e-14)


def test_exact_log_off_does_not_depend_on_where_the_series_stops():
    np.testing.assert_allclose(exact_log_off(LONG, 200), exact_log_off(LONG, 800), rtol=0, atol=1e-12)


def test_exact_log_off_of_many_sticks_equals_sampling():
    pi = np.cumprod(np.random.default_rng(1).beta(LONG[:, 0], LONG[:, 1], (400_000, 4)), axis=1)
    logs = np.log1p(-pi)
    error = logs.std(axis=0) / np.sqrt(len(logs))
    assert (np.abs(exact_log_off(LONG) - logs.mean(axis=0)) < 5 * error).all()


@pytest.mark.parametrize("terms", [0, 1, 5, 50])
@pytest.mark.parametrize("tau", [*TAUS, LONG, np.array([[500.0, 200.0], [80.0, 1.0]])])
def test_convex_interval_holds_the_exact_value(tau, terms):
    exact = exact_log_off(tau)
    assert (convex_log_off(tau, terms) <= exact + 1e-12).all()
    assert (convex_log_off_above(tau, terms) >= exact - 1e-12).all()


@pytest.mark.parametrize("tau", [*TAUS, LONG])
def test_convex_interval_of_fifty_terms_is_narrow(tau):
    assert (convex_log_off_above(tau, 50) - convex_log_off(tau, 50) < 4e-5).all()


@pytest.mark.parametrize("tau", [*TAUS, LONG])
def test_multinomial_bound_is_below_and_exact_for_the_first_stick(tau):
    bound = multinomial_log_off(tau)
    assert bound[0] == pytest.approx(finite_log_off(tau)[0], rel=1e-12)
    assert (bound[1:] < exact_log_off(tau)[1:]).all()


def test_multinomial_optimum_is_the_cumulative_log_sum_exp():
    w = [
        digamma(LONG[i, 1]) + digamma(LONG[:i, 0]).sum() - digamma(LONG[: i + 1].sum(axis=1)).sum()
        for i in range(4)
    ]
    np.testing.assert_allclose(multinomial_log_off(LONG), np.logaddexp.accumulate(w), rtol=1e-12)


def test_any_other_multinomial_is_lower():
    rng = np.random.default_rng(2)
    best = multinomial_log_off(LONG)
    for _ in range(50):
        q = np.tril(rng.gamma(0.5, size=(4, 4)) + 1e-12)
        other = multinomial_log_off(LONG, q / q.sum(axis=1, keepdims=True))
        assert (other <= best + 1e-12).all()
    np.testing.assert_allclose(multinomial_weights(LONG).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("terms", [1, 10, 100])
def test_taylor_interval_holds_the_exact_value(terms):
    for tau in [*TAUS, LONG]:
        lower, upper = taylor_log_off(tau, terms)
        exact = exact_log_off(tau)
        assert (lower <= exact + 1e-12).all()
        assert (upper > exact).all()


def test_recommended_taylor_length_is_not_safe():
    """Erratum E13: tau = (500, 200), T = 400 leaves log epsilon = 74.4."""
    lower, upper = taylor_log_off(np.array([[500.0, 200.0]]), 400)
    assert log(upper[0] - lower[0]) == pytest.approx(74.4, abs=0.05)


def test_truncated_series_is_above():
    """Erratum E15: the truncated series is an upper bound, not a lower one."""
    for tau in TAUS:
        assert (taylor_log_off(tau, 3)[1] > exact_log_off(tau) + 1e-6).all()


def test_log_hurwitz_zeta():
    for power, start in [(2.0, 1.0), (3.0, 11.0), (8.0, 101.0), (1.5, 5.0)]:
        assert log_hurwitz_zeta(power, start) == pytest.approx(log(zeta(power, start)), abs=1e-6)


def test_log_gamma_difference_is_a_sum_of_logs_for_whole_steps():
    for x in [0.3, 4.0, 29.9, 1e3, 1e8]:
        expected = sum(np.log(x + i) for i in range(7))
        assert log_gamma_difference(x, 7.0) == pytest.approx(expected, rel=1e-13)


def test_digamma_difference_is_a_sum_of_reciprocals_for_whole_steps():
    for x in [0.3, 4.0, 29.9, 1e3, 1e8]:
        expected = sum(1 / (x + i) for i in range(7))
        assert digamma_difference(x, 7.0) == pytest.approx(expected, rel=1e-13)


def test_moments_equal_products_for_whole_powers():
    for r in range(1, 40):
        product = np.prod([(one + i) / (one + two + i) for one, two in LONG for i in range(r)])
        assert log_moment(LONG, r) == pytest.approx(log(product), rel=1e-12)


def test_tail_rate_is_the_integral():
    for rows in [1, 3, 40]:
        for p in [1e-9, 0.05, 0.7, 1.0]:
            value = quad(lambda x, rows=rows: -np.expm1(rows * np.log1p(-x)) / x, 0, p, epsrel=1e-11)[0]
            assert tail_rate(p, rows) == pytest.approx(value, rel=1e-9)


def test_tail_term_is_below_its_expectation_and_above_the_linear_form():
    rows, mass = 30, 2.0
    pi = np.random.default_rng(3).beta(LONG[:, 0], LONG[:, 1], (4000, 4)).prod(axis=1)
    exact = np.mean([-mass * tail_rate(p, rows) for p in pi])
    linear = -mass * rows * mean_prevalence(LONG)[-1]
    assert linear < tail_term(LONG, mass, rows) < exact


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("kind", ["convex", "multinomial"])
def test_stick_gradient_equals_differences(kind, tail):
    on, settings = np.array([6.0, 4.5, 2.0, 0.1]), (9, 1.7, kind, 10, tail)
    gradient = stick_gradient(LONG, on, *settings)
    for index in np.ndindex(*LONG.shape):
        step = np.zeros(LONG.shape)
        step[index] = 1e-5 * LONG[index]
        change = stick_objective(LONG + step, on, *settings) - stick_objective(LONG - step, on, *settings)
        assert gradient[index] == pytest.approx(change / (2 * step[index]), rel=1e-6, abs=1e-7)


def test_multinomial_update_is_the_maximiser_at_fixed_weights():
    on, rows, mass = np.array([6.0, 4.5, 2.0, 0.1]), 9, 1.7
    q = multinomial_weights(LONG)
    tau = multinomial_sticks(on, rows, mass, q)

    def value(at):
        log_off = multinomial_log_off(at, q)
        return (on * stick_log_on(at) + (rows - on) * log_off).sum() - beta_kl(at, mass)

    assert value(tau) > value(LONG)
    for index in np.ndindex(*tau.shape):
        step = np.zeros(tau.shape)
        step[index] = 1e-4 * tau[index]
        assert (value(tau + step) - value(tau - step)) / (2 * step[index]) == pytest.approx(0, abs=1e-6)
        assert value(tau + step) < value(tau) > value(tau - step)


def test_sorting_the_counts_maximises_the_prior_of_z():
    """Proposition of 9.6."""
    rows, counts = 12, np.array([9.0, 5.0, 4.5, 0.5])
    on, off = stick_log_on(LONG), convex_log_off(LONG)
    assert (np.diff(on) < 0).all()
    assert (np.diff(off) > 0).all()
    values = {order: counts[list(order)] @ (on - off) + rows * off.sum() for order in permutations(range(4))}
    assert max(values, key=values.__getitem__) == (0, 1, 2, 3)


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("kind", ["convex", "multinomial"])
@pytest.mark.parametrize(
    ("on", "rows"),
    [
        ((900.0, 500.0, 80.0, 0.3), 1000),
        ((3.0, 2.5, 2.5), 4),
        pytest.param((2e5, 1e5, 30.0), 300_000, marks=pytest.mark.slow),
    ],
)
def test_sticks_are_solved_from_either_start(on, rows, kind, tail):
    on, settings = np.array(on), (rows, 1.7, kind, 50, tail)
    tops = []
    for start in (start_sticks(on, rows, 1.7), multinomial_sticks(on, rows, 1.7, np.tri(len(on)) / len(on))):
        tau = maximise_sticks(start, on, *settings)
        slopes = stick_gradient(tau, on, *settings) * tau
        assert np.abs(slopes).max() < 1e-7
        tops.append(stick_objective(tau, on, *settings))
        assert tops[-1] >= stick_objective(start, on, *settings)
    assert tops[0] == pytest.approx(tops[1], rel=1e-11)
    fixed = stick_objective(start_sticks(on, rows, 1.7), on, *settings)
    assert tops[0] - fixed < 2.5


@pytest.mark.slow
def test_convex_bound_at_its_optimum_is_above_the_multinomial_one():
    """3.2: the optimised multinomial bound loses several nats, the convex one hardly any."""
    on, rows = np.array([90.0, 60.0, 40.0, 30.0, 15.0, 0, 0, 0, 0, 0]), 200
    best = []
    for kind in ("convex", "multinomial"):
        tau = maximise_sticks(start_sticks(on, rows, 1.5), on, rows, 1.5, kind, 50, False)
        best.append(stick_objective(tau, on, rows, 1.5, kind, 50, False))
    assert best[0] > best[1] + 3
