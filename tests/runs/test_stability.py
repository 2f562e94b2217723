"""Which features of a fit come back in subsamples: in memory, in runs, and after interruptions."""

import re
import shutil

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.campaigns.verify import verify
from ibpdist.data.arrays import ArrayData
from ibpdist.data.splits import HeldRows
from ibpdist.data.subsample import Subsample
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.runs import group, planning
from ibpdist.runs.export import export
from ibpdist.runs.fit import estimate
from ibpdist.runs.nested import nested_fits
from ibpdist.runs.stability import groups
from ibpdist.storage import events
from tests.support.compare import assert_same_result
from tests.support.planted_rows import planted
from tests.support.toy import toy_spec

ROWS = 240


def rows_of(rows=ROWS, seed=0):
    return planted(seed, rows, 12, [0.5, 0.4, 0.3], 0.3)[0].astype(np.float32)


QUICK = {"start": "random", "moves": False, "steps": 4, "rtol": 0.0}


@pytest.fixture
def source():
    """A dataset of four chunks."""
    return ArrayData(rows_of(), 64)


def fit(data, **options):
    return ibp.fit(data, **({"system": "lg-vi-infinite", "K": 5, "seed": 1, "steps": 12} | options))


# ---- the groups, from results made up ----------------------------------------------------------------


def made_up(mean, z, active=None, system="fa-vi-finite"):
    held = {
        "mean": (("feature", "column"), mean),
        "active": ("feature", np.ones(len(mean), bool) if active is None else np.asarray(active)),
        "prevalence": ("feature", z.mean(0)),
    }
    nodes = {"params": xr.Dataset(held), "rows": xr.Dataset({"z": (("row", "feature"), z)})}
    made = xr.DataTree(children={name: xr.DataTree(node) for name, node in nodes.items()})
    made.attrs = {"system": system, "stop": "converged"}
    return made


@pytest.fixture
def case():
    """A fit of four features, of which the second is not active, and fits of three subsamples: in other
    order and turned, without the last feature, and with somewhat other rows."""
    rng = np.random.default_rng(7)
    whole = ArrayData(rng.normal(size=(50, 9)), 16)
    parts = [Subsample(3, member).of(whole) for member in range(3)]
    mean, z = rng.normal(size=(4, 9)), rng.random((50, 4))
    origins = [np.concatenate([part.origin(i) for i in range(part.chunks)]) for part in parts]
    orders = [[2, 0, 3], [0, 2], [0, 2, 3]]
    fits = []
    for sign, order, rows in zip([-1.0, 1.0, 1.0], orders, origins, strict=True):
        near = sign * mean[order] + 0.05 * rng.normal(size=(len(order), 9))
        fits.append(
            made_up(near, np.clip(z[rows][:, order] + 0.2 * rng.normal(size=(len(rows), len(order))), 0, 1))
        )
    return made_up(mean, z, [True, False, True, True]), fits, parts, origins, orders


def nobody(what, done=0, whole=None):
    """Progress is not told."""


def test_features_that_come_back_are_counted(case):
    whole, fits, parts, _, _ = case
    found = groups(whole, fits, parts, nobody)["stability"]
    assert found.feature.values.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(found.present, [[1, 1, 1], [1, 1, 0], [1, 1, 1]])
    np.testing.assert_allclose(found.returns, [1, 1, 2 / 3])
    assert found.stable.values.tolist() == [True, True, False]
    assert found.match.values[0].tolist() == [1, 0, 2]
    assert (found.similarity.values[found.present.values] > 0.9).all()
    assert found.attrs == {"matched": 0.9, "least": 0.75}
    assert found.rows.values.tolist() == [part.rows for part in parts]


def test_agreement_is_the_share_of_rows_with_the_same_membership(case):
    whole, fits, parts, origins, orders = case
    found = groups(whole, fits, parts, nobody)["stability"]
    for s, (one, rows, order) in enumerate(zip(fits, origins, orders, strict=True)):
        for k in (0, 2, 3):
            value = float(found.agreement[s].sel(feature=k))
            if k not in order:
                assert np.isnan(value)
                continue
            ours = [float(whole["rows"]["z"][n, k]) > 0.5 for n in rows]
            theirs = [float(z) > 0.5 for z in one["rows"]["z"][:, order.index(k)]]
            same = sum(a == b for a, b in zip(ours, theirs, strict=True))
            assert value == pytest.approx(same / len(rows))
            assert value < 1


