"""One flow at a time for a run, and what becomes of flow runs that died."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from flows import ownership
from flows.ownership import mark_crashed, owned
from ibpdist.base.errors import OutputInUse

HERE = Path(__file__).parents[2]
HOLD = """
import sys
from flows.ownership import owned
with owned(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def flow_run(run, state="RUNNING", name="old"):
    found = FlowRun(flow_id=uuid4(), name=name, parameters={"run": str(run)})
    found.state_type = StateType(state)
    return found


class Client:
    """A server's client: the flow runs there are, and what is asked of them."""

    def __init__(self, flow_runs, tasks=()):
        self.flow_runs, self.tasks = flow_runs, tasks
        self.asked, self.set = {}, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def read_flow_runs(self, **asked):
        self.asked = asked
        return self.flow_runs

    def read_task_runs(self, *, flow_run_filter, task_run_filter):
        (which,) = flow_run_filter.id.any_
        return [task for task in self.tasks if task.flow_run_id == which]

    def set_flow_run_state(self, which, state, force):
        self.set.append(("flow", which, state.type.value, state.message, force))

    def set_task_run_state(self, which, state, force):
        self.set.append(("task", which, state.type.value, state.message, force))


@pytest.fixture
def client(monkeypatch):
    def of(*flow_runs, tasks=()):
        made = Client(list(flow_runs), tasks)
        monkeypatch.setattr(ownership, "get_client", lambda sync_client: made)
        return made

    return of


def test_a_run_is_held_and_given_free(tmp_path):
    run = tmp_path / "new" / "run"
    with owned(str(run)):
        named = json.loads((tmp_path / "new" / "run.flow").read_text())
        assert named["pid"] == os.getpid()
    assert not list((tmp_path / "new").iterdir()), "nothing is left, and the run itself is not made"


def test_it_is_given_free_when_the_flow_fails(tmp_path):
    with pytest.raises(KeyError), owned(str(tmp_path / "run")):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_a_second_flow_is_turned_away_until_the_first_one_dies(tmp_path):
    run = tmp_path / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(OutputInUse, match=rf"^{run}: a flow runs on it, process {holder.pid} on "),
            owned(str(run)),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with owned(str(run)):
        pass


def test_without_a_flow_run_no_server_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(ownership, "get_client", lambda **options: pytest.fail("a server was asked"))
    with owned(str(tmp_path / "run")):
        pass


def test_in_a_flow_run_those_that_died_are_marked(tmp_path, monkeypatch):
    ours, marked = flow_run(tmp_path / "run"), []
    context = SimpleNamespace(get=lambda: SimpleNamespace(flow_run=ours))
    monkeypatch.setattr(ownership, "FlowRunContext", context)
    monkeypatch.setattr(ownership, "mark_crashed", lambda run, one: marked.append((run, one)))
    with owned(str(tmp_path / "run")):
        assert marked == [(tmp_path / "run", ours)]


def test_what_still_counts_as_running_is_marked_with_its_tasks(client, tmp_path):
    run = tmp_path / "run"
    ours, old, other = flow_run(run, name="new"), flow_run(run), flow_run(tmp_path / "another")
    tasks = [SimpleNamespace(id=uuid4(), flow_run_id=one.id) for one in (ours, old, other)]
    asked = client(ours, old, other, tasks=tasks)
    assert mark_crashed(run, ours) == ["old"]
    message = f"the process was killed; new continues from {run}"
    assert asked.set == [
        ("task", tasks[1].id, "CRASHED", message, True),
        ("flow", old.id, "CRASHED", message, True),
    ]


def test_of_a_flow_run_that_is_marked_only_the_tasks_are(client, tmp_path):
    """The worker that started it marks it when it outlives it, but not its tasks."""
    ours, old = flow_run(tmp_path, name="new"), flow_run(tmp_path, "CRASHED")
    task = SimpleNamespace(id=uuid4(), flow_run_id=old.id)
    asked = client(ours, old, tasks=[task])
    assert mark_crashed(tmp_path, ours) == []
    assert [(what, which) for what, which, *_ in asked.set] == [("task", task.id)]


def test_only_our_flows_that_run_or_crashed_are_looked_at(client, tmp_path):
    asked = client()
    assert mark_crashed(tmp_path, flow_run(tmp_path)) == []
    assert asked.asked["flow_filter"].name.any_ == ["campaign", "sweep", "fit"]
    states = asked.asked["flow_run_filter"].state.type.any_
    assert set(states) == {StateType.RUNNING, StateType.CANCELLING, StateType.CRASHED}


def test_a_run_is_known_by_its_absolute_path(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours, relative, nothing = flow_run(tmp_path / "run"), flow_run("run"), flow_run("run")
    nothing.parameters = {}
    client(ours, relative, nothing)
    assert mark_crashed(tmp_path / "run", ours) == ["old"]


def test_the_state_says_what_happened():
    state = ownership.Crashed(message="killed")
    assert isinstance(state, State)
    assert state.is_crashed()
    assert state.is_final()
