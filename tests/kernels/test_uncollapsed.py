"""The uncollapsed turn against scalar loops of the report's formulas."""

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm, poisson

from ibpdist.base.randomness import Draws
from ibpdist.inference.in_turn.uncollapsed import UncollapsedTable
from ibpdist.kernels.buffet import Law
from ibpdist.kernels.uncollapsed import Facts, _normal
from ibpdist.model.observations._base import RowState
from tests.support.rows_reference import look_of_own, uncollapsed_sweep
from tests.support.turns import planted, swept

KEY = Draws(3).key("own dictionary")


def facts(x, seen, noise, start=0):
    levels, level = np.unique(noise, return_inverse=True)
    return Facts(x, seen.astype(np.int8), levels, level, start, KEY)


def table(x, seen, noise, z, mean, law):
    ids = np.arange(len(z))
    state = RowState(ids=ids, z=z, w=np.zeros((0, z.shape[1])))
    return UncollapsedTable(facts(x, seen, noise), state, mean, law, 50)


@pytest.mark.parametrize(("share", "rate"), [(0.0, 0.4), (0.3, 0.0)], ids=["buffet", "finite"])
@pytest.mark.parametrize("noises", ["one", "column"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_sweep_is_that_of_the_report(share, rate, noises, masked):
    rng = np.random.default_rng(4)
    x, z = planted(20, 5, noise=0.4, seed=4)
    z = (rng.random((4, 20)) < 0.3).astype(float)
    z[:, :2] = 1
    z[3], z[3, 7] = 0, 1
    noise = np.full(5, 0.4) if noises == "one" else 0.2 + rng.random(5)
    seen = rng.random(x.shape) < 0.7 if masked else np.ones(x.shape, bool)
    seen[5] = ~np.full(5, masked)
    x = np.where(seen, x, 0.0)
    mean = rng.normal(size=(4, 5))
    law = Law(noise[0], 1.5, share, rate, 20.0)
    logits, births = logit(rng.random((20, 60))), rng.random(20)
    made = swept(table(x, seen, noise, z, mean, law), logits, births)

    def normal(row, place):
        return _normal(np.uint64(row), place, KEY)

    expected, dictionary = uncollapsed_sweep(x, seen, z.T, mean, noise, law, logits, births, normal)
    size = made.features
    np.testing.assert_array_equal(made.z[:, :size], expected)
    np.testing.assert_allclose(made.tables.mean[:size], dictionary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(made.tables.square[:size], dictionary**2, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(made.tables.on[:size], expected.sum(axis=0))
    if rate:
        assert made.tables.sizes[1] > 50


def test_the_look_of_own_features_has_the_law_of_the_matrix_expression():
    """Over many rows with the same residual: mean r / (k + c), covariance scale (I - 11' / (k + c))."""
    rows, number, scale, noise = 4000, 2, 1.5, 0.4
    x = np.tile([2.0, -1.0], (rows, 1))
    law = Law(noise, scale, 0.0, 1e3, 1e9)
    z = np.zeros((2, rows))
    looks = []
    for n in range(rows):
        z[:] = 0
        z[:, n] = 1
        looks.append([_normal(np.uint64(n), at, KEY) for at in range(4)])
    own = np.array([look_of_own(2, x[0], np.ones(2, bool), np.full(2, noise), scale, lambda at, e=e: e[at])
                    for e in looks])  # fmt: skip
    c = noise / law.scale
    np.testing.assert_allclose(own.mean(axis=0), np.tile(x[0] / (number + c), (2, 1)), atol=0.06)
    covariance = np.cov(own[:, :, 0].T)
    np.testing.assert_allclose(covariance, scale * (np.eye(2) - 1 / (number + c)), atol=0.08)
    assert abs(np.corrcoef(own[:, 0, 0], own[:, 0, 1])[0, 1]) < 0.05


def test_normals_are_normal_and_independent():
    made = np.array([[_normal(np.uint64(row), at, KEY) for at in range(3)] for row in range(4000)])
    assert np.abs(made.mean(axis=0)).max() < 4 / np.sqrt(4000)
    np.testing.assert_allclose(np.cov(made.T), np.eye(3), atol=0.1)
    assert (made**4).mean() == pytest.approx(3, abs=0.4)


def test_numbers_follow_the_global_row():
    """A table that begins at row 3 has the looks of rows 3 and on."""
    x, _ = planted(6, 3, noise=0.1, seed=1)
    law, births = Law(0.1, 2.0, 0.0, 2.0, 6.0), np.full(6, 0.9)
    none = RowState(ids=np.arange(0), z=np.zeros((0, 6)), w=np.zeros((0, 6)))
    late = RowState(ids=np.arange(0), z=np.zeros((0, 3)), w=np.zeros((0, 3)))
    noise, seen = np.full(3, 0.1), np.ones(x.shape, bool)
    whole = UncollapsedTable(facts(x, seen, noise), none, np.zeros((0, 3)), law, 0)
    part = UncollapsedTable(facts(x[3:], seen[3:], noise, 3), late, np.zeros((0, 3)), law, 0)
    logits = np.full((6, 200), 50.0)
    swept(whole, logits, births)
    swept(part, logits[3:], births[3:])
    first = np.flatnonzero(whole.z[3, : whole.features])
    own = np.flatnonzero(part.z[0, : part.features])
    assert len(own) == len(first) > 0
    np.testing.assert_array_equal(part.tables.mean[own], whole.tables.mean[first])


def lonely(x, noise, rate, scale, count, rows=2000):
    """(number, sum of the dictionary) of what a single row of one cell has, for as many keys as `rows`."""
    found, law = [], Law(noise, scale, 0.0, rate, 1.0)
    state = RowState(ids=np.arange(0), z=np.zeros((0, 1)), w=np.zeros((0, 1)))
    rng, one = np.random.default_rng(0), np.ones((1, 1), np.int8)
    for seed in range(rows):
        key = Draws(seed).key("own dictionary")
        facts = Facts(np.full((1, 1), x), one, np.full(1, noise), np.zeros(1, np.intp), 0, key, count)
        made = UncollapsedTable(facts, state, np.zeros((0, 1)), law, 1)
        swept(made, logit(rng.random((1, 60))), rng.random(1))
        look = made.tables.mean[: made.features]
        np.testing.assert_array_equal(made.tables.square[: made.features], look**2)
        found.append((made.features, look.sum()))
    return np.array(found)


def test_where_data_say_nothing_candidates_are_the_prior():
    """One of two: nothing, which is there, and a draw from the prior."""
    rate, scale = 0.9, 1.7
    number, total = lonely(0.0, 1e12, rate, scale, 1).T
    assert abs(number.mean() - rate / 2) < 4 * number.std() / np.sqrt(number.size)
    assert abs((number == 0).mean() - (1 + np.exp(-rate)) / 2) < 4 * 0.5 / np.sqrt(number.size)
    square = total**2 - scale * number
    assert abs(square.mean()) < 4 * square.std() / np.sqrt(square.size)


def test_data_choose_among_candidates():
    """Of many candidates the numbers are those of the posterior, each with its dictionary."""
    rate, noise, x, sizes = 0.9, 0.5, 1.8, np.arange(6)
    number, total = lonely(x, noise, rate, 1.0, 300).T
    chance = poisson.pmf(sizes, rate) * norm.pdf(x, 0, np.sqrt(noise + sizes))
    chance /= chance.sum()
    found = (number[:, None] == sizes).mean(axis=0)
    np.testing.assert_allclose(found, chance, atol=4 * 0.5 / np.sqrt(number.size))
    expected = x * sizes / (sizes + noise)
    for size in (1, 2):
        here = total[number == size]
        assert abs(here.mean() - expected[size]) < 4 * here.std() / np.sqrt(here.size)
