"""Where a search stands: what is published, and what the trace says of it."""

import numpy as np
import pytest

from ibpdist.base.structs import arrays_of, pack, unpack
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.search_progress import (
    NO_DECISION,
    Decision,
    Order,
    Phase,
    advanced,
    fit_so_far,
    gone_back,
    initial,
    on_trial,
    traced,
)

TRACE = {"objective": -10.0, "bound": -12.0, "active": 3.0, "likelihood": -9.0}
TRIED = {"objective": -20.0, "bound": -25.0, "active": 4.0, "likelihood": -18.0}
INFO, TRIED_INFO = Info(TRACE), Info(TRIED)


def values(stand):
    return {name: value.item() for name, value in arrays_of(stand).items()}


def test_initial():
    found = values(initial(5))
    assert found.pop("fresh") == 5
    for name in ("objective", "bound", "last"):
        assert found.pop(name) == -np.inf
    assert set(found.values()) == {0}


def test_a_stand_survives_being_stored():
    stand = advanced(initial(5), phase=Phase.TRYING, order=Order.TRY, left=3, last=-1.5)
    outline, arrays = pack(stand)
    again = unpack(
        outline, {name: np.frombuffer(a.tobytes(), a.dtype).reshape(()) for name, a in arrays.items()}
    )
    assert values(again) == values(stand)
    assert Order(int(again.order)) is Order.TRY
    assert Phase(int(again.phase)) is Phase.TRYING


def test_orders_and_questions_are_for_one_step():
    asked = advanced(initial(0), order=Order.RENEW, share=0.5, turn=2)
    after = advanced(asked)
    assert (int(after.order), float(after.share), int(after.turn)) == (Order.GO, 0.0, 2)


def test_the_fit_so_far():
    found = fit_so_far(initial(0), "now", INFO, turn=1)
    assert (found.now, found.kept) == ("now", None)
    assert {name: float(getattr(found.stand, name)) for name in ("objective", "bound", "active", "last")} == {
        "objective": -10.0,
        "bound": -12.0,
        "active": 3.0,
        "last": -10.0,
    }
    assert int(found.stand.turn) == 1
    expected = {"trial": -10.0, "move": 0.0, "gain": 0.0, "accepted": 0.0, "settled": 0.0}
    assert found.info.trace() == TRACE | expected


def test_changes_go_before_what_follows_from_the_trace():
    assert float(fit_so_far(initial(0), "now", INFO, last=-np.inf).stand.last) == -np.inf


def test_on_trial_shows_the_fit_so_far():
    stand = fit_so_far(initial(0), "now", INFO).stand
    found = on_trial(stand, "tried", "now", TRIED_INFO, phase=Phase.TRYING, order=Order.TRY)
    assert (found.now, found.kept) == ("tried", "now")
    assert {name: found.info.terms[name] for name in ("objective", "bound", "active")} == {
        "objective": -10.0,
        "bound": -12.0,
        "active": 3.0,
    }
    assert found.info.trial == float(found.stand.last) == -20.0
    assert found.info.terms["likelihood"] == -18.0, "terms are those of what is tried"


def test_gone_back():
    stand = on_trial(fit_so_far(initial(0), "now", INFO).stand, "tried", "now", TRIED_INFO, left=4).stand
    found = gone_back(stand, "now", TRIED_INFO, Decision(2, -10.0, False), turn=3)
    assert (found.now, found.kept) == ("now", None)
    assert Order(int(found.stand.order)) is Order.BACK
    assert Phase(int(found.stand.phase)) is Phase.SETTLING
    assert float(found.stand.last) == found.info.objective == -10.0
    assert (found.info.move, found.info.gain, found.info.accepted) == (2.0, -10.0, 0.0)


@pytest.mark.parametrize("phase", Phase)
def test_settled_is_when_nothing_more_is_to_be_tried(phase):
    info = traced(INFO, advanced(initial(0), phase=phase, objective=-1.0, bound=-2.0), -3.0, NO_DECISION)
    assert info.settled == (phase is Phase.DONE)


def test_the_trace_is_of_plain_finite_numbers():
    found = fit_so_far(initial(0), "now", INFO, Decision(1, 2.5, True))
    assert all(type(value) is float and np.isfinite(value) for value in found.info.trace().values())
    assert TRACE.keys() < found.info.trace().keys()
    assert "trial" not in TRACE, "the trace that was given is left alone"
