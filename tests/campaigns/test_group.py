"""Groups: what they are made of, which are under way, what is left of them."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import BUG, UsageError
from ibpdist.campaigns.directory import Manifest
from ibpdist.campaigns.group import code_of, opened, under_way
from ibpdist.campaigns.run import spec_of
from ibpdist.data.arrays import as_source
from ibpdist.data.splits import held
from ibpdist.inference.batch import AllEnded
from ibpdist.runs.group import GroupSpec, close, group_folder, group_of, open_bench
from ibpdist.runs.job import job_of, job_on
from ibpdist.storage import events
from tests.support.grids import grid
from tests.support.logs import events_of_kind


@pytest.fixture
def fits(store):
    source = as_source(store)
    return Manifest.of(spec_of(grid(store, holdout=0.25)), source.fingerprint).fits, source


def test_a_group_is_its_fits(fits):
    some, source = fits
    group = group_of([fit.spec for fit in some], source)
    assert [member.seed for member in group.algorithm.members] == [fit.spec.seed for fit in some]
    assert [member.algorithm.features for member in group.algorithm.members] == [3, 3, 4, 4]
    assert group.source is source
    assert group.checkpoint == 10
    assert group.rules() == [AllEnded()]
    assert group.algorithm.members[0].rules == tuple(group.jobs[0].rules())


def test_the_data_of_a_group_are_those_of_its_fits(fits):
    some, source = fits
    group = group_of([fit.spec for fit in some], held(source, 0.25))
    assert group.source.fingerprint == job_of(some[0].spec).source.fingerprint
    assert not group.source.read(3).observed.all()


def test_a_job_on_data_is_that_of_its_spec(fits):
    some, source = fits
    seen = held(source, 0.25)
    made, known = job_on(some[0].spec, seen), job_of(some[0].spec)
    assert made.spec == known.spec
    assert made.source.fingerprint == known.source.fingerprint
    assert made.algorithm == known.algorithm


def test_a_workbench_is_made_from_the_folder_alone(fits, tmp_path):
    some, source = fits
    with opened(tmp_path, some, held(source, 0.25)) as run:
        bench = open_bench(str(run.path), 0, "")
        assert len(bench.algorithm.members) == 4
        assert bench.source.fingerprint == run.identity["fingerprint"]
        spilled = open_bench(str(run.path), 0, str(tmp_path / "state"))
        assert (tmp_path / "state").is_dir()
        assert spilled.algorithm == bench.algorithm
    assert GroupSpec.read(run.path / "spec.yaml").fits == [fit.spec for fit in some]


def test_a_group_is_opened_again_while_it_is_under_way(fits, tmp_path):
    some, source = fits
    with opened(tmp_path, some, source) as run:
        nonce = run.nonce
    with opened(tmp_path, some, source) as run:
        assert run.nonce == nonce
        close(run, step=3)
    assert under_way(tmp_path, some) == []
    with opened(tmp_path, some, source) as run:
        assert run.nonce != nonce, "its fits are made again"
    assert under_way(tmp_path, some) == [list(some)]


def test_only_groups_of_wanted_fits_go_on(fits, tmp_path):
    some, source = fits
    for pair in (some[:2], some[2:]):
        with opened(tmp_path, pair, source):
            pass
    assert sorted(map(len, under_way(tmp_path, some))) == [2, 2]
    assert under_way(tmp_path, some[:2]) == [list(some[:2])]
    assert not group_folder(tmp_path, [fit.id for fit in some[2:]]).exists()


def test_a_group_goes_on_with_all_of_its_fits(fits, tmp_path):
    """Also with those that are there already, or that the grid has no more."""
    some, source = fits
    with opened(tmp_path, some, source) as run:
        nonce = run.nonce
    (found,) = under_way(tmp_path, some[1:2])
    assert [(fit.id, fit.spec) for fit in found] == [(fit.id, fit.spec) for fit in some]
    assert [dict(fit.labels) for fit in found] == [{}, dict(some[1].labels), {}, {}]
    with opened(tmp_path, found, source) as run:
        assert run.nonce == nonce
    assert under_way(tmp_path, []) == []
    assert not run.path.exists()


def test_a_group_whose_spec_is_of_another_version_is_made_again(fits, tmp_path, monkeypatch):
    some, source = fits
    with opened(tmp_path, some, source) as run:
        pass

    def refused(path):
        raise UsageError(f"{path}: fits: unknown key")

    monkeypatch.setattr(GroupSpec, "read", refused)
    assert under_way(tmp_path, some) == []
    assert not run.path.exists()


def test_a_damaged_group_is_made_again(fits, tmp_path):
    some, source = fits
    with opened(tmp_path, some, source) as run:
        run.events.add("step", step=1, terms={}, seconds=0.0)
        run.events.add("step", step=2, terms={}, seconds=0.0)
    log = run.path / "events.jsonl"
    log.write_bytes(b"#" + log.read_bytes()[1:])
    assert under_way(tmp_path, some) == []
    assert not run.path.exists()


def test_a_group_killed_while_it_was_made_is_made_again(fits, tmp_path):
    some, source = fits
    folder = group_folder(tmp_path, [fit.id for fit in some])
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text("half")
    assert under_way(tmp_path, some) == []
    with opened(tmp_path, some, source) as run:
        assert run.path == folder


def test_only_the_log_of_a_group_is_kept(store, tmp_path):
    run = tmp_path / "run"
    ibp.sweep(grid(store), run)
    (folder,) = (run / "groups").iterdir()
    assert {entry.name for entry in folder.iterdir()} == {"events.jsonl", "run.json", "spec.yaml"}
    kinds = [event["event"] for event in events.read(folder / "events.jsonl")]
    assert kinds[0] == "memory"
    assert kinds[-1] == "finished"


@pytest.mark.slow
def test_the_seconds_of_a_step_are_shared_by_those_who_made_it(store, tmp_path):
    run = tmp_path / "run"
    found = ibp.sweep(grid(store, steps=[3, 9]), run)
    (folder,) = (run / "groups").iterdir()
    log = [event for event in events.read(folder / "events.jsonl") if event["event"] == "step"]
    whole = sum(event["seconds"] for event in log)
    told_seconds = sum(event["seconds"] for event in events_of_kind(run, "fit"))
    assert told_seconds == pytest.approx(whole, abs=0.01)
    assert float(found.summary.seconds.sum()) == pytest.approx(whole, abs=0.01)
    assert (found.summary.seconds.sel(step_limit=3) < found.summary.seconds.sel(step_limit=9)).all()
    assert [event["terms"]["running"] for event in log] == [8.0, 8.0, *[4.0] * 6, 0.0]
    assert (found.summary.steps == np.array([3, 9])[:, None]).all()


def test_the_exit_code_of_a_sentence():
    assert code_of("ValueError: what; this is a bug") == BUG
    assert code_of("the noise is too small") == UsageError.code
