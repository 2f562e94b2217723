"""Randomness as a function of (seed, purpose, step, chain, global row)."""

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import kstest

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from tests.support.model_cases import WEIGHTS, Case, algorithm, begin, chunked, problem, sweep


def test_the_same_key_gives_the_same_numbers():
    one, two = Draws(7, 3, 1), Draws(7, 0, 1).at(3)
    assert one == two
    np.testing.assert_array_equal(one.uniform("z", 0, 9, 4), two.uniform("z", 0, 9, 4))
    np.testing.assert_array_equal(one.generator("prior").random(5), two.generator("prior").random(5))


@pytest.mark.parametrize("other", [Draws(8, 3, 1), Draws(7, 4, 1), Draws(7, 3, 2), Draws(7, 1, 3)])
def test_every_part_of_the_key_matters(other):
    mine = Draws(7, 3, 1)
    assert not np.isin(mine.uniform("z", 0, 50, 2), other.uniform("z", 0, 50, 2)).any()
    assert mine.generator("prior").random() != other.generator("prior").random()


def test_purposes_are_independent():
    draws = Draws(1)
    a, b = draws.normal("z", 0, 20_000, 1)[0], draws.normal("w", 0, 20_000, 1)[0]
    assert abs((a * b).mean()) < 4 / np.sqrt(a.size)
    assert draws.generator("z").random() != draws.generator("w").random()


def test_steps_are_independent():
    u = np.array([Draws(1, step).uniform("z", 3, 1, 1)[0, 0] for step in range(2000)])
    assert kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(u.size)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_rows_do_not_depend_on_chunking(kind):
    make = getattr(Draws(5, 2), kind)
    parts = [make("z", start, rows, 3) for start, rows in [(10, 1), (11, 64), (75, 5)]]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), make("z", 10, 70, 3))


def test_normal_is_the_quantile_of_the_uniform():
    draws = Draws(6)
    np.testing.assert_array_equal(draws.normal("w", 4, 30, 2), ndtri(draws.uniform("w", 4, 30, 2)))
    assert kstest(draws.normal("w", 0, 20_000, 1)[0], "norm").pvalue > 1e-3


def test_large_seeds_and_rows():
    found = Draws(2**63, 10**6).uniform("z", 2**40, 4, 2)
    assert np.unique(found).size == 8


def test_no_state_is_kept():
    """Asking for one thing changes nothing of another."""
    draws = Draws(9)
    before = draws.uniform("z", 0, 5, 2)
    draws.generator("z").random(1000)
    draws.normal("w", 0, 100, 2)
    np.testing.assert_array_equal(draws.uniform("z", 0, 5, 2), before)


def test_z_is_on_as_often_as_its_chance():
    """Draws of z given fixed globals, one feature: the share of ones is the sigmoid of the log odds."""
    case = Case(rule="draw", noise=1.0, scale=1.0, mass=1.0)
    alg = algorithm(case, 1)
    chunk = Chunk(0, 0, np.zeros((4000, 1)))
    params, (state,), draws = begin(alg, [chunk])
    loading = params.observation.mean[0, 0]
    prior = alg.model.prior.log_odds(params.prior)[0]
    chance = expit(prior - loading**2 / 2)
    z = alg.local(chunk, state, params, draws.at(1))[0].z
    assert abs(z.mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / 4000)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_draws_of_rows_do_not_depend_on_chunks(weights):
    """Rows sorted by pattern get the numbers of their own global row, and come back in order."""
    x, observed = problem(3, 30, 4, "masked")
    alg = algorithm(Case(weights=weights, rule="draw", missing="masked"), 3, 2)
    found = []
    for sizes in ([30], [7, 1, 22]):
        chunks = chunked(x, observed, sizes)
        params, states, draws = begin(alg, chunks)
        for step in (1, 2):
            states, _ = sweep(alg, chunks, states, params, draws.at(step))
        found.append(np.concatenate([state.z for state in states], axis=1))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_stream_has_the_numbers_of_its_purpose():
    draws, rows = Draws(3, 2), np.array([12, 10, 13])
    whole, normal = draws.uniform("z", 10, 4, 3), draws.normal("z", 10, 4, 3)
    np.testing.assert_array_equal(draws.stream("z").uniform(rows, 3), whole[:, rows - 10])
    np.testing.assert_array_equal(draws.stream("z").normal(rows, 3), normal[:, rows - 10])
