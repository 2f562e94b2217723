"""The diagnosis of a fit: shares of the variance, pairs, constants, rare features, a truncation used up."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.engine.tree import TreeSum
from ibpdist.runs.diagnosis import (
    IDLE,
    SAME_SHAPE,
    Found,
    Moments,
    cosines,
    diagnose,
    explained,
    is_constant,
    least_cosine,
    moments,
    strength,
)
from ibpdist.runs.result import open_result


def planted(z, dictionary, noise=0.01, seed=0):
    """A description and the moments of a fit that found z (row, feature) and the dictionary exactly."""
    z, dictionary = np.asarray(z, float), np.asarray(dictionary, float)
    x = z @ dictionary + np.sqrt(noise) * np.random.default_rng(seed).standard_normal(
        (len(z), dictionary.shape[1])
    )
    described = {
        "mean": (("feature", "column"), dictionary),
        "prevalence": (("feature",), z.mean(0)),
        "active": (("feature",), z.sum(0) > 0.5),
        "noise": ((), np.asarray(noise)),
        "spread": (("column",), x.var(0)),
    }
    return described, moments({"z": (("row", "feature"), z)}), x


def ordinary(rows=400, features=4, columns=30, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((rows, features)) < 0.4, rng.standard_normal((features, columns))


def pairs(found, name):
    return [tuple(pair) for pair in np.argwhere(found[name].values)]


def test_moments_add_up_over_chunks():
    rng = np.random.default_rng(2)
    z, w = rng.random((50, 3)).astype(np.float32), rng.standard_normal((50, 3)).astype(np.float32)
    total = TreeSum()
    for part in np.split(np.arange(50), [7, 19, 30]):
        total.add(moments({"z": (("row", "feature"), z[part]), "w": (("row", "feature"), w[part])}))
    y = z.astype(float) * w
    found = total.value()
    assert isinstance(found, Moments)
    np.testing.assert_allclose(found.covariance, np.cov(y.T, bias=True), rtol=1e-12)
    assert float(found.rows) == 50


def test_what_is_explained_is_the_variance_of_the_fitted_rows():
    z, dictionary = ordinary()
    described, seen, x = planted(z, dictionary)
    each, together = explained(Found.of(described), seen.covariance)
    fitted = z @ dictionary
    assert together == pytest.approx(fitted.var(0).sum() / x.var(0).sum(), rel=1e-12)
    for k in range(4):
        alone = np.outer(z[:, k], dictionary[k]).var(0).sum() / x.var(0).sum()
        assert each[k] == pytest.approx(alone, rel=1e-12)
    assert 0.98 < together < 1, "there is little noise"


def test_shares_add_up_for_features_that_occur_independently():
    z = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    described, seen, _ = planted(z, ordinary(features=3)[1])
    each, together = explained(Found.of(described), seen.covariance)
    assert each.sum() == pytest.approx(together, rel=1e-12)


def test_an_ordinary_fit_has_nothing_odd():
    found = diagnose(*planted(*ordinary())[:2], truncation=8)
    for name in ("rare", "constant", "idle", "same_rows", "same_shape", "used_up"):
        assert not found[name].values.any(), name
    assert found.sizes == {"feature": 4, "feature_": 4}


def test_a_feature_that_was_split_has_the_same_rows():
    z, dictionary = ordinary()
    z[:, 3] = z[:, 1]
    z[:3, 3] ^= True
    found = diagnose(*planted(z, dictionary)[:2], truncation=8)
    assert pairs(found, "same_rows") == [(1, 3)]
    assert not found["same_shape"].values.any()
    expected = np.corrcoef(z.T)
    np.testing.assert_allclose(found["correlation"].values, expected, atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_feature_in_two_amounts_has_the_same_shape(sign):
    z, dictionary = ordinary()
    dictionary[2] = sign * 2 * dictionary[0]
    found = diagnose(*planted(z, dictionary)[:2], truncation=8)
    assert pairs(found, "same_shape") == [(0, 2)]
    assert found["cosine"].values[0, 2] == pytest.approx(sign)
    assert not found["same_rows"].values.any()


def test_shapes_are_compared_in_units_of_the_noise():
    z, dictionary = ordinary(features=2)
    dictionary[:, 0] = 1000.0
    described, seen, _ = planted(z, dictionary)
    assert pairs(diagnose(described, seen, 8), "same_shape") == [(0, 1)]
    noise = np.ones(30)
    noise[0] = 1e8
    described["noise"] = (("column",), noise)
    assert not diagnose(described, seen, 8)["same_shape"].values.any()


def test_directions_of_few_columns_are_close_by_chance():
    assert least_cosine((10, 1)) == np.inf
    assert least_cosine((10, 2)) > 0.99999
    assert least_cosine((10, 3)) > 0.998
    assert least_cosine((10, 200)) == SAME_SHAPE
    rng = np.random.default_rng(3)
    least = least_cosine((6, 4))
    hits = sum(
        (np.abs(cosines(rng.standard_normal((6, 4)))[np.triu_indices(6, 1)]) > least).any()
        for _ in range(2000)
    )
    assert 0.02 < hits / 2000 < 0.08


def test_barely_used_is_less_than_a_hundredth_or_one_row():
    z, dictionary = ordinary(rows=400)
    z[:, 3] = np.arange(400) < 3
    assert diagnose(*planted(z, dictionary)[:2], 8)["rare"].values.tolist() == [False, False, False, True]
    z[:, 3] = np.arange(400) < 4
    assert not diagnose(*planted(z, dictionary)[:2], 8)["rare"].values.any()
    few = np.eye(30)[:, :2]
    few[1:9, 1] = 1
    assert diagnose(*planted(few, dictionary[:2])[:2], 8)["rare"].values.tolist() == [True, False]


def test_a_constant_is_in_every_row_and_looks_like_nothing():
    z, dictionary = ordinary(rows=1000)
    z[:, 0] = True
    z[0, 0] = False
    dictionary[1] = dictionary[0]
    found = diagnose(*planted(z, dictionary)[:2], 8)
    assert found["constant"].values.tolist() == [True, False, False, False]
    assert not found["same_shape"].values.any()
    assert found["explained"].values[0] < 0.01


def test_a_dense_feature_with_weights_is_no_constant():
    w = np.random.default_rng(4).standard_normal((200, 2))
    named = {"z": (("row", "feature"), np.ones((200, 2))), "w": (("row", "feature"), w)}
    assert not is_constant(moments(named)).any()


def test_features_that_explain_nothing_are_idle_and_not_counted():
    z, dictionary = ordinary()
    dictionary[2:] = dictionary[0] * np.array([[1e-4], [-1e-4]])
    described, seen, _ = planted(z, dictionary)
    found = diagnose(described, seen, truncation=4)
    assert found["idle"].values.tolist() == [False, False, True, True]
    for name in ("used_up", "same_shape", "rare"):
        assert not found[name].values.any(), name
    assert bool(diagnose(described, seen, truncation=2)["used_up"])


def test_the_part_of_a_feature_is_counted_in_units_of_the_noise():
    z, dictionary = ordinary()
    described, seen, _ = planted(z, dictionary, noise=0.25)
    y = np.outer(z[:, 1], dictionary[1])
    expected = ((y - y.mean(0)) ** 2).sum() / 0.25
    assert strength(Found.of(described), seen)[1] == pytest.approx(expected, rel=1e-12)
    assert expected > IDLE


def test_features_that_are_not_active_are_passed_over():
    z, dictionary = ordinary()
    z[:, 2:] = False
    dictionary[3] = dictionary[2]
    found = diagnose(*planted(z, dictionary)[:2], truncation=4)
    for name in ("rare", "constant", "idle", "same_rows", "same_shape", "used_up"):
        assert not found[name].values.any(), name
    assert found["explained"].values[2:].tolist() == [0, 0]
    assert np.isfinite(found["correlation"].values).all()


@pytest.mark.parametrize(("truncation", "used_up"), [(4, True), (5, False), (30, False)])
def test_a_truncation_is_used_up_when_every_feature_provided_is_active(truncation, used_up):
    assert bool(diagnose(*planted(*ordinary())[:2], truncation)["used_up"]) is used_up


def test_without_a_dictionary_there_is_none():
    described, seen, _ = planted(*ordinary())
    del described["spread"]
    assert diagnose(described, seen, 4) is None


# ---- in a result -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images():
    return ibp.synthetic("images", rows=300, noise=0.1, seed=3)


def test_it_is_in_the_result_in_memory_and_on_disk_with_the_same_bits(images, tmp_path):
    options = {"system": "lg-vi-infinite", "K": 6, "seed": 7, "serial": True}
    here = ibp.fit(images.x, **options)
    ibp.fit(images.x, run=tmp_path / "run", **options)
    there = open_result(tmp_path / "run")
    assert here["diagnosis"].to_dataset().identical(there["diagnosis"].to_dataset().load())
    assert there.attrs["moves"] == here.attrs["moves"]
    assert here.attrs["moves"][:2] == ["delete", "reorient"]


def test_what_it_says_of_a_fit_is_what_the_rows_say(images):
    result = ibp.fit(images.x, system="fa-vi-finite", K=4, seed=1, steps=20)
    y = (result["rows"]["z"] * result["rows"]["w"]).transpose("row", "feature").values.astype(float)
    fitted = y @ result["params"]["mean"].values
    share = fitted.var(0).sum() / images.x.values.var(0).sum()
    assert float(result["diagnosis"]["explained_together"]) == pytest.approx(share, rel=1e-5)


def test_the_planted_shapes_explain_what_they_should(images):
    result = ibp.fit(images.x, system="lg-vi-infinite", K=8, seed=1)
    found = result["diagnosis"]
    x, planted = images.x.values, images.z.values @ images.dictionary.values
    left = (x - planted).var(0).sum() / x.var(0).sum()
    assert float(found["explained_together"]) == pytest.approx(1 - left, abs=0.01)
    assert not found["used_up"]
    assert not found["same_rows"].values.any()
