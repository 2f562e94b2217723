"""Features beside those of other restarts: assigned, turned, counted."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.evaluate import consensus

COLUMNS = 30


def result(mean, active=None, system="lg-vi-finite"):
    """A result with these features (feature, column)."""
    mean = np.asarray(mean, float).reshape(-1, COLUMNS)
    on = np.ones(len(mean), bool) if active is None else np.asarray(active)
    held = {
        "mean": (("feature", "column"), mean),
        "active": ("feature", on),
        "prevalence": ("feature", np.linspace(0.9, 0.1, len(mean))),
    }
    made = xr.DataTree(children={"params": xr.DataTree(xr.Dataset(held))})
    made.attrs = {"system": system}
    return made


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(4, COLUMNS))


def test_restarts_in_another_order_have_the_same_features(features):
    order = [2, 0, 3, 1]
    found = consensus.aligned({0: result(features), 1: result(features[order])}, 0)
    assert found.present.values.all()
    np.testing.assert_array_equal(found.match.sel(restart=1), np.argsort(order))
    np.testing.assert_allclose(found.similarity, 1.0)
    np.testing.assert_array_equal(found["mean"].sel(restart=1), features)
    np.testing.assert_allclose(found.prevalence.sel(restart=1), np.linspace(0.9, 0.1, 4)[np.argsort(order)])
    assert found.attrs["reference"] == 0
    assert (consensus.stability(found).stability == 1).all()


def test_a_feature_that_is_missing_somewhere_is_less_stable(features):
    restarts = {
        0: result(features),
        1: result(features[:3]),
        2: result(features[[3, 1, 0, 2]]),
        3: result([]),
    }
    found = consensus.aligned(restarts, 0)
    share = consensus.stability(found)
    np.testing.assert_allclose(share.stability, [2 / 3, 2 / 3, 2 / 3, 1 / 3])
    assert share.restart.values.tolist() == [1, 2, 3]
    assert not share.stable.any()
    assert found.match.sel(restart=3).values.tolist() == [-1] * 4
    assert np.isnan(found["mean"].sel(restart=3)).all()
    assert np.isnan(found.prevalence.sel(restart=1, feature=3))
    assert (found.similarity.sel(restart=3) == 0).all()


def test_a_reference_does_not_count_for_itself(features):
    """A third of three starts meant that none of the others found it."""
    restarts = {0: result(features), 1: result(features[:1]), 2: result(features[:3])}
    share = consensus.stability(consensus.aligned(restarts, 0))
    np.testing.assert_allclose(share.stability, [1.0, 0.5, 0.5, 0.0])
    assert share.stable.values.tolist() == [True, False, False, False]
    assert share.attrs == {"reference": 0, "matched": 0.3, "least": consensus.STABLE}
    alone = consensus.stability(consensus.aligned({0: result(features)}, 0))
    assert np.isnan(alone.stability).all()
    assert not alone.stable.any()


def test_only_active_features_count(features):
    active = [True, False, True, True]
    found = consensus.aligned({5: result(features, active), 7: result(features[::-1], [True] * 4)}, 5)
    assert found.feature.values.tolist() == [0, 2, 3]
    assert found.match.sel(restart=7).values.tolist() == [3, 1, 0]
    assert found.restart.values.tolist() == [5, 7]
    idle = consensus.aligned({5: result(features), 7: result(features, active)}, 5)
    assert idle.match.sel(restart=7).values.tolist() == [0, -1, 2, 3]
    assert idle.present.sel(restart=7).values.tolist() == [True, False, True, True]


def test_a_reference_without_features(features):
    found = consensus.aligned({0: result([]), 1: result(features)}, 0)
    assert found.sizes["feature"] == 0
    assert consensus.stability(found).stability.size == 0


def test_what_is_too_different_is_not_the_same(features):
    size = np.sqrt(np.mean(features**2))
    noise = np.random.default_rng(1).choice([-1.0, 1.0], size=features.shape)
    for error, same in ((0.25, True), (0.35, False)):
        found = consensus.aligned({0: result(features), 1: result(features + error * size * noise)}, 0)
        assert (found.present.sel(restart=1) == same).all(), error
        assert (found.similarity.sel(restart=1) > 0.8).all()


def test_weights_with_signs_turn_features(features):
    turned = -2.0 * features
    plain = consensus.aligned({0: result(features), 1: result(turned)}, 0)
    assert not plain.present.sel(restart=1).any()
    found = consensus.aligned(
        {0: result(features, system="fa-vi-finite"), 1: result(turned, system="fa-vi-finite")}, 0
    )
    assert found.present.all()
    np.testing.assert_allclose(found.similarity, 1.0)
    np.testing.assert_allclose(found["mean"].sel(restart=1), 2 * features)


def test_positive_weights_do_not_turn_features(features):
    """Another length is the same feature, another sign is not."""
    multiples = np.array([[2.0], [-2.0], [0.5], [-1.0]])
    name = "fa-vi-infinite-positive"
    both = {0: result(features, system=name), 1: result(features * multiples, system=name)}
    found = consensus.aligned(both, 0).sel(restart=1)
    np.testing.assert_array_equal(found.present, multiples[:, 0] > 0)
    same = found.present.values
    np.testing.assert_allclose(found.similarity[same], 1.0)
    np.testing.assert_allclose(found["mean"][same], (features * multiples)[same])
    assert (found.similarity[~same] < 0.9).all()


@given(order=st.permutations(range(4)), missing=st.sets(st.integers(0, 3), max_size=3))
def test_any_order_and_any_gap(order, missing):
    features = np.random.default_rng(0).normal(size=(4, COLUMNS))
    kept = [k for k in order if k not in missing]
    found = consensus.aligned({0: result(features), 1: result(features[kept])}, 0)
    there = [k not in missing for k in range(4)]
    assert found.present.sel(restart=1).values.tolist() == there
    expected = [float(one) for one in there]
    np.testing.assert_allclose(consensus.stability(found).stability, expected)
    for k in kept:
        assert int(found.match.sel(restart=1, feature=k)) == kept.index(k)
