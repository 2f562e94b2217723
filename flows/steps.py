"""Shared by all flows: tasks without results in Prefect, and bodies that run with a server or without."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from prefect import Flow, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext
from prefect.settings import get_current_settings
from pydantic import BaseModel, ConfigDict, Field

from flows.server import quiet_console, refuse_unreachable
from ibpdist.base.errors import ClusterLost

P = ParamSpec("P")
R = TypeVar("R")
RETRIES, PAUSE = 2, 60
"""How often a task whose cluster was lost is repeated from its run directory, and the seconds between."""


class Where(BaseModel):
    """Where the work runs. Default: one process for small data, one for each core for large data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int | None = Field(None, ge=1, description="Number of local processes.")
    serial: bool = Field(False, description="Run in the process of the flow.")
    scheduler: str | None = Field(None, description="Address of a running Dask cluster, as tls://HOST:PORT.")
    memory: int | None = Field(None, ge=1, description="Memory limit of a process in bytes.")
    cache: int | None = Field(None, ge=0, description="Bytes of data that a process may keep in memory.")

    def options(self) -> dict[str, Any]:
        """The options that were given, as keywords of the library."""
        return given(**self.model_dump())

    def threads(self) -> dict[str, Any]:
        """The options of functions that run in threads of one process."""
        return {name: value for name, value in self.options().items() if name in ("workers", "serial")}


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; the library has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def step(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task of one library call, named `name`. Its arguments and result are strings and numbers."""

    def made(call: Callable[P, R]) -> Task[P, R]:
        return Task(
            call,
            name=name,
            persist_result=False,
            cache_policy=NO_CACHE,
            retries=RETRIES,
            retry_delay_seconds=PAUSE,
            retry_condition_fn=is_resumable,
        )

    return made


def is_resumable(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether a task may succeed when it is only run again: the cluster was lost, the run is whole."""
    return isinstance(state.result(raise_on_failure=False), ClusterLost)


def is_served() -> bool:
    """Whether this is a flow run that a server knows of."""
    return FlowRunContext.get() is not None


def perform(call: Task[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Run a task: through Prefect within a flow run, else its body only, for which nothing is started.

    Prefect shows the log of all libraries from INFO on, and Dask logs something at every step.
    """
    if not is_served():
        return call.fn(*args, **options)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    return call(*args, **options)


def launch(flow: Flow[..., R], parameters: Mapping[str, Any]) -> R:
    """Run a flow on the server that Prefect is set to use; without one its body only."""
    body: Callable[..., R] = flow.fn
    if url := get_current_settings().api.url:
        refuse_unreachable(url)
        quiet_console()
        body = flow
    return body(**parameters)
