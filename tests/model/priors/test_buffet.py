"""The Indian buffet process for samplers: its density against the buffet itself, and its draws."""

from itertools import product
from math import exp, factorial, log

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import kstest

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.model.priors import _mass
from ibpdist.model.priors.buffet import Buffet, harmonic
from tests.support.prior_cases import sums


def buffet(z, mass):
    """Log probability of the columns of z (row, feature), dishes in the order in which they are first
    taken, by the story of the customers; new dishes of a customer count as a set of marked ones."""
    total, taken = 0.0, np.zeros(z.shape[1])
    for n, row in enumerate(z, start=1):
        new = int(((taken == 0) & (row == 1)).sum())
        total += new * log(mass / n) - mass / n  # the rate of marked dishes, without 1 / new!
        for k in np.flatnonzero(taken):
            share = taken[k] / n
            total += log(share) if row[k] else log(1 - share)
        taken += row
    return total


MATRICES = [
    np.array([[1, 0], [1, 1], [0, 1]]),
    np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]),
    np.array([[1], [1], [1]]),
    np.zeros((3, 0), int),
]


@pytest.mark.parametrize("mass", [0.4, 2.5])
@pytest.mark.parametrize("z", MATRICES, ids=str)
def test_density_is_that_of_the_buffet(z, mass):
    prior = Buffet(mass)
    params = prior.init(z.shape[1], len(z))
    found = prior.score(params, sums(z.sum(axis=0), len(z)))["z prior"]
    assert found == pytest.approx(buffet(z, mass), abs=1e-12)


def test_density_sums_to_one():
    """Over all numbers of all columns of two rows: 3 kinds of column, each a Poisson number."""
    prior, total = Buffet(0.7), 0.0
    for counts in product(range(9), repeat=3):
        on = [1] * counts[0] + [1] * counts[1] + [2] * counts[2]
        params = prior.init(len(on), 2)
        ways = np.prod([factorial(c) for c in counts])
        total += exp(prior.score(params, sums(on, 2))["z prior"]) / ways
    assert total == pytest.approx(1.0, abs=1e-9)


def test_learned_mass_has_its_prior_in_the_score():
    prior = Buffet()
    params = prior.init(3, 10)
    assert prior.score(params, sums([1, 2, 3], 10))["mass"] == _mass.log_prior(float(params.mass))
    assert Buffet(2.0).score(Buffet(2.0).init(3, 10), sums([1, 2, 3], 10))["mass"] == 0.0


def draws(prior, on, rows, count=4000):
    rng, params = np.random.default_rng(5), prior.init(len(on), rows)
    return [prior.update(params, sums(on, rows), Rule.DRAW, rng) for _ in range(count)]


def test_prevalences_are_drawn_given_counts():
    made = draws(Buffet(2.0), [1, 7, 10], 10)
    for k, on in enumerate([1, 7, 10]):
        pi = [np.exp(p.log_on[k]) for p in made]
        assert kstest(pi, "beta", args=(on, 11 - on)).pvalue > 1e-3
        assert np.allclose(np.exp([p.log_off[k] for p in made]), 1 - np.array(pi))


def test_mass_is_drawn_given_how_many_occur():
    made = draws(Buffet(), [1, 7, 10], 10)
    mass = [float(p.mass) for p in made]
    assert kstest(mass, "gamma", args=(4, 0, 1 / (_mass.RATE + harmonic(10)))).pvalue > 1e-3
    assert kstest(mass, "gamma", args=(3, 0, 1 / (_mass.RATE + harmonic(10)))).pvalue < 1e-3


def test_mass_that_is_given_stays():
    assert {float(p.mass) for p in draws(Buffet(2.5), [3, 1], 4, 10)} == {2.5}


def test_odds_and_chance():
    params = draws(Buffet(2.0), [4, 1], 9, 1)[0]
    assert np.allclose(Buffet().log_odds(params), params.log_on - params.log_off)
    assert Buffet().expected(params) == pytest.approx([0.4, 0.1])


def test_select_and_resize():
    params = draws(Buffet(2.0), [4, 1, 6], 9, 1)[0]
    few = Buffet().select(params, np.array([2, 0]))
    assert few.log_on.tolist() == params.log_on[[2, 0]].tolist()
    assert len(few.tau) == 2
    assert len(Buffet().resized(params, 5).tau) == 5
    assert float(Buffet().resized(params, 5).mass) == 2.0
    assert Buffet().capacity(params) is None


def test_no_features_and_no_rows():
    none = Buffet().update(Buffet().init(0, 4), sums([], 4), Rule.DRAW, np.random.default_rng(0))
    assert none.log_on.size == 0
    assert float(none.mass) > 0
    assert Buffet().score(none, sums([], 4))["z prior"] == pytest.approx(-float(none.mass) * harmonic(4))
    blank = Buffet(3.0).update(Buffet(3.0).init(2, 0), sums([0, 0], 0), Rule.DRAW, np.random.default_rng(0))
    assert float(blank.mass) == 3.0


def test_sticks_of_the_prior():
    rng = np.random.default_rng(2)
    made = np.array([Buffet(2.0).sample(3, rng) for _ in range(4000)])
    assert (np.diff(made, axis=1) <= 0).all()
    assert made.mean(axis=0) == pytest.approx([(2 / 3) ** k for k in (1, 2, 3)], abs=0.015)


@pytest.mark.parametrize("mass", [0.0, -1, True, "lots", float("nan")])
def test_bad_mass(mass):
    with pytest.raises(UsageError, match="mass"):
        Buffet(mass)


def test_harmonic():
    assert harmonic(4) == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert betaln(1, 4) == pytest.approx(log(1 / 4))
