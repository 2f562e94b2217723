"""What flows share: tasks of which nothing is kept, and bodies that need no server."""

import asyncio

import pytest
from prefect.cache_policies import NO_CACHE
from prefect.states import Failed
from pydantic import ValidationError

from flows import campaign, evaluate, fit, ingest, report, steps, sweep
from flows.steps import Where, given, is_resumable, is_served, launch, perform, step
from ibpdist.base.errors import ClusterLost, InputError

TASKS = (
    ingest.ingest_step,
    fit.fit_step,
    sweep.sweep_step,
    evaluate.evaluate_step,
    report.report_step,
)
FLOWS = (ingest.ingest, fit.fit, sweep.sweep, evaluate.evaluate, report.report, campaign.campaign)


def test_only_what_was_given_is_an_option():
    assert given(a=None, b=False, c=0, d="", e=3) == {"c": 0, "d": "", "e": 3}


@pytest.mark.parametrize(
    ("where", "options", "threads"),
    [
        (Where(), {}, {}),
        (Where(workers=2, memory=10), {"workers": 2, "memory": 10}, {"workers": 2}),
        (Where(serial=True, cache=0), {"serial": True, "cache": 0}, {"serial": True}),
        (Where(scheduler="tls://a:1"), {"scheduler": "tls://a:1"}, {}),
    ],
)
def test_where(where, options, threads):
    assert where.options() == options
    assert where.threads() == threads


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"memory": 0}, {"cache": -1}, {"wrokers": 2}, {"serial": 7}]
)
def test_a_wrong_where_is_refused(wrong):
    with pytest.raises(ValidationError):
        Where(**wrong)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_prefect_keeps_and_remembers_nothing_of_a_task(task):
    assert task.persist_result is False
    assert task.cache_policy is NO_CACHE
    assert task.cache_key_fn is None
    assert (task.retries, task.retry_delay_seconds) == (2, 60)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_prefect_keeps_nothing_of_a_flow(flow):
    assert not flow.persist_result
    assert type(flow.task_runner).__name__ == "ThreadPoolTaskRunner"
    assert flow.retries == 0


@pytest.mark.parametrize(
    ("error", "again"),
    [(ClusterLost("no workers"), True), (InputError("no rows"), False), (OSError(), False)],
)
def test_only_a_lost_cluster_is_a_reason_to_try_again(error, again):
    state = asyncio.run(_failed(error))
    assert is_resumable(TASKS[0], None, state) is again


async def _failed(error):
    return Failed(data=error)


def test_without_a_server_a_body_is_called_as_it_is(monkeypatch):
    called = []

    @step("one")
    def one(a, *, b):
        called.append((a, b))
        return a + b

    monkeypatch.setattr(type(one), "__call__", lambda *a, **b: pytest.fail("Prefect was asked"))
    assert not is_served()
    assert perform(one, 1, b=2) == 3
    assert called == [(1, 2)]


def test_in_a_flow_run_a_task_goes_through_prefect(monkeypatch):
    @step("one")
    def one():
        return "body"

    monkeypatch.setattr(steps, "is_served", lambda: True)
    monkeypatch.setattr(type(one), "__call__", lambda self: "task")
    assert perform(one) == "task"


@pytest.mark.parametrize(("url", "through"), [(None, "body"), ("http://127.0.0.1:1/api", "flow")])
def test_a_flow_needs_a_server_to_be_one(monkeypatch, url, through):
    class Api:
        api = type("Api", (), {"url": url})

    class Flow:
        fn = staticmethod(lambda a: ("body", a))

        def __call__(self, a):
            return "flow", a

    asked = []
    monkeypatch.setattr(steps, "get_current_settings", lambda: Api)
    monkeypatch.setattr(steps, "refuse_unreachable", asked.append)
    assert launch(Flow(), {"a": 1}) == (through, 1)
    assert asked == ([url] if url else [])
