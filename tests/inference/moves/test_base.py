"""What moves are told and what they answer."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist.inference.moves import absorb, birth, delete, rebase, reorient, trial_delete
from ibpdist.inference.moves._base import LEAST_GAIN, Proposal, Residuals, exact, pattern_cost
from ibpdist.inference.moves.relabel import Edit
from tests.support.model_cases import Case
from tests.support.moves import fitted, settled
from tests.support.planted_rows import masked, planted


def small(**settings):
    x, _, _ = planted(3, rows=30, columns=6)
    return fitted(Case(**{"prior": "sticks"} | settings), x, features=4, steps=3)


@pytest.mark.parametrize("prior", ["finite", "sticks"])
@pytest.mark.parametrize("noise", ["one", "column"])
def test_what_there_is_to_beat_is_no_less_than_the_objective(prior, noise):
    s = small(prior=prior, noise=noise).situation
    kept = s.evaluate(Edit.keep(s.params.ids, np.arange(4)))
    assert s.reached == max(s.objective, kept.objective)
    assert kept.objective == pytest.approx(s.objective, abs=0.05 * 30 * 6)
    assert replace(s, objective=1e9).reached == 1e9


def test_a_change_that_gains_nothing_is_not_proposed():
    s = small().situation
    found = s.evaluate(Edit.keep(s.params.ids, np.arange(3)))
    for gain, proposed in ((-1.0, False), (0.5 * LEAST_GAIN, False), (2 * LEAST_GAIN, True)):
        answer = exact("name", s, replace(found, objective=s.reached + gain))
        assert (answer is not None) is proposed
    assert exact("name", s, None) is None


def test_an_exact_proposal_says_all_there_is_to_know():
    s = small().situation
    found = replace(s.evaluate(Edit.keep(s.params.ids, np.array([2, 0]))), objective=s.reached + 1)
    made = exact("name", s, found)
    assert made == Proposal("name", found.params, found.sums, found.objective, passes=0)
    assert made.next_id == 3


@pytest.mark.parametrize(
    ("prior", "limit", "room"),
    [("sticks", None, np.inf), ("sticks", 6, 2), ("finite", None, 0), ("finite", 6, 0), ("sticks", 3, -1)],
)
def test_room_is_what_the_wish_and_the_model_leave(prior, limit, room):
    assert replace(small(prior=prior).situation, limit=limit).room == room


def test_deleted_features_leave_room_in_the_finite_model():
    s = small(prior="finite").situation
    found = s.evaluate(Edit.keep(s.params.ids, np.array([0, 1])))
    assert replace(s, params=found.params, sums=found.sums).room == 2


def test_what_can_be_turned():
    x, z, _ = planted(3, rows=30, columns=6)
    full, seen = masked(x, "masked")
    assert settled(Case(), x, z).situation.turnable
    assert settled(Case(missing="masked"), full, z, seen, steps=1).situation.turnable
    assert small(rule="mode").situation.turnable
    assert not small(weights="normal").situation.turnable
    assert fitted(Case(missing="rows"), full, seen, steps=2).situation.turnable


@pytest.mark.parametrize("move", [absorb, delete, trial_delete, rebase, reorient])
@pytest.mark.parametrize("what", ["no rows", "zeros", "ones", "one row"])
@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_odd_data_are_no_trouble(move, what, prior):
    rows = {"no rows": 0, "one row": 1}.get(what, 20)
    x = np.full((rows, 4), 0.0 if what == "zeros" else 1.0)
    s = fitted(Case(prior=prior), x, features=3, steps=2).situation
    found = move.propose(s, np.random.default_rng(0))
    if found is not None:
        assert np.isfinite(found.params.observation.mean).all()
        assert len(found.params.ids) >= 1


@pytest.mark.parametrize("what", ["zeros", "ones", "one row"])
def test_odd_residuals_are_no_trouble(what):
    rows = 1 if what == "one row" else 20
    s = small().situation
    left = Residuals(np.full((rows, 6), 0.0 if what == "zeros" else 1.0), np.ones(rows), rows)
    found = birth.propose(replace(s, residuals=left), np.random.default_rng(0))
    assert found is None or np.isfinite(found.params.observation.mean).all()


def test_the_cost_of_a_pattern_is_its_entropy():
    p = np.array([0.0, 0.1, 0.5, 0.9, 1.0, -1e-12, 1 + 1e-12])
    cost = pattern_cost(p)
    assert cost[[0, 4, 5, 6]].tolist() == [0.0] * 4
    assert cost[2] == pytest.approx(np.log(2))
    assert cost[1] == pytest.approx(cost[3]) == pytest.approx(-0.1 * np.log(0.1) - 0.9 * np.log(0.9))
