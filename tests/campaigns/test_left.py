"""The time left of a campaign: synthetic groups with a clock that the test sets."""

import pytest

from ibpdist.base.timeleft import AllSteps, Converging
from ibpdist.campaigns.left import WRITING, Ledger, Made, Plan, ScoreTimes, expected

SLOW, QUICK = "lg-gibbs-finite", "lg-vi-finite"


def plans(count, steps=100, units=10.0, system=SLOW, scored=False):
    return {f"{system} {at}": Plan(system, units, AllSteps(steps), scored) for at in range(count)}


def steps(ledger, group, first, last, now, seconds):
    """Steps of a group that take so many seconds each; the time after them."""
    for step in range(first, last + 1):
        now += seconds
        ledger.step(group, step, dict.fromkeys(group, -1.0), now)
    return now


def test_nothing_is_known_at_first():
    ledger = Ledger(plans(2))
    assert ledger.left(0.0) is None
    fits = {"a": Plan(QUICK, 5.0, Converging(100, 1e-6, 5))}
    other = Ledger(fits)
    other.begin(["a"], 0.0)
    assert other.left(1.0) is None, "a fit that converges promises nothing before its gains are known"


def test_one_group_of_fits_with_known_steps():
    ledger = Ledger(plans(2))
    group = list(ledger.plans)
    ledger.begin(group, 0.0)
    now = steps(ledger, group, 1, 25, 4.0, 2.0)
    assert ledger.left(now).about == pytest.approx(75 * 2.0 + 2 * WRITING)


def test_a_step_of_a_group_has_a_part_that_its_fits_share():
    """When one of two ends, half of the work is left, but not half of the time."""
    both = plans(1, 20) | {"long": Plan(SLOW, 10.0, AllSteps(100))}
    ledger, group = Ledger(both, overhead=1.0), list(both)
    ledger.begin(group, 0.0)
    now = steps(ledger, group, 1, 20, 0.0, 3.0)
    ledger.end(group[0])
    assert ledger.left(now).about == pytest.approx(80 * (1.0 + 1.0) + 2 * WRITING)


def test_larger_fits_take_longer_and_other_systems_are_measured_apart():
    mixed = {
        "small": Plan(SLOW, 10.0, AllSteps(100)),
        "large": Plan(SLOW, 30.0, AllSteps(100)),
        "other": Plan(QUICK, 10.0, AllSteps(50)),
    }
    ledger = Ledger(mixed)
    ledger.begin(["small"], 0.0)
    now = steps(ledger, ["small"], 1, 101, 0.0, 1.0)
    ledger.end("small")
    ledger.write(["small"], now + 2.0)
    ledger.begin(["other"], now + 2.0)
    now = steps(ledger, ["other"], 1, 26, now + 2.0, 0.5)
    large, starts = 100 * 3.0, (1.0 + 0.5) / 2
    assert ledger.left(now).about == pytest.approx(24 * 0.5 + large + starts + 2 * 2.0)


def test_groups_side_by_side_share_the_time_but_none_is_quicker_than_itself():
    ledger = Ledger(plans(4))
    first, second = list(ledger.plans)[:2], list(ledger.plans)[2:]
    for group in (first, second):
        ledger.begin(group, 0.0)
    for step in range(1, 51):
        for group in (first, second):
            ledger.step(group, step, dict.fromkeys(group, -1.0), step * 2.0)
    assert ledger.left(100.0).about == pytest.approx(50 * 2.0 + 2 * WRITING, rel=0.02)


def test_fits_that_wait_make_as_many_steps_as_those_of_their_system():
    fits = {name: Plan(QUICK, 10.0, Converging(1000, 1e-6, 10)) for name in ("done", "waits")}
    ledger = Ledger(fits)
    ledger.begin(["done"], 0.0)
    now = steps(ledger, ["done"], 1, 60, 0.0, 1.0)
    ledger.end("done")
    ledger.write(["done"], now + 1.0)
    assert ledger.left(now + 1.0).about == pytest.approx(60 + 1.0 + 1.0)


def test_what_a_group_made_before_it_broke_does_not_count_as_made():
    ledger = Ledger(plans(2))
    group = list(ledger.plans)
    ledger.begin(group, 0.0)
    now = steps(ledger, group, 1, 50, 0.0, 1.0)
    before = ledger.left(now).about
    ledger.begin(group, now)
    assert ledger.left(now).about > before + 40


def test_the_mean_of_many_predictions_is_more_than_their_middle():
    fit = Converging(10**6, 1e-6, 10)
    levels = [-10.0 + 1e-4 * step for step in range(100)]
    middle = fit.steps_left(levels, 100)[0]
    assert 1.3 * middle < expected(fit, Made(100, levels)) < 1.7 * middle
    assert expected(Converging(101, 1e-6, 10), Made(100, levels)) <= 1


def test_scores_are_guessed_and_then_measured():
    ledger = Ledger(plans(4, scored=True))
    ledger.guesses = dict(zip(ledger.plans, (1.0, 1.0, 1.0, 3.0), strict=True))
    ledger.written |= set(ledger.plans)
    ledger.begin([], 0.0)
    assert ledger.left(0.0).about == pytest.approx(6.0)
    ledger.score(1, 4, 0.0, 10.0)
    assert ledger.left(10.0).about == pytest.approx(6.0)
    ledger.score(4, 4, 0.0, 16.0)
    assert ledger.left(16.0).about == pytest.approx(3.0 * (6.0 + 0.6) / (3.0 + 0.6)), "twice as long"
    ledger.score(4, 4, 1.0, 22.0)
    assert ledger.left(22.0).about == 0.0


def test_only_fits_without_a_score_are_scored():
    ledger = Ledger(plans(3, scored=True))
    ledger.guesses = dict.fromkeys(ledger.plans, 2.0)
    ledger.written |= set(ledger.plans)
    ledger.begin([], 0.0)
    ledger.score(1, 1, 0.0, 5.0)
    assert ledger.left(5.0).about == pytest.approx(2.0)


class Trials:
    """Trials that take a second each; an active feature costs ten seconds."""

    def __init__(self):
        self.now, self.asked = 0.0, []

    def clock(self):
        return self.now

    def trial(self, fit, active):
        self.now += 1.0
        self.asked.append((fit, active))
        return 10.0 * active


def test_trials_of_scores_take_a_small_share_of_the_time():
    trials = Trials()
    times = ScoreTimes(trials.trial, trials.clock)
    assert times.of("a", SLOW, 8, ended=False) == 80.0
    assert times.of("a", SLOW, 7, ended=False) == 80.0, "too early for another one: the nearest stands for it"
    assert times.of("b", QUICK, 3, ended=False) == 30.0, "another system needs its own"
    assert times.of("a", SLOW, 6, ended=True) == 60.0, "and so does a fit that has ended"
    trials.now = 1000.0
    assert times.of("c", SLOW, 5, ended=False) == 50.0
    assert trials.asked == [("a", 8), ("b", 3), ("a", 6), ("c", 5)]
