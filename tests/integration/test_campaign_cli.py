"""Campaigns on the command line: what it says, its exit codes, kills, and two at once."""

import re
import signal
import time

import pytest

import ibpdist as ibp
from ibpdist.campaigns.directory import CampaignDirectory
from ibpdist.campaigns.verify import verify
from ibpdist.storage import events
from tests.support.command import invoke, start
from tests.support.compare import assert_same_result
from tests.support.grids import as_yaml, grid, small_store, steps_made
from tests.support.logs import events_of_kind


@pytest.fixture
def file(store, tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(as_yaml(grid(store)))
    return path


def wait_for(what, process, seconds=120.0):
    """Until something is so, while a process works on it."""
    deadline = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def steps_of_group(run, number):
    """Steps of the group that began as so many others had."""
    logs = sorted(
        run.glob("groups/*/events.jsonl"), key=lambda log: log.with_name("run.json").stat().st_mtime
    )
    if len(logs) <= number:
        return 0
    return sum(event["event"] == "step" for event in events.read(logs[number]))


def test_a_campaign_from_a_file(file, tmp_path):
    run = tmp_path / "run"
    said = invoke("sweep", file, run, "--estimate")
    assert said.exit_code == 0
    assert said.stdout.startswith("4 fits\n4 fits in 1 group, in this process\n")
    assert not run.exists()
    done = invoke("sweep", file, run)
    assert done.exit_code == 0, done.output
    assert "4 of 4 fits ended" in done.stdout
    assert done.stdout.endswith(f"written to {run}; more with: ibpdist show {run}\n")
    assert "sweep: 4 of 4 fits ended" in done.stderr
    shown = invoke("show", run)
    assert shown.stdout in done.stdout
    assert invoke("sweep", file, run, "-q").output == ""
    assert invoke("resume", run, "-q").exit_code == 0
    assert steps_made(run) == 6
    assert invoke("verify", run).stdout == f"{run}: no problems\n"


def test_resume_takes_the_grid_that_is_sealed(file, tmp_path):
    run = tmp_path / "the run"
    assert invoke("sweep", file, run, "-q").exit_code == 0
    own = run / "campaign.yaml"
    text = own.read_text()
    own.write_text(text.replace("restarts: 2", "restarts: 3"))
    for arguments in (("resume", run), ("sweep", own, run)):
        done = invoke(*arguments, "-q")
        assert (done.exit_code, len(done.stderr.splitlines())) == (4, 1)
        assert done.stderr.startswith(
            f"ibpdist: {own}: is not the grid that manifest.json seals; remove it to"
        )
    own.unlink()
    done = invoke("resume", run)
    assert done.exit_code == 0
    assert done.stdout.endswith(f"more with: ibpdist show '{run}'\n")
    assert own.read_text() == text
    assert invoke("verify", run).exit_code == 0


def test_a_fit_that_is_damaged_is_shown(store, tmp_path):
    file, run = tmp_path / "campaign.yaml", tmp_path / "run"
    file.write_text(as_yaml(grid(store, truncation=3, restarts=3, holdout=0.25)))
    assert invoke("sweep", file, run, "-q").exit_code == 0
    fits = ibp.open_campaign(run).manifest.fits
    score, log = (
        run / "fits" / fits[at].id / name for at, name in ((0, "heldout.json"), (1, "events.jsonl"))
    )
    score.write_text("half")
    log.unlink()
    for name in ("show", "evaluate", "report"):
        done = invoke(name, run)
        assert done.exit_code == 0, done.output
    shown = invoke("show", run).stdout
    assert "1 of 3 fits ended" in shown
    assert f"restart 0: {score}: damaged" in shown
    assert f"restart 1: {log}: is missing" in shown
    done = invoke("sweep", file, run, "-q")
    assert done.exit_code == 4
    assert done.stderr.startswith(
        f"ibpdist: 1 of 3 fits failed, first lg-vi-infinite, K = 3, restart 1: {log}"
    )
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_killed_while_results_are_written_it_makes_no_step_again(tmp_path):
    store = small_store(tmp_path, rows=600, columns=18, chunk_rows=60)
    file, run = tmp_path / "campaign.yaml", tmp_path / "run"
    systems = ["lg-vi-infinite", "fa-vi-infinite"]
    file.write_text(
        as_yaml(grid(store, system=systems, truncation=[4, 8], restarts=2, holdout=0.1, steps=10))
    )
    process = start("sweep", file, run, "--serial", "-q")
    wait_for(lambda: list(run.glob("fits/*/result.zarr")), process)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    written = len(list(run.glob("fits/*/result.zarr")))
    made, (folder,) = steps_made(run), run.glob("groups/*")
    assert (made, written < 8) == (10, True)
    process = start("sweep", file, run, "--serial", "-q")
    assert process.wait(300) == 0, process.stderr.read()
    begun = [e["step"] for e in events.read(folder / "events.jsonl") if e["event"] == "begin"]
    assert begun == [0, 10]
    assert steps_made(run) == 10
    assert list(run.glob("groups/*")) == [folder]
    assert verify(run) == []


def test_other_commands_take_the_best_fit(store, file, tmp_path):
    run = tmp_path / "run"
    assert invoke("sweep", file, run, "-q").exit_code == 0
    best = ibp.open_campaign(run).best_fit()
    done = invoke("evaluate", run, store, "-q")
    assert done.exit_code == 0, done.output
    assert f"{run} is a campaign; using its best fit, {run / 'fits' / best.id}" in done.stderr
    assert "held-out score" in done.stdout
    assert "heldout" in ibp.open_campaign(run).best().children
    assert invoke("transform", run, store, tmp_path / "out.zarr", "-q").exit_code == 0
    assert invoke("export", run, tmp_path / "csv", "-q").exit_code == 0
    assert (tmp_path / "csv").is_dir()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("restarts: 2", "restarts: two", "line 4: restarts: expected integer, got 'two'"),
        ("restarts: 2", "restart: 2", "line 4: restart: unknown key; did you mean restarts?"),
        (
            "restarts: 2",
            "restarts: 1000000000",
            "line 4: restarts: makes a grid of 2,000,000,000 fits; expected",
        ),
        (
            "restarts: 2",
            "holdout: [0.1, 'cells:foo=2']",
            "line 4: holdout: unknown key 'foo', expected one of",
        ),
        (
            "moves: false",
            "moves: yes",
            "line 9: set.moves: lg-vi-infinite: expected true or false, got 'yes'",
        ),
        ("restarts: 2", "restarts: 2\nrestarts: 2", "line 5: restarts stands twice, first in line 4"),
        ("moves: false", "mooves: false", "line 9: set.mooves: lg-vi-infinite has no such setting"),
    ],
)
def test_a_fault_in_the_file_is_2_with_key_and_line(file, tmp_path, old, new, sentence):
    file.write_text(file.read_text().replace(old, new))
    done = invoke("sweep", file, tmp_path / "run")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"ibpdist: {file}: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_failed_fit_gives_the_campaign_its_code(store, tmp_path):
    file = tmp_path / "campaign.yaml"
    settings = {"moves": False, "noise": ["one", 1e-100]}
    file.write_text(as_yaml(grid(store, truncation=3, set=settings)))
    done = invoke("sweep", file, tmp_path / "run", "-q")
    assert done.exit_code == 2
    first = "lg-vi-infinite, K = 3, noise 1e-100, restart 0"
    assert done.stderr.startswith(
        f"ibpdist: 2 of 4 fits failed, first {first}: noise is 1e-100, but the cells"
    )
    assert len(done.stderr.splitlines()) == 1


