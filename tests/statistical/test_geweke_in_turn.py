"""Samplers that take rows in turn are exact: Geweke joint tests, and samplers that are wrong on purpose."""

import pytest

from ibpdist.inference.gibbs import xor
from tests.support.geweke import Joint, scattered_mask
from tests.support.joint_infinite import Finite, Infinite, same_priors, scores, worst
from tests.support.turns import ONE_LESS, TURNS, DroppedFirst, over_all, transition

PASS, CAUGHT = 4.0, 6.0
CHAINS, STEPS = 1000, 5
"""Before a release twice as many chains must pass."""
LENGTHS = pytest.mark.parametrize("chains", [CHAINS, pytest.param(2 * CHAINS, marks=pytest.mark.long)])


def finite(**settings):
    return Finite(Joint(rows=5, **settings))


SYSTEMS = {
    "infinite fixed": Infinite(noise=0.5, scale=1.3, mass=1.5),
    "infinite sharp": Infinite(noise=0.1, scale=1.0, mass=2.0),
    "infinite learned": Infinite(),
    "infinite as it is": Infinite(floor=1e-3),
    "infinite masked": Infinite(mask=scattered_mask(5), mass=2.0),
    "finite fixed": finite(noise=0.5, scale=1.5, mass=2.0),
    "finite learned": finite(floor=1.0),
    "finite masked": finite(mask=scattered_mask(5), floor=1.0),
}
COLUMN_NOISE = Infinite(noise="column", mask=scattered_mask(5), mass=2.0)
SOME = ("infinite learned", "infinite masked", "finite learned")
CASES = [
    pytest.param(turn, name, marks=[] if name in SOME else pytest.mark.long)
    for turn in TURNS
    for name in SYSTEMS
]


def run(joint, turn, chains, monkeypatch, steps=STEPS, **settings):
    same_priors(joint, monkeypatch)
    return worst(scores(joint, transition(joint, turn, **settings), chains, steps, seed=5))


@pytest.mark.parametrize(
    ("turn", "name"),
    [("collapsed", "infinite sharp"), ("uncollapsed", "infinite masked"), ("collapsed", "finite learned")],
)
def test_sampler_in_short(turn, name, monkeypatch):
    """A few hundred chains: catches gross faults every day."""
    said, size = run(SYSTEMS[name], TURNS[turn], 250, monkeypatch, steps=4)
    assert size < PASS, said


@pytest.mark.slow
@LENGTHS
@pytest.mark.parametrize(("turn", "name"), CASES)
def test_sampler(turn, name, chains, monkeypatch):
    said, size = run(SYSTEMS[name], TURNS[turn], chains, monkeypatch)
    assert size < PASS, said


@pytest.mark.slow
@LENGTHS
def test_noise_of_each_column(chains, monkeypatch):
    said, size = run(COLUMN_NOISE, TURNS["uncollapsed"], chains, monkeypatch)
    assert size < PASS, said


# --- wrong on purpose, caught at the length at which the right one passes ---

WRONG = [
    (ONE_LESS, "infinite fixed", CHAINS // 2),
    (over_all(2.0, 3), "finite fixed", 2 * CHAINS),  # with half as many it is about 7
    (DroppedFirst(), "infinite sharp", CHAINS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("turn", "name", "chains"), WRONG, ids=["one row less", "over all", "dropped first"])
def test_a_wrong_sampler_is_caught(turn, name, chains, monkeypatch):
    _, size = run(SYSTEMS[name], turn, chains, monkeypatch, tries=0)
    assert size > CAUGHT


@pytest.mark.slow
def test_tries_that_forget_the_prior_are_caught(monkeypatch):
    monkeypatch.setattr(xor, "betaln", lambda on, off: 0.0 * on)
    _, size = run(SYSTEMS["infinite fixed"], TURNS["collapsed"], CHAINS, monkeypatch, tries=8)
    assert size > CAUGHT
