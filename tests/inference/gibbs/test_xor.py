"""Xor: the ratio it is taken with, what it may not do, the trap it was made for."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax

from ibpdist.base.structs import combine, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.global_draws import blank_params, gaussian_sums
from ibpdist.inference.gibbs.xor import FeatureSums, columns_of, pairs_of, try_xor, xor_sums
from ibpdist.inference.in_turn import in_turn
from ibpdist.model.observations import gaussian
from tests.support.reference_evidence import log_p_finite, log_p_x_given_y
from tests.support.turns import planted

SCALE = 1.3


class Problem:
    """Rows, some of their cells missing, and parameters that hold the variances."""

    def __init__(self, count=12, columns=4, features=3, seed=0, share=0.0, noise=0.5, masked=False):
        x, self.z = planted(rows=count, columns=columns, features=features, seed=seed)
        seen = np.random.default_rng(seed).random(x.shape) < 0.7 if masked else None
        self.chunk = Chunk(0, 0, x if seen is None else np.where(seen, x, 0.0), seen)
        self.share = share
        observation = gaussian.Gaussian(scale=SCALE, missing="exact")
        made = observation.init(observation.summarise(self.chunk), features, np.random.default_rng(0))
        self.params = replace(made, noise=np.broadcast_to(noise, columns).astype(float))

    @property
    def seen(self):
        x = self.chunk
        return np.ones(x.x.shape, bool) if x.observed is None else x.observed

    def told(self, z):
        return FeatureSums(z.sum(axis=1), gaussian_sums(self.chunk, self.params.group, z))

    def log_joint(self, z):
        return self.told(z).log_joint(self.params, self.share)

    def exact(self, z):
        """Normal densities of the columns and the finite prior with prevalences integrated out."""
        scales = np.full(len(z), SCALE)
        fit = log_p_x_given_y(self.chunk.x, self.seen, z.T, self.params.noise, scales)
        return fit + log_p_finite(z.T, self.share * len(z))

    def tried(self, z, rng, count=1):
        """z after some pairs were tried, and the sums that it should have."""
        params = replace(self.params, **small(self.params, len(z)))
        pairs = pairs_of(len(z), count, rng)
        xors = xor_sums(self.chunk, z, pairs, params.group)
        told, taken = try_xor(self.told(z), xors, pairs, params, self.share, rng)
        made = z.copy()
        made[pairs[taken, 0]] = columns_of(z, pairs[taken])
        return made, told


def small(params, features):
    """The parts of parameters that go by feature, for the first of them."""
    return {
        "mean": params.mean[:features],
        "basis": params.basis[:, :features, :features],
        "spectrum": params.spectrum[:, :features],
        "scale": params.scale[:features],
        "stretch": params.stretch[:features],
    }


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("noise", [0.5, np.array([0.2, 0.9, 1.5, 0.4])])
def test_log_joint_differs_by_the_log_evidence_and_the_prior(noise, masked):
    of = Problem(share=2 / 3, noise=noise, masked=masked)
    other = np.abs(of.z - of.z[[1, 2, 0]])
    found = of.log_joint(other) - of.log_joint(of.z)
    assert found == pytest.approx(of.exact(other) - of.exact(of.z), rel=1e-10)


@pytest.mark.parametrize("masked", [False, True])
def test_sums_are_those_of_the_new_rows(masked):
    """Also where several pairs were taken one after the other, and of rows in several chunks."""
    of, most = Problem(count=30, features=7, noise=40.0, masked=masked), 0
    for seed in range(30):
        z, told = of.tried(of.z, np.random.default_rng(seed), count=3)
        wanted = of.told(z)
        np.testing.assert_allclose(told.sums.gram, wanted.sums.gram, atol=1e-12)
        np.testing.assert_allclose(told.sums.cross, wanted.sums.cross, atol=1e-12)
        np.testing.assert_array_equal(told.on, wanted.on)
        most = max(most, int((z != of.z).any(axis=1).sum()))
    assert most > 1


def test_a_complete_chunk_of_data_with_missing_cells():
    """Its rows count in every group of columns."""
    of, pairs = Problem(count=30, features=5, masked=True), np.array([[0, 3], [2, 1]])
    of.chunk.observed[13:] = True
    whole = xor_sums(of.chunk, of.z, pairs, of.params.group)
    parts = [
        xor_sums(Chunk(0, 0, of.chunk.x[:13], of.chunk.observed[:13]), of.z[:, :13], pairs, of.params.group),
        xor_sums(Chunk(1, 13, of.chunk.x[13:]), of.z[:, 13:], pairs, of.params.group),
    ]
    assert len(whole.gram) > 1
    np.testing.assert_allclose(combine(*parts).gram, whole.gram)


@pytest.mark.parametrize("masked", [False, True])
def test_sums_of_chunks_add_up(masked):
    of, pairs = Problem(count=30, features=5, masked=masked), np.array([[0, 3], [2, 1]])
    seen = of.chunk.observed
    parts = [
        xor_sums(
            Chunk(i, a, of.chunk.x[a:b], None if seen is None else seen[a:b]),
            of.z[:, a:b],
            pairs,
            of.params.group,
        )
        for i, (a, b) in enumerate([(0, 13), (13, 30)])
    ]
    both, whole = combine(*parts), xor_sums(of.chunk, of.z, pairs, of.params.group)
    for name in ("on", "gram", "among", "cross"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), atol=1e-12)


def test_one_feature_has_no_other():
    assert pairs_of(1, 4, np.random.default_rng(0)).shape == (0, 2)
    of = Problem()
    np.testing.assert_array_equal(of.tried(of.z[:1], np.random.default_rng(0))[0], of.z[:1])


def test_no_feature_is_in_two_pairs():
    for seed in range(20):
        pairs = pairs_of(7, 10, np.random.default_rng(seed))
        assert pairs.shape == (3, 2)
        assert len(set(pairs.ravel())) == 6


def test_nothing_that_is_given_is_changed():
    of = Problem(noise=30.0)
    before = of.z.copy()
    made = [of.tried(of.z, np.random.default_rng(seed))[0] for seed in range(40)]
    np.testing.assert_array_equal(of.z, before)
    assert any((other != of.z).any() for other in made)


@pytest.mark.parametrize(("share", "least"), [(0.0, 1), (2 / 3, 0)])
def test_only_where_features_stay_may_one_be_left_without_rows(share, least):
    """Two features that are one: under the buffet none may go this way."""
    of = Problem(share=share)
    twice = np.stack([of.z[0], of.z[0], of.z[1]])
    on = [of.tried(twice, np.random.default_rng(seed))[0].sum(axis=1).min() for seed in range(80)]
    assert (min(on) > 0) == bool(least)


def test_tries_leave_the_posterior_as_it_is():
    """The pairs of columns that tries can reach are visited as often as they are probable."""
    of, rng = Problem(count=3, columns=2, features=2, share=0.75), np.random.default_rng(1)
    codes = np.array(list(itertools.product((0.0, 1.0), repeat=6))).reshape(-1, 2, 3)
    logs = np.array([of.log_joint(z) for z in codes])
    row = {z.tobytes(): n for n, z in enumerate(codes)}
    z, visits = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.zeros(len(codes))
    for _ in range(12000):
        z, _ = of.tried(z, rng)
        visits[row[z.tobytes()]] += 1
    met = visits > 0
    assert met.sum() == 6  # bases of a plane over two elements
    exact = softmax(logs[met])
    np.testing.assert_allclose(visits[met] / visits.sum(), exact, atol=0.03)


def trap():
    """x = z1 A1 + z2 A2 told as (z1 or z2)(A1 + A2) - (z1 alone) A2 - (z2 alone) A1: x, the wanted, that."""
    rng = np.random.default_rng(0)
    one, two = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], float).repeat(15, axis=1)
    x = np.stack([one, two]).T @ rng.normal(size=(2, 20)) + 0.3 * rng.normal(size=(60, 20))
    return (
        x,
        {one.tobytes(), two.tobytes()},
        np.stack([np.maximum(one, two), one * (1 - two), two * (1 - one)]),
    )


def test_rows_in_turn_leave_a_union_with_two_that_take_away():
    x, wanted, start = trap()

    def met(tries):
        chunk, alg = in_turn_of(x, tries)
        chain = alg.start(chunk, alg.model.observation.summarise(chunk), in_turn.Draws(0))
        chain = in_turn.draw_globals(alg.model, chunk, chain.params, start, np.arange(3), in_turn.Draws(0))[0]
        found = 0
        for step in range(1, 200):
            chain, _ = alg.sweep(chunk, chain, in_turn.Draws(0, step))
            found += wanted <= {z.tobytes() for z in chain.state.z}
        return found

    assert met(0) == 0
    assert met(2) > 50


def test_all_rows_at_once_leave_it_too():
    from ibpdist.inference.gibbs.anchored import Anchored
    from tests.support.anchored_cases import transition

    x, wanted, start = trap()
    chunk, alg = in_turn_of(x, 0)
    model, draws = alg.model, in_turn.Draws(0)

    def met(tries):
        step = transition(Anchored(model, tries=tries), [25, 35])
        observed = model.observation.init(model.observation.summarise(chunk), 3, np.random.default_rng(0))
        params = blank_params(model.prior.init(3, 60), observed)
        chain = in_turn.draw_globals(model, chunk, params, start, np.arange(3), draws)[0]
        params, state, found = chain.params, chain.state, 0
        for number in range(1, 200):
            params, state = step(chunk, params, state, draws.at(number))
            found += wanted <= {z.tobytes() for z in state.z}
        return found

    assert met(0) == 0
    assert met(4) > 50


def in_turn_of(x, tries):
    from ibpdist.base.rules import DRAW
    from ibpdist.inference.in_turn.collapsed import Collapsed
    from ibpdist.model.model import Model
    from ibpdist.model.observations.gaussian import Gaussian
    from ibpdist.model.priors.buffet import Buffet
    from ibpdist.model.weights.unit import Unit

    model = Model(Buffet(), Unit(), Gaussian(), DRAW)
    return Chunk(0, 0, x), in_turn.InTurn(model, Collapsed(), 3, tries=tries)
