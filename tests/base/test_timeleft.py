"""The time left of a fit: from its steps and the gain of the last ones, with a clock that the test sets."""

import math

import pytest

from ibpdist.base.timeleft import AllSteps, Converging, Course, TimeLeft, gain, stopping


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def falling(start, factor, steps, level=-1000.0):
    """Objectives whose relative gain falls geometrically."""
    levels = [level]
    for step in range(steps):
        levels.append(levels[-1] + abs(level) * start * factor**step)
    return levels


def course(stopping, seconds, levels, fits=1, first=1):
    """What is known after steps of so many seconds each."""
    clock = Clock()
    made = Course(stopping, clock, fits)
    for step, level in enumerate(levels, first):
        clock.now += seconds
        made.add(step, level)
    return made


@pytest.mark.parametrize(
    ("about", "most", "words"),
    [
        (120, 540, "about 2 min, at most 9"),
        (4, 17, "about 4 s, at most 17"),
        (45, 200, "about 45 s, at most 3 min"),
        (3000, 12060, "about 50 min, at most 3 h 21 min"),
        (12060, 18000, "about 3 h 21 min, at most 5 h 0 min"),
        (7.1, 7.4, "about 7 s"),
    ],
)
def test_a_range_in_words(about, most, words):
    assert str(TimeLeft(about, most)) == words


def test_a_sampler_makes_all_of_its_steps():
    assert AllSteps(100).steps_left([], 30) == (70, 70)
    assert AllSteps(100).steps_left([], 130) == (0, 0)
    assert course(AllSteps(100), 2.0, [0.0] * 40).left() == TimeLeft(120.0, 120.0)


def test_nothing_is_said_before_gains_are_known():
    fit = Converging(1000, 1e-6, 10)
    assert fit.steps_left([-3.0, -2.0, -1.5], 3) is None
    assert fit.steps_left([-3.0, -2.0, -1.5, -1.2], 4) is not None
    assert course(fit, 1.0, [-5.0]).left() is None


def test_a_larger_gain_a_longer_history_and_more_features_take_longer():
    fit = Converging(10**6, 1e-6, 10)
    levels = falling(1e-2, 0.9, 40)
    about = fit.steps_left(levels, 41)[0]
    assert fit.steps_left(falling(1e-1, 0.9, 40), 41)[0] > about
    assert fit.steps_left(levels, 400)[0] > about
    assert Converging(10**6, 1e-6, 20).steps_left(levels, 41)[0] == pytest.approx(about * 2**0.73)
    assert Converging(10**6, 1e-4, 10).steps_left(levels, 41)[0] < about


def test_the_formula():
    levels = [-100.0] * 30 + [-100.0 + 1e-3 * step for step in range(1, 11)]
    gain_now = 1e-3 / abs(levels[-1])
    about, most = Converging(10**6, 1e-6, 8).steps_left(levels, 200)
    assert gain(levels, 10) == pytest.approx(gain_now)
    assert about == pytest.approx(0.4 * 200**0.48 * (gain_now / 1e-6) ** 0.23 * 8**0.73)
    assert most == pytest.approx(about * math.exp(1.28))


@pytest.mark.parametrize("levels", [[-5.0] * 20, [-5.0 - step for step in range(20)], [0.0] * 20])
def test_a_fit_that_does_not_gain_is_never_promised_less_than_nothing(levels):
    about, most = Converging(1000, 1e-6, 5).steps_left(levels, 20)
    assert 0 < about <= most <= 980


def test_never_more_than_the_limit():
    fit = Converging(50, 1e-6, 40)
    assert fit.steps_left(falling(1e-1, 0.99, 40), 41) == (9, 9)
    assert fit.steps_left(falling(1e-1, 0.99, 60), 60) == (0, 0)
    assert Converging(500, 0.0, 5).steps_left([-1.0], 1) == (499, 499), "it can only meet its limit"


def test_seconds_are_those_of_a_step_whatever_came_before_the_first():
    fit, levels = Converging(1000, 1e-6, 10), falling(1e-2, 0.9, 40)
    about, most = fit.steps_left(levels, 41)
    made = course(fit, 2.0, levels)
    assert made.left() == TimeLeft(pytest.approx(2 * about), pytest.approx(2 * most))
    passed = 2.0 * 40
    assert made.share() == pytest.approx(passed / (passed + 2 * about))


def test_a_run_that_goes_on_counts_its_own_steps():
    fit, levels = AllSteps(1000), [0.0] * 11
    assert course(fit, 3.0, levels, first=500).left() == TimeLeft(pytest.approx(3 * 490), pytest.approx(1470))


def test_starts_to_come_take_as_long_as_those_that_were_made():
    clock = Clock()
    made = Course(AllSteps(10), clock, fits=3)
    for step in (*range(1, 11), *range(1, 6)):
        clock.now += 1.0
        made.add(step, 0.0)
    left = made.left()
    assert left.about == pytest.approx(5 + (9 + 10) / 2)
    assert left.most >= left.about
    assert made.share() == pytest.approx(5 / 10), "of the fit that runs"


def test_a_sampler_is_told_from_a_fit():
    assert stopping(True, 50, 1e-6, 4) == AllSteps(50)
    assert stopping(False, 50, 1e-6, 4) == Converging(50, 1e-6, 4)
