"""The infinite prior: score, monotone updates, order, tail against exact evidence, selection."""

import math
from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import betaln
from threadpoolctl import threadpool_limits

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import arrays_of, pack, replace, unpack
from ibpdist.model.priors import StickBreaking
from ibpdist.model.priors._objective import Problem
from ibpdist.model.priors.stick_breaking import _LOWER
from tests.support.prior_cases import mean_update, random_counts, sums, total
from tests.support.reference_sticks import (
    beta_kl,
    exact_log_off,
    mean_prevalence,
    stick_log_on,
    tail_rate,
)

BOUNDS = ("convex", "multinomial", "taylor")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As the engines have it: small factorisations in several threads wait for each other."""
    with threadpool_limits(1):
        yield


def solved(prior: StickBreaking, on: object, rows: int) -> tuple[object, object]:
    seen = sums(on, rows)
    params = mean_update(prior, prior.init(len(seen.on), rows), seen)
    return params, seen


def test_starts_at_the_prior() -> None:
    prior = StickBreaking(2.5)
    params = prior.init(4, 100)
    assert np.array_equal(params.tau, np.tile([2.5, 1.0], (4, 1)))
    assert params.log_on == pytest.approx(-np.arange(1, 5) / 2.5)
    assert params.log_off == pytest.approx(exact_log_off(params.tau), rel=1e-7)
    assert np.array_equal(prior.log_odds(params), params.log_on - params.log_off)
    score = prior.score(params, sums(np.zeros(4), 0))
    assert score == pytest.approx({"z prior": 0, "sticks": 0, "tail": 0, "mass": 0}, abs=1e-12)


@pytest.mark.parametrize("mass", [2.0, "learn"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_update_on_no_rows_is_the_prior(bound: str, mass: object) -> None:
    prior = StickBreaking(mass, bound)
    params, _ = solved(prior, [30.0, 2.0, 11.0], 40)
    back = mean_update(prior, params, sums(np.zeros(3), 0))
    assert np.array_equal(back.tau, np.tile([float(params.mass), 1.0], (3, 1)))
    assert total(prior, back, sums(np.zeros(3), 0)) >= total(prior, params, sums(np.zeros(3), 0))


@pytest.mark.parametrize("mass", [1.3, "learn"])
def test_score_equals_the_reference_term_by_term(mass: object) -> None:
    prior = StickBreaking(mass)
    on = np.array([3.0, 50.0, 0.4, 21.0])
    params, seen = solved(prior, on, 60)
    score, alpha, order = prior.score(params, seen), float(params.mass), params.order
    z = on[order] @ stick_log_on(params.tau) + (60 - on[order]) @ exact_log_off(params.tau)
    assert score["z prior"] == pytest.approx(z, rel=1e-7)
    assert score["z prior"] <= z + 1e-10
    assert score["sticks"] == pytest.approx(-beta_kl(params.tau, alpha), rel=1e-9)
    last = float(mean_prevalence(params.tau)[-1])
    assert score["tail"] == pytest.approx(-alpha * tail_rate(last, 60), rel=1e-11)
    expected = math.log(alpha) - alpha if mass == "learn" else 0.0
    assert score["mass"] == pytest.approx(expected)


@pytest.mark.parametrize("bound", BOUNDS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), learned=st.booleans())
def test_update_never_lowers_the_objective(bound: str, seed: int, learned: bool) -> None:
    """Over changing sums: each update is compared with the old parameters on the new sums."""
    rng = np.random.default_rng(seed)
    features, rows = int(rng.integers(1, 6)), int(rng.choice([1, 2, 17, 300]))
    prior = StickBreaking("learn" if learned else float(rng.gamma(1, 3)) + 0.01, bound)
    params = prior.init(features, rows)
    for _ in range(4):
        seen = sums(random_counts(rng, features, rows), rows)
        before = total(prior, params, seen)
        params = mean_update(prior, params, seen)
        assert total(prior, params, seen) >= before - 1e-12 * abs(before)
        assert np.all(np.isfinite(prior.log_odds(params)))


@pytest.mark.parametrize("bound", ["convex", "multinomial"])
def test_never_lowers_it_at_scale(bound: str) -> None:
    rng = np.random.default_rng(4)
    prior, rows = StickBreaking("learn", bound), 4_000_000
    params = prior.init(40, rows)
    on = random_counts(rng, 40, rows)
    for _ in range(4):
        on = np.clip(on * np.exp(0.02 * rng.normal(size=40)), 0, rows)
        seen = sums(on, rows)
        before = total(prior, params, seen)
        params = mean_update(prior, params, seen)
        after = total(prior, params, seen)
        assert after >= before
        assert total(prior, mean_update(prior, params, seen), seen) - after < 1e-10 * abs(after)
    used = (on > 1e4) & (on < rows - 1e4)
    expected = np.log(on[used] / (rows - on[used]))
    assert prior.log_odds(params)[used] == pytest.approx(expected, abs=0.05 if bound == "convex" else 0.3)


@pytest.mark.parametrize("rows", [1, 1000, 4_000_000, 10**12])
@pytest.mark.parametrize("bound", ["convex", "multinomial"])
def test_extreme_counts_stay_finite(bound: str, rows: int) -> None:
    for on in (np.zeros(3), np.full(3, rows), np.array([rows, 0, rows / 2]), np.full(3, 1e-30)):
        for mass in (0.01, 1000.0, "learn"):
            prior = StickBreaking(mass, bound)
            params, seen = solved(prior, on, rows)
            assert math.isfinite(total(prior, params, seen))
            assert np.all(np.isfinite(prior.log_odds(params)))


@pytest.mark.parametrize("mass", [1.3, "learn"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_score_is_what_is_climbed(bound: str, mass: object) -> None:
    prior = StickBreaking(mass, bound)
    params, seen = solved(prior, [90.0, 44.0, 40.0, 3.0, 0.0], 100)
    posed = Problem(seen.on, 100.0, None if mass == "learn" else 1.3, _LOWER[bound])
    assert posed.look(np.log(params.tau)).value == pytest.approx(total(prior, params, seen), rel=1e-12)


def test_counts_beyond_the_rows_by_rounding() -> None:
    for bound in BOUNDS:
        params, seen = solved(StickBreaking("learn", bound), [100.00001, 100.0, 50.0, -1e-7], 100)
        assert np.all(np.isfinite(params.log_on) & np.isfinite(params.log_off))
        assert math.isfinite(total(StickBreaking("learn", bound), params, seen))


# --- how often the objective is evaluated ---


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one entry at each evaluation."""
    made: list[int] = []
    plain = Problem.look

    def look(self: Problem, log_tau: np.ndarray) -> object:
        made.append(1)
        return plain(self, log_tau)

    monkeypatch.setattr(Problem, "look", look)
    return made


