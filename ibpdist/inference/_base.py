"""The two protocols of algorithms: all chunks at once, or chunk by chunk.

`Params` (global), `Local` (row state of a chunk) and the sums are structs; everything else
is a pure function of its arguments, so that it can be run anywhere and run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Named as Named
from ibpdist.data._base import Chunk

Params = Any
Local = Any
Sums = Any
Known = Sequence[tuple[Any, Any]]
"""Questions asked before a fit, each with its answer."""
Trace = Mapping[str, float]
"""Terms of one step by name; always `objective`, `bound` and `active`."""


class Steps(Protocol):
    """All chunks, then one update. Steps count from 1; the start of the row state is step 0."""

    def survey(self, chunk: Chunk) -> Any:
        """Facts of the data that are needed once; reduced over chunks like sums."""
        ...

    def ask(self, survey: Any, known: Known, draws: Draws) -> Any | None:
        """A further question to the data before the fit begins (a record); None: there is none."""
        ...

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        """A chunk's part of the answer; reduced over chunks like sums."""
        ...

    def init(self, survey: Any, draws: Draws, known: Known = ()) -> Params: ...

    def adopt(self, params: Params, survey: Any) -> Params:
        """Parameters of another fit, for these data."""
        ...

    def start(self, chunk: Chunk, params: Params, draws: Draws) -> Local:
        """Row state before the first step, from the initial parameters."""
        ...

    def local(self, chunk: Chunk, local: Local, params: Params, draws: Draws) -> tuple[Local, Sums]:
        """One step of a chunk. What adds up in the sums shares no memory with anything else: they are
        given away, and added up in place."""
        ...

    def update(self, params: Params, sums: Sums, draws: Draws) -> tuple[Params, Trace]: ...

    def monotone(self) -> bool:
        """Whether the objective may never fall (false for draws)."""
        ...


class Parallel(Steps, Protocol):
    """Steps that lead to a result."""

    def carried(self, params: Params, sums: Sums) -> Sums:
        """Sums of rows that are not met again, made before these parameters, as they are under them."""
        ...

    def additive(self, params: Params) -> bool:
        """Whether sums made under these parameters can be added to those of rows yet to come."""
        ...

    def final(self, params: Params) -> Params:
        """Parameters to start another fit from, or to find the features of new rows with."""
        ...

    def plain(self) -> Parallel:
        """What finds the features of rows under final parameters."""
        ...

    def describe(self, params: Params) -> Named:
        """Global results, features by falling prevalence."""
        ...

    def describe_rows(self, local: Local, params: Params) -> Named:
        """Row results of a chunk, dims (feature, row), features in the order of `describe`."""
        ...
