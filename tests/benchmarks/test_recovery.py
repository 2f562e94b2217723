"""The recovery benchmark: its rows, its summary, its command line, and the benchmark sets."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

import ibpdist
from tests.benchmarks import recovery
from tests.support import benchmark_sets, recovered
from tests.support.planted import SETS, Problem, draw
from tests.support.recovered import METHODS, Options, Study, components
from tests.support.recovery_rows import Row, summary

PROBLEM = Problem(300, 40, 5, "0.3", 0.25, 8, (3, 1))
OPTIONS = Options("grid", 0, ("default", "truth"))
PLACE = ("grid", 0, 300, 40, 5, "0.3", 0.25, 8, "default")


def row(**values):
    known = {"active": 5, "active_truth": 5, "matched": 5, "matched_truth": 5, "matched_both": 5}
    times = {"gap": 1e-5, "gap_nats": 1e-5, "seconds": 3.0, "cpu": 1.0, "times": 2.0, "cpu_times": 1.5}
    return Row(*PLACE, **{**known, **times, **values})


@pytest.fixture
def small(monkeypatch):
    for kind in SETS:
        monkeypatch.setitem(SETS, kind, lambda kind, seed, number: replace(PROBLEM, seed=(seed, number)))


@pytest.fixture
def study():
    return Study(draw(PROBLEM), PROBLEM, OPTIONS)


def test_the_reference_has_no_gap_to_itself(study):
    made = study.row(0, "truth")
    assert (made.gap, made.gap_nats, made.error) == (0, 0, "")
    assert made.active == made.active_truth == made.matched == made.matched_both == 5
    assert made.times == pytest.approx(study.truth.seconds / study.random.seconds)


def test_a_row_is_what_the_fit_says(study):
    made, fit = study.row(4, "default"), ibpdist.fit(study.planted.x, system="lg-vi-infinite", K=8, seed=0)
    truth = study.truth.objective
    assert (made.number, made.truncation, made.features) == (4, 8, 5)
    assert made.objective == fit.attrs["objective"]
    assert made.gap == pytest.approx((truth - fit.attrs["objective"]) / abs(truth))
    assert made.gap_nats == pytest.approx((truth - fit.attrs["objective"]) / (300 * 40))
    assert made.active == int(fit["params"]["active"].sum())
    assert made.steps == fit.attrs["steps"]
    assert made.matched_both <= min(made.matched, made.matched_truth)


def test_gap_in_nats_counts_observed_cells():
    problem = replace(PROBLEM, missing=0.1)
    study = Study(draw(problem), problem, OPTIONS)
    made = study.row(0, "random")
    short = study.truth.objective - made.objective
    assert made.gap_nats == pytest.approx(short / np.isfinite(study.planted.x).sum())


def test_a_fit_that_fails_is_a_row_with_its_error(study, monkeypatch):
    def broken(*arguments, **options):
        raise ValueError("nothing goes")

    assert study.row(0, "truth").error == ""
    monkeypatch.setattr(ibpdist, "fit", broken)
    made = Study(study.planted, PROBLEM, OPTIONS).row(0, "default")
    assert made.error.startswith("ValueError in test_recovery.py:")
    assert made.error.endswith("nothing goes")
    assert "FAILED" in str(made)
    assert math.isnan(made.gap)


def test_planted_components_are_matched_whatever_their_sign_and_length():
    pytest.importorskip("sklearn")
    problem = replace(PROBLEM, rows=2000, prevalence="0.5", noise=0.1)
    planted = draw(problem)
    study = Study(planted, problem, Options("grid", 0, ("ica", "fa")))
    made = study.row(0, "ica")
    assert made.matched == 5
    assert made.free
    assert math.isnan(made.gap)
    assert "gap" not in str(made)
    assert study.row(0, "fa").error == ""
    holes = np.where(np.random.default_rng(0).random(planted.x.shape) < 0.05, np.nan, planted.x)
    found, facts = components(holes, "FactorAnalysis", 5)
    assert found.shape == (5, 40)
    assert np.isfinite(found).all()
    assert facts["free"]


def test_summary_counts_every_row():
    rows = [
        row(),
        row(gap=2e-3, gap_nats=1e-2, matched_both=2, active=6),
        row(gap=-2e-3, times=20.0, seconds=1.0, active_truth=4),
        row(times=11.0, seconds=2.5, matched_truth=4, matched_both=4),
        Row(*PLACE, error="ValueError: x"),
    ]
    text = summary("default", rows)
    assert "5 problems, 1 failed" in text
    assert "gap < 0.1 % 60.0 %, < 0.0001 nats a cell 60.0 %, median 1e-05" in text
    assert "worst 0.002, more than 0.1 % above 20.0 %" in text
    assert "matched 84.2 % of those the truth start matches (16 of 19, 25 planted)" in text
    assert "K as planted 60.0 %, as in the truth start 40.0 %" in text
    assert "within 10 plain fits or 2 s 60.0 %, of processor time 80.0 %" in text
    assert "longest 3 s" in text


def test_summary_of_nothing_and_of_failures_alone():
    assert summary("fa", []) == "fa: no problems"
    text = summary("default", [Row(*PLACE, error="E: x")])
    assert "1 problems, 1 failed" in text
    assert "gap < 0.1 % 0.0 %" in text


def test_free_components_have_no_gap_and_no_count():
    text = summary("ica", [row(free=True, gap=math.nan)])
    assert "gap" not in text
    assert "K as planted" not in text
    assert "matched 100.0 %" in text


def test_the_command_prints_and_stores_a_row_for_each_problem_and_method(small, tmp_path, capsys):
    out = tmp_path / "rows.csv"
    wanted = ["7", "--count", "2", "--methods", "truth", "random", "--out", str(out)]
    assert recovery.main(wanted) == 0
    lines = capsys.readouterr().out.splitlines()
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [(one["number"], one["method"]) for one in rows] == [
        ("0", "truth"), ("0", "random"), ("1", "truth"), ("1", "random"),
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[:4]] == ["0", "0", "1", "1"]
    assert sum(line.startswith(("truth: 2 problems", "random: 2 problems")) for line in lines) == 2
    assert {one["error"] for one in rows} == {""}


def test_one_problem_by_number_is_the_one_of_the_whole(small, capsys):
    recovery.main(["7", "--only", "1", "--methods", "truth"])
    alone = capsys.readouterr().out.splitlines()[0]
    recovery.main(["7", "--count", "2", "--methods", "truth"])
    among = capsys.readouterr().out.splitlines()[1]
    assert alone.split("gap")[0] == among.split("gap")[0]


def test_options():
    given = recovery.parse(["3", "--near", "--set", "noise=column", "mass=2"])
    assert (given.seed, given.problems, given.methods) == (3, "near", ["default"])
    assert recovery.settings(given.set) == {"noise": "column", "mass": 2.0}
    with pytest.raises(SystemExit):
        recovery.parse(["3", "--methods", "magic"])
    assert set(METHODS) == {"default", "random", "moved", "truth", "fa", "ica"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    planted, new = draw(PROBLEM), draw(replace(PROBLEM, rows=50))
    packed = np.packbits(planted.z, axis=1)
    held = {"X_train": planted.x, "X_test": new.x, "A": planted.dictionary}
    np.savez(tmp_path / "syn_plain.npz", Z_train=planted.z, **held)
    np.savez(tmp_path / "syn_packed.npz", Z_train=packed, **held)
    monkeypatch.setattr(benchmark_sets, "TRUNCATIONS", {"plain": 5, "packed": 8})
    return tmp_path


def test_packed_and_plain_sets_are_the_same(folder):
    plain, packed = (benchmark_sets.read(folder, name) for name in ("plain", "packed"))
    np.testing.assert_array_equal(plain.z, packed.z)
    assert plain.z.shape == (300, 5)


def test_each_seed_of_a_set_is_compared_with_the_truth_start(folder, capsys):
    lines = list(benchmark_sets.compared(folder, ["packed"], 4, 2, "lg-vi-infinite"))
    assert len(lines) == 4
    assert "truth: score" in lines[0]
    assert "(+0.0000)" in lines[0]
    assert "active  5, matched 5 of 5" in lines[0]
    assert ["seed 4" in lines[1], "seed 5" in lines[2]] == [True, True]
    assert "of 2 seeds" in lines[3]
    assert recovery.main(["4", "--data", str(folder), "--sets", "packed", "--seeds", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_verdict_counts_seeds(folder):
    held = benchmark_sets.read(folder, "plain")
    right = recovered.Found(np.ones((5, 40)), 1.0, 1.0)
    wrong = recovered.Found(np.ones((6, 40)), 1.0, 1.0)
    reference = benchmark_sets.Scored(right, -1.0, -1.0)
    made = [
        benchmark_sets.Scored(right, -1.001, -1.001),
        benchmark_sets.Scored(right, -1.001, -1.003),
        benchmark_sets.Scored(wrong, -0.9, -0.9),
    ]
    text = benchmark_sets.verdict(held, made, reference)
    assert "of 3 seeds 2 score at most 0.002 below" in text
    assert "(3 with features as certain)" in text
    assert "2 have 5 active features, 1 both" in text
