"""Flows on a real Prefect server: a deployment that comes round, artifacts, processes killed with -9."""

import json
import os
import signal

import psutil
import pytest

import ibpdist as ibp
from ibpdist.storage import events
from tests.support.prefect_server import HERE, POOL, PrefectServer

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
GRID = """\
data: {data}
system: lg-vi-infinite
truncation: [4, 6]
steps: {steps}
rtol: 0.0
holdout: {holdout}
checkpoint: 5
set: {{moves: false, start: random}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = PrefectServer(tmp_path_factory.mktemp("prefect"))
    try:
        made.start()
        made.prefect("work-pool", "create", POOL, "--type", "process")
        yield made
    finally:
        made.close()


@pytest.fixture
def worker(server):
    """A worker that lives, which a test may kill."""
    if not server.workers():
        server.start_worker()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    store = tmp_path_factory.mktemp("data") / "x.zarr"
    ibp.synthesise("images", store, rows=20_000, noise=0.1, seed=3, chunk_rows=5_000)
    return store


def grid(folder, data, steps=60, holdout="[0.1, 0.2, 0.3]"):
    """A campaign of two fits for each share that is held out, every share a group of its own."""
    file = folder / "grid.yaml"
    file.write_text(GRID.format(data=data, steps=steps, holdout=holdout))
    return file


def deploy(server, campaign, run):
    """The deployment of every night, as deploy/prefect.yaml has it; its id."""
    variables = {
        "IBPDIST_HOME": str(HERE),
        "IBPDIST_CAMPAIGN": str(campaign),
        "IBPDIST_RUN": str(run),
        "IBPDIST_SCHEDULER": "",
    }
    server.prefect("deploy", "--all", "--prefect-file", "deploy/prefect.yaml", **variables)
    return server.ask("deployments/name/campaign/nightly")["id"]


def begin(server, deployment, **parameters):
    """A flow run of a deployment now; its id."""
    body = {"state": {"type": "SCHEDULED"}, "parameters": parameters}
    return server.ask(f"deployments/{deployment}/create_flow_run", body)["id"]


def flow_run(server, name):
    return server.ask(f"flow_runs/{name}")


def ended(server, name, *states):
    """Wait for the end of a flow run; its state must be one of `states`."""
    over = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")

    def is_over():
        found = flow_run(server, name)
        return found if found["state_type"] in over else None

    found = server.wait(is_over, 240, 0.5)
    assert found["state_type"] in states, f"{found['state']['message']}\n{server.logs()}"
    return found


def artifacts(server, run):
    """The newest artifact of each key of a run, by what it is."""
    found = server.ask("artifacts/latest/filter", {})
    return {one["key"].removeprefix(f"{run.name}-"): one for one in found if one["key"].startswith(run.name)}


def committed(run):
    """Fits in the order in which their results were written, as the log of the campaign has them."""
    return [event["fit"] for event in events.read(run / "events.jsonl") if event["event"] == "fit"]


def steps_made(run):
    """How often each step of each group was made, and the last step saved before each start."""
    made = {}
    for log in run.glob("groups/*/events.jsonl"):
        read = events.read(log)
        made[log.parent.name] = [e["step"] for e in read if e["event"] == "step"]
    return made


def results(run):
    """When the results of a campaign were written, in nanoseconds, and which bytes they are."""
    return {file.parent.name: file.stat().st_mtime_ns for file in run.glob("fits/*/result.json")}


def process_of(server, run):
    """The process that works on a run, as its lock names it."""
    file = run.with_name(f"{run.name}.flow")

    def named():
        try:
            return json.loads(file.read_text())["pid"]
        except (OSError, ValueError, KeyError):
            return None

    return server.wait(named, 90)


def under_way(server, run):
    """Wait until a group has ended and another one has made some steps."""

    def is_so():
        made = steps_made(run) if run.exists() else {}
        return committed(run) and sum(5 < len(steps) < 60 for steps in made.values()) == 1

    server.wait(is_so, 240, 0.02)


def kill(pid):
    """SIGKILL, for a process and those that it started."""
    family = [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]
    os.kill(pid, signal.SIGKILL)
    for process in family[:-1]:
        process.kill()
    psutil.wait_procs(family, timeout=30)


def assert_went_on(run, before, reference):
    """Nothing that was committed was made again, and the bits are those of a campaign nobody disturbed."""
    after = committed(run)
    assert after[: len(before["fits"])] == before["fits"]
    assert len(after) == len(set(after)) == 6, "every result is written once"
    assert {fit: results(run)[fit] for fit in before["results"]} == before["results"]
    for group, steps in steps_made(run).items():
        earlier = before["steps"].get(group, [])
        assert sorted(set(steps)) == list(range(1, 61))
        again = len(steps) - 60
        assert again <= 10, "at most what came after the last checkpoint but one"
        assert again == 0 or 5 < len(earlier) < 60, "only in the group that was under way"
    ours, theirs = ibp.open_campaign(run).summary, ibp.open_campaign(reference).summary
    for name in ("objective", "heldout", "active", "steps", "status", "seed", "fit"):
        assert ours[name].identical(theirs[name]), name


@pytest.fixture(scope="module")
def reference(tmp_path_factory, data):
    """The campaign without any flow."""
    folder = tmp_path_factory.mktemp("reference")
    ibp.sweep(grid(folder, data), folder / "run", serial=True)
    return folder / "run"


def test_the_scheduled_deployment_runs_to_its_end(server, worker, data, tmp_path):
    run = tmp_path / "nightly"
    deployment = deploy(server, grid(tmp_path, data, steps=4, holdout="0.1"), run)
    known = server.ask(f"deployments/{deployment}")
    assert [one["schedule"].get("cron") for one in known["schedules"]] == ["0 2 * * *"]
    assert known["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    assert known["parameters"]["where"] == {"scheduler": ""}
    often = {"schedule": {"interval": 20, "anchor_date": "2026-01-01T00:00:00Z"}, "active": True}
    (added,) = server.ask(f"deployments/{deployment}/schedules", [often])

    def has_begun():
        asked = {"deployments": {"id": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_ASC"}
        found = server.ask("flow_runs/filter", asked)
        return next((one["id"] for one in found if one["state_type"] != "SCHEDULED"), None)

    begun = server.wait(has_begun, 120)
    server.ask(f"deployments/{deployment}/schedules/{added['id']}", method="DELETE")
    found = ended(server, begun, "COMPLETED")
    assert found["auto_scheduled"]
    assert (run / "report.html").is_file()
    assert set(ibp.open_campaign(run).summary.status.values.ravel()) == {"finished"}
    tasks = server.ask("task_runs/filter", {"flow_runs": {"id": {"any_": [found["id"]]}}})
    assert {task["name"].rsplit("-", 1)[0] for task in tasks} == {"sweep", "report"}
    assert {task["state_type"] for task in tasks} == {"COMPLETED"}
    assert not list(server.home.glob("storage/*")), "Prefect keeps no result"

    left = artifacts(server, run)
    assert {name: one["type"] for name, one in left.items()} == {
        "answer": "markdown",
        "summary": "table",
        "report": "markdown",
        "progress": "progress",
    }
    assert "by the held-out score the best: lg-vi-infinite, K = " in left["answer"]["data"]
    rows = json.loads(left["summary"]["data"])
    summary = ibp.open_campaign(run).summary
    assert {row["fit"] for row in rows} == set(summary.fit.values.ravel())
    scores = [row["heldout"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(float(summary.heldout.max()), rel=1e-6)
    assert (run / "report.html").as_uri() in left["report"]["data"]
    assert left["progress"]["data"] == 100.0


def test_a_flow_that_is_killed_is_marked_and_the_next_one_goes_on(server, worker, data, reference, tmp_path):
    run = tmp_path / "killed"
    deployment = deploy(server, grid(tmp_path, data), run)
    first = begin(server, deployment, where={"serial": True})
    under_way(server, run)
    kill(process_of(server, run))
    before = {"fits": committed(run), "results": results(run), "steps": steps_made(run)}
    assert 0 < len(before["fits"]) < 6
    assert "SIGKILL" in ended(server, first, "CRASHED")["state"]["message"]
    second = begin(server, deployment, where={"workers": 2})
    ended(server, second, "COMPLETED")
    assert_went_on(run, before, reference)
    third = begin(server, deployment)
    ended(server, third, "COMPLETED")
    assert committed(run) == [*dict.fromkeys(committed(run))], "a third one finds nothing to do"


def test_a_flow_whose_worker_is_killed_too_is_marked_by_the_next_one(
    server, worker, data, reference, tmp_path
):
    """Nobody is left to tell the server; the flow run that goes on does."""
    run = tmp_path / "lost"
    deploy(server, grid(tmp_path, data), run)
    sweep = server.ask("deployments/name/sweep/by-hand")["id"]
    parameters = {"campaign": str(tmp_path / "grid.yaml"), "run": str(run), "where": {"serial": True}}
    first = begin(server, sweep, **parameters)
    under_way(server, run)
    for process in server.workers():
        kill(process.pid)
    before = {"fits": committed(run), "results": results(run), "steps": steps_made(run)}
    assert flow_run(server, first)["state_type"] == "RUNNING", "the server knows nothing of it"
    server.start_worker()
    second = begin(server, sweep, **parameters)
    name = ended(server, second, "COMPLETED")["name"]
    assert_went_on(run, before, reference)
    marked = ended(server, first, "CRASHED")
    assert marked["state"]["message"] == f"the process was killed; {name} continues from {run}"
    tasks = server.ask("task_runs/filter", {"flow_runs": {"id": {"any_": [first]}}})
    assert {task["state_type"] for task in tasks} == {"CRASHED"}


def test_a_second_flow_on_the_same_run_is_turned_away(server, worker, data, tmp_path):
    run = tmp_path / "shared"
    deploy(server, grid(tmp_path, data, steps=100_000), run)  # the first one has no end
    sweep = server.ask("deployments/name/sweep/by-hand")["id"]
    parameters = {"campaign": str(tmp_path / "grid.yaml"), "run": str(run), "where": {"serial": True}}
    first = begin(server, sweep, **parameters)
    holder = process_of(server, run)
    second = begin(server, sweep, **parameters)
    message = ended(server, second, "FAILED")["state"]["message"]
    assert f"{run}: a flow runs on it, process {holder} on" in message
    assert flow_run(server, first)["state_type"] == "RUNNING", "and the first is left alone"
    kill(holder)
    ended(server, first, "CRASHED")


def test_a_flow_whose_server_is_gone_finishes_its_work(server, worker, data, reference, tmp_path):
    """The last test: without a server nobody is told, but the run directory has everything."""
    run = tmp_path / "alone"
    deploy(server, grid(tmp_path, data), run)
    sweep = server.ask("deployments/name/sweep/by-hand")["id"]
    begin(server, sweep, campaign=str(tmp_path / "grid.yaml"), run=str(run), where={"serial": True})
    under_way(server, run)
    kill(server.started[0].pid)
    assert not server.is_up()
    server.wait(lambda: len(committed(run)) == 6, 240)
    summary = ibp.open_campaign(reference).summary
    server.wait(lambda: ibp.open_campaign(run).summary.heldout.notnull().all(), 120)
    assert ibp.open_campaign(run).summary.heldout.identical(summary.heldout)