def test_the_consensus_is_of_turned_features_that_come_back(case):
    whole, fits, parts, _, orders = case
    found = groups(whole, fits, parts, nobody)["consensus"]
    assert found.feature.values.tolist() == [0, 2]
    for k in (0, 2):
        each = [one["params"]["mean"].values[order.index(k)] for one, order in zip(fits, orders, strict=True)]
        each[0] = -each[0]
        np.testing.assert_allclose(found["mean"].sel(feature=k), np.mean(each, axis=0))
        np.testing.assert_allclose(found["sd"].sel(feature=k), np.std(each, axis=0, ddof=1))


def test_nothing_active_gives_empty_groups(case):
    whole, fits, parts, _, _ = case
    whole["params"]["active"][:] = False
    found = groups(whole, fits, parts, nobody)
    assert found["stability"].sizes == {"feature": 0, "subsample": 3}
    assert found["consensus"]["mean"].shape == (0, 9)


def test_what_is_compared_is_told(case):
    whole, fits, parts, _, _ = case
    told = []
    groups(whole, fits, parts, lambda what, done=0, whole=None: told.append((what, done, whole)))
    assert told == [("comparing subsamples", at, 3) for at in range(3)]


# ---- fits ----------------------------------------------------------------------------------------------


def test_planted_features_come_back_and_those_of_one_subsample_do_not():
    found = fit(rows_of(), stability=4, steps=40)
    stability = found["stability"].to_dataset()
    assert int(found["params"]["active"].sum()) == stability.sizes["feature"] == 3
    assert (stability.returns == 1).all()
    assert (stability.agreement > 0.97).all()
    consensus = found["consensus"].to_dataset()
    np.testing.assert_allclose(consensus["mean"], found["params"]["mean"].values[:3], atol=0.2)
    assert (consensus["sd"] > 0).all()
    noise = fit(np.random.default_rng(1).normal(size=(120, 12)), K=4, stability=4, system="lg-vi-finite")
    shares = noise["stability"]["returns"].values
    assert not (shares >= 0.75).any()


@pytest.mark.parametrize("options", [{"restarts": 2}, {"holdout": 0.3, "subsample": 0.9}])
def test_a_run_has_the_bits_of_a_fit_in_memory(tmp_path, source, options):
    kept = fit(source, run=tmp_path / "run", stability=2, **options)
    assert_same_result(fit(source, stability=2, **options), kept)
    assert_same_result(kept, ibp.open_result(tmp_path / "run"))
    assert verify(tmp_path / "run") == []
    assert {child.name for child in (tmp_path / "run" / "subsamples").iterdir()} == {"000", "001"}
    assert ("restarts" in kept.children) == ("restarts" in options)


@pytest.mark.slow
def test_workers_have_the_bits_of_a_fit_in_memory(tmp_path, source):
    found = fit(source, run=tmp_path / "run", workers=2, memory=1 << 30, stability=2)
    assert_same_result(fit(source, stability=2), found)
    (log,) = (tmp_path / "run").glob("groups/*/events.jsonl")
    begun = [event for event in events.read(log) if event["event"] == "begin"]
    assert begun[0]["engine"] == "DaskEngine"


def test_the_fit_of_all_rows_is_what_it_is_without_subsamples(source):
    plain, found = fit(source), fit(source, stability=2)
    for name in plain.children:
        assert plain[name].to_dataset().identical(found[name].to_dataset()), name
    assert plain.attrs == found.attrs
    assert found.children.keys() - plain.children.keys() == {"stability", "consensus"}


def test_a_subsample_is_a_fit_of_its_rows(tmp_path):
    """The subsample run holds the fit of the rows that the seed and the member choose, and no others."""
    x = rows_of()
    fit(ArrayData(x, 64), run=tmp_path / "run", stability=2)
    part = Subsample(1, 1).of(ArrayData(x, 64))
    alone, kept = fit(part), ibp.open_result(tmp_path / "run" / "subsamples" / "001")
    for name in ("params", "rows", "trace"):
        assert alone[name].to_dataset().identical(kept[name].to_dataset().compute()), name


