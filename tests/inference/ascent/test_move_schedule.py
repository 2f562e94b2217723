"""Agenda: what becomes of scripted proposals, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING
from ibpdist.catalog.systems import SYSTEMS, build
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.move_schedule import (
    ROUNDS,
    SAMPLE_CELLS,
    SAMPLE_ROWS,
    Step,
    sample_share,
    worst_rows,
)
from ibpdist.inference.ascent.move_schedule import (
    MoveSchedule as Schedule,
)
from ibpdist.inference.ascent.move_schedule import (
    ScheduledMove as Turn,
)
from ibpdist.inference.ascent.schedules import AMOUNTS, PRESENCE, moves_for
from ibpdist.inference.ascent.search_progress import Order, Phase, RowResiduals, WorstRows, initial
from ibpdist.inference.moves._base import Proposal
from tests.support.model_cases import ASCENT

LEVEL = -1000.0
FLAT, WORTH, RENEWED = 1e-5, 1e-7, 1e-6
"""The relative gains of starts-and-moves.md 13 and 18, not those that the code has."""


def parameters(*ids, rows=50.0):
    return SimpleNamespace(ids=np.array(ids), rows=np.asarray(rows), on=np.ones(len(ids)))


def info_of(objective):
    terms = {"objective": float(objective), "bound": objective - 1.0, "active": 2.0, "likelihood": 0.5}
    return Info(terms)


@dataclass
class Fake:
    """A fit whose objective the script gives: `levels` in turn, then the last one for ever."""

    levels: list
    features: int = 6
    model: object = None

    def rescale_old_sums(self, params, sums):
        return sums

    def score(self, params, sums):
        return info_of(sums.objective)


@dataclass
class Play:
    """An agenda against a script: parameters stay as they were proposed."""

    agenda: Schedule
    levels: list
    residuals: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    worst: WorstRows = field(default_factory=lambda: WorstRows(np.zeros(0), np.zeros(0), np.zeros((0, 3))))

    def __post_init__(self):
        self.fit, self.params = Fake(self.levels), parameters(0, 1)
        self.kept, self.stand, self.log, self.at = None, initial(2), [], 0

    def step(self):
        """One step: parameters as published become those of the sums."""
        level = self.levels[min(self.at, len(self.levels) - 1)]
        self.at += 1
        before = SimpleNamespace(stand=self.stand, kept=self.kept, total=np.zeros(3))
        model, row = SimpleNamespace(objective=level), 10 * np.arange(len(self.residuals))
        asked = float(self.stand.share) > 0
        sums = SimpleNamespace(
            model=model, rows=RowResiduals(self.worst, row, self.residuals) if asked else NOTHING
        )
        found = self.agenda.next(Step(self.fit, before, self.params, sums, info_of(level), Draws(1, self.at)))
        self.params, self.kept, self.stand = found.now, found.kept, found.stand
        self.log.append(found)
        return found

    def until(self, phase, most=200):
        for _ in range(most):
            found = self.step()
            if Phase(int(found.stand.phase)) is phase:
                return found
        raise AssertionError(f"{phase} was not reached")

    @property
    def phases(self):
        return [Phase(int(one.stand.phase)).name for one in self.log]

    @property
    def orders(self):
        return [Order(int(one.stand.order)).name for one in self.log]


class Scripted:
    """A move that proposes what it is given, in turn, then nothing; it keeps what it saw."""

    def __init__(self, *answers):
        self.answers, self.seen, self.draws = list(answers), [], []

    def __call__(self, situation, rng):
        self.seen.append(situation)
        self.draws.append(rng.random())
        return self.answers.pop(0) if self.answers else None


class Always(Scripted):
    def __call__(self, situation, rng):
        self.seen.append(situation)
        return trial(*situation.params.ids, situation.next_id)


def trial(*ids, passes=3):
    return Proposal("trial", parameters(*ids), passes=passes)


def exact(objective, *ids):
    return Proposal("exact", parameters(*ids), SimpleNamespace(objective=objective), objective)


def flat(agenda, *levels, **options):
    """A play that has settled at LEVEL; then these levels."""
    return Play(agenda, [LEVEL - 500, LEVEL, LEVEL, *levels], **options)


# --- settling ---


def test_nothing_is_tried_while_the_objective_rises():
    move = Scripted()
    play = Play(
        Schedule(exact=(("one", move),), turns=(Turn("two", move),)),
        [LEVEL + 50 * i for i in range(9)],
    )
    for _ in range(9):
        found = play.step()
        assert found.kept is None
        assert found.info.move == found.info.settled == 0
    assert move.seen == []
    assert play.phases == ["SETTLING"] * 9


@pytest.mark.parametrize(("gain", "calls"), [(0.99, 1), (1.01, 0)])
def test_flat_is_a_share_of_the_objective(gain, calls):
    move = Scripted()
    play = Play(Schedule(exact=(("one", move),)), [LEVEL, LEVEL * (1 - gain * FLAT)])
    play.step()
    play.step()
    assert len(move.seen) == calls


def test_without_moves_a_flat_fit_is_done_and_stays_so():
    play = flat(Schedule())
    found = play.until(Phase.DONE)
    assert len(play.log) == 3
    assert found.info.settled == 1
    assert play.step().info.settled == 1


# --- moves that need no pass ---


def test_exact_moves_are_made_one_after_the_other():
    """The second sees what the first has made; the trace has the number of the last and the gain of both."""
    first, second = Scripted(exact(LEVEL + 5, 0, 4)), Scripted(exact(LEVEL + 7, 0, 9))
    play = flat(Schedule(exact=(("one", first), ("none", Scripted()), ("two", second))))
    for _ in range(3):
        found = play.step()
    assert second.seen[0].params.ids.tolist() == [0, 4]
    assert second.seen[0].objective == LEVEL + 5
    assert second.seen[0].next_id == 5
    assert found.now.ids.tolist() == [0, 9]
    assert found.info.objective == found.info.trial == LEVEL + 7
    assert (found.info.move, found.info.gain, found.info.accepted) == (3, 7.0, 1)
    assert int(found.stand.fresh) == 10
    assert Order(int(found.stand.order)) is Order.GO


def test_after_an_exact_move_the_fit_settles_before_the_next():
    move, turn = Scripted(exact(LEVEL + 5, 0)), Scripted()
    play = flat(
        Schedule(exact=(("one", move),), turns=(Turn("two", turn),)),
        LEVEL + 5.001,
        LEVEL + 5.001,
    )
    for _ in range(4):
        play.step()
    assert len(move.seen) == 1, "no gain is known yet in the step after"
    assert turn.seen == []
    play.step()
    assert len(move.seen) == 2
    assert len(turn.seen) == 1
    assert turn.seen[0].objective == LEVEL + 5.001


def test_what_needs_passes_is_no_exact_move():
    move = Scripted(trial(0, 1, 2))
    play = flat(Schedule(exact=(("one", move),)))
    found = play.until(Phase.DONE)
    assert found.now.ids.tolist() == [0, 1]
    assert found.info.move == 0


# --- trials ---


def test_a_trial_that_is_accepted():
    move = Scripted(trial(0, 1, 2))
    play = flat(Schedule(turns=(Turn("grow", move),)), LEVEL - 40, LEVEL + 3, LEVEL + 60, LEVEL + 60)
    before = play.until(Phase.TRYING)
    assert Order(int(before.stand.order)) is Order.TRY
    assert before.kept.ids.tolist() == [0, 1]
    assert before.now.ids.tolist() == [0, 1, 2]
    assert before.info.trial == before.info.objective == LEVEL
    for level in (LEVEL - 40, LEVEL + 3):
        found = play.step()
        assert found.info.trial == level
        assert found.info.objective == LEVEL
        assert found.info.terms["bound"] == LEVEL - 1
        assert found.info.move == found.info.accepted == 0
        assert Order(int(found.stand.order)) is Order.GO
        assert found.kept is before.kept
    found = play.step()
    assert (found.info.move, found.info.gain, found.info.accepted) == (1, 60.0, 1)
    assert found.info.objective == LEVEL + 60
    assert Order(int(found.stand.order)) is Order.TAKE
    assert found.kept is None
    assert found.now.ids.tolist() == [0, 1, 2]


def test_a_trial_that_is_refused():
    move = Scripted(trial(0, 1, 7))
    play = flat(Schedule(turns=(Turn("grow", move),)), LEVEL - 40, LEVEL - 3, LEVEL - 1, LEVEL)
    kept = play.until(Phase.TRYING).kept
    play.step()
    play.step()
    found = play.step()
    assert (found.info.move, found.info.gain, found.info.accepted) == (1, -1.0, 0)
    assert found.info.objective == LEVEL
    assert found.info.trial == LEVEL - 1
    assert Order(int(found.stand.order)) is Order.BACK
    assert found.now is kept
    assert found.kept is None
    assert int(found.stand.fresh) == 8, "an id that was tried is not free again"
    last = play.until(Phase.DONE)
    assert last.now is kept


@pytest.mark.parametrize(("gain", "accepted"), [(0.99, 0), (1.01, 1)])
def test_a_gain_that_is_nothing_is_refused(gain, accepted):
    move, level = Scripted(trial(0, 1, 2, passes=1)), LEVEL + gain * WORTH * abs(LEVEL)
    play = flat(Schedule(turns=(Turn("grow", move),)), level)
    play.until(Phase.TRYING)
    assert play.step().info.accepted == accepted


def test_a_trial_ends_when_it_is_flat():
    play = flat(
        Schedule(turns=(Turn("grow", Scripted(trial(0, 1, 2, passes=50))),)),
        LEVEL - 9,
        LEVEL - 9,
    )
    play.until(Phase.TRYING)
    assert play.step().info.move == 0
    assert play.step().info.move == 1


def test_a_trial_has_as_many_passes_as_it_asks_for():
    levels = [LEVEL - 100 + i for i in range(20)]
    for passes, steps in ((0, 1), (1, 1), (4, 4), (8, 8)):
        play = flat(Schedule(turns=(Turn("grow", Scripted(trial(0, 5, passes=passes))),)), *levels)
        play.until(Phase.TRYING)
        made = next(n for n in range(1, 20) if play.step().info.move)
        assert made == steps


def test_exact_moves_have_a_say_in_a_trial():
    """A trial that would be refused is taken for what it is worth after the moves without a pass."""
    first = Scripted(None, exact(LEVEL + 20, 0, 11))
    play = flat(
        Schedule(exact=(("one", first),), turns=(Turn("grow", Scripted(trial(0, 1, 2, passes=1))),)),
        LEVEL - 5,
    )
    play.until(Phase.TRYING)
    found = play.step()
    assert (found.info.move, found.info.gain, found.info.accepted) == (2, 20.0, 1)
    assert found.info.objective == found.info.trial == LEVEL + 20
    assert found.now.ids.tolist() == [0, 11]
    assert int(found.stand.fresh) == 12


def test_the_gain_of_a_refused_trial_is_that_of_its_trace():
    first = Scripted(None, exact(LEVEL - 2, 0, 11))
    play = flat(
        Schedule(exact=(("one", first),), turns=(Turn("grow", Scripted(trial(0, 1, 2, passes=1))),)),
        LEVEL - 5,
    )
    play.until(Phase.TRYING)
    found = play.step()
    assert found.info.gain == found.info.trial - found.info.objective == -2.0


# --- patience and rounds ---


def test_a_move_is_left_alone_after_its_refusals():
    grow, other = Always(), Scripted()
    agenda = Schedule(turns=(Turn("grow", grow, patience=3), Turn("other", other)))
    play = flat(agenda)
    play.until(Phase.DONE)
    assert [situation.tries for situation in grow.seen] == [0, 1, 2]
    assert len(other.seen) == 1
    moves = [one.info.move for one in play.log if one.info.move]
    assert moves == [1, 1, 1]


def test_ids_of_refused_trials_are_not_free():
    grow = Always()
    play = flat(Schedule(turns=(Turn("grow", grow, patience=4),)))
    play.until(Phase.DONE)
    assert [situation.next_id for situation in grow.seen] == [2, 3, 4, 5]
    assert play.params.ids.tolist() == [0, 1]


def test_a_success_gives_patience_anew():
    grow = Scripted(*(trial(0, 1, n, passes=1) for n in range(2, 8)))
    up = LEVEL + 50
    levels = [LEVEL - 9, LEVEL, up, up, up, LEVEL - 9, up, LEVEL - 9, up]
    agenda = Schedule(turns=(Turn("grow", grow, patience=2),))
    play = flat(agenda, *levels)
    play.until(Phase.DONE)
    said = [(situation.tries, situation.params.ids.tolist()[-1]) for situation in grow.seen]
    assert said[:4] == [(0, 1), (1, 1), (0, 3), (1, 3)]
    accepted = [one.info.accepted for one in play.log if one.info.move]
    assert accepted[:4] == [0, 1, 0, 0]


class Fruitful(Scripted):
    """Proposes something better in these of its calls, else nothing."""

    def __init__(self, *calls):
        super().__init__()
        self.calls, self.made = calls, 0

    def __call__(self, situation, rng):
        self.seen.append(situation)
        if len(self.seen) - 1 not in self.calls:
            return None
        self.made += 1
        return trial(0, 1, situation.next_id, passes=1)


def through(*moves):
    """The names of moves in the order in which they were called, until nothing is left to try."""
    called = []

    def named(name, move):
        def call(situation, rng):
            called.append(name)
            return move(situation, rng)

        return call

    turns = tuple(Turn(name, named(name, move)) for name, move in zip("abc", moves, strict=False))
    play = Play(Schedule(turns=turns), [LEVEL - 500, LEVEL])
    while not (play.log and play.log[-1].info.settled):
        play.levels[-1] = LEVEL + 10 * sum(move.made for move in moves)
        play.step()
        assert len(play.log) < 200
    return "".join(called), play


@pytest.mark.parametrize(
    ("fruitful", "called"),
    [
        (((), (), ()), "abc"),
        (((0,), (), ()), "aabc"),
        (((), (0,), ()), "abbca"),
        (((), (), (0,)), "abccab"),
        (((), (0,), (0,)), "abbccab"),
        (((1,), (), (0,)), "abccaabc"),
    ],
)
def test_what_was_refused_is_tried_again_only_after_a_change(fruitful, called):
    """After a success every other move has one more turn, and its own until it is refused."""
    found, play = through(*(Fruitful(*calls) for calls in fruitful))
    assert found == called
    assert int(play.stand.idle) == 3


def test_an_exact_move_is_a_change():
    """One that comes when the fit has settled after a trial begins the count of turns anew."""
    late = Scripted(None, None, exact(LEVEL + 5, 0, 8))
    moves = [Scripted(), Fruitful(0), Scripted()]
    turns = tuple(Turn(name, move) for name, move in zip("abc", moves, strict=True))
    play = Play(Schedule(exact=(("late", late),), turns=turns), [LEVEL - 500, LEVEL, LEVEL, LEVEL + 10])
    play.until(Phase.DONE)
    assert sum(one.info.accepted for one in play.log) == 2
    assert [len(move.seen) for move in moves] == [2, 2, 1]


def test_rounds_do_not_go_on_for_ever():
    """Two moves that succeed by turns are left alone after a few rounds."""
    called, play = through(Fruitful(*range(0, 99, 2)), Fruitful(*range(0, 99, 2)))
    assert called == "aabb" * ROUNDS
    assert int(play.stand.rounds) == ROUNDS - 1


def test_moves_take_their_turns_in_order():
    names = []

    def move(name):
        return lambda situation, rng: names.append(name)

    turns = tuple(Turn(name, move(name)) for name in "abc")
    flat(Schedule(turns=turns)).until(Phase.DONE)
    assert names == list("abc")


def test_names_count_from_one():
    agenda = Schedule(exact=(("a", None), ("b", None)), turns=(Turn("c", None), Turn("d", None)))
    assert agenda.names == ["a", "b", "c", "d"]
    assert PRESENCE.names[:2] == ["delete", "reorient"]
    assert len(set(PRESENCE.names)) == len(PRESENCE.names)


# --- residuals ---


def test_residuals_are_asked_for_one_step_before():
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    grow = Scripted()
    play = flat(Schedule(turns=(Turn("grow", grow, residuals=True),)), residuals=rows)
    play.params.rows = np.asarray(20.0)
    found = play.until(Phase.ASKING)
    assert grow.seen == []
    assert float(found.stand.share) == 1.0
    assert found.kept is None
    found = play.step()
    (situation,) = grow.seen
    assert situation.residuals.weights.tolist() == [1.0] * 20
    assert not situation.residuals.worst.any()
    np.testing.assert_array_equal(situation.residuals.rows, rows)
    assert situation.residuals.rows.dtype == np.float64
    assert situation.residuals.edge > 1
    assert float(found.stand.share) == 0.0
    assert play.phases[-1] == "DONE"


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_residuals_are_none(rows):
    grow = Scripted()
    flat(Schedule(turns=(Turn("grow", grow, residuals=True),)), residuals=np.zeros((rows, 3))).until(
        Phase.DONE
    )
    assert [situation.residuals for situation in grow.seen] == [None]


def test_only_those_who_want_residuals_get_them():
    rows = np.ones((5, 3))
    first, second, third = Scripted(), Scripted(), Scripted()
    turns = (
        Turn("a", first),
        Turn("b", second, residuals=True),
        Turn("c", third, residuals=True),
    )
    play = flat(Schedule(turns=turns), residuals=rows)
    play.until(Phase.DONE)
    assert play.phases.count("ASKING") == 2
    assert first.seen[0].residuals is None
    assert second.seen[0].residuals is not None
    assert third.seen[0].residuals is not None


@pytest.mark.parametrize(("rows", "columns"), [(10, 5), (10_000, 5), (50_000, 100_000), (1, 1)])
def test_a_sample_is_bounded(rows, columns):
    step = SimpleNamespace(now=parameters(0, rows=rows), params=SimpleNamespace(total=np.zeros(columns)))
    share = sample_share(step)
    taken = share * rows + worst_rows(share, columns)
    assert 0 < share <= 1
    assert taken <= SAMPLE_ROWS
    assert taken * columns <= SAMPLE_CELLS or taken <= 1
    assert share == 1 or taken > 0.9 * min(SAMPLE_ROWS, SAMPLE_CELLS / columns)
    assert worst_rows(share, columns) == (0 if share == 1 else round(share * rows))


def test_a_row_in_both_halves_is_there_once():
    """Rows 0, 10, 20, 30 were drawn, 30 and 7 are explained worst; two are filled up."""
    rows = np.arange(12.0).reshape(4, 3)
    left = np.array([[9.0, 10, 11], [7, 7, 7], [0, 0, 0], [0, 0, 0]])
    worst = WorstRows(np.array([30, 7, -1, -1]), np.array([5.0, 4, -np.inf, -np.inf]), left)
    grow = Scripted()
    play = flat(Schedule(turns=(Turn("grow", grow, residuals=True),)), residuals=rows, worst=worst)
    play.params.rows = np.asarray(4000.0)
    play.until(Phase.DONE)
    found = grow.seen[0].residuals
    assert found.rows.tolist() == [*rows.tolist(), [7.0, 7, 7]]
    assert found.weights.tolist() == [3998 / 3] * 3 + [1, 1]
    assert found.worst.tolist() == [False, False, False, True, True]
    assert found.sampled == 4


# --- renewing ---


def test_rows_are_renewed_while_it_pays():
    agenda = Schedule(turns=(Turn("renew", None, patience=3), Turn("other", Scripted())))
    more = LEVEL + 10
    play = flat(agenda, LEVEL + 5, LEVEL + 5, more, more, more)
    found = play.until(Phase.RENEWING)
    assert Order(int(found.stand.order)) is Order.RENEW
    found = play.step()
    assert (found.info.move, found.info.gain, found.info.accepted) == (1, 5.0, 1)
    assert found.info.objective == LEVEL + 5
    play.until(Phase.RENEWING)
    assert play.step().info.gain == 5.0
    play.until(Phase.RENEWING)
    assert play.step().info.gain == 0.0
    play.until(Phase.DONE)
    assert play.orders.count("RENEW") == 3


def test_rows_are_not_renewed_again_for_nothing():
    for gain, times in ((0.99 * RENEWED, 1), (1.01 * RENEWED, 4)):
        levels = [LEVEL, LEVEL]
        play = Play(Schedule(turns=(Turn("renew", None, patience=4),)), levels)
        for _ in range(60):
            if play.step().info.settled:
                break
            renewing = int(play.stand.phase) == Phase.RENEWING
            play.levels[-1] += gain * abs(LEVEL) if renewing else 0.0
        assert play.orders.count("RENEW") == times


# --- the same answers again ---


def test_everything_is_a_function_of_the_step():
    """The same step gives the same answer, with a fresh agenda too."""

    def played():
        move = Scripted(trial(0, 1, 2), trial(0, 1, 3))
        play = flat(Schedule(turns=(Turn("grow", move, patience=2),)), LEVEL - 3, LEVEL + 2, LEVEL - 4)
        play.until(Phase.DONE)
        return move.draws, [one.info.trace() for one in play.log], [vars(one.stand) for one in play.log]

    assert played() == played()


def test_each_try_has_its_own_randomness():
    move = Scripted(*(trial(0, 1, n) for n in range(2, 5)))
    flat(Schedule(turns=(Turn("grow", move, patience=3),))).until(Phase.DONE)
    assert len(set(move.draws)) == len(move.draws) == 3


@pytest.mark.parametrize("system", ASCENT)
def test_which_moves_a_system_gets(system):
    made = build(system, 3)
    assert made.agenda is moves_for(made.fit.model)
    if "lg" in system:
        assert made.agenda is PRESENCE
    else:
        assert made.agenda.turns == ()
        assert set(made.agenda.names) <= set(AMOUNTS.names)


@pytest.mark.parametrize("system", [name for name, row in SYSTEMS.items() if row.method == "gibbs"])
def test_samplers_have_no_moves(system):
    assert not hasattr(build(system, 3), "agenda")
