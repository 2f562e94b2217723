"""The calibration benchmark measures what it says."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.model.priors import _mass
from tests.benchmarks.calibration import JOINT, KEPT, RANKED, RATE, SAMPLERS, chain, p_values, rank, ranks
from tests.support import joint_infinite
from tests.support.joint_infinite import same_priors


@pytest.fixture(autouse=True)
def _priors(monkeypatch):
    same_priors(JOINT, monkeypatch)
    monkeypatch.setattr(_mass, "RATE", RATE)
    monkeypatch.setattr(joint_infinite, "RATE", RATE)


def test_ranks_count_what_is_below_and_break_ties_evenly():
    rng = np.random.default_rng(0)
    assert rank(2.0, np.array([1.0, 3.0, 0.0]), rng) == 2
    tied = [rank(1.0, np.array([0.0, 1.0, 1.0, 2.0]), rng) for _ in range(3000)]
    assert np.bincount(tied)[1:] == pytest.approx([1000, 1000, 1000], rel=0.15)


def test_uniform_ranks_pass_and_others_fail():
    rng = np.random.default_rng(1)
    good = rng.integers(KEPT + 1, size=(500, len(RANKED)))
    assert min(p_values(good).values()) > 1e-3
    narrow = rng.binomial(KEPT, 0.5, size=(500, len(RANKED)))
    assert max(p_values(narrow).values()) < 1e-9
    assert p_values(good).keys() == set(RANKED)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_can_be_plugged_in(name):
    step = SAMPLERS[name](JOINT)
    true = JOINT.draw(np.random.default_rng(3))
    kept = list(chain(JOINT, step, true.x, Draws(0), 2, 1))
    assert len(kept) == KEPT
    assert all(np.isfinite([k[name] for name in RANKED]).all() for k in kept)
    assert len({k["log joint"] for k in kept}) == KEPT


def test_a_chain_that_draws_from_the_prior_is_caught():
    """It does not look at the data: the noise it draws says nothing of the noise that there was."""

    def prior(chunk, params, state, draws):
        made = JOINT.draw(draws.generator("prior draw"))
        return made.params, made.state

    found = ranks(JOINT, prior, 150, 1, 1)
    assert found.shape == (150, len(RANKED))
    assert p_values(found)["log joint"] < 1e-3


@pytest.mark.slow
def test_short_calibration_of_the_collapsed_sampler():
    found = ranks(JOINT, SAMPLERS["collapsed"](JOINT), 40, 150, 30)
    assert min(p_values(found).values()) > 1e-3
