"""Every way in which a cluster falls silent has a name and a deadline; no real time passes here."""

import pytest

from ibpdist.base.errors import ClusterLost
from ibpdist.engine.watch import Patience, Watch


class Scheduler:
    """A scheduler as the watch sees it, and the clock."""

    def __init__(self, *addresses):
        self.now = 100.0
        self.workers = {address: self.facts() for address in addresses}
        self.frozen = set()
        self.answer = None
        self.said = []

    def facts(self, status="running", memory=0):
        return {"last_seen": self.now, "status": status, "metrics": {"memory": memory}}

    def ask(self, deadline):
        if self.answer is not None:
            raise self.answer
        return {"workers": self.workers}

    def pass_time(self, seconds):
        self.now += seconds
        for address, facts in self.workers.items():
            if address not in self.frozen:
                facts["last_seen"] = self.now + 86_400  # another clock, a day ahead

    def watch(self, asked=2, **patience):
        return Watch(self.ask, asked, Patience(**patience), self.said.append, clock=lambda: self.now)


def run(scheduler, watch, seconds, tick=1.0):
    """Look at every tick; what the last look found."""
    found = watch.look()
    for _ in range(int(seconds / tick)):
        scheduler.pass_time(tick)
        found = watch.look()
    return found


def test_all_is_well():
    s = Scheduler("a", "b")
    assert run(s, s.watch(), 300) == ["a", "b"]
    assert s.said == []


def test_a_silent_worker_is_named_at_once_and_lost_later():
    s = Scheduler("a", "b")
    watch = s.watch()
    watch.look()
    s.frozen.add("b")
    assert run(s, watch, 6) == ["a", "b"]
    assert s.said == ["worker b has been silent for 6 s"]
    assert run(s, watch, 60) == ["a"]


def test_a_worker_that_speaks_again_is_well_again():
    s = Scheduler("a", "b")
    watch = s.watch()
    watch.look()
    s.frozen.add("b")
    run(s, watch, 70)
    s.frozen.clear()
    assert run(s, watch, 1) == ["a", "b"]
    s.frozen.add("b")
    run(s, watch, 10)
    assert len([said for said in s.said if "silent" in said]) == 2


def test_all_workers_silent():
    s = Scheduler("a", "b")
    watch = s.watch(asked=2)
    watch.look()
    s.frozen |= {"a", "b"}
    with pytest.raises(ClusterLost, match="all workers have been silent for 60 s"):
        run(s, watch, 200)
    assert s.now < 100 + 65


def test_no_workers_has_patience_for_a_restart():
    s = Scheduler("a", "b")
    watch = s.watch()
    watch.look()
    s.workers.clear()
    assert run(s, watch, 50) == []
    s.workers["c"] = s.facts()
    assert run(s, watch, 1) == ["c"]
    assert "worker a is gone" in s.said
    assert "0 of 2 workers are there" in s.said
    assert "1 of 2 workers are there" in s.said


def test_no_workers_for_good():
    s = Scheduler()
    with pytest.raises(ClusterLost, match="no workers for 60 s, 2 were asked for"):
        run(s, s.watch(), 61)
    assert s.now == 160


def test_patience_begins_anew_after_a_recovery():
    s = Scheduler("a")
    watch = s.watch(asked=1)
    for _ in range(3):
        s.workers.clear()
        run(s, watch, 40)
        s.workers["a"] = s.facts()
        assert run(s, watch, 1) == ["a"]


def test_a_result_in_between_is_a_recovery_too():
    """Short steps end between two looks, and nobody saw the worker come back."""
    s = Scheduler()
    watch = s.watch(asked=1)
    run(s, watch, 40)
    watch.heard()
    assert run(s, watch, 40) == []


def test_fewer_workers_are_said_once_for_each_number():
    s = Scheduler("a", "b", "c")
    watch = s.watch(asked=3)
    watch.look()
    del s.workers["c"]
    run(s, watch, 100)
    assert s.said == ["worker c is gone", "2 of 3 workers are there"]


def test_a_paused_worker_is_named_with_its_memory():
    s = Scheduler("a", "b")
    watch = s.watch()
    s.workers["b"] = s.facts("paused", 900 << 20)
    assert run(s, watch, 10) == ["a", "b"]
    assert s.said == ["worker b is paused: it uses 900 MB of memory"]
    assert run(s, watch, 55) == ["a"]


def test_all_paused():
    s = Scheduler("a", "b")
    s.workers = {address: s.facts("paused") for address in "ab"}
    with pytest.raises(ClusterLost, match="all workers are paused because their memory is full"):
        run(s, s.watch(), 200)


def test_scheduler_gone():
    s = Scheduler("a")
    s.answer = OSError("connection refused")
    with pytest.raises(ClusterLost, match="the scheduler is gone: connection refused"):
        s.watch().look()


def test_scheduler_that_does_not_answer():
    s = Scheduler("a")
    s.answer = TimeoutError()
    with pytest.raises(ClusterLost, match="does not answer within 9 s"):
        s.watch().look()


def test_one_late_answer_is_forgiven():
    s = Scheduler("a", "b")
    answers = [TimeoutError(), TimeoutError(), None]
    plain = s.ask

    def ask(deadline):
        late = answers.pop(0)
        if late:
            raise late
        return plain(deadline)

    s.ask = ask
    assert s.watch().look() == ["a", "b"]
