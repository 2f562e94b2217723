"""Features beside those of a reference: assigned, turned, compared."""

from itertools import permutations

import numpy as np
import pytest
import xarray as xr

from ibpdist.runs.matching import SIMILAR, Features, active, by_cosine, column_units, matched

COLUMNS = 12


def draw(features, seed=0):
    return np.random.default_rng(seed).normal(size=(features, COLUMNS))


def of(mean):
    return Features(np.arange(len(mean)) + 10, mean, np.linspace(0.9, 0.1, len(mean)))


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


def test_features_in_another_order_are_found_and_turned():
    reference = draw(4)
    found = of(-2.0 * reference[[2, 0, 3, 1]])
    made = matched(found, reference, by_cosine(True), signed=True)
    np.testing.assert_array_equal(made.match, [11, 13, 10, 12])
    assert made.present.all()
    np.testing.assert_allclose(made.similarity, 1.0)
    np.testing.assert_allclose(made.mean, 2.0 * reference)
    np.testing.assert_allclose(made.prevalence, found.prevalence[[1, 3, 0, 2]])


def test_weights_without_a_sign_leave_it_where_it_is():
    reference = draw(1)
    made = matched(of(-reference), reference, by_cosine(False), signed=False)
    assert not made.present.any()
    np.testing.assert_allclose(made.similarity, -1.0)
    np.testing.assert_array_equal(made.mean, -reference)


@pytest.mark.parametrize("seed", range(20))
def test_as_many_as_can_be_are_the_same(seed):
    rng = np.random.default_rng(seed)
    reference = draw(4, seed)
    reference[1] = reference[0] + 0.4 * rng.normal(size=COLUMNS)
    found = reference[rng.permutation(4)] + 0.35 * rng.normal(size=reference.shape)
    made = matched(of(found), reference, by_cosine(True), signed=True)
    table = np.abs([[cosine(a, b) for b in reference] for a in found])
    best = max(
        (
            sum(table[k, j] > SIMILAR for j, k in enumerate(order)),
            sum(table[k, j] for j, k in enumerate(order)),
        )
        for order in permutations(range(4))
    )
    assert (made.present.sum(), pytest.approx(made.similarity.sum())) == best


def test_the_limit_is_a_cosine():
    axis, other = np.eye(COLUMNS)[:2]
    reference = axis[None]
    for share, same in [(0.901, True), (0.899, False)]:
        found = of((share * axis + np.sqrt(1 - share**2) * other)[None])
        made = matched(found, reference, by_cosine(True), signed=True)
        assert bool(made.present[0]) is same
        assert made.similarity[0] == pytest.approx(share)


@pytest.mark.parametrize(("found", "reference"), [(0, 3), (3, 0), (0, 0), (1, 3)])
def test_there_may_be_too_few_features(found, reference):
    features = draw(3)
    made = matched(of(features[:found]), features[:reference], by_cosine(True), signed=True)
    assert made.present.sum() == min(found, reference)
    assert made.mean.shape == (reference, COLUMNS)
    assert np.isnan(made.mean[made.match < 0]).all()


def test_a_feature_of_length_zero_is_the_same_as_none():
    reference = draw(2)
    made = matched(of(np.zeros((2, COLUMNS))), reference, by_cosine(True), signed=True)
    assert not made.present.any()
    assert (made.similarity == 0).all()


def result(noise):
    held = {
        "mean": (("feature", "column"), draw(3)),
        "active": ("feature", [True, False, True]),
        "prevalence": ("feature", [0.5, 0.4, 0.3]),
        "spread": ("column", np.arange(COLUMNS) ** 2.0),
        "noise": noise,
    }
    return xr.DataTree(children={"params": xr.DataTree(xr.Dataset(held))})


def test_only_active_features_are_compared():
    found = active(result(((), 1.0)))
    assert found.at.tolist() == [0, 2]
    np.testing.assert_array_equal(found.mean, draw(3)[[0, 2]])


def test_a_noise_of_each_column_makes_units_arbitrary():
    assert column_units(result(((), 1.0))) == 1.0
    unit = column_units(result(("column", np.ones(COLUMNS))))
    np.testing.assert_array_equal(unit, np.arange(COLUMNS))
    reference = draw(3)
    noisy = reference + 0.1 * draw(3, 1)
    made = matched(of(noisy), reference, by_cosine(True), signed=True, unit=unit)
    factor = np.logspace(-3, 3, COLUMNS)
    again = matched(of(noisy * factor), reference * factor, by_cosine(True), signed=True, unit=unit * factor)
    np.testing.assert_allclose(made.similarity, again.similarity)
