"""No choice: every row has every feature, at no cost and with nothing to learn."""

import json

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import pack, unpack
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.joint import Joint
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.always import CERTAIN, Always
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import chunked, fit, problem

FULL = PriorSums(on=np.full(3, 20.0), rows=np.asarray(20.0))


def test_it_costs_nothing_and_learns_nothing():
    prior = Always()
    params = prior.init(3, 20)
    assert prior.score(params, FULL) == {"z prior": 0.0}
    assert prior.update(params, FULL, Rule.MEAN, np.random.default_rng(0)) is params
    np.testing.assert_array_equal(prior.expected(params), np.ones(3))
    np.testing.assert_array_equal(prior.sample(3, np.random.default_rng(0)), np.ones(3))
    assert float(params.mass) == 3


def test_a_row_without_a_feature_is_as_good_as_impossible():
    prior = Always()
    one_less = PriorSums(on=np.array([20.0, 19.0, 20.0]), rows=np.asarray(20.0))
    assert prior.score(prior.init(3, 20), one_less) == {"z prior": -CERTAIN}


def test_features_come_and_go():
    prior = Always()
    params = prior.init(3, 20)
    assert prior.capacity(params) is None
    assert prior.select(params, np.array([2, 0])).log_on.shape == (2,)
    assert prior.resized(params, 5).log_off.shape == (5,)


def test_round_trip():
    params = Always().init(4, 9)
    outline, arrays = pack(params)
    back = unpack(json.loads(json.dumps(outline)), arrays)
    np.testing.assert_array_equal(Always().log_odds(back), np.full(4, CERTAIN))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_entry_of_a_sweep_is_one(dtype):
    """Also where features are swept one by one: certain, without entropy, and monotone."""
    from ibpdist.inference.ascent.coordinate import Coordinate

    x, _ = problem(3, 40, 6, dtype=dtype)
    alg = Coordinate(Model(Always(), Normal(), Gaussian("column", "feature")), 3)
    params, (state,), sums, traces = fit(alg, chunked(x), 30)
    assert (state.z == 1).all()
    assert (sums.entries.on == 40).all()
    assert traces[-1]["z entropy"] == pytest.approx(0, abs=1e-12)
    value = np.array([trace["objective"] for trace in traces])
    assert np.diff(value).min() >= -(1e-9 if dtype == np.float64 else 1e-5) * (np.abs(value).max() + x.size)
    assert (params.on == 40).all()


def test_only_rows_with_every_feature_can_be_solved_at_once():
    Model(Always(), Normal(), Joint())
    with pytest.raises(UsageError, match="rows have every feature, but not with stick_breaking"):
        Model(StickBreaking(), Normal(), Joint())
