"""Samplers that take rows in turn visit every z as often as the exact posterior says."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.inference.in_turn.in_turn import InTurn
from ibpdist.inference.in_turn.particle import Particles
from tests.support import enumeration, enumeration_infinite
from tests.support.geweke import Joint
from tests.support.joint_infinite import Finite, Infinite
from tests.support.turns import TURNS, ByAge, DroppedFirst, over_all

NOISE, SCALE, MASS = 0.4, 1.2, 1.1
MASK = np.array([[1, 0], [1, 1], [0, 1]], bool)
CASES = [(turn, infinite) for turn in TURNS for infinite in (False, True) if infinite or turn != "candidates"]
"""In the finite model no row has features for itself."""
FEATURES = 2
STEPS, CHAINS = 15_000, 3
"""Enough to tell that features were asked in the order of their age; the steps of all chains together.
Before a release twice as many."""
BATCHES = 20
"""Of a chain, for the errors of means."""


def problem(masked, infinite):
    """(joint, x, mask)."""
    mask = MASK if masked else np.ones((3, 2), bool)
    x = np.where(mask, np.random.default_rng(8).normal(size=(3, 2)) * 1.4, 0.0)
    settings = {"noise": NOISE, "scale": SCALE, "mass": MASS, "mask": MASK if masked else None}
    shape = {"rows": 3, "columns": 2}
    joint = (
        Infinite(**settings, **shape) if infinite else Finite(Joint(**settings, **shape, features=FEATURES))
    )
    return joint, x, mask


def visited(sampler, chunk, steps, seed=0):
    """z (feature, row) of every step after a warm-up of a tenth."""
    draws = Draws(seed)
    chain = sampler.start(chunk, sampler.model.observation.summarise(chunk), draws)
    for step in range(1, steps + 1):
        chain, _ = sampler.sweep(chunk, chain, draws.at(step))
        if step > steps // 10:
            yield chain.state.z


def seen_and_exact(turn, masked, infinite, steps, chains, **settings):
    """What is looked at in every draw (draw, what), and what it is on average and squared."""
    joint, x, mask = problem(masked, infinite)
    sampler, found = InTurn(joint.model(), turn, FEATURES, **settings), []
    for seed in range(chains):
        found += visited(sampler, joint.chunk(x), steps // chains, seed)
    if infinite:
        seen, (table, chance) = infinite_numbers(found), infinite_table(x, mask)
    else:
        tables, chance = enumeration.posterior(x, mask, NOISE, SCALE, MASS, FEATURES)
        seen, table = (enumeration.events(z) for z in (np.array([z.T for z in found]), tables))
    return seen, chance @ table, chance @ table**2


def infinite_numbers(found):
    return numbers(*facts(found))


def infinite_table(x, mask):
    """The same of every z that there is, with its chance."""
    *told, chance = enumeration_infinite.posterior(x, mask, NOISE, SCALE, MASS)
    return numbers(*told), chance


def numbers(common, features, alone):
    """Events, and how many features pairs of rows share: flips in the order of age make it too many."""
    rows = common.shape[1]
    shared = sum(common[:, n, m] for n in range(rows) for m in range(n))
    return np.column_stack([enumeration_infinite.events(common, features, alone), shared])


def facts(found):
    told = [enumeration_infinite.facts(z) for z in found]
    return [np.array(part) for part in zip(*told, strict=True)]


def infinite_events(found):
    return enumeration_infinite.events(*facts(found))


def infinite_chances(x, mask):
    common, features, alone, chance = enumeration_infinite.posterior(x, mask, NOISE, SCALE, MASS)
    return chance @ enumeration_infinite.events(common, features, alone)


def farthest(turn, masked, infinite, steps, chains=CHAINS, **settings):
    """Largest distance of a mean from the exact one, in standard errors, which are at least those of
    independent draws. The steps are those of several chains, so that no chain decides."""
    seen, exact, squared = seen_and_exact(turn, masked, infinite, steps, chains, **settings)
    variance = squared - exact**2
    usual = variance > 0.01
    assert usual.sum() > 15
    error = np.maximum(
        enumeration.batch_error(seen, BATCHES * chains), np.sqrt(np.maximum(variance, 0) / len(seen))
    )
    return np.abs((seen.mean(axis=0) - exact)[usual] / error[usual]).max()


@pytest.mark.parametrize("turn", TURNS)
def test_exact_posterior_in_short(turn):
    assert farthest(TURNS[turn], True, True, 1000, chains=1) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("steps", [STEPS, pytest.param(2 * STEPS, marks=pytest.mark.long)])
@pytest.mark.parametrize(("turn", "infinite"), CASES)
@pytest.mark.parametrize("masked", [False, True])
def test_exact_posterior(turn, masked, infinite, steps):
    assert farthest(TURNS[turn], masked, infinite, steps) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turn", "infinite", "steps"),
    [
        (over_all(MASS, FEATURES), False, STEPS // 3),
        (DroppedFirst(), True, STEPS // 3),
        (ByAge(), True, STEPS),
    ],
)
def test_a_wrong_turn_is_caught(turn, infinite, steps):
    """With odds m / (N - 1) features only become more (samplers.md 17): no chain of any length."""
    assert farthest(turn, False, infinite, steps, tries=0) > 6


def estimates(masked, particles, passes):
    """Estimates of p(x) over p(x), and z, of many passes of a particle filter."""
    joint, x, mask = problem(masked, True)
    sampler, chunk = Particles(joint.model(), particles), joint.chunk(x)
    chain = sampler.start(chunk, sampler.model.observation.summarise(chunk), Draws(0))
    exact, found, z = enumeration_infinite.evidence(x, mask, NOISE, SCALE, MASS), [], []
    for step in range(1, passes + 1):
        made, info = sampler.sweep(chunk, chain, Draws(0, step))
        trace = info.trace()
        found.append(np.exp(trace["evidence"] - exact))
        z.append(made.state.z)
    return np.array(found), infinite_events(z), infinite_chances(x, mask)


def check_particles(masked, particles, passes):
    """The evidence has no bias, nor have events weighed by it."""
    found, events, exact = estimates(masked, particles, passes)
    error = found.std(ddof=1) / np.sqrt(passes)
    assert abs(found.mean() - 1) < 4 * error
    assert error < 0.1
    weighed = found[:, None] * events
    usual = np.minimum(exact, 1 - exact) > 0.02
    spread = np.maximum(weighed.std(axis=0, ddof=1) / np.sqrt(passes), 1e-4)
    assert np.abs((weighed.mean(axis=0) - exact) / spread)[usual].max() < 4.5


@pytest.mark.parametrize("masked", [False, True])
def test_evidence_of_particles_in_short(masked):
    check_particles(masked, 10, 400)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("particles", [1, 10, 50])
def test_evidence_of_particles(masked, particles):
    check_particles(masked, particles, 3000)


@pytest.mark.slow
def test_many_particles_draw_from_the_posterior():
    _, events, exact = estimates(False, 500, 1500)
    usual = np.minimum(exact, 1 - exact) > 0.02
    error = np.sqrt(exact * (1 - exact) / len(events))[usual]
    assert np.abs((events.mean(axis=0) - exact)[usual] / error).max() < 4.5
