"""Chains of a sampler that takes the rows in turn, side by side: each chain is what a chunk is elsewhere.

Row state is the chain, sums are what it reports to the driver, and there is nothing to update. So
engines, checkpoints and the making again of what was lost serve chains as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Array, dims, parts, struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Known, Trace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.batch import Member, Members, running, summary
from ibpdist.inference.in_turn.sequential import Chain, Sequential
from ibpdist.inference.stopping import Snapshot


@struct("chain-report", since=1)
class ChainReport:
    """What a chain has come to: its globals, and terms of its log joint as JSON."""

    params: Any
    terms: Array = dims("letter")


@struct("chain-reports", since=1)
class ChainReports:
    """Of adjoining chains, in their order."""

    chains: Any = parts("join")


@struct("data-facts", since=1)
class Facts:
    """Facts of the data, the same for every chain."""

    surveys: Any = parts("join")


@dataclass(frozen=True)
class Chains:
    """`members` have the rules that end each chain; a step makes `inner` sweeps."""

    sampler: Sequential
    members: tuple[Member, ...]
    inner: int = 1

    @classmethod
    def of(cls, sampler: Sequential, seed: int, count: int, rules: tuple[Any, ...], inner: int = 1) -> Chains:
        described = Coordinate(sampler.model, 1)
        return cls(sampler, tuple(Member(described, seed, c, rules) for c in range(count)), inner)

    def summarise(self, chunk: Chunk) -> Facts:
        return Facts((self.sampler.model.observation.summarise(chunk),))

    def ask(self, survey: Facts, known: Known, draws: Draws) -> None:
        return None

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        raise AssertionError("nothing is asked")

    def init(self, survey: Facts, draws: Draws, known: Known = ()) -> Members:
        return Members(tuple(running(NOTHING) for _ in self.members))

    def adopt(self, params: Any, survey: Facts) -> Members:
        raise UsageError("a chain of this sampler begins by itself: leave out the start from another run")

    def start(self, chunk: Chunk, params: Members, draws: Draws) -> Chain:
        survey = self.sampler.model.observation.summarise(chunk)
        return self.sampler.start(chunk, survey, self.members[chunk.index].draws(draws))

    def local(self, chunk: Chunk, local: Chain, params: Members, draws: Draws) -> tuple[Chain, ChainReports]:
        own = self.members[chunk.index].draws(draws)
        trace: Trace = {}
        for turn in range(self.inner):
            local, info = self.sampler.sweep(chunk, local, own.at((draws.step - 1) * self.inner + turn + 1))
            trace = info.trace()
        terms = np.frombuffer(json.dumps(dict(trace)).encode(), np.uint8).copy()
        return local, ChainReports((ChainReport(local.params, terms),))

    def update(self, params: Members, sums: ChainReports, draws: Draws) -> tuple[Members, Info]:
        made, terms = [], {}
        for i, (member, before, report) in enumerate(
            zip(self.members, params.members, sums.chains, strict=True)
        ):
            trace = json.loads(report.terms.tobytes())
            now = Snapshot(draws.step, report.params, Info.of(trace))
            made.append(member.after(before, now))
            terms.update({f"{i}/{name}": value for name, value in trace.items()})
        return Members(tuple(made)), summary(made, terms)

    def monotone(self) -> bool:
        return False
