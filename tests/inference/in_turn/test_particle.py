"""The particle filter as a sequential sampler: histories, weights, room, what is refused."""

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.data._base import Chunk
from ibpdist.inference.in_turn import particle
from ibpdist.inference.in_turn.in_turn import EACH_STEP
from ibpdist.inference.in_turn.particle import Filter, Particles
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.unit import Unit
from tests.support.rows_reference import log_marginal
from tests.support.turns import planted

NOISE, SCALE, MASS = 0.3, 1.2, 1.5


def sampler(particles=20, **settings):
    settings = {"noise": NOISE, "scale": SCALE, **settings}
    return Particles(Model(Buffet(settings.pop("mass", MASS)), Unit(), Gaussian(**settings), DRAW), particles)


def filtered(x, observed=None, particles=20, seed=0, mass=MASS):
    alg, chunk = sampler(particles), Chunk(0, 0, x, observed)
    params = alg.model.observation.init(alg.model.observation.summarise(chunk), 1, np.random.default_rng(0))
    made = Filter(chunk, params, SCALE, mass, particles, np.random.default_rng(seed))
    for n in range(len(x)):
        made.meet(n)
    return made


def begun(alg, chunk):
    return alg.start(chunk, alg.model.observation.summarise(chunk), Draws(0))


def test_one_particle_is_weighed_by_the_marginal_of_its_story():
    """No choice, so the weight is p(x | z): the history that is read backwards is the one that was met."""
    x, _ = planted(rows=12, columns=4)
    made = filtered(x, particles=1, seed=3)
    z = made.drawn()
    assert len(z) > 1
    assert made.evidence() == pytest.approx(log_marginal(x, z.T, NOISE, SCALE), abs=1e-9)


def test_histories_of_all_particles_are_those_they_know():
    """Counts of dishes along a history are the particle's own counts, after many choices."""
    x, _ = planted(rows=40, columns=5, noise=0.05)
    made = filtered(x, particles=30, seed=1)
    assert any(len(set(p)) < 30 for p in map(tuple, made.parents))
    for at in range(30):
        z = np.array(list(made._history(at)))
        slots = int(made.tables.sizes[at])
        np.testing.assert_array_equal(z.sum(axis=0)[:slots], made.tables.on[at, :slots])
        assert not z[:, slots:].any()
        pairs = z[:, :slots].astype(float).T @ z[:, :slots]
        inverse = np.linalg.inv(pairs + NOISE / SCALE * np.eye(slots))
        np.testing.assert_allclose(made.tables.inverse[at, 0, :slots, :slots], inverse, atol=1e-8)


def test_weights_and_evidence_hold_together():
    """Choosing anew keeps the estimate of what was met so far, and makes the weights even."""
    x, _ = planted(rows=15, columns=4)
    made = filtered(x, particles=25, seed=5)
    made.weights = np.log(np.random.default_rng(0).random(25) ** 6)
    before = made.evidence()
    assert made.effective() < 12.5
    chosen = made._chosen()
    assert made.evidence() == pytest.approx(before, abs=1e-12)
    assert made.effective() == pytest.approx(25)
    assert len(chosen) == 25
    np.testing.assert_array_equal(made._chosen(), np.arange(25))


def test_particles_are_chosen_as_often_as_they_weigh():
    x, _ = planted(rows=3, columns=2)
    weights = np.log(np.array([0.5, 0.25, 0.125, 0.0625, 0.0625]))
    counts = np.zeros(5)
    made = filtered(x, particles=5)
    for seed in range(400):
        made.rng, made.weights = np.random.default_rng(seed), 6 * weights
        counts += np.bincount(made._chosen(), minlength=5)
    share = np.exp(6 * weights) / np.exp(6 * weights).sum()
    np.testing.assert_allclose(counts / counts.sum(), share, atol=0.01)


def test_a_pass_is_a_chain_of_the_protocol():
    x, _ = planted(rows=20, columns=5)
    alg, chunk = sampler(), Chunk(0, 0, x.astype(np.float32))
    first = begun(alg, chunk)
    assert len(first.state.ids) == 0
    one, info = alg.sweep(chunk, first, Draws(0, 1))
    trace = info.trace()
    two, again = alg.sweep(chunk, one, Draws(0, 1))
    np.testing.assert_array_equal(one.state.z, two.state.z)
    assert info == again
    terms = [trace[name] for name in ("likelihood", "dictionary", "z prior", "mass")]
    assert trace["objective"] == trace["bound"] == pytest.approx(sum(terms)), "a log joint, not the evidence"
    assert np.isfinite(trace["evidence"])
    assert trace["evidence"] != trace["objective"]
    assert trace["active"] == len(one.state.ids) == len(one.params.on)
    assert 1 <= trace["effective"] <= 20
    assert one.state.z.dtype == np.float32
    assert (one.params.on > 0).all()
    assert (one.state.ids >= EACH_STEP).all()
    assert (one.params.observation.noise == NOISE).all()
    other, _ = alg.sweep(chunk, first, Draws(0, 2))
    assert other.state.z.shape != one.state.z.shape or (other.state.z != one.state.z).any()


def test_the_dictionary_has_the_scale_that_was_set():
    """A chain that began without a feature must not forget it."""
    chunk = Chunk(0, 0, planted(25, 4)[0])
    alg = sampler()
    chain, _ = alg.sweep(chunk, begun(alg, chunk), Draws(0, 1))
    assert len(chain.params.ids) > 0
    np.testing.assert_array_equal(chain.params.observation.scale, SCALE)


def test_more_particles_come_closer_to_the_evidence():
    """The mean of log estimates rises with the number of particles (Jensen), towards the truth."""
    x, _ = planted(rows=12, columns=3)
    means = [
        np.mean([filtered(x, particles=count, seed=seed).evidence() for seed in range(25)])
        for count in (1, 10, 100)
    ]
    assert means[0] < means[1] < means[2]


def test_columns_missing_in_the_same_rows_are_groups():
    x, _ = planted(rows=10, columns=5)
    observed = np.ones(x.shape, bool)
    observed[5:, 1] = observed[5:, 3] = False
    made = filtered(np.where(observed, x, 0.0), observed, particles=1, seed=2)
    assert made.tables.inverse.shape[1] == 2
    z = made.drawn().T
    expected = log_marginal(x[:, [0, 2, 4]], z, NOISE, SCALE) + log_marginal(
        x[:5, [1, 3]], z[:5], NOISE, SCALE
    )
    assert made.evidence() == pytest.approx(expected, abs=1e-9)


def test_more_memory_than_there_is_is_refused(monkeypatch):
    monkeypatch.setattr(particle, "MOST_BYTES", 1 << 12)
    x, _ = planted(rows=10, columns=5)
    with pytest.raises(UsageError, match="use fewer particles"):
        filtered(x, particles=50, mass=20.0)


REFUSED = [
    ({"noise": "one"}, "a particle filter learns nothing: set a number for noise$"),
    ({"scale": "one", "mass": "learn"}, "set a number for scale and mass$"),
    ({"mass": "learn"}, "set a number for mass$"),
    ({"particles": 0}, "particles is 0"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_it_cannot_do_is_refused_in_a_sentence(change, said):
    with pytest.raises(UsageError, match=said):
        sampler(**change)


def test_the_finite_prior_is_refused():
    with pytest.raises(UsageError, match="buffet"):
        Particles(Model(BetaBernoulli(1.0), Unit(), Gaussian(noise=1.0, scale=1.0), DRAW))
