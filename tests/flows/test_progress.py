"""Progress is told now and then, from a thread of its own, and never at the cost of the work."""

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from flows import progress
from flows.progress import in_words, minutely, stepping, sweeping
from ibpdist.base.progress import CampaignStatus, Running
from ibpdist.base.timeleft import TimeLeft

RUNNING = Running("lg, K = 20, restart 3", step=7, limit=50, objective=-1234.5678, active=6)


@dataclass
class Server:
    """Remembers what it is told."""

    told: list = field(default_factory=list)
    broken: bool = False
    heard: threading.Event = field(default_factory=threading.Event)

    def create(self, percent, key=None, description=None):
        return self._hear("create", key, percent, description)

    def update(self, artifact, percent, description=None):
        return self._hear("update", artifact, percent, description)

    def _hear(self, *what):
        self.told.append(what)
        self.heard.set()
        if self.broken:
            raise ConnectionError("gone")
        return "id"


@pytest.fixture
def server(monkeypatch):
    made = Server()
    monkeypatch.setattr(progress, "create_progress_artifact", made.create)
    monkeypatch.setattr(progress, "update_progress_artifact", made.update)
    return made


def test_many_messages_in_a_minute_are_one(server):
    with minutely("night-progress") as teller:
        for step in range(1000):
            teller.tell(step / 10, f"step {step}")
    assert server.told == [("create", "night-progress", 99.9, "step 999")]


def test_the_newest_is_told_when_the_time_has_come(server):
    with minutely("key", every=0.01) as teller:
        teller.tell(1.0, "first")
        assert server.heard.wait(30)
        teller.tell(2.0, "second")
        teller.tell(3.0, "third")
    assert server.told[0] == ("create", "key", 1.0, "first")
    assert server.told[-1] == ("update", "id", 3.0, "third")


def test_nothing_new_is_not_told_again(server):
    with minutely("key", every=0.001) as teller:
        teller.tell(1.0, "first")
        server.heard.wait(30)
        threading.Event().wait(0.05)
    assert len(server.told) == 1


def test_nothing_to_tell(server):
    with minutely("key"):
        pass
    assert server.told == []


def test_a_server_that_is_gone_costs_nothing(server):
    server.broken = True
    with minutely("key", every=0.01) as teller:
        for step in range(3):
            server.heard.clear()
            teller.tell(step, "now")
            assert server.heard.wait(30)
    assert {what for what, *_ in server.told} == {"create"}, "it is asked for again until it is there"


def test_a_server_that_hangs_is_not_waited_for(monkeypatch):
    hung = threading.Event()
    monkeypatch.setattr(progress, "create_progress_artifact", lambda *a, **b: hung.wait(60))
    monkeypatch.setattr(progress, "LAST", 0.05)
    with minutely("key", every=0.001) as teller:
        teller.tell(1.0, "now")
    hung.set()


def test_work_that_fails_fails_as_it_did(server):
    def work():
        with minutely("key") as teller:
            teller.tell(10.0, "a tenth")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        work()
    assert server.told == [("create", "key", 10.0, "a tenth")]


def test_a_fit_on_a_server(server, monkeypatch):
    monkeypatch.setattr(progress, "is_served", lambda: True)
    with stepping("runs/one", 40) as tell:
        tell(SimpleNamespace(step=10, trace={"objective": -5.0, "active": 3.0}))
    assert server.told == [("create", "one-progress", 100.0, "finished")]


def test_a_fit_that_breaks_off_is_not_told_to_be_finished(server, monkeypatch):
    monkeypatch.setattr(progress, "is_served", lambda: True)

    def broken():
        with stepping("runs/one", 40) as tell:
            tell(SimpleNamespace(step=10, trace={"objective": -5.0, "active": 3.0}))
            raise OSError

    with pytest.raises(OSError):
        broken()
    said = "step 10 of at most 40, objective -5.0000, 3 active"
    assert server.told == [("create", "one-progress", 25.0, said)]


def test_a_campaign_on_a_server(server, monkeypatch):
    monkeypatch.setattr(progress, "is_served", lambda: True)
    with sweeping("night") as tell:
        tell(CampaignStatus(3, 12, 1, [RUNNING], TimeLeft(125.0, 500.0)))
    ((what, key, percent, words),) = server.told
    assert (what, key, percent) == ("create", "night-progress", 25.0)
    assert words == in_words(CampaignStatus(3, 12, 1, [RUNNING], TimeLeft(125.0, 500.0)))


def test_without_a_server_there_are_lines(server, capsys):
    with sweeping("night") as tell:
        tell(CampaignStatus(3, 12, 1, [RUNNING], TimeLeft(125.0, 500.0)))
    with stepping("night", 40) as tell:
        tell(SimpleNamespace(step=1, trace={"objective": -5.0, "active": 3.0}))
    assert server.told == []
    said = capsys.readouterr().err.splitlines()
    assert "3 of 12 fits ended, 1 failed" in said[0]
    assert said[-1].startswith("fit: step 1 of at most 40, objective -5.0000, 3 active")


def test_a_campaign_in_words():
    said = in_words(CampaignStatus(3, 12, 1, [RUNNING], TimeLeft(125.0, 500.0))).splitlines()
    assert "3 of 12 fits ended, 1 failed" in said[-1] + said[0]
    assert any(
        "lg, K = 20, restart 3: step 7 of at most 50, objective -1,234.5678, 6 active" in s for s in said
    )
