"""Chains of rows in turn: each has the bits it has alone, and is made again when it is lost."""

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import arrays_of
from ibpdist.data.arrays import ArrayData
from ibpdist.data.one_chunk import Whole
from ibpdist.engine.members import ChainEngine
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench
from ibpdist.inference.batch import AllEnded, terms_of
from ibpdist.inference.in_turn.chains import Chains
from ibpdist.inference.in_turn.collapsed import Collapsed
from ibpdist.inference.in_turn.in_turn import Coins, InTurn
from ibpdist.inference.stopping import AllSteps, until
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.unit import Unit
from ibpdist.runs.rows import in_memory
from tests.support.model_cases import problem

STEPS = 5


def sampler():
    return InTurn(Model(Buffet(), Unit(), Gaussian(), DRAW), Collapsed(), 2, Coins())


def source(rows=26, chunk_rows=8):
    return ArrayData(problem(5, rows, 4, "complete")[0], chunk_rows)


def run(count, steps=STEPS, inner=1, data=None):
    given = source() if data is None else data
    chains = Chains.of(sampler(), 9, count, (AllSteps(steps),), inner)
    engine = Serial(Workbench(chains, Whole(given, count), MemoryHistory(), 0))
    found = [now for now, _ in until(sweeps(chains, engine, 9), [AllEnded()])]
    return chains, engine, found


def levels(found, chain):
    return [terms_of(chain, now.trace)["objective"] for now in found]


def test_a_chain_has_the_bits_it_has_alone():
    _, _, three = run(3)
    _, _, one = run(1)
    assert levels(three, 0) == levels(one, 0)
    assert len({tuple(levels(three, chain)) for chain in range(3)}) == 3


def test_a_chain_is_the_sampler_step_by_step():
    """Against the sampler called by hand."""
    whole = Whole(source(), 2).read(1)
    made = sampler()
    draws = Draws(9, 0, 1)
    chain, expected = made.start(whole, made.model.observation.summarise(whole), draws), []
    for step in range(1, STEPS + 1):
        chain, info = made.sweep(whole, chain, draws.at(step))
        trace = info.trace()
        expected.append(trace["objective"])
    _, engine, found = run(2)
    assert levels(found, 1) == expected
    state = engine.bench.state(1, STEPS)
    for one, other in zip(arrays_of(state).values(), arrays_of(chain).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_several_sweeps_in_a_step():
    _, _, fine = run(1, steps=6)
    _, _, coarse = run(1, steps=3, inner=2)
    assert levels(coarse, 0) == levels(fine, 0)[1::2]


@pytest.mark.parametrize("lost", range(1, STEPS))
def test_a_lost_chain_is_made_again(lost):
    data = source()
    chains = Chains.of(sampler(), 9, 2, (AllSteps(STEPS),))
    history = Everything()
    engine = Serial(Workbench(chains, Whole(data, 2), history, 0))
    found = []
    for now, _ in until(sweeps(chains, engine, 9), [AllEnded()]):
        found.append(now)
        if now.step == lost:
            engine.bench = Workbench(chains, Whole(data, 2), history, 0)
    assert engine.bench.replayed >= 2 * (lost - 1)
    assert levels(found, 1) == levels(run(2)[2], 1)


class Everything(MemoryHistory):
    """Keeps the parameters of all steps."""

    def publish(self, step, params):
        self._params[step] = params


def test_rows_of_a_chain_in_the_chunks_of_the_data():
    chains, engine, found = run(2)
    data = source()
    rows, _ = in_memory(ChainEngine(engine, 1, data.chunks), STEPS)
    state = engine.bench.state(1, STEPS)
    order = np.argsort(-found[-1].params.members[1].params.on, kind="stable")
    np.testing.assert_array_equal(rows["z"][1], state.state.z[order].T)
    assert rows["z"][0] == ("row", "feature")
    assert chains.members[1].chain == 1


def test_chains_end_by_their_rules():
    _, _, found = run(2)
    assert [now.trace["running"] for now in found] == [2.0] * (STEPS - 1) + [0.0]
    assert {m.stop.sentence for m in found[-1].params.members} == {f"made all of its {STEPS} steps"}


def test_what_is_shown_is_the_best_chain():
    _, _, found = run(3)
    for now in found:
        assert now.trace["objective"] == max(terms_of(c, now.trace)["objective"] for c in range(3))


def test_it_begins_by_itself():
    chains = Chains.of(sampler(), 1, 2, ())
    with pytest.raises(UsageError, match="begins by itself"):
        chains.adopt(None, None)
    assert chains.ask(None, [], Draws(0)) is None
    assert not chains.monotone()