def shares(kind: str, rng: np.random.Generator, features: int, rows: int) -> np.ndarray:
    """Prevalences: of the prior, all alike, or half of the features nearly unused."""
    if kind == "prior":
        return np.cumprod(rng.random(features) ** (4 / features))
    if kind == "alike":
        return 0.3 + 0.02 * rng.normal(size=features)
    return np.where(
        np.arange(features) < features // 2, rng.random(features), 3 * rng.random(features) / rows
    )


@pytest.mark.parametrize("kind", ["prior", "alike", "half"])
@pytest.mark.parametrize(
    ("rows", "features"),
    [(1000, 20), (20_000, 20), (20_000, 100), (200_000, 50), (4_000_000, 40), (4_000_000, 200)],
)
def test_few_evaluations(rows: int, features: int, kind: str, looks: list[int]) -> None:
    """A start or two and up to seven steps as counts drift from pass to pass; one when they stay."""
    rng = np.random.default_rng(features)
    prior, share = StickBreaking("learn"), shares(kind, rng, features, rows)
    params, counts = prior.init(features, rows), []
    for _ in range(6):
        looks.clear()
        seen = sums(rows * np.clip(share * np.exp(0.02 * rng.normal(size=features)), 0, 1), rows)
        before = total(prior, params, seen)
        params = mean_update(prior, params, seen)
        assert total(prior, params, seen) >= before
        counts.append(len(looks))
    assert max(counts[1:]) <= 14, counts
    assert np.median(counts[1:]) <= 9, counts
    looks.clear()
    after = mean_update(prior, params, seen)
    assert len(looks) <= 3
    assert total(prior, after, seen) - total(prior, params, seen) < 1e-5 + 1e-12 * abs(
        total(prior, params, seen)
    )


