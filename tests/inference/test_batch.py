"""Fits side by side: the bits of each are those it has alone, and what befalls one befalls no other."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.structs import Nothing
from ibpdist.catalog import systems as catalog
from ibpdist.data.subsample import Subsample
from ibpdist.engine.members import MemberEngine
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench
from ibpdist.inference.batch import AllEnded, Batch, Member, terms_of
from ibpdist.inference.stopping import Converged, StepLimit, StopCode, until
from ibpdist.runs.rows import in_memory
from tests.support.compare import assert_same_record
from tests.support.planted_rows import planted
from tests.support.toy import MemorySource, Toy, blobs

LIMIT = 6


def engine_of(algorithm, source, seed=0):
    return Serial(Workbench(algorithm, source, MemoryHistory(), seed))


def alone(member, source):
    """Objectives by step, the last parameters and row results of a member by itself."""
    engine = engine_of(member.algorithm, source, member.seed)
    engine.bench.draws = member.draws(engine.bench.draws)
    levels = []
    for now, _ in until(sweeps(Chained(member), engine, member.seed), list(member.rules)):
        levels.append(now.trace["objective"])
    return levels, now.params, in_memory(engine, now.step)[0]


@dataclass(frozen=True)
class Chained:
    """A member's algorithm under the randomness of its chain."""

    member: Member

    def __getattr__(self, name):
        return getattr(self.member.algorithm, name)

    def init(self, survey, draws, known=()):
        return self.member.algorithm.init(survey, self.member.draws(draws), known)

    def ask(self, survey, known, draws):
        return self.member.algorithm.ask(survey, known, self.member.draws(draws))

    def update(self, params, sums, draws):
        return self.member.algorithm.update(params, sums, self.member.draws(draws))


def together(members, source):
    batch = Batch(tuple(members))
    engine = engine_of(batch, source)
    steps = [now for now, _ in until(sweeps(batch, engine, 0), [AllEnded()])]
    return engine, steps


def levels_of(i, steps):
    found = [terms_of(i, now.trace) for now in steps]
    return [one["objective"] for one in found if one]


def source_of(rows=90, columns=6):
    """Planted rows in chunks of 32."""
    return MemorySource(planted(8, rows, columns, [0.4] * 3, 0.1)[0], 32)


def systems():
    """Fits that differ in everything that may differ between members."""
    names = ["lg-vi-infinite", "lg-vi-finite", "fa-vi-infinite", "lg-gibbs-finite", "lg-vi-infinite-hard"]
    made = []
    for i, name in enumerate(names):
        algorithm = catalog.build(name, 2 + i, settings={"start": "rows"} if i == 1 else {})
        rules = (Converged(1e-4), StepLimit(4 + 3 * i)) if algorithm.monotone() else (StepLimit(9),)
        made.append(Member(algorithm, seed=20 + i, chain=i, rules=rules))
    return made


def test_bits_are_those_of_the_fit_alone():
    source, members = source_of(), systems()
    engine, steps = together(members, source)
    for i, member in enumerate(members):
        levels, params, rows = alone(member, source)
        assert levels_of(i, steps) == levels, member.algorithm
        found = steps[-1].params.members[i]
        assert_same_record(found.params, params)
        assert int(found.ended) == len(levels)
        seen, _ = in_memory(MemberEngine(engine, i), len(steps))
        for name, (dims, values) in rows.items():
            assert seen[name][0] == dims
            np.testing.assert_array_equal(seen[name][1], values)


def of_rows(width):
    """Two fits of all rows, and two of each of three subsamples; each with the data that it sees."""
    source = MemorySource(planted(8, 120, 6, [0.4] * 3, 0.1)[0], width)
    parts = [None, *(Subsample(5, number, 0.6).of(source) for number in range(3))]
    cases = []
    for at, rows in enumerate(parts):
        for name, start in (("lg-vi-infinite", "spectral"), ("fa-vi-finite", "best")):
            algorithm = catalog.build(name, 3, settings={"start": start})
            member = Member(algorithm, 7, rules=(StepLimit(3 + at),), rows=rows)
            cases.append((member, source if rows is None else rows))
    return source, cases[::2] + cases[1::2]