def test_far_columns_are_centred_as_for_all_rows(tmp_path):
    x = rows_of() + 1000.0
    kept = fit(ArrayData(x, 64), run=tmp_path / "run", stability=2)
    one = ibp.open_result(tmp_path / "run" / "subsamples" / "000")
    np.testing.assert_array_equal(one["transform"]["center"], kept["transform"]["center"])
    assert_same_result(fit(ArrayData(x, 64), stability=2), kept)


@pytest.mark.parametrize(
    "stop_at", [(2, 3), *(pytest.param(at, marks=pytest.mark.slow) for at in ((2, 12), (1, 5)))]
)
def test_an_interrupted_run_fits_nothing_finished_again(tmp_path, source, stop_at):
    """`stop_at`: all rows or the subsamples, which advance together, and after which of their steps."""
    number, last = [0], []

    def interrupt(now):
        number[0] += now.step == 1
        last.append((number[0], now.step))
        if last[-1] == stop_at:
            raise KeyboardInterrupt

    options = {"stability": 2, "rtol": 0.0, "checkpoint": 3}
    plain = fit(source, run=tmp_path / "plain", **options)
    with pytest.raises(KeyboardInterrupt):
        fit(source, run=tmp_path / "run", progress=interrupt, **options)
    assert verify(tmp_path / "run") == []
    steps = []
    assert_same_result(plain, ibp.resume(tmp_path / "run", progress=lambda now: steps.append(now.step)))
    assert len(steps) <= 12 * (3 - stop_at[0])
    assert verify(tmp_path / "run") == []


