"""Features over draws: matched, averaged, counted."""

import tracemalloc
from itertools import permutations

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.evaluate import posterior
from ibpdist.evaluate.posterior import assign, cooccurrence, features, number, prevalences, rows
from ibpdist.report import chains as told

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


# --- who names them ---


def with_levels(made, per_feature=0.0):
    """The result in other units: each feature more shifts the log joint density by as much."""
    scalars = made["posterior"].to_dataset()
    level = scalars["log_joint"] + per_feature * scalars["features"]
    made["posterior"] = xr.DataTree(scalars.assign(log_joint=level))
    return made


def test_the_most_frequent_number_names_them_in_any_units():
    """Densities of A are those of other units: of draws with unlike numbers they are not compared."""
    made = result(missing=range(5), extra=range(5, 9))
    one, *others = (features(with_levels(made, shift)) for shift in (0.0, 1e5, -2e5))
    usual = made["posterior"]["features"].values
    assert usual[tuple(one.attrs["named_by"])] == 3
    assert sorted(nearest(one)) == [0, 1, 2]
    for other in others:
        assert other.identical(one)


def test_of_draws_with_this_number_the_best_names_them():
    made = result(missing=range(5))
    level = np.where(made["posterior"]["features"] == 3, made["posterior"]["log_joint"], np.inf)
    scalars = made["posterior"].to_dataset().assign(log_joint=(("chain", "draw"), level))
    made["posterior"] = xr.DataTree(scalars)
    best = np.unravel_index(np.argmax(np.where(np.isinf(level), -np.inf, level)), level.shape)
    assert features(made).attrs["named_by"] == list(best)


def test_of_two_numbers_as_frequent_the_smaller():
    found = features(result(draws=20, missing=range(10)))
    assert found.sizes["feature"] == 2


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_features_are_those_of_the_data_in_other_units(factor):
    """The same draws as a sampler of the same data in other units has them: density of A included."""
    x = ibp.synthetic("images", rows=40, noise=0.5, seed=3).x.values
    made = ibp.fit(x, system="lg-collapsed-infinite", K=3, chains=2, steps=60, seed=1)
    one, draws = features(made), made["draws"].to_dataset()
    made["draws"] = xr.DataTree(draws.assign(mean=draws["mean"] * factor))
    other = features(with_levels(made, -x.shape[1] * np.log(factor)))
    assert other.attrs["named_by"] == one.attrs["named_by"]
    np.testing.assert_allclose(other["share"], one["share"])
    np.testing.assert_allclose(other["mean"], factor * one["mean"], rtol=1e-4, atol=1e-4 * factor)


# --- no feature at all ---


def empty(system="lg-collapsed-infinite", room=0, chains=2, draws=6):
    """Draws of which most, or all where there is no room, have no feature."""
    mean = np.full((chains, draws, room, 4), np.nan, np.float32)
    prevalence = np.full((chains, draws, room), np.nan)
    mean[0, 0], prevalence[0, 0] = 1.0, 0.5
    made = result(draws=draws, chains=chains, system=system)
    shape, z = ("chain", "draw", "place"), np.zeros((chains, draws, ROWS, room), bool)
    held = {"mean": ((*shape, "column"), mean), "prevalence": (shape, prevalence)}
    held["z"] = (("chain", "draw", "row", "place"), z)
    count = np.isfinite(prevalence).sum(axis=2).astype(float)
    scalars = made["posterior"].to_dataset().assign(features=(("chain", "draw"), count))
    made["draws"], made["posterior"] = xr.DataTree(xr.Dataset(held)), xr.DataTree(scalars)
    made.attrs["rows"] = ROWS
    return made


@pytest.mark.parametrize("room", [0, 1])
@pytest.mark.parametrize("system", ["lg-collapsed-infinite", "fa-gibbs-infinite"])
def test_most_draws_have_no_feature(system, room):
    made = empty(system, room)
    found = features(made)
    assert found["mean"].shape == found["low"].shape == found["high"].shape == (0, 4)
    assert prevalences(made)["share"].shape == (0,)
    assert rows(made)["z"].shape == (ROWS, 0)
    assert rows(made)["together"].shape == (0, 0)
    assert cooccurrence(made).values.tolist() == np.zeros((ROWS, ROWS)).tolist()
    assert float(number(made).sel(features=0)) == (1.0 if room == 0 else pytest.approx(11 / 12))
    assert list(told.features(prevalences(made), ROWS)) == []
    assert told.answer(made).startswith("0 features in ")


# --- many draws ---


def test_memory_does_not_grow_with_draws(monkeypatch):
    """8 MB of draws by the megabyte: matched in blocks of draws, counted in blocks of columns."""
    monkeypatch.setattr(posterior, "BLOCK", 1 << 20)
    shape, columns = (2, 100, 4), 2500
    true = np.zeros((4, columns), np.float32)
    true[np.arange(4), np.arange(4)] = 9.0

    def some(block_info=None):
        (_, _), (first, last), *_ = block_info[None]["array-location"]
        noise = np.random.default_rng(first).normal(size=(1, last - first, 1, 1)).astype(np.float32)
        return true + 0.02 * noise

    mean = da.map_blocks(
        some, dtype=np.float32, chunks=((1, 1), (10,) * 10, (4,), (columns,)), meta=np.empty((0,) * 4, "f4")
    )
    held = {"mean": (("chain", "draw", "place", "column"), mean)}
    held["prevalence"] = (("chain", "draw", "place"), np.full(shape, 0.3))
    made = result(draws=100)
    scalars = {name: (("chain", "draw"), np.zeros(shape[:2])) for name in ("features", "log_joint")}
    made["draws"], made["posterior"] = xr.DataTree(xr.Dataset(held)), xr.DataTree(xr.Dataset(scalars))
    made["params"] = xr.DataTree(xr.Dataset())
    prevalences(made)  # what is imported with the first of them stays
    for ask in (prevalences, features):
        tracemalloc.start()
        found = ask(made)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found["share"].values.tolist() == [1.0] * 4
        assert peak < 5 << 20
    np.testing.assert_allclose(found["high"] - found["low"], 2 * 1.645 * 0.02, rtol=0.3)


def test_blocks_change_nothing(monkeypatch):
    made = result(missing=range(10), system="fa-gibbs-infinite")
    whole = features(made), rows(made)
    monkeypatch.setattr(posterior, "BLOCK", 1)
    for one, other in zip(whole, (features(made), rows(made)), strict=True):
        assert one.identical(other)


def test_show_reads_no_intervals_of_cells(monkeypatch):
    """It needs shares and prevalences only."""
    monkeypatch.setattr(posterior, "_columns", None)
    made = result()
    made.attrs["rows"] = ROWS
    assert len(list(told.features(prevalences(made), ROWS))) == 4