@pytest.mark.parametrize("bound", ["convex", "multinomial"])
@pytest.mark.parametrize("mass", [0.5, 40.0, "learn"])
@pytest.mark.parametrize(("rows", "features"), [(1, 1), (1, 30), (5000, 1), (5000, 30), (4_000_000, 200)])
@pytest.mark.parametrize("share", [0.0, 1.0, 0.5])
def test_all_alike(
    bound: str, mass: object, rows: int, features: int, share: float, looks: list[int]
) -> None:
    """All features off, all on in all rows, all in half: solved, from the start and again."""
    prior = StickBreaking(mass, bound)
    params, seen = solved(prior, np.full(features, share * rows), rows)
    assert len(looks) <= 60
    value = total(prior, params, seen)
    assert math.isfinite(value)
    again = total(prior, mean_update(prior, params, seen), seen)
    assert 0 <= again - value <= 1e-5 + 1e-11 * abs(value)
    assert np.all(np.diff(params.log_on[params.order]) < 0)


# --- order ---


@pytest.mark.parametrize("bound", BOUNDS)
def test_sorted_order_is_the_best(bound: str) -> None:
    prior = StickBreaking(2.0, bound)
    params, seen = solved(prior, [4.0, 90.0, 33.0, 33.0, 0.2], 100)
    best = prior.score(params, seen)["z prior"]
    for order in permutations(range(5)):
        other = replace(
            params,
            order=np.array(order),
            log_on=params.log_on[params.order][np.argsort(order)],
            log_off=params.log_off[params.order][np.argsort(order)],
        )
        assert prior.score(other, seen)["z prior"] <= best + 1e-10


def test_features_keep_their_places() -> None:
    """A permutation of the features permutes the result and nothing else."""
    prior = StickBreaking("learn")
    on = np.array([4.0, 90.0, 33.0, 12.0])
    one, seen = solved(prior, on, 100)
    swap = np.array([2, 0, 3, 1])
    two, swapped = solved(prior, on[swap], 100)
    assert np.array_equal(on[one.order], np.sort(on)[::-1])
    assert two.tau == pytest.approx(one.tau, rel=1e-12)
    assert prior.log_odds(two) == pytest.approx(prior.log_odds(one)[swap], rel=1e-12)
    assert total(prior, two, swapped) == pytest.approx(total(prior, one, seen), rel=1e-12)


def test_order_follows_the_counts() -> None:
    prior = StickBreaking(1.0)
    params, _ = solved(prior, [50.0, 10.0, 1.0], 60)
    after = mean_update(prior, params, sums([1.0, 10.0, 50.0], 60))
    assert list(after.order) == [2, 1, 0]
    assert np.all(np.diff(after.log_on) > 0)


# --- what the bound bounds (priors.md 9) ---


def log_evidence(on: list[int], rows: int, mass: float, tail: bool) -> float:
    """log E_v of pi^m (1 - pi)^(N - m) over one or two sticks, times exp(-mass h_N(pi_K)) with the tail."""

    def later(p: float) -> float:
        return math.exp(-mass * tail_rate(p, rows)) if tail else 1.0

    def one(v: float) -> float:
        return mass * v ** (mass - 1 + on[0]) * (1 - v) ** (rows - on[0])

    if len(on) == 1:
        return math.log(quad(lambda v: one(v) * later(v), 0, 1, epsrel=1e-11)[0])

    def two(u: float, v: float) -> float:
        p = u * v
        return one(v) * mass * u ** (mass - 1) * p ** on[1] * (1 - p) ** (rows - on[1]) * later(p)

    return math.log(dblquad(two, 0, 1, 0, 1, epsrel=1e-9)[0])


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("on", [[0], [2], [3, 1], [1, 1], [2, 0], [0, 0]])
def test_below_the_exact_evidence_of_z(bound: str, on: list[int]) -> None:
    """For fixed z: with the tail below the IBP's log p(z), without it below the truncated model's."""
    prior = StickBreaking(1.7, bound)
    params, seen = solved(prior, on, 3)
    score = prior.score(params, seen)
    assert total(prior, params, seen) <= log_evidence(on, 3, 1.7, tail=True) + 1e-9
    assert score["z prior"] + score["sticks"] <= log_evidence(on, 3, 1.7, tail=False) + 1e-9


@pytest.mark.parametrize("on", [[2], [3, 1], [1, 1]])
def test_close_to_the_exact_evidence(on: list[int]) -> None:
    prior = StickBreaking(1.7)
    params, seen = solved(prior, on, 3)
    assert total(prior, params, seen) > log_evidence(on, 3, 1.7, tail=True) - 0.15


