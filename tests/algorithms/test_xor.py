"""Xor: the ratio it is taken with, what it may not do, the trap it was made for."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax

from ibpdist.algorithms import in_turn
from ibpdist.algorithms.xor import Rows, recombined
from ibpdist.kernels.buffet import Law
from tests.support.reference_evidence import log_p_finite, log_p_x_given_y
from tests.support.turns import planted


def rows_of(seed=0, count=12, columns=4, mass=0.0, features=3, noise=None):
    x, z = planted(rows=count, columns=columns, features=features, seed=seed)
    noise = np.full(columns, 0.5) if noise is None else noise
    return Rows(x, noise, Law(0.5, 1.3, mass / features, 0.1, float(count))), z


@pytest.mark.parametrize("noise", [None, np.array([0.2, 0.9, 1.5, 0.4])])
def test_log_joint_differs_by_the_log_evidence_and_the_prior(noise):
    """Against normal densities of the columns and the finite prior with prevalences integrated out."""
    rows, z = rows_of(mass=2.0, noise=noise)
    other = np.abs(z - z[[1, 2, 0]])
    seen = np.ones(rows.x.shape, bool)

    def exact(z):
        return log_p_x_given_y(rows.x, seen, z.T, rows.noise, np.full(3, 1.3)) + log_p_finite(z.T, 2.0)

    found = rows.log_joint(other, other @ rows.x) - rows.log_joint(z, z @ rows.x)
    assert found == pytest.approx(exact(other) - exact(z), rel=1e-10)


def tried(rows, z, seed=0):
    """z after two tries."""
    return recombined(rows, z, z @ rows.x, 2, np.random.default_rng(seed))[0]


def test_one_feature_has_no_other():
    rows, z = rows_of()
    np.testing.assert_array_equal(tried(rows, z[:1]), z[:1])


def test_nothing_that_is_given_is_changed():
    rows, z = rows_of(noise=np.full(4, 30.0))
    before = z.copy()
    made = [tried(rows, z, seed) for seed in range(40)]
    np.testing.assert_array_equal(z, before)
    assert any((other != z).any() for other in made)


@pytest.mark.parametrize(("mass", "least"), [(0.0, 1), (2.0, 0)])
def test_only_where_features_stay_may_one_be_left_without_rows(mass, least):
    """Two features that are one: under the buffet none may go this way."""
    rows, z = rows_of(mass=mass)
    twice = np.stack([z[0], z[0], z[1]])
    on = [tried(rows, twice, seed).sum(axis=1).min() for seed in range(60)]
    assert (min(on) > 0) == bool(least)


def test_tries_leave_the_posterior_as_it_is():
    """The pairs of columns that tries can reach are visited as often as they are probable."""
    rows, _ = rows_of(count=3, columns=2, mass=1.5, features=2)
    rng = np.random.default_rng(1)
    codes = np.array(list(itertools.product((0.0, 1.0), repeat=6))).reshape(-1, 2, 3)
    logs = np.array([rows.log_joint(z, z @ rows.x) for z in codes])
    start = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    row = {z.tobytes(): n for n, z in enumerate(codes)}
    z, visits = start, np.zeros(len(codes))
    for _ in range(12000):
        z, cross = recombined(rows, z, z @ rows.x, 1, rng)
        np.testing.assert_allclose(cross, z @ rows.x, atol=1e-12)
        visits[row[z.tobytes()]] += 1
    met = visits > 0
    assert met.sum() == 6  # bases of a plane over two elements
    exact = softmax(logs[met])
    np.testing.assert_allclose(visits[met] / visits.sum(), exact, atol=0.03)


def test_a_union_with_two_that_take_away_is_left():
    """x = z1 A1 + z2 A2 told as (z1 or z2)(A1 + A2) - (z1 alone) A2 - (z2 alone) A1."""
    rng = np.random.default_rng(0)
    one, two = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], float).repeat(15, axis=1)
    x = np.stack([one, two]).T @ rng.normal(size=(2, 20)) + 0.3 * rng.normal(size=(60, 20))
    trap = np.stack([np.maximum(one, two), one * (1 - two), two * (1 - one)])
    wanted = {one.tobytes(), two.tobytes()}

    def met(tries):
        chunk, alg = in_turn_of(x, tries)
        chain = alg.start(chunk, alg.model.observation.survey(chunk), in_turn.Draws(0))
        chain = in_turn.settled(alg.model, chunk, chain.params, trap, np.arange(3), in_turn.Draws(0))[0]
        found = 0
        for step in range(1, 200):
            chain, _ = alg.sweep(chunk, chain, in_turn.Draws(0, step))
            found += wanted <= {z.tobytes() for z in chain.state.z}
        return found

    assert met(0) == 0
    assert met(2) > 50


def in_turn_of(x, tries):
    from ibpdist.algorithms.collapsed import Collapsed
    from ibpdist.data._base import Chunk
    from ibpdist.model import Model
    from ibpdist.observations.gaussian import Gaussian
    from ibpdist.priors.buffet import Buffet
    from ibpdist.rules import DRAW
    from ibpdist.weights.unit import Unit

    model = Model(Buffet(), Unit(), Gaussian(), DRAW)
    return Chunk(0, 0, x), in_turn.InTurn(model, Collapsed(), 3, tries=tries)
