"""The loop of a parallel algorithm. It only steps: stopping, saving and showing progress are
done by whoever reads the iterator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from ibpdist.base.randomness import Draws
from ibpdist.base.threads import one_thread
from ibpdist.engine._base import ADVANCE, LOOK, SURVEY, Block, Engine, Part
from ibpdist.engine.tree import TreeSum
from ibpdist.inference._base import Local, Params, Steps, Sums
from ibpdist.inference.starts import start_questions
from ibpdist.inference.stopping import Snapshot

Looked = Callable[[str, int, int | None], None]
"""Called with what is done before the first step, in words, with the chunks that are done and all chunks, if
it is done chunk by chunk."""


def sweeps(
    algorithm: Steps[Params, Local, Sums],
    engine: Engine,
    seed: int,
    begin: tuple[int, Params] | None = None,
    like: object | None = None,
    looked: Looked | None = None,
) -> Iterator[Snapshot[Params]]:
    """Steps without end, from the initial parameters or after step `begin`, whose row state is known.

    `like` are parameters of another fit to begin with instead of the algorithm's own. `looked` is told how
    much of the data was looked at before the first step.
    """
    draws = Draws(seed)
    known, params = begin or (0, initial(algorithm, engine, draws, like, looked))
    engine.publish(known, params)
    for step in count(known + 1):
        began = time.perf_counter()
        block = sweep(engine, step)
        with one_thread():
            params, info = algorithm.update(params, block.sums, draws.at(step))
        engine.publish(step, params)
        yield Snapshot(step, params, info, time.perf_counter() - began, block.replayed)


def initial(
    algorithm: Steps[Params, Local, Sums],
    engine: Engine,
    draws: Draws,
    like: object | None = None,
    looked: Looked | None = None,
) -> Params:
    """Parameters of step 0, after a look at the data, and more of them if the algorithm asks."""
    parts = _counted(engine.some(SURVEY), "reading the data", engine.chunks, looked)
    survey, at = reduced(parts), draws.at(0)
    if like is not None:
        with one_thread():
            return algorithm.adopt(like, survey)

    def answer(step: int, question: Any) -> Any:
        engine.publish(step, question)
        what = f"looking for a start, pass {-step}"
        return reduced(_counted(engine.some(LOOK, step), what, engine.chunks, looked))

    def answered() -> None:
        if looked is not None:
            looked("finding where to begin", 1, None)

    return start_questions.initial(algorithm, survey, at, answer, answered)


def _counted(parts: Iterable[Part], what: str, chunks: int, looked: Looked | None) -> Iterator[Part]:
    """The same records; `looked` is told how many of the chunks they stand for."""
    if looked is None:
        yield from parts
        return
    done = 0
    looked(what, done, chunks)
    for part in parts:
        yield part
        done += part.chunks
        looked(what, done, chunks)


def reduced(parts: Iterable[Part]) -> Any:
    """Records of groups of chunks, combined in the fixed order."""
    total: TreeSum[object] = TreeSum()
    for first, chunks, value in parts:
        total.add(value, chunks, at=first)
    return total.value()


def sweep(engine: Engine, step: int) -> Block:
    """One step of all chunks, reduced in the fixed order."""
    total: TreeSum[object] = TreeSum()
    replayed = 0
    for first, chunks, block in engine.some(ADVANCE, step):
        total.add(block.sums, chunks, at=first)
        replayed += block.replayed
    return Block(total.value(), replayed=replayed)
