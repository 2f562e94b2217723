"""What a row is like given the others, pi integrated out: ratios of the density of who has what."""

import numpy as np
import pytest

from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from tests.support import reference as ref
from tests.support.enumeration_infinite import table

ROWS, MASS = 5, 1.7


def sums(on):
    return PriorSums(on=np.asarray(on, float), rows=np.asarray(float(ROWS)))


@pytest.mark.parametrize("others", [1, 2, 3, 4])
def test_odds_of_the_buffet(others):
    prior = Buffet(MASS)
    params = prior.init(1, ROWS)
    share, _ = prior.predictive(params, ROWS)
    with_it, without = (prior.score(params, sums([m]))["z prior"] for m in (others + 1, others))
    assert np.log((others + share) / (ROWS - others)) == pytest.approx(with_it - without, abs=1e-12)


@pytest.mark.parametrize("others", [0, 1, 4])
@pytest.mark.parametrize("features", [1, 3])
def test_odds_of_the_finite_prior(others, features):
    prior = BetaBernoulli(MASS)
    share, rate = prior.predictive(prior.init(features, ROWS), ROWS)
    assert rate == 0
    z = np.zeros((ROWS, features))
    z[:others, 0] = 1
    without = ref.log_p_finite(z, MASS)
    z[others, 0] = 1
    assert np.log((others + share) / (ROWS - others)) == pytest.approx(ref.log_p_finite(z, MASS) - without)


def test_a_row_has_a_poisson_number_for_itself():
    """The rate of features that only the first row has, among all numbers of all histories."""
    _, rate = Buffet(MASS).predictive(Buffet(MASS).init(1, 3), 3.0)
    numbers, logs, kinds = table(np.zeros((3, 1)), np.zeros((3, 1), bool), 1.0, 1.0, MASS, 1e-6)
    own = int(np.flatnonzero((kinds == [1, 0, 0]).all(axis=1))[0])
    assert np.exp(logs) @ numbers[:, own] == pytest.approx(rate, abs=1e-4)
    assert np.exp(logs) @ numbers[:, own] ** 2 == pytest.approx(rate + rate**2, abs=1e-3)


def test_the_finite_prior_keeps_its_truncation_when_features_are_dropped():
    prior = BetaBernoulli(MASS)
    params = prior.select(prior.init(6, ROWS), np.arange(2))
    assert prior.predictive(params, ROWS)[0] == pytest.approx(MASS / 6)
