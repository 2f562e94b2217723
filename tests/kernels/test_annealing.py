"""Annealed chains of single rows: gains of flips, the law of their draws and the mean of their weights."""

import itertools

import numpy as np
import pytest
from numba import njit
from scipy.special import log_expit, logsumexp
from scipy.stats import kstest

from ibpdist.base.randomness import Draws
from ibpdist.kernels import annealing
from ibpdist.kernels.annealing import Normal, Unit

KEY = Draws(3).key("test")
KINDS = [Unit(), Normal()]


def problem(features=4, seed=1, strength=1.0):
    """Gram matrices and pulls of some cells, and of these and others."""
    rng = np.random.default_rng(seed)
    root = strength * rng.normal(size=(features, 9))
    x = rng.normal(size=9) + root[0]
    cells = [slice(0, 5), slice(0, 9)]
    return np.array([root[:, c] @ root[:, c].T for c in cells]), np.array([root[:, c] @ x[c] for c in cells])


TILT = np.array([0.7, -1.2, 0.0, 2.5, -0.4, 1.0, 3.0])
"""Means of weights."""


def tilt(kind, features):
    """Means of the weights of a kind."""
    return np.zeros(features) if isinstance(kind, Unit) else TILT[:features]


def evidence(kind, gram, pull, z):
    """f(z) by linear algebra; `pull` has the means of the weights in it."""
    if isinstance(kind, Unit):
        return z @ pull - 0.5 * z @ gram @ z
    on = z > 0
    inner = np.eye(on.sum()) + gram[np.ix_(on, on)]
    mean = tilt(kind, len(z))[on]
    half = pull[on] @ np.linalg.solve(inner, pull[on]) - mean @ mean
    return 0.5 * half - 0.5 * np.linalg.slogdet(inner)[1]


def run(kind, grams, pulls, odds, rows=1, chains=1, levels=6, keep=1, first=0, modes=0):
    """Chains of rows that are alike."""
    near = annealing.alike(grams[1], kind.near)
    size = tilt(kind, len(odds))
    room = (*annealing.room(kind, size), *annealing.room(kind, size))
    pulls = np.repeat(pulls[:, None], rows, axis=1)
    ends = np.random.default_rng(0).integers(0, 2, (rows, modes, len(odds)), np.uint8)
    return annealing.annealed(
        kind, grams, pulls, odds, near, ends, first + np.arange(rows), chains, levels, keep, KEY, *room
    )


def numbers(count, row=5, chain=2):
    return np.array([annealing._uniforms(np.uint64(row), np.uint64(chain), at, KEY) for at in range(count)])


