"""One member of a batch, seen as a fit of its own: for whoever writes its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ibpdist.algorithms._base import Local, Parallel, Params
from ibpdist.data._base import Chunk, Source
from ibpdist.engine._base import Engine, Scalar
from ibpdist.engine.serial import function
from ibpdist.engine.work import Workbench
from ibpdist.errors import IbpError

OF_MEMBER = "ibpdist.engine.members:of_member"


def of_member(bench: Workbench, first: int, last: int, task: str, member: int, *arguments: Scalar) -> Any:
    """A task on the view of one member."""
    return function(task)(MemberBench(bench, member), first, last, *arguments)


@dataclass(frozen=True)
class MemberBench:
    """What tasks that read results use of a workbench."""

    bench: Workbench
    member: int

    @property
    def algorithm(self) -> Parallel:
        batch: Any = self.bench.algorithm
        found: Parallel = batch.members[self.member].algorithm
        return found

    @property
    def source(self) -> Source:
        return self.bench.source

    def chunk(self, index: int) -> Chunk:
        return self.bench.chunk(index)

    def params(self, step: int) -> Params:
        return self.bench.params(step).members[self.member].params

    def state(self, index: int, step: int, chunk: Chunk | None = None) -> Local:
        return self.bench.state(index, step, chunk).members[self.member]


@dataclass(frozen=True)
class MemberEngine:
    """An engine whose tasks see one member."""

    engine: Engine
    member: int

    @property
    def chunks(self) -> int:
        return self.engine.chunks

    def publish(self, step: int, params: Params) -> None:
        raise IbpError("a member is advanced by its batch; this is a bug")

    def each(self, task: str, *arguments: Scalar) -> Iterator[Any]:
        return self.engine.each(OF_MEMBER, task, self.member, *arguments)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        """Items begin with the first and the last chunk."""
        return self.engine.map(
            OF_MEMBER, [(first, last, task, self.member, *rest) for first, last, *rest in items]
        )

    def close(self) -> None:
        """The batch closes its engine."""