def test_a_campaign_in_use_is_refused_before_anything_else(file, tmp_path):
    held = CampaignDirectory(tmp_path / "run")
    try:
        done = invoke("sweep", file.with_name("not there.yaml"), tmp_path / "run")
    finally:
        held.close()
    assert done.exit_code == 6
    assert re.fullmatch(rf"ibpdist: {tmp_path / 'run'}: in use by process \d+ on .*\n", done.stderr)


def test_the_limit_that_nobody_chose_is_7(file, tmp_path, monkeypatch):
    from ibpdist.catalog.spec import FitSpec

    monkeypatch.setattr(FitSpec.model_fields["steps"], "default", 6)
    assert invoke("sweep", file, tmp_path / "run", "-q").exit_code == 7


@pytest.mark.slow
def test_killed_in_the_middle_it_computes_no_committed_fit_again(store, tmp_path):
    keys = grid(store, holdout=[0.25, 0.3], steps=60, checkpoint=5)
    file, run = tmp_path / "campaign.yaml", tmp_path / "run"
    file.write_text(as_yaml(keys))
    process = start("sweep", file, run, "--serial")
    wait_for(lambda: steps_of_group(run, 1) > 10, process)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    committed = {event["fit"] for event in events_of_kind(run, "fit")}
    assert len(committed) == 4
    assert all(problem.endswith("removes it") for problem in verify(run)), "at rest it is always valid"
    before = {fit: (run / "fits" / fit / "result.json").stat().st_mtime_ns for fit in committed}
    made = steps_made(run)
    process = start("sweep", file, run, "--serial", "-q")
    assert process.wait(200) == 0, process.stderr.read()
    assert {fit: (run / "fits" / fit / "result.json").stat().st_mtime_ns for fit in committed} == before
    assert len(events_of_kind(run, "fit")) == 8
    assert steps_made(run) <= 120 + 15, f"{made} steps were made before"
    plain = ibp.sweep(keys, tmp_path / "plain")
    found = ibp.open_campaign(run)
    for fit in plain.manifest.fits:
        assert_same_result(found.open(fit), plain.open(fit))
    assert verify(run) == []


def test_interrupted_it_says_how_to_go_on(store, tmp_path):
    file, run = tmp_path / "a campaign.yaml", tmp_path / "the run"
    file.write_text(as_yaml(grid(store, steps=100_000)))
    first = start("sweep", file, run, "--serial")
    wait_for(lambda: steps_of_group(run, 0) > 3, first)
    second = start("sweep", file, run, "--serial")
    assert second.wait(120) == 6
    assert re.search(rf"{re.escape(str(run))}: in use by process {first.pid} on", second.stderr.read())
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    assert first.wait(60) == 130
    said = first.stderr.read()
    assert f"ibpdist: continue with: ibpdist sweep '{file}' '{run}'" in said
    assert not (run / "lock").exists()
