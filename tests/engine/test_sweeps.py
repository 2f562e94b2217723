"""The loop steps; rules say when it has stepped enough, in words."""

from itertools import islice

import numpy as np
import pytest

from ibpdist.base.errors import IbpError
from ibpdist.engine.serial import WIDTH, MemoryHistory, Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Info
from ibpdist.inference.stopping import Converged, Rising, Snapshot, StepLimit, Stop, tolerance, until
from tests.support.toy import Toy, blobs


def fit(toy, source, seed=7, begin=None):
    bench = Workbench(toy, source, MemoryHistory(), seed)
    return sweeps(toy, Serial(bench), seed, begin)


def snap(step, level, **terms):
    return Snapshot(step, None, Info.of({"objective": level, "bound": level, **terms}))


def test_steps_count_from_one_and_follow_each_other():
    assert [now.step for now in islice(fit(Toy(), blobs()), 4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("draw", [False, True])
def test_the_same_seed_gives_the_same_bits(draw):
    one = [now.trace["objective"] for now in islice(fit(Toy(draw=draw), blobs()), 6)]
    other = [now.trace["objective"] for now in islice(fit(Toy(draw=draw), blobs()), 6)]
    assert one == other
    assert one != [now.trace["objective"] for now in islice(fit(Toy(draw=draw), blobs(), seed=8), 6)]


def test_chunking_changes_at_most_rounding():
    one = [now.trace["objective"] for now in islice(fit(Toy(), blobs(width=10)), 6)]
    other = [now.trace["objective"] for now in islice(fit(Toy(), blobs(width=230)), 6)]
    assert np.allclose(one, other, rtol=1e-12)


def test_a_look_at_the_data_is_told_of_chunk_by_chunk_and_changes_nothing():
    """Also where a group of the engine has more chunks."""
    toy, source, told = Toy(), blobs(width=10), []
    bench = Workbench(toy, source, MemoryHistory(), 7)
    seen = sweeps(toy, Serial(bench), 7, looked=lambda *what: told.append(what))
    one = [now.trace["objective"] for now in islice(seen, 3)]
    assert one == [now.trace["objective"] for now in islice(fit(toy, source), 3)]
    assert source.chunks > WIDTH
    assert told == [("reading the data", done, source.chunks) for done in range(source.chunks + 1)]


def test_beginning_with_parameters_skips_the_survey():
    toy, source = Toy(), blobs()
    last = list(islice(fit(toy, source), 9))[-1]
    first = next(iter(fit(toy, source, begin=(0, last.params))))
    cold = next(iter(fit(toy, source)))
    assert first.step == 1
    assert first.trace["objective"] > cold.trace["objective"]


def test_converged_needs_a_small_gain():
    rule = Converged(1e-3)
    assert rule(None, snap(1, -100.0)) is None
    assert rule(snap(1, -100.0), snap(2, -99.0)) is None
    stop = rule(snap(1, -100.0), snap(2, -99.95))
    assert stop.code == "converged"
    assert "step 2" in stop.sentence
    assert "0.05" in stop.sentence
    assert rule(snap(1, -100.0), snap(2, -100.001)) is None, "a fall is not convergence"
    assert rule(snap(1, -100.0), snap(2, -100.0)).code == "converged"


def test_no_tolerance_never_converges():
    assert Converged(0.0)(snap(1, -100.0), snap(2, -100.0)) is None


def test_limit():
    rule = StepLimit(3)
    assert rule(None, snap(2, 0.0)) is None
    assert rule(None, snap(3, 0.0)) == Stop("step limit", "stopped at the limit of 3 steps")
    assert rule(None, snap(4, 0.0)) is not None


def test_a_fall_beyond_rounding_is_a_bug():
    rule = Rising(1000, 1e-9, monotone=True)
    assert rule(snap(1, -1e6), snap(2, -1e6 - 1e-4)) is None
    with pytest.raises(IbpError, match=r"step 2: the objective fell by 0.01 to") as caught:
        rule(snap(1, -1e6), snap(2, -1e6 - 1e-2))
    assert caught.value.code == 1


def test_a_sampler_may_fall():
    assert Rising(1000, 1e-9, monotone=False)(snap(1, 0.0), snap(2, -1e6)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stops_a_sampler_too(value):
    with pytest.raises(IbpError, match=r"step 3: tail = .* is not a finite number"):
        Rising(10, 1e-9, monotone=False)(None, snap(3, -1.0, tail=value))


def test_rounding_allowed_depends_on_the_data():
    assert tolerance(8) == 1e-9
    assert tolerance(4) == 1e-6


def test_until_ends_with_the_step_that_stopped():
    steps = iter([snap(s, -1.0 / s) for s in range(1, 9)])
    seen = list(until(steps, [Rising(1, 1e-9, monotone=True), StepLimit(4)]))
    assert [now.step for now, _ in seen] == [1, 2, 3, 4]
    assert [stop is None for _, stop in seen] == [True, True, True, False]
    assert next(steps).step == 5, "nothing beyond is computed"


def test_until_knows_the_step_before_a_resume():
    seen = list(until(iter([snap(5, -100.0)]), [Converged(1e-3)], before=snap(4, -100.01)))
    assert seen[0][1].code == "converged"
