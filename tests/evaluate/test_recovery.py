"""Assignment of fitted to planted features."""

import numpy as np
import pytest
import xarray as xr

from ibpdist.base.errors import InputError, StorageError, UsageError
from ibpdist.evaluate.recovery import MATCHED, compare, planted_dictionary, recovery, summary
from ibpdist.evaluate.synthetic import synthesise, synthetic


@pytest.fixture
def planted():
    return np.random.default_rng(0).normal(size=(6, 40))


def test_a_shuffled_noisy_copy_is_recovered_in_its_order(planted):
    rng = np.random.default_rng(1)
    order = rng.permutation(6)
    found = compare(planted[order] + 0.1 * rng.normal(size=planted.shape), planted)
    np.testing.assert_array_equal(order[found.match], np.arange(6))
    assert int(found.recovered) == 6
    np.testing.assert_allclose(found.error, 0.1, rtol=0.4)


def test_the_order_of_fitted_features_does_not_matter(planted):
    rng = np.random.default_rng(2)
    fitted = np.concatenate([planted[:4] + 0.25 * rng.normal(size=(4, 40)), rng.normal(size=(5, 40))])
    one = compare(fitted, planted)
    order = rng.permutation(9)
    two = compare(fitted[order], planted)
    np.testing.assert_array_equal(one.matched, two.matched)
    np.testing.assert_array_equal(order[two.match.values], one.match)
    np.testing.assert_allclose(one.error, two.error)


def test_sign_and_length_matter_only_for_unit_weights(planted):
    multiples = np.array([-1.0, 2.0, -0.2, 30.0, 1.0, -3.0])[:, None]
    assert int(compare(planted * multiples, planted).recovered) == 1
    free = compare(planted * multiples, planted, free=True)
    assert int(free.recovered) == 6
    np.testing.assert_allclose(free.error, 0, atol=1e-7)


def test_positive_weights_leave_the_length_open(planted):
    multiples = np.array([-1.0, 2.0, -0.2, 30.0, 1.0, -3.0])[:, None]
    found = compare(planted * multiples, planted, free=True, signed=False)
    np.testing.assert_array_equal(found.matched, multiples[:, 0] > 0)
    np.testing.assert_allclose(found.error[found.matched], 0, atol=1e-7)
    assert (found.error[~found.matched] > 2 * MATCHED).all()


@pytest.mark.parametrize(("system", "recovered"), [("lg", 0), ("fa", 2), ("positive", 1)])
def test_recovery_knows_what_the_weights_leave_open(planted, system, recovered):
    name = {"lg": "lg-vi-finite", "fa": "fa-vi-finite", "positive": "fa-vi-finite-positive"}[system]
    params = {
        "mean": (("feature", "column"), planted[:2] * [[-2.0], [3.0]]),
        "active": ("feature", [True, True]),
    }
    tree = xr.DataTree(children={"params": xr.DataTree(xr.Dataset(params))})
    tree.attrs["system"] = name
    truth = xr.Dataset({"dictionary": (("feature", "column"), planted[:2])})
    assert int(recovery(tree, truth).recovered) == recovered


def test_the_limit_is_a_share_of_the_feature_standard_deviation(planted):
    for size, matched in ((MATCHED * 0.99, True), (MATCHED * 1.01, False)):
        shift = size * np.sqrt(np.mean(planted**2)) * np.ones(40)
        assert (
            bool(compare(planted[:1] + shift, planted[:1], scale=np.mean(planted**2)).matched[0]) is matched
        )
        scaled = compare(100 * (planted[:1] + shift), 100 * planted[:1], scale=1e4 * np.mean(planted**2))
        assert bool(scaled.matched[0]) is matched


def test_one_fitted_feature_serves_one_planted_feature(planted):
    found = compare(planted[:1], np.repeat(planted[:1], 3, axis=0))
    assert int(found.recovered) == 1
    assert sorted(found.match.values.tolist()) == [-1, -1, 0]


def test_a_far_feature_does_not_cost_another_its_match(planted):
    # Without a cap the assignment would give up a match to shorten one enormous error.
    fitted = np.stack([planted[0], planted[0] + 0.2, 1000 * planted[2]])
    found = compare(fitted, planted[:3])
    assert bool(found.matched[0])
    assert int(found.match[0]) == 0


@pytest.mark.parametrize("free", [False, True])
def test_nothing_fitted_and_nothing_planted(planted, free):
    none = np.empty((0, 40))
    found = compare(none, planted, free=free)
    assert int(found.recovered) == 0
    assert (found.match == -1).all()
    assert np.isinf(found.error).all()
    empty = compare(planted, none, free=free)
    assert (int(empty.planted), int(empty.fitted), int(empty.recovered)) == (0, 6, 0)
    assert int(compare(np.zeros((2, 40)), planted, free=free).recovered) == 0


def test_other_columns_are_refused(planted):
    with pytest.raises(InputError, match="40 columns, planted ones 39"):
        compare(planted, planted[:, 1:])


def test_a_result_is_compared_by_its_active_features():
    truth = synthetic("images", 10, seed=1)
    mean = np.concatenate([np.ones((1, 36)), truth.dictionary.values[::-1] + 0.02, np.zeros((2, 36))])
    active = np.array([True, True, True, True, True, False, False])
    params = xr.Dataset({"mean": (("feature", "column"), mean), "active": ("feature", active)})
    tree = xr.DataTree(children={"params": xr.DataTree(params)})
    tree.attrs["system"] = "lg-vi-finite"
    found = recovery(tree, truth)
    assert found.match.values.tolist() == [4, 3, 2, 1]
    assert summary(found) == "4 of 4 planted features recovered, 5 active"


def test_the_truth_comes_from_a_store_or_a_dataset(tmp_path):
    truth = synthetic("images", 10, seed=1)
    store = synthesise("images", tmp_path / "a.zarr", rows=10, seed=1)
    for given in (truth, store, str(tmp_path / "a.zarr")):
        np.testing.assert_array_equal(planted_dictionary(given), truth.dictionary)
    with pytest.raises(UsageError, match="synthetic"):
        planted_dictionary(truth.drop_vars("dictionary"))
    with pytest.raises(StorageError, match="nowhere"):
        planted_dictionary(str(tmp_path / "nowhere.zarr"))
