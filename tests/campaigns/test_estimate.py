"""What a campaign would take: counted, planned and timed, with nothing written."""

import re
import time

import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.campaigns import estimate as campaign_estimate
from ibpdist.campaigns import timing as campaign_time
from ibpdist.campaigns.estimate import estimate
from ibpdist.campaigns.run import spec_of
from ibpdist.campaigns.timing import WRITING, Timing, Trial
from ibpdist.data.arrays import as_source
from tests.support.grids import grid


def test_it_counts_plans_and_times(store, tmp_path):
    keys = grid(store, holdout=[0.1, 0.2], steps=1000)
    lines = estimate(keys, tmp_path / "run").splitlines()
    assert lines[0] == "8 fits"
    assert lines[1] == "8 fits in 2 groups, in this process"
    assert lines[2].startswith("memory of a process: base 256 MB")
    assert re.fullmatch(r"disk: at most .* of results, and .* of checkpoints while they are made", lines[3])
    assert re.fullmatch(
        r"time: about .*, if every fit makes its 1,000 steps; fits that converge make fewer", lines[4]
    )
    assert len(lines) == 5
    assert not (tmp_path / "run").exists()


def test_only_what_is_new_is_estimated(store, tmp_path):
    run = tmp_path / "run"
    ibp.sweep(grid(store, truncation=3), run)
    lines = estimate(grid(store), run).splitlines()
    assert lines[0] == "4 fits, 2 of them are there already"
    assert lines[1] == "2 fits in 1 group, in this process"
    assert estimate(grid(store, truncation=3), run) == "2 fits, 2 of them are there already"


def test_where_it_would_run(store, tmp_path):
    assert "in 2 local processes" in estimate(grid(store), tmp_path / "run", workers=2)
    assert "cluster at tcp://127.0.0.1:1" in estimate(
        grid(store), tmp_path / "run", scheduler="tcp://127.0.0.1:1"
    )


def test_time_is_that_of_all_fits(store, tmp_path, monkeypatch):
    monkeypatch.setattr(Timing, "seconds", lambda self, spec, stored: 6.0 * spec.steps)
    said = estimate(grid(store, steps=[10, 20]), tmp_path / "run")
    assert "time: about 12 min, if every fit makes its 10 or 20 steps" in said


def spec(store, **keys):
    return next(spec_of(grid(store, **keys)).cells()).spec


@pytest.fixture
def timing(store):
    return Timing(as_source(store), 1)


def test_a_fit_takes_more_than_its_steps(store, timing, monkeypatch):
    """Its start and moves, writing its result, and its score."""
    timing.plain = dict.fromkeys([("lg-vi-infinite", 3, 1, one) for one in (0.0, 0.25)], (2.0, 1.0))
    monkeypatch.setattr(Timing, "_trial", lambda self, spec: Trial(5.0, 1.5, 2))
    monkeypatch.setattr(Timing, "score", lambda self, spec, active: 100.0 * active)
    rows = timing.source.rows / timing.rows.rows
    steps = (5.0 + 6 * 1.5) * (2.0 * rows + 1.0)
    assert timing.seconds(spec(store), 0) == pytest.approx(steps + WRITING)
    assert timing.seconds(spec(store, holdout=0.25), int(1e8)) == pytest.approx(steps + WRITING + 1 + 200)


def test_chains_are_counted(store, timing, monkeypatch):
    one, four = (
        spec(store, system="lg-gibbs-finite", chains=chains, set={}, start="random") for chains in (1, 4)
    )
    monkeypatch.setattr(Timing, "_trial", lambda self, spec: Trial(0.0, 1.0, 2))
    fixed = WRITING + campaign_time.DIAGNOSED
    alone, together = (timing.seconds(some, 0) - fixed for some in (one, four))
    assert together == pytest.approx(4 * alone)
    in_turn = spec(store, system="lg-collapsed-finite", chains=2, set={}, start="random")
    spread = Timing(as_source(store), 4)
    assert spread._share_of(in_turn) == pytest.approx(2 * spread._share_of(one)), "two of four processes"


