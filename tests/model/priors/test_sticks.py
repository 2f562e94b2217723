"""The stick problem: objective and gradient against the reference, the solver, the start."""

import numpy as np
import pytest

from ibpdist.model.priors import _convex, _mass, _multinomial, _sticks, _taylor
from ibpdist.model.priors._beta import log_moments
from ibpdist.model.priors._objective import Problem, Seen
from tests.support.prior_cases import STICKS, fisher, numeric_gradient, random_counts
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


def problem(kind: str, on: np.ndarray = COUNTS, rows: float = 120.0, mass: float | None = 1.4) -> Problem:
    return Problem(on=on, rows=rows, mass=mass, lower=LOWER[kind])


def seen_at(posed: Problem, tau: np.ndarray) -> Seen:
    found = posed.look(np.log(tau))
    assert isinstance(found, Seen)
    return found


def value_of(posed: Problem, tau: np.ndarray) -> tuple[float, np.ndarray]:
    """The objective and its gradient in tau."""
    found = seen_at(posed, tau)
    return found.value, found.slope.reshape(-1, 2) / tau


def test_objective_equals_the_reference() -> None:
    """With the bound multinomial to rounding; with convex between the reference's and the truth."""
    on, rows, mass = COUNTS, 120, 1.4
    value, _ = value_of(problem("multinomial"), TAU)
    assert value == pytest.approx(stick_objective(TAU, on, rows, mass, "multinomial"), rel=1e-11)
    value, _ = value_of(problem("convex"), TAU)
    exact = stick_objective(TAU, on, rows, mass, "exact", terms=300)
    assert 0 <= exact - value + 1e-9 < 1e-4
    assert value > stick_objective(TAU, on, rows, mass, "convex", terms=50) - 1e-4


def test_gradient_equals_the_reference() -> None:
    _, slope = value_of(problem("multinomial"), TAU)
    expected = stick_gradient(TAU, COUNTS, 120, 1.4, "multinomial")
    assert slope == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("mass", [1.4, None])
@pytest.mark.parametrize("kind", LOWER)
@pytest.mark.parametrize("name", ["few rows", "used, then unused", "small sides"])
def test_gradient_by_differences(kind: str, mass: float | None, name: str) -> None:
    """Also with the mass profiled out: the slope at its best value (envelope theorem)."""
    tau = STICKS[name]
    posed = problem(kind, on=COUNTS[: len(tau)], mass=mass)
    _, slope = value_of(posed, tau)
    numeric = numeric_gradient(lambda at: value_of(posed, at)[0], tau)
    assert np.abs((slope - numeric) * tau).max() < 2e-6 * max(1.0, np.abs(numeric * tau).max())


@pytest.mark.parametrize("mass", [1.4, None])
@pytest.mark.parametrize("kind", LOWER)
@pytest.mark.parametrize("name", STICKS)
def test_curvature_by_differences(kind: str, mass: float | None, name: str) -> None:
    """In log tau by differences of the slope; along `moved` its own second derivatives come on top."""
    tau, step = STICKS[name], 1e-5
    posed = problem(kind, on=COUNTS[: len(tau)], mass=mass)
    seen, size = seen_at(posed, tau), 2 * len(tau)
    numeric = np.empty((size, size))
    for i, e in enumerate(step * np.eye(size)):
        ahead, behind = (posed.look(np.log(tau).reshape(-1) + way) for way in (e, -e))
        numeric[i] = (ahead.slope - behind.slope) / (2 * step)
    turn = second_differences(lambda at: float(seen.slope @ seen.moved(at)), size)
    lower, scale = np.tril(seen.bend(0.0)), np.abs(numeric).max() + np.abs(turn).max()
    assert np.abs(np.tril(numeric + turn) + lower).max() < 5e-6 * scale


def second_differences(value: object, size: int, step: float = 1e-3) -> np.ndarray:
    """Second derivatives at 0."""
    e, out = step * np.eye(size), np.empty((size, size))
    for i, j in np.ndindex(size, size):
        corners = [a * b * value(a * e[i] + b * e[j]) for a in (1, -1) for b in (1, -1)]  # type: ignore[operator]
        out[i, j] = sum(corners) / (4 * step**2)
    return out


