"""New rows in the units of the fit, whatever was done to its data when they were ingested."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import InputError
from ibpdist.campaigns.verify import verify
from ibpdist.data.append import append
from ibpdist.data.transform import Transform, transform_of
from ibpdist.predict.units import BackUnits, Transformed, recorded
from tests.support.command import invoke

WAYS = [
    pytest.param({"center": True}, marks=pytest.mark.slow),
    {"scale": True},
    pytest.param({"log1p": True}, marks=pytest.mark.slow),
    {"log1p": True, "center": True, "scale": True},
]


def rows(count=300):
    x = ibp.synthetic("linear-gaussian", rows=300, columns=8, features=3, seed=4, mass=2.0).x.values
    return np.abs(3 * x.astype(float) + np.arange(8))[:count]


def fit(data, **options):
    return ibp.fit(data, **({"system": "lg-vi-infinite", "K": 5, "steps": 30} | options))


def by_hand(store, x):
    return transform_of(ibp.open_dataset(store)).apply(x)


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: "-".join(way))
def made(request, tmp_path_factory):
    """`train.zarr` in units of its own with `run`, and new rows as they are in `raw.zarr`."""
    folder = tmp_path_factory.mktemp("units")
    ibp.ingest(rows(200), folder / "train.zarr", **request.param)
    new = rows()[200:]
    new[3, 2] = np.nan
    ibp.ingest(new, folder / "raw.zarr", chunk_rows=32)
    ibp.ingest(by_hand(folder / "train.zarr", new), folder / "done.zarr")
    fit(folder / "train.zarr", run=folder / "run")
    return folder


@pytest.fixture(scope="module")
def answer(made):
    """z of the new rows and their score, by a fit of values that were transformed by hand."""
    plain = fit(by_hand(made / "train.zarr", rows(200)))
    done = made / "done.zarr"
    return ibp.transform(plain, done)["z"].values, ibp.evaluate(plain, done)["score"].values


def test_a_result_says_what_was_done(made):
    stored = transform_of(ibp.open_dataset(made / "train.zarr"))
    result = ibp.open_result(made / "run")
    found = recorded(result)
    assert found.attributes() == stored.attributes() == json.loads(result.attrs["transform"])
    np.testing.assert_allclose(found.undo(stored.apply(rows(200))), rows(200), rtol=1e-12)
    for name in ("center", "scale"):
        if stored.attributes()[name]:
            np.testing.assert_array_equal(result["transform"][name], getattr(stored, name))
    assert verify(made / "run") == []


def test_raw_rows_get_what_the_fit_got(made, answer):
    new = rows()[200:]
    new[3, 2] = np.nan
    for data in (made / "raw.zarr", str(made / "raw.zarr"), ibp.open_dataset(made / "raw.zarr"), new):
        np.testing.assert_allclose(ibp.transform(made / "run", data)["z"].values, answer[0], atol=1e-4)
        np.testing.assert_allclose(ibp.evaluate(made / "run", data)["score"].values, answer[1], rtol=1e-5)


def test_rows_that_were_done_with_the_same_numbers_stay_as_they_are(made, answer, tmp_path):
    shutil.copytree(made / "train.zarr", tmp_path / "grown.zarr")
    append(tmp_path / "grown.zarr", rows()[200:])
    found = ibp.transform(made / "run", tmp_path / "grown.zarr")["z"].values[200:]
    others = np.arange(100) != 3
    np.testing.assert_allclose(found[others], answer[0][others], atol=1e-4)
    own = ibp.transform(made / "run", made / "train.zarr")["z"].values
    assert np.abs(own - ibp.open_result(made / "run")["rows"]["z"].values).mean() < 1e-2


def test_rows_in_other_units_are_refused(made, tmp_path):
    plain = fit(rows(200), steps=2)
    own = tmp_path / "own.zarr"
    ibp.ingest(rows()[200:], own, center=True)
    for act in (ibp.evaluate, ibp.transform):
        for run, data in ((plain, made / "train.zarr"), (made / "run", own), (plain, own)):
            with pytest.raises(InputError, match=r"was ingested with --.*: ingest it without") as caught:
                act(run, data)
            assert str(caught.value).startswith(f"{data}: ")


def test_the_sentence_says_which(tmp_path):
    ibp.ingest(rows(200), tmp_path / "a.zarr", center=True)
    ibp.ingest(rows()[100:], tmp_path / "b.zarr", center=True)
    ibp.ingest(rows(), tmp_path / "c.zarr", center=True, scale=True)
    runs = {name: fit(data, steps=2) for name, data in (("a", tmp_path / "a.zarr"), ("raw", rows(200)))}

    def sentence(run, store):
        with pytest.raises(InputError) as caught:
            ibp.transform(runs[run], tmp_path / store)
        return str(caught.value).removeprefix(f"{tmp_path}/").partition(": ingest")[0]

    theirs = "was ingested with --center, the data of the fit with"
    assert sentence("a", "b.zarr") == f"b.zarr: {theirs} other numbers"
    assert sentence("raw", "b.zarr") == f"b.zarr: {theirs} nothing of the kind"
    assert sentence("a", "c.zarr").endswith("with --center --scale, the data of the fit with --center")


def test_held_out_cells_of_the_fit_stay_in_its_units(tmp_path):
    ibp.ingest(rows(200), tmp_path / "a.zarr", center=True, scale=True)
    for holdout in (0.25, "rows:share=0.2"):
        run = tmp_path / f"run{holdout}"
        fit(tmp_path / "a.zarr", run=run, holdout=holdout)
        hidden = float(ibp.evaluate(run)["score"][1])
        there = fit(by_hand(tmp_path / "a.zarr", rows(200)), holdout=holdout)
        again = ibp.evaluate(there, by_hand(tmp_path / "a.zarr", rows(200)), visible="fitted")
        assert hidden == pytest.approx(float(again["score"][1]), rel=1e-4)


@pytest.mark.parametrize("system", ["lg-vi-finite", "lg-gibbs-infinite"])
def test_a_dataset_that_is_copied_into_a_run_keeps_its_units(tmp_path, system):
    ibp.ingest(rows(200), tmp_path / "a.zarr", center=True, attributes={"image": [2, 4]})
    data = ibp.open_dataset(tmp_path / "a.zarr")
    result = fit(data, run=tmp_path / "run", system=system, steps=4)
    np.testing.assert_array_equal(result["transform"]["center"], data.extra("transform_center"))
    assert json.loads(result.attrs["image"]) == [2, 4]
    assert recorded(fit(data, restarts=1 if "gibbs" in system else 2, system=system, steps=4)) is not None
    np.testing.assert_array_equal(
        ibp.transform(tmp_path / "run", rows()[200:])["z"], ibp.transform(result, rows()[200:])["z"]
    )
    assert verify(tmp_path / "run") == []


def test_a_result_that_does_not_say_still_opens(tmp_path):
    result = fit(rows(200), steps=2)
    assert recorded(result).is_identity
    assert "transform" not in result.children
    ibp.ingest(rows()[200:], tmp_path / "new.zarr", center=True)
    before = result.copy()
    del before.attrs["transform"]
    assert recorded(before) is None
    assert ibp.transform(before, tmp_path / "new.zarr").sizes["row"] == 100
    assert np.isfinite(ibp.evaluate(before, rows()[200:])["score"]).all()


def test_transformed_rows_are_a_source_like_any_other():
    from ibpdist.data.arrays import ArrayData

    x = rows(100).astype(np.float32)
    x[40, 1] = np.nan
    raw = ArrayData(x, 32)
    made = Transformed(raw, Transform(center=np.full(8, 2.0), scale=np.full(8, 3.0)), None)
    assert (made.rows, made.columns, made.chunks, made.bounds(1)) == (100, 8, 4, (32, 64))
    assert made.fingerprint == raw.fingerprint
    chunk = made.read(1)
    assert chunk.x.dtype == np.float32
    assert chunk.x[8, 1] == 0
    assert not chunk.observed[8, 1]
    np.testing.assert_allclose(chunk.x[0], (x[32] - 2) / 3, rtol=1e-6)
    assert raw.read(1).x[0, 3] == x[32, 3], "what was given is not changed"
    counts = Transformed(ArrayData(-x), Transform(log1p=True), "new.zarr")
    with pytest.raises(InputError, match=r"new\.zarr: row 0, column 0: .* is negative"):
        counts.read(0)


def test_the_numbers_are_exported(tmp_path):
    ibp.ingest(rows(200), tmp_path / "a.zarr", center=True)
    fit(tmp_path / "a.zarr", run=tmp_path / "run", steps=2)
    for name, expected in (("run", ["transform/center.csv"]), ("plain", [])):
        if name == "plain":
            fit(rows(200), run=tmp_path / "plain", steps=2)
        done = invoke("export", tmp_path / name, tmp_path / f"{name}.csv")
        assert done.exit_code == 0
        found = [str(p.relative_to(tmp_path / f"{name}.csv")) for p in (tmp_path / f"{name}.csv").rglob("*")]
        assert [one for one in found if one.startswith("transform/")] == expected
    lines = list(csv.reader((tmp_path / "run.csv/transform/center.csv").open()))
    assert lines[0] == ["column", "center"]
    np.testing.assert_allclose([float(line[1]) for line in lines[1:]], rows(200).mean(0))


@pytest.mark.parametrize("fit_log", [False, True])
@pytest.mark.parametrize("as_stored", [False, True])
def test_values_of_a_fit_are_taken_back(fit_log, as_stored):
    """Rows that were stored as those of the fit, and then centred by it."""
    rng = np.random.default_rng(0)
    raw, scale, center = rng.uniform(1, 9, (5, 3)), rng.uniform(1, 4, 3), rng.normal(size=3)
    done = Transform(fit_log, center, scale)
    given = Transform(fit_log, None, scale)
    back, stored = BackUnits(done, given, as_stored), given.apply(raw)
    np.testing.assert_allclose(back.values(done.apply(raw)), stored if as_stored else raw)
    np.testing.assert_allclose(back.observed(stored), stored if as_stored else raw)
    assert (back.observed(stored) is stored) == as_stored


@pytest.mark.parametrize("as_stored", [False, True])
def test_values_of_raw_rows_are_in_their_units(as_stored):
    raw = np.random.default_rng(0).uniform(1, 9, (5, 3))
    done = Transform(True, np.ones(3), np.full(3, 2.0))
    back = BackUnits(done, Transform(), as_stored)
    assert back.observed(raw) is raw
    assert back.log1p
    np.testing.assert_allclose(back.values(done.apply(raw)), raw)
    assert (back.values(np.full((1, 3), -5.0)) == 0).all()


def test_deviations_are_those_of_draws():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(1, 3)), rng.uniform(0.1, 0.4, (1, 3))
    drawn = rng.normal(mean, sd, size=(400_000, 3))
    done = Transform(True, np.ones(3), np.full(3, 1.5))
    for back in (
        BackUnits(done, Transform()),
        BackUnits(done, done, stored=True),
        BackUnits(replace(done, log1p=False), Transform(False, None, np.full(3, 3.0)), stored=True),
    ):
        wanted = back.values(drawn).std(axis=0)
        np.testing.assert_allclose(back.deviations(mean, sd)[0], wanted, rtol=0.02)
