"""Features over draws: matched, averaged, counted."""

from itertools import permutations

import numpy as np
import pytest
import xarray as xr

from ibpdist.errors import UsageError
from ibpdist.evaluate.posterior import assign, cooccurrence, features, number, rows

RNG = np.random.default_rng(6)
TRUE = np.array([[3.0, 0, 0, 0], [0, 3.0, 0, 0], [0, 0, 3.0, 3.0]])
PREVALENCE = np.array([0.5, 0.3, 0.2])
ROWS = 10


def result(draws=30, chains=2, missing=(), extra=(), system="lg-collapsed-infinite", spread=0.1, rows=True):
    """Draws of three features in random order; `missing` draws lack the last, `extra` ones have one more."""
    shape = (chains, draws, 4)
    mean, prevalence = np.full((*shape, 4), np.nan, np.float32), np.full(shape, np.nan)
    z = np.zeros((chains, draws, ROWS, 4), bool)
    for at in np.ndindex(chains, draws):
        order = list(permutations(range(3)))[RNG.integers(6)]
        have = [k for k in order if not (at[1] in missing and k == 2)]
        table = TRUE[have] + spread * RNG.normal(size=(len(have), 4))
        if at[1] in extra:
            table = np.vstack([table, RNG.normal(size=4) - 9])
        if system.startswith("fa"):
            table *= RNG.choice([-1.0, 1.0], len(table))[:, None]
        mean[at][: len(table)] = table
        prevalence[at][: len(table)] = np.append(PREVALENCE[have], 0.1)[: len(table)]
        z[at][:, : len(have)] = np.arange(ROWS)[:, None] < ROWS * PREVALENCE[have]
    held = {
        "mean": (("chain", "draw", "place", "column"), mean),
        "prevalence": (("chain", "draw", "place"), prevalence),
    }
    if rows:
        held["z"] = (("chain", "draw", "row", "place"), z)
    level = RNG.normal(size=shape[:2])
    level[:, list(missing) + list(extra)] -= 100
    count = np.isfinite(prevalence).sum(axis=2).astype(float)
    scalars = {"log_joint": (("chain", "draw"), level), "features": (("chain", "draw"), count)}
    tree = xr.DataTree.from_dict(
        {
            "draws": xr.Dataset(held),
            "posterior": xr.Dataset(scalars),
            "params": xr.Dataset(coords={"column": list("abcd")}),
            "rows": xr.Dataset(coords={"row": [f"r{i}" for i in range(ROWS)]}),
        }
    )
    tree.attrs = {"system": system}
    return tree


def nearest(found):
    """Planted feature of each feature found."""
    return [int(np.argmin(((TRUE - row) ** 2).sum(1))) for row in found["mean"].values]


def test_features_are_matched_whatever_their_order():
    found = features(result())
    assert sorted(nearest(found)) == [0, 1, 2]
    order = nearest(found)
    np.testing.assert_allclose(found["mean"], TRUE[order], atol=0.08)
    np.testing.assert_allclose(found["prevalence"], PREVALENCE[order])
    assert found["share"].values.tolist() == [1.0, 1.0, 1.0]
    assert list(found["column"].values) == list("abcd")


def test_intervals_are_quantiles_over_draws():
    found = features(result(draws=400), interval=(0.05, 0.95))
    np.testing.assert_allclose(found["high"] - found["low"], 2 * 1.645 * 0.1, rtol=0.25)
    wide = features(result(draws=400), interval=(0.005, 0.995))
    assert float((wide["high"] - wide["low"]).mean()) > float((found["high"] - found["low"]).mean())


def test_a_feature_that_some_draws_lack():
    found = features(result(missing=range(10)))
    share = dict(zip(nearest(found), found["share"].values, strict=True))
    assert share[2] == pytest.approx(2 / 3)
    assert share[0] == share[1] == 1.0
    assert found["share"].values.tolist() == sorted(found["share"].values, reverse=True)
    np.testing.assert_allclose(found["mean"][-1], TRUE[2], atol=0.1)


def test_features_of_few_draws_do_not_disturb():
    found = features(result(extra=range(7)))
    np.testing.assert_allclose(found["mean"], TRUE[nearest(found)], atol=0.1)


def test_signs_are_matched_where_weights_leave_them_open():
    found = features(result(system="fa-gibbs-infinite"))
    np.testing.assert_allclose(np.abs(found["mean"]), TRUE[nearest(np.abs(found))], atol=0.1)
    assert found["share"].values.tolist() == [1.0, 1.0, 1.0]


def test_assign_against_all_permutations():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        named, found = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
        place, sign = assign(named, found)

        def cost(order, named=named, found=found):
            apart = ((named - found[list(order)]) ** 2).sum(1)
            return np.minimum(apart, (named**2).sum(1)).sum()

        mine = sum(
            ((named[k] - found[place[k]]) ** 2).sum() if place[k] >= 0 else (named[k] ** 2).sum()
            for k in range(3)
        )
        assert mine == pytest.approx(min(cost(order) for order in permutations(range(3))))
        assert (sign == 1).all()


def test_assign_nothing():
    assert assign(np.zeros((0, 3)), np.ones((2, 3)))[0].size == 0
    assert assign(np.ones((2, 3)), np.zeros((0, 3)))[0].tolist() == [-1, -1]


def test_rows_have_the_features_by_their_names():
    """Whatever their places in a draw; a draw that lacks a feature counts as one without it."""
    made = result(missing=range(6))
    found, named = rows(made), features(made)
    order = nearest(named)
    has = np.arange(ROWS)[:, None] < ROWS * PREVALENCE[order]
    np.testing.assert_allclose(found["z"], has * named["share"].values, atol=1e-12)
    assert list(found["row"].values) == [f"r{i}" for i in range(ROWS)]
    counts = has.astype(float).T @ has
    both = counts * np.minimum.outer(named["share"].values, named["share"].values)
    np.testing.assert_allclose(found["together"], both, atol=1e-12)
    with pytest.raises(UsageError, match="were not kept"):
        rows(result(rows=False))


def test_rows_that_share_features():
    found = cooccurrence(result())
    expected = np.array(
        [[sum(max(i, j) < ROWS * p for p in PREVALENCE) for j in range(ROWS)] for i in range(ROWS)]
    )
    np.testing.assert_allclose(found, expected)
    assert list(found["row"].values) == [f"r{i}" for i in range(ROWS)]
    some = cooccurrence(result(), rows=[0, 4])
    np.testing.assert_allclose(some, expected[np.ix_([0, 4], [0, 4])])


def test_rows_that_were_not_kept():
    with pytest.raises(UsageError, match="were not kept"):
        cooccurrence(result(rows=False))


def test_how_many_features():
    found = number(result(missing=range(10), extra=range(10, 15)))
    assert found["features"].values.tolist() == [2, 3, 4]
    np.testing.assert_allclose(found, [1 / 3, 1 / 2, 1 / 6])


def test_a_fit_has_no_draws():
    tree = xr.DataTree.from_dict({"params": xr.Dataset()})
    with pytest.raises(UsageError, match="not of a sampler"):
        features(tree)
