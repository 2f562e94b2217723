"""Progress: who is told what, on a terminal and off it."""

import io
import re
import sys
from dataclasses import dataclass, field

import pytest

from ibpdist.base import progress
from ibpdist.base.progress import after, before, counting, stepping
from ibpdist.base.timeleft import AllSteps, Converging


@dataclass(frozen=True)
class Now:
    step: int
    trace: dict[str, float] = field(default_factory=lambda: {"objective": -1234.5678, "active": 3.0})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day, which the test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def as_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error from here on; not a fixture, because pytest sets its own after the fixtures."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return made


def test_counting_says_a_line_every_few_seconds_and_the_last(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with counting("ingest") as tell:
        for second in range(12):
            clock[0] = float(second)
            tell(1000 * second, 20_000)
        clock[0] = 11.5
        tell(20_000, 20_000)
    assert capsys.readouterr().err.splitlines() == [
        "ingest: 5,000 of 20,000 rows, 5.0 s",
        "ingest: 10,000 of 20,000 rows, 10.0 s",
        "ingest: 20,000 of 20,000 rows, 11.5 s",
    ]


def test_counting_without_an_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with counting("read", "lines") as tell:
        tell(1, None)
        clock[0] = 6.0
        tell(2, None)
    assert capsys.readouterr().err == "read: 2 lines, 6.0 s\n"


def test_stepping_says_first_last_and_now_and_then(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with stepping("fit", 20) as tell:
        for step in range(1, 21):
            clock[0] = float(step - 1)
            tell(Now(step))
    lines = capsys.readouterr().err.splitlines()
    assert [int(line.split()[2]) for line in lines] == [1, 6, 11, 16, 20]
    assert lines[0] == "fit: step 1 of at most 20, objective -1,234.5678, 3 active, 0.0 s"


def test_verbose_says_every_step(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with stepping("fit", verbose=True) as tell:
        for step in (1, 2, 3):
            tell(Now(step))
    assert [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "fit: step 1",
        "fit: step 2",
        "fit: step 3",
    ]


def test_a_change_on_trial_is_named_and_what_it_comes_to_is_not_shown(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    fit = {"objective": -10.0, "active": 3.0}
    with stepping("fit", verbose=True) as tell:
        for step, trial in enumerate((-10.0, -5000.0, -11.0, -10.0), 1):
            tell(Now(step, fit | {"trial": trial}))
    assert [line.partition(", ")[2].rpartition(", ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "objective -10.0000, 3 active",
        "objective -10.0000, 3 active, trying",
        "objective -10.0000, 3 active, trying",
        "objective -10.0000, 3 active",
    ]


def test_steps_that_begin_again_are_another_start(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with stepping("resume", 9, verbose=True) as tell:
        for step in (5, 6, 1, 2, 1):
            tell(Now(step))
    assert [line.partition(" of")[0] for line in capsys.readouterr().err.splitlines()] == [
        "resume: step 5",
        "resume: step 6",
        "resume, start 2: step 1",
        "resume, start 2: step 2",
        "resume, start 3: step 1",
    ]


def test_fits_with_names_are_told_apart_by_them(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with stepping("choose", 9, names=("fa-vi-infinite", "fa-vi-dense"), verbose=True) as tell:
        for step in (1, 2, 1, 1):
            tell(Now(step))
    assert [line.partition(" of")[0] for line in capsys.readouterr().err.splitlines()] == [
        "choose, fa-vi-infinite: step 1",
        "choose, fa-vi-infinite: step 2",
        "choose, fa-vi-dense: step 1",
        "choose, fa-vi-dense: step 1",
    ]


def test_quiet_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    with counting("ingest", quiet=True) as count, stepping("fit", 5, quiet=True) as step:
        count(1, 2)
        step(Now(1))
    assert terminal.getvalue() == ""


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    with counting("ingest") as count:
        count(500, 1000)
    with stepping("fit", 50) as step:
        step(Now(7))
    said = terminal.getvalue()
    assert "looking at the data" in said, "a start takes a while before the first step"
    assert re.search(r"500/1000\S* rows", said)
    assert re.search(r" 7/50\S* steps objective -1,234.6, 3 active", said)
    assert "3 active" in said
    assert "left" in said.partition("steps")[0]
    assert "left" not in said.rpartition("steps")[2], "a limit is no forecast"


def test_the_line_of_a_trial_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    with stepping("fit", 200) as step:
        step(Now(57, {"objective": -1234567.5, "active": 20.0, "trial": -2e6}))
    assert "57/200 steps objective -1,234,567.5, 20 active, trying" in re.sub(
        r"\x1b\[[0-9;]*m", "", terminal.getvalue()
    )


def test_a_bar_goes_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)

    def work() -> None:
        with counting("ingest") as count:
            count(1, 2)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        work()
    assert "1/2" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_the_first_line_comes_before_the_first_step(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Data of several chunks are told of at once, however long the first of them takes."""
    with stepping("fit", 20) as tell:
        told = before(tell)
        told("reading the data", 0, 8)
        for chunk in range(1, 9):
            clock[0] += 2.0
            told("reading the data", chunk, 8)
        told("looking for a start, pass 1", 0, 8)
    assert capsys.readouterr().err.splitlines() == [
        "fit: reading the data, 0 %, 0.0 s",
        "fit: reading the data, 38 %, 6.0 s",
        "fit: reading the data, 75 %, 12.0 s",
    ]


def test_a_wait_that_cannot_be_counted_is_told_at_once(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with stepping("fit", 20) as tell:
        before(tell)("starting 2 local processes")
    assert capsys.readouterr().err == "fit: starting 2 local processes, 0.0 s\n"


def test_small_data_are_not_talked_about(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with stepping("fit", 20) as tell:
        before(tell)("reading the data", 0, 1)
        before(tell)("reading the data", 1, 1)
    assert capsys.readouterr().err == ""


def test_progress_that_only_counts_steps_need_not_know_of_the_rest() -> None:
    seen: list[Now] = []
    before(seen.append)("reading the data", 0, 2)
    after(None)("scoring rows", 0, 2)
    assert seen == []


def test_the_time_left_is_told_from_the_second_step_of_a_sampler_on(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with stepping("fit", 101, stopping=AllSteps(101), verbose=True) as tell:
        for step in (1, 2, 3):
            clock[0] += 2.0
            tell(Now(step))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("3 active, 2.0 s")
    assert lines[1].endswith("3 active, 4.0 s, left: about 3 min")
    assert lines[2].endswith("3 active, 6.0 s, left: about 3 min")


def test_a_fit_that_converges_has_a_range(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with stepping("fit", 1000, stopping=Converging(1000, 1e-6, 10), verbose=True) as tell:
        for step in range(1, 31):
            clock[0] += 1.0
            tell(Now(step, {"objective": -1000.0 / step, "active": 3.0}))
    lines = capsys.readouterr().err.splitlines()
    assert not any("left" in line for line in lines[:3])
    assert re.search(r", 30\.0 s, left: about \d+ \w+, at most \d+( min)?$", lines[-1])


def test_fits_with_names_tell_the_share_that_is_done(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each system is a fit and a score, which count alike."""
    with stepping("choose", 11, names=("one", "two"), stopping=AllSteps(11), fits=2, verbose=True) as tell:
        for _ in range(2):
            before(tell)("reading the data", 0, 1)
            for step in range(1, 12):
                clock[0] += 1.0
                tell(Now(step))
            for half in (0, 50, 100):
                after(tell)("scoring rows", half, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "choose, one: reading the data, 0 %, 0.0 s, 0 % done"
    assert re.search(r", (\d+) % done", lines[6])[1] == "12", "half of the first of two fits, without scores"  # type: ignore[index]
    assert " 25 % done" in lines[11], "the fit has ended"
    assert [line.rpartition("s, ")[2] for line in lines[12:15]] == ["25 % done", "38 % done", "50 % done"]
    assert lines[13].startswith("choose, one: scoring rows, 50 %, ")
    assert lines[15].startswith("choose, two: reading the data, 0 %, 11.0 s, 50 % done")
    assert lines[-1].endswith("100 % done")
    shares = [int(re.search(r"(\d+) % done", line)[1]) for line in lines if " % done" in line]  # type: ignore[index]
    assert shares == sorted(shares)


def test_a_terminal_shows_what_comes_before_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_terminal(monkeypatch)
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with stepping("fit", 101) as tell:
        before(tell)("reading the data", 3, 4)
    with stepping("fit", 101, stopping=AllSteps(101)) as tell:
        for step in (1, 2):
            clock[0] += 2.0
            tell(Now(step))
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "reading the data, 75 %" in said
    assert "left: about 3 min" in said
