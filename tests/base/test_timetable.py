"""How long fits of different sizes still take, with a clock that the test sets."""

import math
import re
from dataclasses import dataclass, field

import pytest

from ibpdist.base import progress
from ibpdist.base.progress import after, before, planned, stepping
from ibpdist.base.timeleft import NINETY, AllSteps, TimeLeft
from ibpdist.base.timetable import GROWTH, SPREAD, PlannedFit, Timetable

MOST = math.exp(NINETY * SPREAD)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Now:
    step: int
    trace: dict[str, float] = field(default_factory=lambda: {"objective": -1.0, "active": 3.0})


def fits(*sizes: int, kind: str = "sparse", starts: int = 1) -> list[PlannedFit]:
    return [PlannedFit(f"{kind} {size}", kind, size, AllSteps(10), starts) for size in sizes]


def run(times: Timetable, clock: Clock, seconds: float, steps: int = 10) -> None:
    for step in range(1, steps + 1):
        clock.now += seconds / 10
        times.step(step, -1.0)


def test_nothing_is_known_before_the_first_fit_makes_steps() -> None:
    times = Timetable(Clock())
    assert (times.present, times.left(), times.share()) == (None, None, 0.0)
    times.plan(fits(5, 10), 0)
    assert times.left() is None
    assert times.share() == 0


def test_the_first_fit_is_told_by_its_own_steps_and_others_by_it() -> None:
    clock = Clock()
    times = Timetable(clock)
    times.plan(fits(5, 20), 0)
    run(times, clock, 10.0, steps=5)
    left, second = times.left(), 10 * 4**GROWTH
    assert left is not None
    assert left.about == pytest.approx(5 + second)
    assert left.most == pytest.approx(5 + second * MOST)
    assert times.share() == pytest.approx(5 / (10 + second))


def test_a_fit_takes_as_long_as_the_nearest_one_and_its_score_counts() -> None:
    clock = Clock()
    times, plan = Timetable(clock), fits(5, 20, 40, 80)
    for ended, seconds in enumerate((4.0, 30.0)):
        times.plan(plan, ended)
        run(times, clock, seconds)
        clock.now += 2.0
        times.score(1.0)
    times.plan(plan, 2)
    third, fourth = 32 * 2**GROWTH, 32 * 4**GROWTH
    assert times.left() == TimeLeft(pytest.approx(third + fourth), pytest.approx((third + fourth) * MOST))
    run(times, clock, 20.0, steps=1)
    assert times.left().about == pytest.approx(third + fourth - 2)  # type: ignore[union-attr]
    assert times.share() == pytest.approx(40 / (38 + third + fourth))


def test_a_fit_of_its_own_kind_says_more_than_a_nearer_one_of_another() -> None:
    clock = Clock()
    times = Timetable(clock)
    plan = [*fits(10), *fits(40, kind="dense"), *fits(40)]
    for ended, seconds in enumerate((10.0, 1.0)):
        times.plan(plan, ended)
        run(times, clock, seconds)
    times.plan(plan, 2)
    assert times.left().about == pytest.approx(10 * 4**GROWTH)  # type: ignore[union-attr]


def test_a_score_says_how_long_it_takes() -> None:
    clock = Clock()
    times = Timetable(clock)
    times.plan(fits(5), 0)
    run(times, clock, 10.0)
    times.score(0.0)
    clock.now += 6.0
    times.score(0.25)
    assert times.left() == TimeLeft(18.0, 18.0)
    clock.now += 18.0
    times.score(1.0)
    assert times.left() == TimeLeft(0.0, 0.0)
    assert times.share() == 1


def test_a_fit_that_takes_longer_than_others_counts_its_own_steps() -> None:
    clock = Clock()
    times = Timetable(clock)
    for ended in (0, 1):
        times.plan(fits(5, 5), ended)
        run(times, clock, (1.0, 100.0)[ended], steps=(10, 6)[ended])
    assert times.left().about == pytest.approx(40)  # type: ignore[union-attr]


def test_starts_of_a_fit_are_part_of_it() -> None:
    clock = Clock()
    times = Timetable(clock)
    times.plan(fits(5, starts=3), 0)
    run(times, clock, 10.0)
    run(times, clock, 10.0)
    left, usual = times.left(), (9 + 10) / 2
    assert left is not None
    assert left.about == pytest.approx(usual), "the first step of all is not counted"


def test_a_share_that_was_told_never_falls_and_a_shorter_plan_has_less_left() -> None:
    clock = Clock()
    times = Timetable(clock)
    times.plan(fits(5, 5, 5, 5), 0)
    run(times, clock, 10.0)
    told = times.share()
    assert not times.plan(fits(5, 5), 0), "the same fit runs"
    assert times.share() > told
    assert times.plan(fits(5, 5), 1)
    run(times, clock, 100.0, steps=5)
    assert times.share() >= told


def test_progress_tells_the_share_and_the_time_of_all_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, plan = Clock(), fits(5, 10)
    monkeypatch.setattr(progress.time, "monotonic", clock)
    with stepping("choose", verbose=True) as tell:
        for ended in (0, 1):
            planned(tell)(plan, ended)
            before(tell)("reading the data", 0, 1)
            for step in range(1, 11):
                clock.now += 1.0
                tell(Now(step))
            clock.now += 2.0
            after(tell)("scoring rows", 100, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "choose, sparse 5: reading the data, 0 %, 0.0 s, 0 % done"
    assert lines[2].startswith("choose, sparse 5: step 2 of at most 10, objective -1.0000, 3 active, 2.0 s, ")
    assert lines[2].endswith("7 % done, left: about 25 s, at most 46")
    assert lines[12].startswith(
        "choose, sparse 10: reading the data, 0 %, 12.0 s, 36 % done, left: about 21 s"
    )
    assert lines[-1].startswith("choose, sparse 10: scoring rows, 100 %, 24.0 s, 100 % done")
    shares = [int(re.findall(r"(\d+) % done", line)[0]) for line in lines]
    assert shares == sorted(shares)


def test_a_second_start_of_a_planned_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with stepping("choose", verbose=True) as tell:
        planned(tell)(fits(5, 10, starts=2), 0)
        for step in (1, 2, 1):
            tell(Now(step))
        planned(tell)(fits(5, 10, starts=2), 1)
        tell(Now(1))
    titles = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert titles == [
        "choose, sparse 5",
        "choose, sparse 5",
        "choose, sparse 5, start 2",
        "choose, sparse 10",
    ]


def test_progress_that_only_counts_steps_need_not_know_the_plan() -> None:
    seen: list[Now] = []
    planned(seen.append)(fits(5), 0)
    planned(None)(fits(5), 0)
    assert seen == []
