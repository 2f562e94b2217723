"""What a method makes of a model: samplers begin with the variational fit of the same model."""

from dataclasses import replace

import pytest

from ibpdist.base.rules import MEAN
from ibpdist.catalog.systems import SYSTEMS, build
from ibpdist.inference.ascent.search import Search
from ibpdist.inference.gibbs.started_by_fit import StartedByFit
from ibpdist.inference.in_turn.chain_started_by_fit import ChainStartedByFit

BEGUN = [name for name, row in SYSTEMS.items() if row.sampler and row.method != "particle" and not row.counts]
FITS = {"buffet": "stick_breaking", "beta_bernoulli": "beta_bernoulli"}
"""The prior of the fit that a sampler with a prior begins with."""


@pytest.mark.parametrize("name", BEGUN)
def test_a_sampler_begins_with_the_fit_of_its_own_model(name):
    """An unknown number of features is fitted with an unknown number of them, a given one with that one."""
    made = build(name, 7, inner=2, settings={"mass": 3.5}, burn=50)
    assert isinstance(made, StartedByFit | ChainStartedByFit)
    fit, model = made.fit, made.sampler.model
    assert isinstance(fit, Search)
    found = fit.fit.model
    assert found.prior.name == FITS[model.prior.name]
    assert found.prior.mass == model.prior.mass == 3.5
    assert found.weights == model.weights
    assert replace(found.observation, missing=model.observation.missing) == model.observation
    assert found.rules == MEAN
    assert (fit.fit.features, fit.fit.inner) == (7, 2)


@pytest.mark.parametrize(("burn", "steps"), [(0, 0), (1, 1), (50, 25), (10_000, 200)])
def test_the_fit_has_at_most_half_of_the_steps_that_are_not_kept(burn, steps):
    assert build("lg-gibbs-finite", 5, burn=burn).steps == steps