def test_every_kind_of_fit_is_timed_once(store, tmp_path, monkeypatch):
    steps, trials = [], []
    plain, made = Timing._step, Timing._made
    monkeypatch.setattr(
        Timing, "_step", lambda self, fit, *more: steps.append(fit) or plain(self, fit, *more)
    )
    monkeypatch.setattr(
        Timing, "_made", lambda self, spec, count: trials.append(spec.system) or made(self, spec, count)
    )
    estimate(grid(store, system=["lg-vi-infinite", "fa-vi-infinite"], restarts=5), tmp_path / "run")
    assert len(steps) == 4, "two systems with two numbers of features"
    assert trials == ["lg-vi-infinite"] * 2 + ["fa-vi-infinite"] * 2, "once to compile"


def test_hidden_cells_are_scored_in_the_estimate(store, tmp_path):
    """What is timed is the same work: the fit sees the hidden cells as missing."""
    timing = Timing(as_source(store), 1)
    scored = spec(store, holdout=0.25)
    assert timing.seen(scored).read(0).observed is not None
    assert timing.seconds(scored, 0) > WRITING
    assert [kind[:2] for kind in timing.scores] == [("unit", timing.trials[next(iter(timing.trials))].active)]


def test_what_compiles_is_counted_once(store, monkeypatch):
    timing, slept = Timing(as_source(store), 1), []

    def compiles():
        if not slept:
            time.sleep(0.05)
        slept.append(1)

    timing._warm(compiles)
    assert 0.03 < timing.compiling < 1.0
    before = timing.compiling
    timing._warm(compiles)
    assert timing.compiling - before < 0.02
    monkeypatch.setattr(Timing, "seconds", lambda self, spec, stored: 0.0)
    assert campaign_time.seconds([[spec(store)]], timing, lambda spec: 0, False) >= timing.compiling
    assert campaign_time.seconds([[spec(store)]], timing, lambda spec: 0, True) >= campaign_time.WORKERS


def test_disk_grows_with_rows_and_features(store):
    source = as_source(store)
    sizes = [
        campaign_estimate._stored(
            next(spec_of(grid(store, system=system, truncation=level)).cells()).spec, source
        )
        for system, level in (("lg-vi-infinite", 3), ("lg-vi-infinite", 6), ("fa-vi-infinite", 6))
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] >= source.rows * 3 * source.dtype.itemsize


def test_auto_and_bad_settings_are_estimated_too(store, tmp_path):
    said = estimate(grid(store, truncation=["auto", 3], start="spectral"), tmp_path / "run")
    assert said.startswith("4 fits")


def test_fits_that_cannot_begin_are_listed(store, tmp_path):
    keys = {"truncation": 3, "holdout": [0.1, "rows:share=0.999999"], "set": {"noise": ["one", 1e-100]}}
    lines = estimate(grid(store, **keys), tmp_path / "run").splitlines()
    assert lines[:2] == ["8 fits", "6 fits cannot begin:"]
    named = [line for line in lines if line.startswith("- ")]
    assert [line.partition(": ")[0].partition("K = 3, ")[2] for line in named] == [
        "holdout 0.1, noise 1e-100",
        "holdout rows:share=0.999999, noise one",
        "holdout rows:share=0.999999, noise 1e-100",
    ]
    assert "noise is 1e-100, but the cells have a variance" in named[0]
    assert "no row of 240 is left to train on" in named[1]
    assert lines[5] == "2 fits in 1 group, in this process"
    found = ibp.sweep(grid(store, **keys), tmp_path / "made")
    assert len(found.failed) == 6, "they are those that fail"
    assert (
        estimate(grid(store, **keys), tmp_path / "made").splitlines()[0]
        == "8 fits, 2 of them are there already"
    )


def test_a_fit_that_fits_nowhere_cannot_begin(store, tmp_path):
    said = estimate(grid(store, truncation=[3, 1500], restarts=1), tmp_path / "run", memory=450_000_000)
    assert "1 fit cannot begin:\n- lg-vi-infinite, K = 1500: a process needs" in said
    assert "1 fit in 1 group" in said


def test_a_wrong_place_is_refused(store, tmp_path):
    with pytest.raises(UsageError, match="exclude each other"):
        estimate(grid(store), tmp_path / "run", workers=2, serial=True)
