"""The log: numbered, appended, legal after every crash."""

import json

import pytest

from ibpdist.base.errors import StorageError
from ibpdist.storage import events
from ibpdist.storage.events import Events


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "events.jsonl"
    made = Events(path)
    made.add("begin", step=0)
    for step in (1, 2, 3):
        made.add("step", durable=False, step=step, terms={"objective": 0.1 * step})
    made.close()
    return path


def test_events_are_numbered_and_in_order(log):
    read = events.read(log)
    assert [event["number"] for event in read] == [0, 1, 2, 3]
    assert [event["event"] for event in read] == ["begin", "step", "step", "step"]


def test_numbers_go_on_in_another_process(log):
    again = Events(log)
    again.add("begin", step=3)
    again.close()
    assert [event["number"] for event in events.read(log)] == list(range(5))


def test_numbers_come_back_exactly(tmp_path):
    made = Events(tmp_path / "e")
    values = {"a": 0.1 + 0.2, "b": 1e-310, "c": -2245.511055678341}
    made.add("step", step=1, terms=values)
    made.close()
    assert events.trace(events.read(tmp_path / "e"), 1) == {1: values}


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_cut_short_is_ignored_and_then_removed(log, cut):
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    assert [event["number"] for event in events.read(log)] == [0, 1, 2]
    again = Events(log)
    again.add("begin", step=2)
    again.close()
    assert [event["number"] for event in events.read(log)] == [0, 1, 2, 3]
    assert events.read(log)[-1]["event"] == "begin"


def test_a_damaged_line_is_named(log):
    lines = log.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"{", b"[", 1)
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(StorageError, match="line 2 is damaged"):
        events.read(log)


def test_a_changed_number_is_found(log):
    """A flipped bit in a digit is still JSON, and would be a wrong value in the trace."""
    log.write_bytes(log.read_bytes().replace(b'"objective": 0.2', b'"objective": 0.3'))
    with pytest.raises(StorageError, match="line 3 is damaged"):
        events.read(log)


def test_a_missing_line_is_named(log):
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([lines[0], *lines[2:]]))
    with pytest.raises(StorageError, match="line 2 is not event 1"):
        events.read(log)


def test_swapped_lines_are_found(log):
    lines = log.read_bytes().split(b"\n")
    lines[1], lines[2] = lines[2], lines[1]
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(StorageError, match="line 2"):
        events.read(log)


def test_trace_counts_a_step_once_and_stops_in_time(log):
    again = Events(log)
    again.add("step", step=2, terms={"objective": 7.0})
    again.close()
    found = events.trace(events.read(log), 2)
    assert list(found) == [1, 2]
    assert found[2] == {"objective": 7.0}


def test_no_log_is_an_empty_log(tmp_path):
    assert events.read(tmp_path / "none") == []


def test_the_clock_may_jump(tmp_path, monkeypatch):
    made = Events(tmp_path / "e")
    for now in (1e9, 5.0, 4e9):
        monkeypatch.setattr(events.time, "time", lambda now=now: now)
        made.add("step", step=1, terms={})
    made.close()
    assert [event["number"] for event in events.read(tmp_path / "e")] == [0, 1, 2]


def test_each_line_is_json_that_stands_alone(log):
    for line in log.read_text().splitlines():
        assert set(json.loads(line)) >= {"number", "event", "time"}


@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_a_signal_within_a_line_leaves_a_legal_log(log, monkeypatch, moment):
    """Whenever it comes, the log goes on with the number that the file says is next."""
    again = Events(log)
    write = again._file.write

    class Interrupted:
        fileno = again._file.fileno
        close = again._file.close

        def write(self, line):
            if moment != "before":
                write(line[: len(line) // 2] if moment == "within" else line)
            raise KeyboardInterrupt

    plain, again._file = again._file, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        again.add("step", step=4, terms={})
    again._file = plain
    again.add("interrupted")
    again.close()
    kinds = [event["event"] for event in events.read(log)]
    assert kinds == ["begin", "step", "step", "step", *(["step"] if moment == "after" else []), "interrupted"]


def test_a_line_that_was_cut_short_is_told(log):
    again = Events(log)
    again._file.close()
    again._file = type("Full", (), {"write": lambda self, line: 3, "fileno": lambda self: 0, "close": None})()
    with pytest.raises(StorageError, match="No space left"):
        again.add("step", durable=False, step=4, terms={})
