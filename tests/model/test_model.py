"""Models are checked when they are made."""

import dataclasses

import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import DRAW, HARD, MEAN, Rule, Rules
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit


def made(rules, prior=None, weights=None):
    return Model(prior or BetaBernoulli(), weights or Unit(), Gaussian(), rules)


@pytest.mark.parametrize("rules", [MEAN, HARD])
@pytest.mark.parametrize("prior", [BetaBernoulli(), StickBreaking()])
@pytest.mark.parametrize("weights", [Unit(), Normal()])
def test_every_fit_is_a_model(rules, prior, weights):
    assert not made(rules, prior, weights).draws


@pytest.mark.parametrize("weights", [Unit(), Normal()])
def test_finite_samplers(weights):
    assert made(DRAW, weights=weights).draws


def test_sticks_have_no_draw():
    with pytest.raises(UsageError, match="stick_breaking: no update by draw; it knows mean"):
        made(DRAW, StickBreaking())


def test_normal_weights_have_no_mode():
    with pytest.raises(UsageError, match="normal weights: no update by mode; it knows draw, mean"):
        made(Rules(weights=Rule.MODE), weights=Normal())


def test_dictionary_has_no_mode():
    with pytest.raises(UsageError, match="gaussian dictionary: no update by mode"):
        made(Rules(dictionary=Rule.MODE))


@pytest.mark.parametrize("group", ["z", "weights", "prior", "dictionary"])
def test_a_mixture_of_draws_and_means_is_refused(group):
    for base, other in ((MEAN, Rule.DRAW), (DRAW, Rule.MEAN)):
        with pytest.raises(UsageError, match="draw everything or nothing"):
            made(dataclasses.replace(base, **{group: other}))


def test_usage_errors_exit_with_two():
    with pytest.raises(UsageError) as caught:
        made(DRAW, StickBreaking())
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)


def test_models_are_values():
    assert made(MEAN) == made(MEAN)
    assert made(MEAN) != made(HARD)
    assert hash(made(MEAN)) == hash(made(MEAN))


def test_rules():
    assert Rules() == MEAN
    assert Rules(z=Rule.MODE) == HARD
    assert set(dataclasses.astuple(DRAW)) == {Rule.DRAW}
    assert sorted(Rule) == ["draw", "mean", "mode"]