def test_damping_adds_the_fisher_information() -> None:
    seen = seen_at(problem("convex"), TAU)
    added = np.tril(seen.bend(2.0) - seen.bend(0.0))
    expected = np.zeros((10, 10))
    for k, block in enumerate(TAU[:, :, None] * fisher(TAU) * TAU[:, None, :]):
        expected[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = 2 * np.tril(block)
    assert added == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_steps_are_of_first_order_and_stay_inside() -> None:
    seen = seen_at(problem("convex"), TAU)
    step = np.random.default_rng(0).normal(size=10)
    for size in (1e-4, 1e-5):
        bent = seen.moved(size * step) - np.log(TAU).reshape(-1) - size * step
        assert np.abs(bent).max() < 1e3 * size**2
    far = np.tile([30.0, -30.0], 5)
    assert np.all(np.isfinite(seen.moved(far)) & np.isfinite(seen.moved(-far)))


@pytest.mark.parametrize("log_tau", [-60.0, 40.0, np.nan])
def test_outside(log_tau: float) -> None:
    assert problem("convex").look(np.full(10, log_tau)).value == -np.inf


def test_best_mass_is_the_best() -> None:
    learned = problem("convex", mass=None)
    best = seen_at(learned, TAU).mass
    rest = tail_rate(float(mean_prevalence(TAU)[-1]), 120) - float(log_moments(TAU)[0].sum())
    assert best == pytest.approx((len(TAU) + 1) / (1 + rest), rel=1e-12)
    top = value_of(learned, TAU)[0]
    for factor in (0.5, 0.99, 1.01, 2.0):
        fixed = value_of(problem("convex", mass=factor * best), TAU)[0] + _mass.log_prior(factor * best)
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
        tau = _sticks.solve(posed, start).at.tau
        value, slope = value_of(posed, tau)
        step = np.linalg.solve(fisher(tau), slope[:, :, None])[:, :, 0]
        assert 0.5 * float(np.sum(step * slope)) < 1e-8 * abs(value)
        values.append(value)
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_better_of_two_starts() -> None:
    """The second one is looked at only where it is known to reach more, and then taken if better."""
    posed = problem("convex")
    good, bad = _sticks.solve(posed, _sticks.from_counts(COUNTS, 120.0, 1.4)), np.full((5, 2), 1e-3)
    assert _sticks.solve(posed, bad, good.at.tau, good.value).value >= good.value
    assert _sticks.solve(posed, good.at.tau, bad, -1e9).value >= good.value
    with pytest.raises(ArithmeticError, match="no start inside"):
        _sticks.solve(posed, np.full((5, 2), 1e30))


def test_tighter_bound_gives_a_higher_optimum() -> None:
    values = []
    for kind in ("multinomial", "convex"):
        posed = problem(kind)
        tau = _sticks.solve(posed, _sticks.from_counts(COUNTS, 120.0, 1.4)).at.tau
        values.append(value_of(posed, tau)[0])
    assert values[1] > values[0] + 1.0


def ratios(on: np.ndarray, rows: float, mass: float) -> np.ndarray:
    """The start of priors.md 15: v_k = m_k / m_{k-1}."""
    return np.stack([mass + on, 1 - np.diff(on, prepend=rows)], axis=1)


def test_ratios_of_counts_as_a_start() -> None:
    """priors.md 15: one fixed-point iteration from v_k = m_k / m_{k-1} is within 2.5 nats (K=20, N=1000)."""
    rng = np.random.default_rng(2)
    mass, rows = 4.0, 1000
    for _ in range(4):
        share = np.cumprod(rng.random(20) ** (1 / mass))
        on = np.sort(rng.binomial(rows, share).astype(float))[::-1]
        near, far = ratios(on, rows, mass), np.stack([mass + on, 1 + rows - on], axis=1)
        posed = problem("multinomial", on, rows, mass)
        best = _sticks.solve(posed, near).value
        once = [multinomial_sticks(on, rows, mass, multinomial_weights(tau)) for tau in (near, far)]
        assert best - value_of(posed, once[0])[0] < 2.5
        assert best - value_of(posed, once[1])[0] > 30


@pytest.mark.parametrize("rows", [1000, 200_000, 4_000_000])
def test_start_is_close(rows: int) -> None:
    """Within 0.2 nats a stick, and closer than the ratios, the more so with ties."""
    rng = np.random.default_rng(rows)
    for _ in range(4):
        share = np.cumprod(rng.random(30) ** (1 / 4.0))
        on = np.sort(rng.binomial(rows, share).astype(float))[::-1]
        posed, start = problem("convex", on, rows, 4.0), _sticks.from_counts(on, rows, 4.0)
        best, value = _sticks.solve(posed, start).value, value_of(posed, start)[0]
        assert best - value < 6
        assert best - value < best - value_of(posed, ratios(on, rows, 4.0))[0]


def test_start_has_the_ratios_as_means() -> None:
    tau = _sticks.from_counts(np.array([4e5, 2e5, 1e5]), 1e6, 1e-9)
    assert tau[:, 0] / tau.sum(axis=1) == pytest.approx([0.4, 0.5, 0.5], rel=1e-4)
    assert np.all(_sticks.from_counts(np.array([5.0, 5.0, 0.0]), 5.0, 2.0)[:, 1] >= 1)


@pytest.mark.parametrize("mass", [1e-9, 2.0, 1e5])
def test_start_with_nothing_to_go_by(mass: float) -> None:
    for on in (np.zeros(200), np.full(200, 10.0), np.zeros(1)):
        tau = _sticks.from_counts(on, 10.0, mass)
        assert np.all(np.isfinite(tau) & (tau > 0))


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
    tau = _sticks.solve(posed, _sticks.from_counts(on, 4e6, 3.0)).at.tau
    value = value_of(posed, tau)[0]
    assert _sticks.solve(posed, tau).value - value < 1e-10 * abs(value)
    used = on > 1000
    assert mean_prevalence(tau)[used] == pytest.approx(on[used] / 4e6, rel=0.02 if kind == "convex" else 0.1)
