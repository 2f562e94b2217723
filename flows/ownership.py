"""One flow at a time for a run; flow runs whose process died are marked as crashed by the next one.

A process that is killed cannot inform the server, which keeps showing it as running. But its lock
goes with it. So whoever holds the lock of a run knows that no other flow run works on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas import filters
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.context import FlowRunContext
from prefect.states import Crashed

from ibpdist.base.errors import OutputInUse
from ibpdist.storage.lock import Lock, owner

FLOWS = ("campaign", "sweep", "fit")
"""Flows with a parameter `run` that they write."""
LOOKED_AT = 200
"""Flow runs, newest first, among which those that died are looked for."""
OPEN = [StateType.RUNNING, StateType.CANCELLING]


@contextmanager
def owned(run: str) -> Iterator[None]:
    """Hold `RUN.flow` for as long as a flow works on a run; a second flow exits with OutputInUse."""
    path = Path(run).resolve()
    file = path.with_name(f"{path.name}.flow")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = Lock(file)
    except OutputInUse:
        raise OutputInUse(
            f"{path}: a flow runs on it, {owner(file)}; wait for it or choose another run"
        ) from None
    try:
        if (context := FlowRunContext.get()) is not None and context.flow_run is not None:
            mark_crashed(path, context.flow_run)
        yield
    finally:
        lock.release()


def mark_crashed(run: Path, ours: FlowRun) -> list[str]:
    """Mark what still counts as running on a run that `ours` alone holds; the names of these flow runs."""
    crashed: State[Any] = Crashed(message=f"the process was killed; {ours.name} continues from {run}")
    marked = []
    with get_client(sync_client=True) as client:
        for other in _others(client, run, ours):
            for task in _open_tasks(client, other):
                client.set_task_run_state(task.id, crashed, force=True)
            if other.state_type in OPEN:
                client.set_flow_run_state(other.id, crashed, force=True)
                marked.append(other.name)
    return marked


def _others(client: Any, run: Path, ours: FlowRun) -> list[FlowRun]:
    """Flow runs on the same run that run or have crashed."""
    states = filters.FlowRunFilterStateType(any_=[*OPEN, StateType.CRASHED])
    flow_runs = client.read_flow_runs(
        flow_filter=filters.FlowFilter(name=filters.FlowFilterName(any_=list(FLOWS))),
        flow_run_filter=filters.FlowRunFilter(state=filters.FlowRunFilterState(type=states)),
        sort=FlowRunSort.START_TIME_DESC,
        limit=LOOKED_AT,
    )
    return [one for one in flow_runs if one.id != ours.id and _is_on(one, run)]


def _is_on(flow_run: FlowRun, run: Path) -> bool:
    named = flow_run.parameters.get("run")
    return isinstance(named, str) and Path(named).resolve() == run


def _open_tasks(client: Any, flow_run: FlowRun) -> list[Any]:
    states = filters.TaskRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING])
    task_runs: list[Any] = client.read_task_runs(
        flow_run_filter=filters.FlowRunFilter(id=filters.FlowRunFilterId(any_=[flow_run.id])),
        task_run_filter=filters.TaskRunFilter(state=filters.TaskRunFilterState(type=states)),
    )
    return task_runs
