"""What a campaign would take: counted, planned and timed, with nothing written."""

import re

import pytest

import ibpdist as ibp
from ibpdist import campaign_estimate
from ibpdist.campaign_estimate import estimate
from ibpdist.errors import UsageError
from tests.support.grids import grid, small_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return small_store(tmp_path_factory.mktemp("data"))


def test_it_counts_plans_and_times(store, tmp_path):
    keys = grid(store, holdout=[0.1, 0.2], steps=1000)
    lines = estimate(keys, tmp_path / "run").splitlines()
    assert lines[0] == "8 fits"
    assert lines[1] == "8 fits in 2 groups, in this process"
    assert lines[2].startswith("memory of a process: base 256 MB")
    assert re.fullmatch(r"disk: at most .* of results, and .* of checkpoints while they are made", lines[3])
    assert re.fullmatch(
        r"time: at most .*, if every fit makes its 1,000 steps; fits that converge make fewer", lines[4]
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


def test_time_is_that_of_all_steps(store, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign_estimate, "_step", lambda *args: 60.0)
    monkeypatch.setattr(campaign_estimate, "_clocked", lambda work: (work(), 0.0))
    said = estimate(grid(store, steps=[10, 20]), tmp_path / "run")
    assert "time: at most 2 h 0 min, if every fit makes its 10 or 20 steps" in said


def test_every_kind_of_fit_is_timed_once(store, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(campaign_estimate, "_step", lambda spec, *rest: seen.append(spec) or 1.0)
    estimate(grid(store, system=["lg-vi-infinite", "fa-vi-infinite"], restarts=5), tmp_path / "run")
    assert [(spec.system, spec.truncation) for spec in seen] == [
        (system, level) for system in ("lg-vi-infinite", "fa-vi-infinite") for level in (3, 4)
    ]


def test_disk_grows_with_rows_and_features(store):
    from ibpdist.campaigns import spec_of
    from ibpdist.data.arrays import as_source

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
    said = estimate(grid(store, set={"family": ["structured", "nonsense"]}), tmp_path / "run")
    assert said.startswith("8 fits")


def test_a_wrong_place_is_refused(store, tmp_path):
    with pytest.raises(UsageError, match="exclude each other"):
        estimate(grid(store), tmp_path / "run", workers=2, serial=True)