def test_numbers_are_uniform_and_depend_on_row_chain_and_place():
    made = numbers(20_000)
    assert all(kstest(column, "uniform").pvalue > 1e-3 for column in made.T)
    assert abs(np.corrcoef(made.T)[np.triu_indices(3, 1)]).max() < 0.03
    for other in (numbers(50, row=6), numbers(50, chain=3), numbers(50, row=5 + (1 << 32))):
        assert (other != made[:50]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strength", [1.0, 300.0])
def test_gains_are_differences_of_the_evidence_after_many_flips(kind, strength):
    """Rounding must not grow: a swept matrix that is not kept symmetric is wrong after 200 flips."""
    grams, pulls = problem(7, strength=strength)
    rng, z = np.random.default_rng(2), np.zeros(7)
    table, work = annealing.room(kind, tilt(kind, 7))
    total = annealing._begin(kind, table, work, grams[1], pulls[1], z)
    for k in rng.integers(0, 7, 3000):
        total += flipped(kind, table, work, z, k)
    expected = evidence(kind, grams[1], pulls[1], z)
    assert total == pytest.approx(expected, rel=1e-7, abs=1e-7 * strength**2)


@njit
def flipped(kind, table, work, z, k):
    """What a flip gains that is made."""
    found = annealing.gain(kind, table, work, z, k)
    annealing.flip(kind, table, work, z, k)
    z[k] = 1.0 - z[k]
    return found


def test_two_flips_gain_what_one_after_the_other_does():
    kind, (grams, pulls) = Unit(), problem(5)
    for z in itertools.product([0.0, 1.0], repeat=5):
        z = np.array(z)
        table, work = annealing.room(kind, tilt(kind, 5))
        annealing._begin(kind, table, work, grams[0], pulls[0], z)
        found = annealing._gain_of_two(kind, table, work, z, 1, 3)
        other = z.copy()
        other[[1, 3]] = 1 - other[[1, 3]]
        before, after = (evidence(kind, grams[0], pulls[0], one) for one in (z, other))
        assert found == pytest.approx(after - before, abs=1e-10)


def exact(kind, grams, pulls, odds, leg):
    """(pattern,) log p(z) exp f(z)."""
    z = np.array(list(itertools.product([0.0, 1.0], repeat=len(odds))))
    prior = z @ log_expit(odds) + (1 - z) @ log_expit(-odds)
    return prior + np.array([evidence(kind, grams[leg], pulls[leg], one) for one in z])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_have_the_evidence_as_their_mean(kind):
    """Whatever the number of levels."""
    grams, pulls = problem(4, strength=0.6)
    odds = np.array([-1.0, 0.5, 0.0, -0.3])
    weights, _ = run(kind, grams, pulls, odds, rows=400, chains=20, levels=5)
    for leg in range(2):
        truth = logsumexp(exact(kind, grams, pulls, odds, leg))
        each = np.exp(weights[:, :, leg] - truth).mean(axis=1)
        assert abs(each.mean() - 1) < 4 * each.std() / np.sqrt(400)
        assert each.std() / np.sqrt(400) < 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("leg", "modes"), [(0, 0), (1, 0), (0, 3), (1, 5)])
def test_draws_at_the_end_of_a_leg_follow_its_law(kind, leg, modes):
    """With and without jumps between modes."""
    grams, pulls = problem(3, seed=4, strength=0.5)
    odds = np.array([-0.5, 0.4, 0.0])
    _, kept = run(kind, grams, pulls, odds, rows=300, levels=12, keep=60, modes=modes)
    logs = exact(kind, grams, pulls, odds, leg)
    codes = kept[:, 0, leg].astype(int) @ np.array([4, 2, 1])
    shares = np.array([(codes == p).mean(axis=1) for p in range(8)])
    error = shares.std(axis=1) / np.sqrt(300) + 1e-4
    np.testing.assert_array_less(np.abs(shares.mean(axis=1) - np.exp(logs - logsumexp(logs))), 4.5 * error)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_their_own_numbers(kind):
    grams, pulls = problem(4)
    whole, some = (
        run(kind, grams, pulls, np.zeros(4), rows=r, chains=3, first=f) for r, f in ((9, 0), (4, 5))
    )
    np.testing.assert_array_equal(whole[0][5:], some[0])
    np.testing.assert_array_equal(whole[1][5:], some[1])
    assert len(np.unique(whole[0][:, :, 1])) > 9


def test_levels_start_small_where_the_cells_say_much():
    assert annealing._level(0.0, 0.25) == 0.25
    assert annealing._level(1e4, 1.0) == pytest.approx(1)
    assert annealing._level(1e4, 1 / 30) * 1e4 < 0.5


def test_features_that_are_alike():
    mean = np.array([[1.0, 0, 0], [0, 1, 0], [-2, 0.1, 0], [0, 1, 1]])
    near = annealing.alike(mean @ mean.T, 2)
    assert near[:, 0].tolist() == [2, 3, 0, 1]
    assert near.shape == (4, 2)
    assert annealing.alike(np.zeros((1, 1)), 2).shape == (1, 0)
    assert annealing.alike(np.zeros((0, 0)), 2).shape == (0, 0)