def test_results_of_subsamples_that_were_written_are_kept(tmp_path, source, monkeypatch):
    run, write = tmp_path / "run", group._write

    def stopping(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    plain = fit(source, stability=3, **QUICK)
    with monkeypatch.context() as patched:
        patched.setattr(group, "_write", stopping)
        with pytest.raises(KeyboardInterrupt):
            fit(source, run=run, stability=3, **QUICK)
    assert [path.name for path in (run / "subsamples").iterdir()] == ["000"]
    assert verify(run) == []
    kept, steps = (run / "subsamples/000/result.json").stat().st_mtime_ns, []
    assert_same_result(plain, ibp.resume(run, progress=lambda now: steps.append(now.step)))
    assert steps == []
    assert (run / "subsamples/000/result.json").stat().st_mtime_ns == kept
    assert verify(run) == []


def test_a_subsample_that_an_older_version_began_is_fitted_again(tmp_path, source):
    """It advanced in a run of its own."""
    run = tmp_path / "run"
    plain = fit(source, run=run, stability=2, **QUICK)
    for name in ("result.zarr", "subsamples/001/result.zarr", "groups"):
        shutil.rmtree(run / name)
    assert_same_result(plain, ibp.resume(run))
    assert verify(run) == []


def test_subsamples_that_do_not_fit_into_memory_together_have_the_same_bits(tmp_path, source, monkeypatch):
    plain = fit(source, stability=3, **QUICK)
    monkeypatch.setattr(planning, "LARGEST", 2)
    assert_same_result(plain, fit(source, stability=3, **QUICK))
    assert_same_result(plain, fit(source, stability=3, run=tmp_path / "run", **QUICK))
    assert len(list((tmp_path / "run" / "groups").iterdir())) == 2
    assert verify(tmp_path / "run") == []


def test_subsamples_without_rows_in_some_chunk_have_the_bits_of_fits_alone(tmp_path):
    """Their chunks have other numbers, so each advances alone."""
    data = ArrayData(rows_of(24), 2)
    found = fit(data, run=tmp_path / "run", stability=2, K=2, steps=3)
    assert len(list((tmp_path / "run" / "groups").iterdir())) == 2
    for member in range(2):
        part = Subsample(1, member).of(data)
        assert part.chunks < data.chunks
        alone = fit(part, K=2, steps=3)
        kept = ibp.open_result(tmp_path / "run" / "subsamples" / f"{member:03d}")
        for name in ("params", "rows", "trace"):
            assert alone[name].to_dataset().identical(kept[name].to_dataset().compute()), name
    assert_same_result(fit(data, stability=2, K=2, steps=3), found)


def test_the_estimate_is_that_of_the_subsamples_together():
    data = np.random.default_rng(0).normal(size=(50_000, 4)).astype(np.float32)
    asked = {"system": "lg-vi-finite", "K": 20, "serial": True}
    state = [
        float(re.search(r"row state ([\d.]+) MB", estimate(data, **asked, **more))[1])
        for more in ({}, {"stability": 6})
    ]
    assert state[1] == pytest.approx(6 * state[0], abs=0.5)


def test_a_subsample_that_fails_fails_the_run(tmp_path, source, monkeypatch):
    update, seconds = Coordinate.update, []

    def broken(self, params, sums, draws):
        seconds.extend([draws] * (draws.step == 2))
        if len(seconds) == 3:  # of all rows, of the first subsample, of the second one
            raise ZeroDivisionError("on purpose")
        return update(self, params, sums, draws)

    monkeypatch.setattr(Coordinate, "update", broken)
    for run in (None, tmp_path / "run"):
        seconds.clear()
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            fit(source, run=run, stability=2, moves=False)
    monkeypatch.undo()
    assert_same_result(fit(source, stability=2, moves=False), ibp.resume(tmp_path / "run"))


def test_what_is_missing_of_a_subsample_is_named(tmp_path, source):
    fit(source, run=tmp_path / "run", stability=2, steps=3)
    shutil.rmtree(tmp_path / "run" / "subsamples" / "001")
    assert verify(tmp_path / "run") == [f"{tmp_path}/run/subsamples/001: is missing"]


def test_a_start_from_another_fit_is_of_all_rows_only(source):
    first = fit(source, seed=4)
    plain, begun = fit(source, stability=2), fit(source, stability=2, start=first, steps=1)
    assert begun["params"]["mean"].shape == plain["params"]["mean"].shape
    again = fit(source, stability=2, steps=1)
    assert not np.array_equal(begun["params"]["mean"], again["params"]["mean"])
    assert begun["stability"]["stop"].values.tolist() == again["stability"]["stop"].values.tolist()


def test_it_is_exported(tmp_path, source):
    fit(source, run=tmp_path / "run", stability=2, steps=4)
    written = {
        path.name for path in export(tmp_path / "run", tmp_path / "csv") if path.parent.name == "stability"
    }
    assert {"returns.csv", "agreement.csv", "stop.csv"} <= written
    lines = (tmp_path / "csv" / "consensus" / "mean.csv").read_text().splitlines()
    assert lines[0].startswith("feature,column 0")


def test_fits_within_a_run_have_names():
    spec = toy_spec("memory", restarts=2).model_copy(update={"stability": 3})
    assert [one.words for one in nested_fits(spec)] == [
        "start 1 of 2", "start 2 of 2", "subsample 1 of 3", "subsample 2 of 3", "subsample 3 of 3",
    ]  # fmt: skip
    assert [one.spec.member for one in nested_fits(spec)] == [None, None, 0, 1, 2]
    assert nested_fits(toy_spec("memory")) == []


# ---- refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "options", "match"),
    [
        (ROWS, {"stability": 1}, "^stability: expected greater than or equal to 2, got 1$"),
        (ROWS, {"stability": 2.0}, "^stability: expected integer"),
        (ROWS, {"stability": 2, "subsample": 1.0}, "^subsample: expected less than 1"),
        (ROWS, {"subsample": 0.9}, "no subsamples are asked for: give stability, their number$"),
        (1, {"stability": 2, "K": 1}, r"^stability is 2, but subsample \d has [01] of 1 row: expected"),
        (ROWS, {"stability": 2, "subsample": 0.001, "K": 1}, "has [01] of 240 rows: expected at least 2"),
        (40, {"stability": 2, "K": 30}, r"^K is 30, but subsample \d has \d\d of 40 rows: give a smaller K"),
        (ROWS, {"stability": 2, "system": "fa-gibbs-finite"}, "for fa-gibbs-finite use chains"),
        (ROWS, {"stability": 2, "system": "lg-collapsed-finite"}, "for lg-collapsed-finite use chains"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_is_written(tmp_path, rows, options, match):
    for run in (None, tmp_path / "run"):
        with pytest.raises(UsageError, match=match) as caught:
            fit(rows_of(rows), run=run, **options)
        assert caught.value.code == 2
        assert str(caught.value).count(". ") == 0
    assert not (tmp_path / "run").exists()


def test_rows_that_are_held_out_do_not_count(source):
    kept = HeldRows(0.9, 0).train(source).rows
    with pytest.raises(UsageError, match=f"has 1?[0-9] of {kept} rows"):
        fit(source, K=20, stability=2, holdout="rows:share=0.9")
