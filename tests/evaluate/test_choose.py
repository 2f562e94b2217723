"""The system, the number of features and row noise, chosen by rows of the data that were held out."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.evaluate.choose import SYSTEMS, choose

FIT = {"serial": True, "steps": 60}


def rows(kind, count=240, columns=24, features=4, seed=1):
    """Rows that have every factor, or each about one in seven."""
    rng = np.random.default_rng(seed)
    on = np.ones((count, features)) if kind == "dense" else rng.random((count, features)) < 0.15
    w = on * rng.normal(size=(count, features)) * (1 if kind == "dense" else 2)
    return w @ rng.normal(size=(features, columns)) + 0.4 * rng.normal(size=(count, columns))


def uneven(count=200, columns=20, seed=2):
    """Rows with one factor, some much noisier than others."""
    rng = np.random.default_rng(seed)
    sd = 0.5 / np.sqrt(rng.gamma(1.5, 1 / 1.5, (count, 1)))
    return rng.normal(size=(count, 1)) @ rng.normal(size=(1, columns)) + sd * rng.normal(
        size=(count, columns)
    )


class Told:
    """What a progress is told."""

    def __init__(self):
        self.plans, self.steps = [], 0

    def __call__(self, now):
        self.steps += 1

    def plan(self, fits, ended):
        self.plans.append(([fit.name for fit in fits], ended))


def test_rows_with_few_factors_are_sparse():
    found = choose(rows("sparse"), K=6, **FIT)
    assert found.system == "fa-vi-infinite"
    assert found.scores["fa-vi-infinite"] > found.scores["fa-vi-dense"] + 0.01


def test_rows_with_all_factors_lose_nothing_either_way():
    """The choice is the better of both, and dense is not far."""
    found = choose(rows("dense"), K=6, **FIT)
    assert found.scores[found.system] == max(found.scores.values())
    assert found.scores["fa-vi-dense"] > found.scores["fa-vi-infinite"] - 0.01


def test_features_that_are_not_there_are_not_needed():
    """Four factors were planted: two are too few, and of more than four none predicts much better."""
    found = choose(rows("dense"), K=[8, 2, 4], systems=["fa-vi-dense"], **FIT)
    assert list(dict.fromkeys(one.K for one in found.candidates)) == [2, 4, 8]
    score = found.table.score.sel(system="fa-vi-dense", row_noise="learn")
    assert float(score.sel(K=4)) > float(score.sel(K=2)) + 0.1
    assert found.K_smallest == 4
    assert found.K in (4, 8)
    assert not found.candidates[0].as_good


def test_the_score_is_of_rows_that_the_fit_did_not_see():
    """As the parts do by hand: hold rows out, fit, and predict each half from the other."""
    from ibpdist.data.arrays import as_source
    from ibpdist.data.splits import as_split

    x, holdout = rows("sparse"), "rows:share=0.2,seed=3"
    found = choose(x, K=6, share=0.2, seed=3, systems=["fa-vi-dense"], **FIT)
    result = ibp.fit(x, system="fa-vi-dense", K=6, seed=3, holdout=holdout, **FIT)
    test = as_split(holdout).test(as_source(x))
    assert found.rows == test.rows
    assert 20 < test.rows < 80
    both = [ibp.evaluate(result, test, visible=half).sel(estimate="variance") for half in ("even", "odd")]
    mean = np.mean([half.row_score.values / half.cells.values for half in both], axis=0)
    (one,) = (one for one in found.candidates if one.row_noise == "learn")
    assert one.score == pytest.approx(mean.mean(), rel=1e-12)
    assert one.standard_error == pytest.approx(mean.std(ddof=1) / np.sqrt(test.rows), rel=1e-9)
    assert one.active == int(result["params"]["active"].sum())


def test_row_noise_is_compared_where_rows_differ():
    found = choose(uneven(), K=[1, 2], systems=["fa-vi-dense"], **FIT)
    assert [(one.K, one.row_noise) for one in found.candidates] == [
        (1, "learn"), (1, "none"), (2, "learn"), (2, "none"),
    ]  # fmt: skip
    assert len({one.score for one in found.candidates}) == 4
    without = choose(uneven(), K=1, systems=["fa-vi-dense"], row_noise="none", **FIT)
    assert without.candidates[0].score == found.candidates[1].score
    assert without.settings == {"row_noise": "none"}


def test_row_noise_is_not_compared_where_rows_do_not_differ():
    """The fit that learns it finds none; the fit without it is told as dropped before the score."""
    told = Told()
    found = choose(rows("dense", seed=3), K=4, systems=["fa-vi-dense"], progress=told, **FIT)
    assert [one.row_noise for one in found.candidates] == ["learn"]
    learns, without = "fa-vi-dense, K=4", "fa-vi-dense, K=4, row_noise=none"
    assert told.plans == [([learns, without], 0), ([learns], 0)]
    assert told.steps > 0


def test_systems_without_row_noise_are_fitted_once():
    found = choose(rows("sparse", 60), K=[2, 3], systems=["lg-vi-finite"], serial=True, steps=10)
    assert [(one.K, one.row_noise) for one in found.candidates] == [(2, "none"), (3, "none")]
    assert found.settings == {}


def test_settings_of_the_system_are_part_of_the_choice():
    options = {"row_noise": "none", "noise": "one", "serial": True, "steps": 5}
    found = choose(rows("dense", 60), K=2, systems=["fa-vi-dense"], **options)
    assert found.settings == {"row_noise": "none", "noise": "one"}, "what says where it runs is not"


def test_auto_is_a_grid_within_rows_and_columns():
    told = Told()
    found = choose(
        rows("dense", 60), K="auto", systems=["fa-vi-dense"], progress=told, row_noise="none", **FIT
    )
    assert [one.K for one in found.candidates] == [5, 10, 20], "24 columns"
    assert [ended for _, ended in told.plans] == [0, 1, 2]
    few = choose(rows("dense", 60, columns=3), K="auto", systems=["fa-vi-dense"], row_noise="none", **FIT)
    assert [one.K for one in few.candidates] == [3]


def test_all_fits_warn_once_of_the_same_data(tmp_path):
    x = rows("dense", 60, columns=6)
    x[:, 0] += 1e6
    np.save(tmp_path / "x.npy", x)
    ibp.ingest(tmp_path / "x.npy", tmp_path / "x.zarr")
    with pytest.warns(UserWarning, match="far from zero") as told:
        choose(tmp_path / "x.zarr", K=[1, 2], systems=["fa-vi-dense"], row_noise="none", **FIT)
    assert len(told) == 1


def test_the_same_choice_again():
    x = rows("sparse", 80)
    one, two = (choose(x, K=2, seed=5, serial=True, steps=20) for _ in range(2))
    assert one == two
    assert set(one.scores) == set(SYSTEMS)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (0, "K: 0: expected auto or whole numbers"),
        ([5, -1], "K: -1: expected auto or whole numbers"),
        ("5,10", "K: '5,10': expected auto or whole numbers"),
        ([5, 2.0], "K: 2.0: expected auto or whole numbers"),
        (True, "K: True: expected auto or whole numbers"),
        (None, "K: None: expected auto or whole numbers"),
        ([], "K: empty"),
        ([5, 10, 5], "K: 5 is given twice"),
    ],
)
def test_no_numbers_of_features(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        choose(rows("dense", 40), K=given, **FIT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"systems": []}, "systems: empty"),
        ({"systems": ["fa-vi-dense"] * 2}, "systems: fa-vi-dense is given twice"),
        ({"systems": ["lg-gibbs-infinite"], "K": [3, 4]}, "K: lg-gibbs-infinite has no limit of features"),
        ({"systems": ["lg-gibbs-infinite"], "K": "auto"}, "K: lg-gibbs-infinite has no limit of features"),
        ({"share": 0.001}, "share: 0.001 of 40 rows holds 0 out"),
        ({"share": 0.999}, "share: 0.999 of 40 rows holds 40 out"),
        ({"holdout": 0.1}, "holdout: choose has no such option"),
        ({"stability": 4}, "stability: choose has no such option"),
    ],
)
def test_what_cannot_be_compared(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        choose(rows("dense", 40), **{"K": 3, **FIT, **options})


def test_one_column_predicts_nothing():
    with pytest.raises(UsageError, match="expected at least 2, the data have 1"):
        choose(np.arange(40.0)[:, None], K=1, **FIT)
