"""The loop of a parallel algorithm. It only steps: stopping, saving and showing progress are
done by whoever reads the iterator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from ibpdist.algorithms._base import Params, Steps, Trace
from ibpdist.draws import Draws
from ibpdist.engine._base import ADVANCE, LOOK, SURVEY, Block, Engine, Part
from ibpdist.engine.threads import one_thread
from ibpdist.engine.tree import TreeSum
from ibpdist.errors import IbpError

Looked = Callable[[str, int, int], None]
"""Called with what is done before the first step, in words, with the chunks that are done and all chunks."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a fit after a step; what its terms are called is up to the algorithm."""

    step: int
    params: Params
    trace: Trace
    seconds: float = 0.0
    replayed: int = 0


def sweeps(
    algorithm: Steps,
    engine: Engine,
    seed: int,
    begin: tuple[int, Params] | None = None,
    like: Params | None = None,
    looked: Looked | None = None,
) -> Iterator[Snapshot]:
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
            params, trace = algorithm.update(params, block.sums, draws.at(step))
        engine.publish(step, params)
        yield Snapshot(step, params, trace, time.perf_counter() - began, block.replayed)


def initial(
    algorithm: Steps,
    engine: Engine,
    draws: Draws,
    like: Params | None = None,
    looked: Looked | None = None,
) -> Params:
    """Parameters of step 0, after a look at the data, and more of them if the algorithm asks."""
    found = _counted(engine.each(SURVEY), "reading the data", engine.chunks, looked)
    survey, at = reduced(found), draws.at(0)
    if like is not None:
        with one_thread():
            return algorithm.adopt(like, survey)

    def answer(step: int, question: Any) -> Any:
        engine.publish(step, question)
        what = f"looking for a start, pass {-step}"
        return reduced(_counted(engine.each(LOOK, step), what, engine.chunks, looked))

    return begun(algorithm, survey, at, answer)


def begun(algorithm: Steps, survey: Any, draws: Draws, answer: Callable[[int, Any], Any]) -> Params:
    """Initial parameters; `answer` gets the questions of the algorithm as steps -1, -2, ..."""
    known: list[tuple[Any, Any]] = []
    for step in count(1):
        with one_thread():
            question = algorithm.ask(survey, known, draws)
            if question is None:
                return algorithm.init(survey, draws, known)
        known.append((question, answer(-step, question)))
    raise AssertionError("questions end")


def _counted(found: Iterable[Part], what: str, chunks: int, looked: Looked | None) -> Iterator[Part]:
    """The same records; `looked` is told how many of the chunks they stand for."""
    if looked is None:
        yield from found
        return
    done = 0
    looked(what, done, chunks)
    for part in found:
        yield part
        done += part.chunks
        looked(what, done, chunks)


def reduced(found: Iterable[Part]) -> Any:
    """Records of adjoining groups of chunks, combined in the fixed order."""
    total: TreeSum[object] = TreeSum()
    for chunks, value in found:
        total.add(value, chunks)
    return total.value()


def sweep(engine: Engine, step: int) -> Block:
    """One step of all chunks, reduced in the fixed order."""
    total: TreeSum[object] = TreeSum()
    replayed = 0
    for chunks, block in engine.each(ADVANCE, step):
        total.add(block.sums, chunks)
        replayed += block.replayed
    return Block(total.value(), replayed=replayed)


@dataclass(frozen=True)
class Stop:
    """Why a fit ended: one word for programs, a sentence for people."""

    word: str
    reason: str


Rule = Callable[[Snapshot | None, Snapshot], Stop | None]


@dataclass(frozen=True)
class Converged:
    """The objective gains less than `rtol` of its size in a step, and nothing else is to be tried."""

    rtol: float = 1e-6

    def __call__(self, before: Snapshot | None, now: Snapshot) -> Stop | None:
        if before is None or not now.trace.get("settled", 1.0):
            return None
        level = now.trace["objective"]
        gain = level - before.trace["objective"]
        if not 0 <= gain < self.rtol * abs(level):
            return None
        return Stop(
            "converged",
            f"converged: the objective gained {gain:.3g} in step {now.step}, "
            f"less than {self.rtol:g} of {abs(level):.6g}",
        )


@dataclass(frozen=True)
class StepLimit:
    """So many steps, counted from the start of the run."""

    steps: int

    def __call__(self, before: Snapshot | None, now: Snapshot) -> Stop | None:
        if now.step < self.steps:
            return None
        return Stop("step limit", f"stopped at the limit of {self.steps} steps")


@dataclass(frozen=True)
class AllSteps:
    """The steps that a chain was to make."""

    steps: int

    def __call__(self, before: Snapshot | None, now: Snapshot) -> Stop | None:
        return None if now.step < self.steps else Stop("complete", f"made all of its {self.steps} steps")


@dataclass(frozen=True)
class Rising:
    """Guard against bugs: the objective is finite and, for a monotone algorithm, never falls.

    Never stops a fit; raises when the mathematics cannot be right. `tolerance` is relative
    to |objective| + cells + the magnitude of what cancels in it.
    """

    cells: int
    tolerance: float
    monotone: bool

    def __call__(self, before: Snapshot | None, now: Snapshot) -> Stop | None:
        level = now.trace["objective"]
        wrong = [f"{name} = {value}" for name, value in now.trace.items() if not math.isfinite(value)]
        if wrong:
            raise IbpError(f"step {now.step}: {', '.join(wrong)} is not a finite number; this is a bug")
        if before is None or not self.monotone:
            return None
        if before.trace.get("heat", 1.0) != 1 or now.trace.get("heat", 1.0) != 1:
            return None
        fall = before.trace["objective"] - level
        if fall > self.tolerance * (abs(level) + self.cells + now.trace.get("magnitude", 0.0)):
            raise IbpError(
                f"step {now.step}: the objective fell by {fall:.6g} to {level:.12g}, "
                "although no step of this algorithm can lower it; this is a bug"
            )
        return None


def tolerance(itemsize: int) -> float:
    """Rounding allowed to the objective, relative, for data of this width in bytes."""
    return 1e-9 if itemsize >= 8 else 1e-6


def until(
    steps: Iterator[Snapshot], rules: list[Rule], before: Snapshot | None = None
) -> Iterator[tuple[Snapshot, Stop | None]]:
    """The steps up to and with the first at which a rule stops."""
    for now in steps:
        stop = next((found for rule in rules if (found := rule(before, now)) is not None), None)
        yield now, stop
        if stop is not None:
            return
        before = now