def test_without_the_tail_it_is_no_bound_of_the_ibp() -> None:
    """Erratum E11: nothing on in 2 rows, mass 3, K = 1; the IBP has exactly exp(-mass H_2) there."""
    prior = StickBreaking(3.0)
    params, seen = solved(prior, [0.0], 2)
    exact = -3.0 * 1.5
    score = prior.score(params, seen)
    tau = np.array([[3.0, 3.0]])
    report = replace(params, tau=tau, log_on=stick_log_on(tau), log_off=exact_log_off(tau))
    without = prior.score(report, seen)
    assert without["z prior"] + without["sticks"] == pytest.approx(math.log(3) + betaln(3, 3), rel=1e-9)
    assert without["z prior"] + without["sticks"] > exact + 2
    assert sum(score.values()) <= exact


def test_one_stick_without_rows_beyond_is_conjugate() -> None:
    """With mass near 0 the tail vanishes and one stick is a beta-binomial: the bound is the evidence."""
    mass = 1e-6
    prior = StickBreaking(mass)
    params, seen = solved(prior, [40.0], 100)
    exact = math.log(mass) + betaln(mass + 40, 61)
    assert total(prior, params, seen) == pytest.approx(exact, abs=1e-4)
    assert params.tau[0] == pytest.approx([mass + 40, 61], rel=2e-3)  # to 1e-6 nats no less


def test_more_features_than_used_cost_little() -> None:
    """Bounds of different K are comparable: the tail pays for what the extra sticks pay."""
    prior = StickBreaking(2.0)
    values = []
    for extra in (0, 5, 15):
        params, seen = solved(prior, [200.0, 150.0, 30.0] + [0.0] * extra, 500)
        values.append(total(prior, params, seen))
    assert np.ptp(values) < 2.0


# --- protocol ---


def test_select_is_a_bound_of_what_is_left() -> None:
    prior = StickBreaking("learn")
    on = np.array([4.0, 90.0, 33.0, 0.0, 12.0])
    params, _ = solved(prior, on, 100)
    keep = np.array([4, 1, 2])
    left = prior.select(params, keep)
    means = np.empty(5)
    means[params.order] = mean_prevalence(params.tau)
    kept = np.empty(3)
    kept[left.order] = mean_prevalence(left.tau)
    assert kept == pytest.approx(means[keep], rel=1e-10)
    seen = sums(on[keep], 100)
    assert total(prior, mean_update(prior, left, seen), seen) >= total(prior, left, seen)


def test_select_of_a_permutation_changes_nothing_else() -> None:
    prior = StickBreaking(1.0)
    on = np.array([4.0, 90.0, 33.0])
    params, seen = solved(prior, on, 100)
    turned = prior.select(params, np.array([2, 0, 1]))
    assert prior.log_odds(turned) == pytest.approx(prior.log_odds(params)[[2, 0, 1]], rel=1e-10)
    assert total(prior, turned, sums(on[[2, 0, 1]], 100)) == pytest.approx(total(prior, params, seen))


def test_update_is_pure() -> None:
    prior = StickBreaking("learn")
    params, seen = solved(prior, [3.0, 9.0], 10)
    outline, arrays = pack(params)
    copies = {name: value.copy() for name, value in arrays.items()}
    once, twice = mean_update(prior, params, seen), mean_update(prior, params, seen)
    assert all(np.array_equal(copies[name], value) for name, value in arrays_of(params).items())
    assert np.array_equal(once.tau, twice.tau)
    assert np.array_equal(unpack(outline, arrays).tau, params.tau)


def test_sample_has_the_moments_of_the_prior() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([StickBreaking(1.5).sample(4, rng) for _ in range(20_000)])
    assert np.all(np.diff(drawn, axis=1) <= 0)
    expected = (1.5 / 2.5) ** np.arange(1, 5)
    assert np.all(np.abs(drawn.mean(axis=0) - expected) < 4 * drawn.std(axis=0) / math.sqrt(20_000))
    assert StickBreaking("learn").sample(3, rng).shape == (3,)


def test_settings_are_checked() -> None:
    assert StickBreaking.rules == {Rule.MEAN}
    with pytest.raises(UsageError, match="bound is 'tailor'; expected one of convex, multinomial, taylor"):
        StickBreaking(1.0, "tailor")
    with pytest.raises(UsageError, match="features and 1000000 rows"):
        StickBreaking(1.0, "taylor").init(30, 1_000_000)