@pytest.mark.parametrize("width", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_members_of_some_rows_have_the_bits_of_fits_of_these_rows(width):
    """Members of the same rows do not stand side by side, and end at different steps."""
    source, cases = of_rows(width)
    engine, steps = together([member for member, _ in cases], source)
    for i, (member, data) in enumerate(cases):
        levels, params, rows = alone(member, data)
        assert levels_of(i, steps) == levels
        assert_same_record(steps[-1].params.members[i].params, params)
        seen, _ = in_memory(MemberEngine(engine, i), len(steps))
        for name, (dims, values) in rows.items():
            assert seen[name][0] == dims
            np.testing.assert_array_equal(seen[name][1], values)
    assert len({tuple(levels_of(i, steps)) for i in range(len(cases))}) == len(cases)


class Counted:
    """A source that notes which chunks are read."""

    def __init__(self, source):
        self.source, self.read_chunks = source, []

    def __getattr__(self, name):
        return getattr(self.source, name)

    def read(self, index):
        self.read_chunks.append(index)
        return self.source.read(index)


def test_a_chunk_is_read_once_a_step_for_all_members():
    source = Counted(source_of())
    rows = [Subsample(5, number).of(source) for number in range(4)]
    source.read_chunks.clear()
    members = [Member(Toy(), 1, rules=(StepLimit(4),), rows=some) for some in rows]
    together(members, source)
    assert sorted(source.read_chunks) == sorted([0, 1, 2] * 5), "a survey and four steps"


def test_members_stop_each_by_its_rules():
    _, steps = together([Member(Toy(), 1, rules=(StepLimit(n),)) for n in (2, 5, 3)], blobs())
    assert len(steps) == 5
    assert [int(m.ended) for m in steps[-1].params.members] == [2, 5, 3]
    assert [m.stop.code for m in steps[-1].params.members] == ["step limit"] * 3
    assert [now.trace["running"] for now in steps] == [3, 2, 1, 1, 0]
    assert len(levels_of(0, steps)) == 2


def test_a_chain_has_its_own_randomness():
    algorithm = catalog.build("lg-gibbs-finite", 3)
    members = [Member(algorithm, 5, chain, (StepLimit(4),)) for chain in (0, 1)]
    _, steps = together(members, source_of())
    assert levels_of(0, steps) != levels_of(1, steps)


@dataclass(frozen=True)
class Faulty(Toy):
    """Fails with `error` at a step; 0 is the beginning."""

    error: Exception | None = None
    at: int = 0

    def init(self, survey, draws, known=()):
        if self.at == 0:
            raise self.error
        return super().init(survey, draws, known)

    def update(self, params, sums, draws):
        if draws.step == self.at:
            raise self.error
        return super().update(params, sums, draws)


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("error", [UsageError("noise is 0: expected more"), ZeroDivisionError("oh")])
def test_a_member_fails_alone(at, error):
    good = Member(Toy(), 3, rules=(StepLimit(LIMIT),))
    bad = Member(Faulty(error=error, at=at), 4, rules=(StepLimit(LIMIT),))
    _, steps = together([bad, good], blobs())
    failed, fine = steps[-1].params.members
    assert failed.stop.code is StopCode.FAILED
    assert str(error) in failed.stop.sentence
    assert ("bug" in failed.stop.sentence) == isinstance(error, ZeroDivisionError)
    assert int(failed.ended) == at
    assert isinstance(failed.params, Nothing) == (at == 0)
    assert levels_of(1, steps) == alone(good, blobs())[0]
    assert_same_record(fine.params, alone(good, blobs())[1])


@dataclass(frozen=True)
class Curious(Toy):
    """Asks `often` times for the sum of the data, and fails when it asks for the time that is `bad`."""

    often: int = 1
    bad: int = -1

    def ask(self, survey, known, draws):
        if len(known) == self.bad:
            raise UsageError("no such question")
        return survey if len(known) < self.often else None

    def look(self, chunk, question, draws):
        return super().summarise(chunk)

    def init(self, survey, draws, known=()):
        assert len(known) == self.often
        made = super().init(survey, draws)
        return replace(made, centre=made.centre + sum(float(found.rows) for _, found in known))


def test_members_ask_as_often_as_they_need():
    kinds = [Curious(often=2), Toy(), Curious(often=1), Curious(often=3, bad=1)]
    members = [Member(kind, 3, rules=(StepLimit(2),)) for kind in kinds]
    _, steps = together(members, blobs())
    last = steps[-1].params.members
    assert [m.stop.code for m in last] == ["step limit"] * 3 + ["failed"]
    assert last[3].stop.sentence == "no such question"
    for i in (0, 1, 2):
        assert levels_of(i, steps) == alone(members[i], blobs())[0]


def test_all_may_fail():
    members = [Member(Faulty(error=UsageError("no")), 1, rules=(StepLimit(3),))] * 2
    _, steps = together(members, blobs())
    assert len(steps) == 1
    assert steps[0].trace["running"] == 0
