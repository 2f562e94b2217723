"""The two protocols of algorithms: all chunks at once, or chunk by chunk.

Parameters (global), row state (of a chunk) and sums are structs, and each algorithm has its own kinds of
them. Everything else is a pure function of its arguments, so that it can be run anywhere and run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Named as Named
from ibpdist.data._base import Chunk

Params = TypeVar("Params")
Local = TypeVar("Local")
Sums = TypeVar("Sums")
Known = Sequence[tuple[Any, Any]]
"""Questions asked before a fit, each with its answer."""
Trace = Mapping[str, float]
"""Numbers of one step by name, as they are stored and shown."""


@dataclass(frozen=True)
class Info:
    """What one step says of itself: terms by name, and what rules of stopping and people look at.

    `terms` always has `objective`, `bound` and `active`, and the terms that the objective is the sum of. A
    number that does not apply to an algorithm is None.
    """

    terms: Trace
    magnitude: float | None = None
    """Size of the largest terms that cancel in the objective: its rounding is relative to it."""
    heat: float | None = None
    """Factor of the variances in this step; objectives at different heats do not compare."""
    settled: float | None = None
    """1 when nothing more is to be tried."""
    trial: float | None = None
    """The objective of what is being tried; the terms are those of the fit so far."""
    move: float | None = None
    """Number of the move that was decided on in this step, counted from 1; 0: none."""
    gain: float | None = None
    accepted: float | None = None
    warming: float | None = None
    """1 while a fit prepares the start of a sampler, or of a fit in another way."""
    running: float | None = None
    """How many fits of a batch have not ended."""
    slope: float | None = None
    """Mean gain of the objective in each of the last steps, of a fit whose objective may fall."""

    @property
    def objective(self) -> float:
        return float(self.terms["objective"])

    @property
    def cold(self) -> bool:
        """Whether the variances are as they are, and the start is made."""
        return (self.heat is None or self.heat == 1) and not self.warming

    @property
    def finished(self) -> bool:
        """Whether a flat objective means the end: nothing more is to be tried."""
        return self.settled is None or bool(self.settled)

    def trace(self) -> dict[str, float]:
        """All numbers by name."""
        own = {name: getattr(self, name) for name in NOT_TERMS}
        return {**self.terms, **{name: value for name, value in own.items() if value is not None}}

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """From numbers by name, as `trace` gives them."""
        terms = {name: value for name, value in trace.items() if name not in NOT_TERMS}
        return cls(terms, **{name: trace[name] for name in NOT_TERMS if name in trace})


NOT_TERMS = tuple(f.name for f in fields(Info) if f.name != "terms")


class Steps(Protocol[Params, Local, Sums]):
    """All chunks, then one update. Steps count from 1; the start of the row state is step 0."""

    def summarise(self, chunk: Chunk) -> Any:
        """Facts of the data that are needed once; reduced over chunks like sums."""
        ...

    def ask(self, survey: Any, known: Known, draws: Draws) -> Any | None:
        """A further question to the data before the fit begins (a record); None: there is none."""
        ...

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        """A chunk's part of the answer; reduced over chunks like sums."""
        ...

    def init(self, survey: Any, draws: Draws, known: Known = ()) -> Params: ...

    def adopt(self, params: Any, survey: Any) -> Params:
        """Parameters for these data, from those that `handover_params` of another fit gave."""
        ...

    def start(self, chunk: Chunk, params: Params, draws: Draws) -> Local:
        """Row state before the first step, from the initial parameters."""
        ...

    def local(self, chunk: Chunk, local: Local, params: Params, draws: Draws) -> tuple[Local, Sums]:
        """One step of a chunk. What adds up in the sums shares no memory with anything else: they are
        given away, and added up in place."""
        ...

    def update(self, params: Params, sums: Sums, draws: Draws) -> tuple[Params, Info]: ...

    def monotone(self) -> bool:
        """Whether the objective may never fall (false for draws)."""
        ...


class Parallel(Steps[Params, Local, Sums], Protocol[Params, Local, Sums]):
    """Steps that lead to a result."""

    def rescale_old_sums(self, params: Params, sums: Sums) -> Sums:
        """Sums of rows that are not visited again, made before these parameters, in the units of these."""
        ...

    def additive(self, params: Params) -> bool:
        """Whether sums made under these parameters can be added to those of rows yet to come."""
        ...

    def handover_params(self, params: Params) -> Any:
        """Parameters to start another fit from, or to find the features of new rows with."""
        ...

    def row_inference(self) -> RowInference:
        """What finds the features of rows under parameters that were handed over."""
        ...

    def describe(self, params: Params) -> Named:
        """Global results, features by falling prevalence."""
        ...

    def describe_rows(self, local: Local, params: Params) -> Named:
        """Row results of a chunk, dims (feature, row), features in the order of `describe`."""
        ...


class RowInference(Parallel[Any, Any, Any], Protocol):
    """What finds the features of rows, of one model and without moves."""

    @property
    def model(self) -> Any: ...


AnySteps = Steps[Any, Any, Any]
AnyParallel = Parallel[Any, Any, Any]
