"""The finite prior: score against the reference and the evidence, the joint optimum, exact draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import arrays_of, pack, replace, unpack
from ibpdist.model.priors import BetaBernoulli
from ibpdist.model.priors.beta_bernoulli import best_mass, draw_beta, posterior
from tests.support.prior_cases import mean_update, random_counts, sums, total
from tests.support.reference_sticks import beta_kl, finite_log_off, finite_log_on

ON = np.array([3.0, 50.0, 0.4, 21.0, 0.0])


def solved(mass: object, on: np.ndarray = ON, rows: int = 60) -> tuple[BetaBernoulli, object, object]:
    prior, seen = BetaBernoulli(mass), sums(on, rows)
    return prior, mean_update(prior, prior.init(len(on), rows), seen), seen


def test_starts_at_the_prior() -> None:
    prior = BetaBernoulli(3.0)
    params = prior.init(4, 100)
    assert np.array_equal(params.tau, np.tile([0.75, 1.0], (4, 1)))
    assert params.log_on == pytest.approx(finite_log_on(params.tau))
    assert np.array_equal(prior.log_odds(params), params.log_on - params.log_off)
    score = prior.score(params, sums(np.zeros(4), 0))
    assert score == pytest.approx({"z prior": 0, "prevalence": 0, "unused": 0, "mass": 0}, abs=1e-12)


@pytest.mark.parametrize("mass", [2.0, "learn"])
def test_update_on_no_rows_is_the_prior(mass: object) -> None:
    prior, params, _ = solved(mass)
    back = mean_update(prior, params, sums(np.zeros(5), 0))
    share = float(params.mass) / 5
    assert np.array_equal(back.tau, np.tile([share, 1.0], (5, 1)))


@pytest.mark.parametrize("mass", [2.0, "learn"])
def test_score_equals_the_reference_term_by_term(mass: object) -> None:
    prior, params, seen = solved(mass)
    score, alpha = prior.score(params, seen), float(params.mass)
    z = ON @ finite_log_on(params.tau) + (60 - ON) @ finite_log_off(params.tau)
    assert score["z prior"] == pytest.approx(z, rel=1e-12)
    assert score["prevalence"] == pytest.approx(-beta_kl(params.tau, alpha / 5), rel=1e-10)
    expected = math.log(alpha) - alpha if mass == "learn" else 0.0
    assert score["mass"] == pytest.approx(expected)
    assert score["unused"] == 0.0


@pytest.mark.parametrize("rows", [60, 4_000_000])
def test_at_its_optimum_it_is_the_evidence_of_z(rows: int) -> None:
    """priors.md 3: the three terms sum to sum_k log (mass / K) B(mass / K + m_k, 1 + N - m_k)."""
    on = ON * rows / 60
    prior, params, seen = solved(2.0, on, rows)
    exact = float(np.sum(np.log(0.4) + betaln(0.4 + on, 1 + rows - on)))
    assert total(prior, params, seen) == pytest.approx(exact, rel=1e-12)


def test_log_odds_are_those_of_the_posterior() -> None:
    prior, params, _ = solved(2.0)
    rng = np.random.default_rng(0)
    pi = rng.beta(0.4 + ON[1], 1 + 60 - ON[1], size=200_000)
    logit = np.log(pi / (1 - pi))
    assert abs(prior.log_odds(params)[1] - logit.mean()) < 4 * logit.std() / math.sqrt(len(pi))


@given(seed=st.integers(0, 10**6), learned=st.booleans())
def test_update_never_lowers_the_objective(seed: int, learned: bool) -> None:
    rng = np.random.default_rng(seed)
    features, rows = int(rng.integers(1, 8)), int(rng.choice([1, 2, 40, 10**4, 4 * 10**6]))
    prior = BetaBernoulli("learn" if learned else float(rng.gamma(1, 3)) + 0.01)
    params = prior.init(features, rows)
    for _ in range(4):
        seen = sums(random_counts(rng, features, rows), rows)
        before = total(prior, params, seen)
        params = mean_update(prior, params, seen)
        assert total(prior, params, seen) >= before - 1e-12 * abs(before)
        assert np.all(np.isfinite(prior.log_odds(params)))


@pytest.mark.parametrize("rows", [60, 4_000_000])
def test_learned_mass_is_the_joint_optimum(rows: int) -> None:
    on = ON * rows / 60
    prior, params, seen = solved("learn", on, rows)
    best, top = float(params.mass), total(prior, params, seen)
    assert total(prior, mean_update(prior, params, seen), seen) == pytest.approx(top, rel=1e-13)
    for factor in (0.3, 0.97, 1.03, 4.0):
        fixed = BetaBernoulli(factor * best)
        other = mean_update(fixed, fixed.init(5, rows), seen)
        assert total(prior, other, seen) < top


def test_learned_mass_solves_its_equation() -> None:
    """With tau fixed the best mass is (K + 1) / (1 - sum_k E log pi_k / K) (priors.md 3)."""
    _, params, _ = solved("learn")
    assert float(params.mass) == pytest.approx(6 / (1 - params.log_on.sum() / 5), rel=1e-9)


@pytest.mark.parametrize("rows", [1, 1000, 4_000_000])
def test_mass_is_positive_when_nothing_is_on(rows: int) -> None:
    mass = best_mass(sums(np.zeros(10), rows), 10)
    harmonic = math.log(rows) + np.euler_gamma
    assert 0.5 / (harmonic + 1.2) < mass < 5


def test_mass_follows_the_number_of_features_on() -> None:
    """About (features on) / H_N, as in the IBP."""
    rows, on = 10_000, np.array([1500.0] * 12 + [0.0] * 28)
    harmonic = math.log(rows) + np.euler_gamma
    assert best_mass(sums(on, rows), 40) == pytest.approx(12 / harmonic, rel=1.0)
    assert best_mass(sums(on, rows), 40) > 1.5 * best_mass(
        sums(np.roll(on, 0) * (np.arange(40) < 6), rows), 40
    )


# --- dropped features ---


def test_dropping_an_empty_feature_costs_nothing() -> None:
    """K of the model stays; a feature that is off everywhere is integrated out."""
    for mass in (2.0, "learn"):
        prior, params, seen = solved(mass)
        left = prior.select(params, np.array([3, 0, 1, 2]))
        rest = sums(ON[[3, 0, 1, 2]], 60)
        assert total(prior, left, rest) == pytest.approx(total(prior, params, seen), rel=1e-12)
        again = mean_update(prior, left, rest)
        assert float(again.mass) == pytest.approx(float(params.mass), rel=1e-12)
        assert prior.log_odds(again) == pytest.approx(prior.log_odds(params)[[3, 0, 1, 2]], rel=1e-10)
        assert int(again.truncation) == 5


def test_unused_features_become_the_tail_of_the_infinite_model() -> None:
    """For many features log Pr(none of them on) tends to -mass H_N."""
    prior = BetaBernoulli(2.0)
    params = prior.init(200_000, 50)
    score = prior.score(prior.select(params, np.arange(0)), sums(np.zeros(0), 50))
    assert score["unused"] == pytest.approx(-2.0 * sum(1 / j for j in range(1, 51)), rel=1e-4)


# --- draws ---


def test_draws_have_the_moments_of_beta() -> None:
    rng = np.random.default_rng(1)
    for one, two in [(0.02, 1.0), (3.0, 5.0), (400.0, 2.0)]:
        log_on, log_off = draw_beta(np.tile([one, two], (40_000, 1)), rng)
        pi = np.exp(log_on)
        mean, variance = one / (one + two), one * two / ((one + two) ** 2 * (one + two + 1))
        assert abs(pi.mean() - mean) < 4 * math.sqrt(variance / 40_000)
        assert pi.var() == pytest.approx(variance, rel=0.05)
        assert np.exp(log_on) + np.exp(log_off) == pytest.approx(np.ones(40_000), rel=1e-12)


def test_draws_are_finite_where_pi_underflows() -> None:
    log_on, log_off = draw_beta(np.tile([1e-6, 4e6], (1000, 1)), np.random.default_rng(0))
    assert np.all(np.isfinite(log_on))
    assert log_on.min() < -1000
    assert np.all(log_off == 0.0)


def test_draw_keeps_the_joint_law() -> None:
    """From an exact joint draw of (mass, pi, z), one update leaves the law of (mass, pi) as it was."""
    rng = np.random.default_rng(11)
    prior, features, rows, repeats = BetaBernoulli("learn"), 3, 4, 6000
    before, after = np.empty((repeats, 3)), np.empty((repeats, 3))
    for i in range(repeats):
        mass = rng.exponential()
        start = replace(prior.init(features, rows), mass=np.asarray(mass))
        pi = np.exp(draw_beta(np.tile([mass / features, 1.0], (features, 1)), rng)[0])
        seen = sums(rng.binomial(rows, pi), rows)
        made = prior.update(start, seen, Rule.DRAW, rng)
        drawn = np.exp(made.log_on)
        before[i] = np.log(mass), pi.sum(), pi[0] * seen.on[0]
        after[i] = np.log(made.mass), drawn.sum(), drawn[0] * seen.on[0]
    for column in range(3):
        gap = before[:, column] - after[:, column]
        assert abs(gap.mean()) < 4 * gap.std() / math.sqrt(repeats)
        spread = before[:, column] ** 2 - after[:, column] ** 2
        assert abs(spread.mean()) < 4 * spread.std() / math.sqrt(repeats)


def test_draw_with_fixed_mass_and_dropped_features() -> None:
    prior = BetaBernoulli(2.0)
    params = prior.select(prior.init(5, 60), np.array([0, 1]))
    made = prior.update(params, sums([3.0, 50.0], 60), Rule.DRAW, np.random.default_rng(0))
    assert made.log_on.shape == (2,)
    assert float(made.mass) == 2.0
    assert np.array_equal(made.entropy, [0.0, 0.0])
    assert np.array_equal(made.tau, posterior(sums([3.0, 50.0], 60), 0.4))


def test_score_of_a_draw_is_the_log_joint() -> None:
    prior = BetaBernoulli(2.0)
    seen = sums([3.0, 50.0], 60)
    made = prior.update(prior.init(2, 60), seen, Rule.DRAW, np.random.default_rng(0))
    pi = np.exp(made.log_on)
    joint = seen.on @ np.log(pi) + (60 - seen.on) @ np.log1p(-pi) + np.sum(np.log(1.0 * pi**0.0))
    assert total(prior, made, seen) == pytest.approx(joint, rel=1e-10)


# --- protocol ---


def test_sample_has_the_moments_of_the_prior() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([BetaBernoulli(3.0).sample(6, rng) for _ in range(20_000)])
    mean = 0.5 / 1.5
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 4.5 * drawn.std(axis=0) / math.sqrt(20_000))
    assert BetaBernoulli("learn").sample(3, rng).shape == (3,)


def test_update_is_pure_and_survives_packing() -> None:
    prior, params, seen = solved("learn")
    outline, arrays = pack(params)
    copies = {name: value.copy() for name, value in arrays.items()}
    once = mean_update(prior, params, seen)
    assert all(np.array_equal(copies[name], value) for name, value in arrays_of(params).items())
    twice = mean_update(prior, unpack(outline, arrays), seen)
    assert np.array_equal(once.tau, twice.tau)


@pytest.mark.parametrize("mass", [0, -1.0, math.inf, math.nan, True, "5", None])
def test_mass_is_checked(mass: object) -> None:
    with pytest.raises(UsageError, match='expected a positive number or "learn"'):
        BetaBernoulli(mass)


def test_rules() -> None:
    assert BetaBernoulli.rules == {Rule.MEAN, Rule.DRAW}
