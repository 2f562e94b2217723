"""What algorithms do with an observation that has the seven members of every one and nothing else."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import DRAW, MEAN
from ibpdist.base.structs import replace
from ibpdist.catalog.methods import METHODS, MethodOptions
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.schedules import moves_for
from ibpdist.inference.starts.begin import Rows
from ibpdist.inference.starts.principal import Principal
from ibpdist.inference.starts.spectral import Spectral
from ibpdist.inference.streaming.streamed import Streamed, stream
from ibpdist.model.model import Model
from ibpdist.model.observations.capabilities import (
    Additive,
    Grouped,
    Padded,
    Projected,
    Scalable,
    Tempered,
    require,
)
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support.model_cases import chunked, fit

CAPABILITIES = (Scalable, Tempered, Projected, Grouped, Padded, Additive)
MEMBERS = ("counts", "name", "has_row_density", "dense", "rules")
FUNCTIONS = ("summarise", "init", "adopt", "sweep", "update", "score", "describe")


@dataclass(frozen=True)
class Bare:
    """A Gaussian observation of which only the seven members can be reached."""

    of: Gaussian = field(default_factory=Gaussian)

    def __getattr__(self, name):
        if name in (*MEMBERS, *FUNCTIONS):
            return getattr(self.of, name)
        raise AttributeError(name)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((80, 3)) < 0.4) @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(80, 6))


def fit_of(observation, weights=None, rules=MEAN, **settings):
    return Coordinate(Model(BetaBernoulli(), weights or Unit(), observation, rules), 4, **settings)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_gaussian_has_every_capability_and_the_bare_one_none(capability):
    assert isinstance(Gaussian(), capability)
    assert not isinstance(Bare(), capability)


@pytest.mark.parametrize("weights", [Unit(), Normal()])
def test_the_seven_members_are_enough_for_a_fit(weights):
    """Lengths stay as they are: with a common scale nothing else differs."""
    whole, bare = (
        fit(fit_of(seen, weights), chunked(rows(), None, (30, 50)), 8) for seen in (Gaussian(), Bare())
    )
    assert bare[3] == whole[3]
    shown = fit_of(Bare(), weights).describe(bare[0])
    expected = fit_of(Gaussian(), weights).describe(whole[0])
    np.testing.assert_array_equal(shown["mean"][1], expected["mean"][1])
    found = fit_of(Bare(), weights).describe_rows(bare[1][0], bare[0])
    np.testing.assert_array_equal(found["z"][1], whole[1][0].z[np.argsort(-whole[0].on, kind="stable")])
    assert fit_of(Bare(), weights).handover_params(bare[0]) is bare[0]


def test_features_with_scales_of_their_own_are_not_rescaled_without_the_capability():
    observation = Gaussian(scale="feature")
    both = (observation, Bare(observation))
    whole, bare = (fit(fit_of(seen, Normal()), chunked(rows(), None, (30, 50)), 4) for seen in both)
    assert (whole[0].observation.stretch != 1).any()
    assert (bare[0].observation.stretch == 1).all()


def test_an_observation_without_known_sums_has_no_moves():
    model = Model(BetaBernoulli(), Unit(), Bare())
    assert moves_for(model) is None
    made = METHODS["ascent"].make(model, MethodOptions(3, 1, 0, {"start": "random"}))
    assert isinstance(made, Coordinate)


@pytest.mark.parametrize("begin", [Rows(), Principal(), Spectral()])
def test_starts_other_than_random_are_refused(begin):
    with pytest.raises(UsageError, match="start other than random needs an observation that is projected"):
        fit(fit_of(Bare(), begin=begin), chunked(rows()), 1)


def test_what_else_needs_a_capability_is_refused():
    with pytest.raises(UsageError, match="anneal=4 needs an observation that is tempered, and gauss"):
        fit_of(Bare(), anneal=4.0)
    with pytest.raises(UsageError, match="a stream needs an observation that is additive, and gauss"):
        list(stream(Streamed(fit_of(Bare()), first=1), chunked(rows(), None, (40, 40)), seed=0))
    sampler, fewer = fit_of(Bare(), rules=DRAW), fit(fit_of(Gaussian()), chunked(rows()), 2)[0]
    prior = BetaBernoulli().select(fewer.prior, np.arange(2))
    observed = Gaussian().init(Gaussian().summarise(chunked(rows())[0]), 2, np.random.default_rng(0))
    short = replace(
        fewer, prior=prior, observation=observed, ids=np.arange(2), parents=fewer.parents[:, :2],
        flip=fewer.flip[:2], on=fewer.on[:2],
    )  # fmt: skip
    with pytest.raises(UsageError, match="begins at a fit needs an observation that is padded"):
        sampler.adopt(short, Gaussian().summarise(chunked(rows())[0]))


def test_what_has_the_capability_is_given_back():
    observation = Gaussian()
    assert require(observation, Tempered, "anything") is observation
