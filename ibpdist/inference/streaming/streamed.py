"""One pass over rows that keep coming: the sums of a parallel algorithm, chunk by chunk.

A chunk is swept a few times against the globals, its sums join those of all rows before it,
and the globals are set to their conditionals given all of them. Rows already passed are not
touched again: their sums stay as they were left (memoized inference in its first pass,
linear-gaussian.md 10), so the objective is a bound for the rows seen so far and rises within each chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine, struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Local, Parallel, Params, Sums
from ibpdist.inference.starts.start_questions import initial


@struct
class Carry(Generic[Params, Sums]):
    """What is known after some chunks: globals, facts and sums of all of their rows."""

    params: Params
    survey: Any
    sums: Sums


@dataclass(frozen=True)
class Streamed(Generic[Params, Local, Sums]):
    """A sequential algorithm made of a parallel one, without moves: the sums of rows that have passed
    cannot follow them.

    `first` turns are taken on the first chunk, which finds the features, `turns` on each later
    one. Columns must be complete: groups of columns that are missing together are not
    known until the last row.
    """

    algorithm: Parallel[Params, Local, Sums]
    first: int = 50
    turns: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", self.algorithm.row_inference())

    def begin(self, chunk: Chunk, draws: Draws) -> tuple[Local, Carry[Params, Sums], Info]:
        """The first chunk: initial parameters, then `first` turns."""
        survey, at, algorithm = self.algorithm.summarise(chunk), draws.at(0), self.algorithm
        params = initial(algorithm, survey, at, lambda _, question: algorithm.look(chunk, question, at))
        return self._turns(chunk, params, survey, None, self.first, draws)

    def step(
        self, chunk: Chunk, carry: Carry[Params, Sums], draws: Draws
    ) -> tuple[Local, Carry[Params, Sums], Info]:
        """The next chunk of new rows."""
        survey = combine(carry.survey, self.algorithm.summarise(chunk))
        params = self.algorithm.adopt(carry.params, survey)
        return self._turns(chunk, params, survey, carry.sums, self.turns, draws)

    def _turns(
        self, chunk: Chunk, params: Params, survey: Any, before: Sums | None, turns: int, draws: Draws
    ) -> tuple[Local, Carry[Params, Sums], Info]:
        """Sweep the chunk, add its sums to those before it, update; `turns` times."""
        if not self.algorithm.additive(params):
            raise UsageError("a stream needs complete columns, but cells are missing")
        algorithm = self.algorithm
        local = algorithm.start(chunk, params, draws.at(0))
        for turn in range(1, turns + 1):
            at = draws.at(turn)
            local, sums = algorithm.local(chunk, local, params, at)
            total = sums if before is None else combine(before, sums)
            params, info = algorithm.update(params, total, at)
            total = algorithm.rescale_old_sums(params, total)
            before = None if before is None else algorithm.rescale_old_sums(params, before)
        return local, Carry(params, survey, total), info


def stream(
    streamed: Streamed[Params, Local, Sums],
    chunks: Iterable[Chunk],
    seed: int,
    carry: Carry[Params, Sums] | None = None,
) -> Iterator[tuple[Local, Carry[Params, Sums], Info]]:
    """After each chunk: its row state, the carry to go on from later, and the objective's terms."""
    draws = Draws(seed)
    for chunk in chunks:
        made = streamed.begin(chunk, draws) if carry is None else streamed.step(chunk, carry, draws)
        carry = made[1]
        yield made
