"""One process's view of a run: steps of chunks as pure functions of (run, chunks, step).

Everything a workbench keeps is a memo. Without the row state of the step before, it takes the
newest one there is (kept here, committed in the run, or the start) and repeats the steps between.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Generic

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import arrays_of
from ibpdist.base.threads import one_thread
from ibpdist.data._base import Chunk, Source
from ibpdist.engine._base import Block, History
from ibpdist.engine.memo import InMemory, Memo, PinnedData
from ibpdist.engine.tree import TreeSum
from ibpdist.inference._base import Local, Params, Steps, Sums

KEPT_PARAMS, KEPT_BYTES = 32, 64 << 20
"""Parameters of steps that are kept, for row state that must be made again: their number and bytes."""
BATCH = 4 << 20
"""Bytes of row state that make a file of a checkpoint."""


class Workbench(Generic[Params, Local, Sums]):
    """Algorithm, data and record of a run, and what this process remembers of its rows."""

    def __init__(
        self,
        algorithm: Steps[Params, Local, Sums],
        source: Source,
        history: History[Params, Local],
        seed: int,
        *,
        cache: int = 0,
        memo: Memo[Local] | None = None,
    ) -> None:
        self.algorithm, self.source, self.history = algorithm, source, history
        self.draws = Draws(seed)
        self.replayed = 0
        self._data = PinnedData(source, cache)
        self._memo: Memo[Local] = memo or InMemory()
        self._params: dict[int, Params] = {}
        self._largest = 0
        """Bytes of the largest parameters so far."""

    def params(self, step: int) -> Params:
        if step not in self._params:
            most = max(1, min(KEPT_PARAMS, KEPT_BYTES // max(1, self._largest)))
            while len(self._params) >= most:
                self._params.pop(min(self._params))
            self._params[step] = self.history.params(step)
            self._largest = max(self._largest, _size(self._params[step]))
        return self._params[step]

    def chunk(self, index: int) -> Chunk:
        return self._data.read(index)

    def state(self, index: int, step: int, chunk: Chunk | None = None) -> Local:
        """Row state of a chunk after `step`: remembered, or made again from the newest known.

        The chunk is read only when it has to be made again and is not given.
        """
        known = self._newest(index, step)
        if known is not None and known[0] == step:
            return known[1]
        local = self._made(self.chunk(index) if chunk is None else chunk, known, step)
        self._memo.put(index, step, local)
        return local

    def turn(self, chunk: Chunk, local: Local, step: int) -> tuple[Local, Sums]:
        """One step of one chunk: new row state and sums."""
        return self.algorithm.local(chunk, local, self.params(step - 1), self.draws.at(step))

    def advance(self, index: int, step: int) -> Sums:
        """Make `step` on a chunk, remember its row state; the sums."""
        chunk = self.chunk(index)
        local, sums = self.turn(chunk, self.state(index, step - 1, chunk), step)
        self._memo.put(index, step, local)
        return sums

    def _made(self, chunk: Chunk, known: tuple[int, Local] | None, step: int) -> Local:
        """Row state after `step` from what is known of an earlier one, or from the start."""
        at, local = known or (0, self.algorithm.start(chunk, self.params(0), self.draws.at(0)))
        for missed in range(at + 1, step + 1):
            local, _ = self.turn(chunk, local, missed)
            self.replayed += 1
        return local

    def _newest(self, index: int, step: int) -> tuple[int, Local] | None:
        held = self._memo.get(index)
        if held is not None and held[0] == step:
            return held
        saved = self.history.state(index, step) if step > 0 else None
        known = [one for one in (held, saved) if one is not None and one[0] <= step]
        return max(known, key=lambda one: one[0], default=None)


AnyWorkbench = Workbench[Any, Any, Any]


def survey(bench: AnyWorkbench, first: int, last: int) -> Any:
    """Facts of the data of a group of chunks."""
    total: TreeSum[Any] = TreeSum()
    with one_thread():
        for index in range(first, last):
            total.add(bench.algorithm.summarise(bench.chunk(index)))
    return total.value()


def look(bench: AnyWorkbench, first: int, last: int, step: int) -> Any:
    """The answer of a group of chunks to the question that was published as params of `step`."""
    total: TreeSum[Any] = TreeSum()
    question, draws = bench.params(step), bench.draws.at(0)
    with one_thread():
        for index in range(first, last):
            total.add(bench.algorithm.look(bench.chunk(index), question, draws))
    return total.value()


def advance(bench: AnyWorkbench, first: int, last: int, step: int) -> Block:
    """Make `step` on a group of chunks."""
    began, replayed = time.perf_counter(), bench.replayed
    total: TreeSum[Any] = TreeSum()
    with one_thread():
        for index in range(first, last):
            total.add(bench.advance(index, step), own=True)
    return Block(total.value(), time.perf_counter() - began, bench.replayed - replayed)


def save(bench: AnyWorkbench, first: int, last: int, step: int) -> Mapping[str, str]:
    """Store the row states of a group after `step`, no more at once than BATCH; hashes by file name."""
    files: dict[str, str] = {}
    states: list[Any] = []
    with one_thread():
        for index in range(first, last):
            states.append(bench.state(index, step))
            if index + 1 == last or sum(map(_size, states)) >= BATCH:
                files |= bench.history.save(step, index + 1 - len(states), states)
                states = []
    return files


def _size(state: object) -> int:
    return sum(array.nbytes for array in arrays_of(state).values())
