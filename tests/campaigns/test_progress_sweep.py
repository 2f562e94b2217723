"""Progress of a campaign: a line for each fit that runs and one for all."""

import io
import re

import pytest

from ibpdist.base import progress
from ibpdist.base.progress import CampaignStatus, Running, sweeping
from ibpdist.base.timeleft import TimeLeft
from ibpdist.base.words import duration


class Clock:
    """Stands for the module `time`."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def running(count=2, step=3):
    return [Running(f"K = {k}", step, 50, -1234.5678, k) for k in range(count)]


def test_quiet_says_nothing(capsys):
    with sweeping("sweep", quiet=True) as tell:
        tell(CampaignStatus(0, 4, 0, running()))
    assert capsys.readouterr().err == ""


def test_verbose_is_a_line_for_each_fit_and_one_for_all(capsys):
    with sweeping("sweep", verbose=True) as tell:
        tell(CampaignStatus(2, 5, 1, running(), TimeLeft(120.0, 540.0)))
        tell(CampaignStatus(2, 5, 1, running(20)))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  K = 0: step 3 of at most 50, objective -1,234.5678, 0 active"
    assert lines[2] == "sweep: 2 of 5 fits ended, 1 failed, 2 running, left: about 2 min, at most 9"
    assert len(lines) == 3 + 21
    assert lines[-1] == "sweep: 2 of 5 fits ended, 1 failed, 20 running"


def test_otherwise_a_line_now_and_then(capsys, clock):
    with sweeping("sweep") as tell:
        for second in range(11):
            clock.now = 100.0 + second
            tell(CampaignStatus(0, 3, 0, running(3, second)))
        tell(CampaignStatus(1, 3, 0, running(2)))
        tell(CampaignStatus(1, 3, 0, running(2)))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["sweep: 0 of 3 fits ended, 3 running"] * 3 + ["sweep: 1 of 3 fits ended, 2 running"]


def test_scores_are_named_and_counted(capsys, clock):
    with sweeping("sweep") as tell:
        tell(CampaignStatus(0, 3, 1, running(2), TimeLeft(9.0, 30.0)))
        tell(CampaignStatus(3, 3, 1))
        for number in range(1, 13):
            tell(CampaignStatus(3, 3, 1, left=TimeLeft(20.0, 20.0), scoring=(number, 12)))
            clock.now += 1.0
        tell(CampaignStatus(3, 3, 2))
    assert capsys.readouterr().err.splitlines() == [
        "sweep: 0 of 3 fits ended, 1 failed, 2 running, left: about 9 s, at most 30",
        "sweep: 3 of 3 fits ended, 1 failed, 0 running",
        "sweep: 3 of 3 fits ended, 1 failed, scoring 1 of 12 fits, left: about 20 s",
        "sweep: 3 of 3 fits ended, 1 failed, scoring 6 of 12 fits, left: about 20 s",
        "sweep: 3 of 3 fits ended, 1 failed, scoring 11 of 12 fits, left: about 20 s",
        "sweep: 3 of 3 fits ended, 2 failed, 0 running",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_some_fits_and_all(monkeypatch):
    seen = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", seen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "60")
    with sweeping("sweep") as tell:
        tell(CampaignStatus(3, 40, 0, running(20), TimeLeft(5.0, 12.0)))
    text = seen.getvalue()
    assert "K = 15: step 3 of at most 50" in text
    assert "K = 16" not in text
    assert "and 4 more" in text
    assert "sweep: 3 of 40 fits ended, 20 running, left: about 5 s, at most 12" in text


NAME = "lg-vi-infinite, K = 12, noise column, scale feature, mass learn, restart "


@pytest.mark.parametrize("width", [60, 80, 90, 200])
def test_a_line_keeps_its_end_on_a_narrow_terminal(monkeypatch, width):
    seen = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", seen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    fits = [Running(f"{NAME}{at}", 298, 1000, -16023.29504, 12) for at in range(2)]
    with sweeping("sweep") as tell:
        tell(CampaignStatus(3, 40, 0, fits, TimeLeft(5.0, 12.0)))
    lines = [line for line in seen.getvalue().splitlines() if "step 298" in line][-2:]
    for at, line in enumerate(lines):
        assert f"restart {at}: step 298 of at most 1000, objective -16,023.3, 12 active" in line or width < 80
        assert ("…" in line) is (width < 200)
        assert len(re.sub("\x1b.*?[A-Za-z]", "", line)) <= width


def test_names_lose_their_middle():
    assert progress.shortened("0123456789abcdefghij", 20) == "0123456789abcdefghij"
    assert progress.shortened("0123456789abcdefghij", 13) == "012345…efghij"
    assert progress.shortened("0123456789abcdefghij", -5) == "01234…efghij"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (5400, "1 h 30 min"),
        (12060, "3 h 21 min"),
    ],
)
def test_times_are_said_as_a_person_does(seconds, words):
    assert duration(seconds) == words
