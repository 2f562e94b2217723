"""One of several fits or chains, seen as a fit of its own: for whoever writes its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ibpdist.base.errors import IbpError
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk, Source
from ibpdist.engine._base import Engine, Part, Scalar
from ibpdist.engine.serial import function
from ibpdist.engine.work import AnyWorkbench
from ibpdist.inference._base import AnyParallel
from ibpdist.model.observations._base import RowState

OF_MEMBER = "ibpdist.engine.members:of_member"
OF_CHAIN = "ibpdist.engine.members:of_chain"


def of_member(bench: AnyWorkbench, first: int, last: int, task: str, member: int, *arguments: Scalar) -> Any:
    """A task on the view of one member."""
    return function(task)(MemberBench(bench, member), first, last, *arguments)


@dataclass(frozen=True)
class MemberBench:
    """What tasks that read results use of a workbench."""

    bench: AnyWorkbench
    member: int

    @property
    def algorithm(self) -> AnyParallel:
        batch: Any = self.bench.algorithm
        algorithm: AnyParallel = batch.members[self.member].algorithm
        return algorithm

    def params(self, step: int) -> Any:
        return self.bench.params(step).members[self.member].params

    def state(self, index: int, step: int) -> Any:
        """Its row state; a subsample has rows in every chunk, so chunks have one number in both."""
        return self.bench.state(index, step).members[self.member]


@dataclass(frozen=True)
class MemberEngine:
    """An engine whose tasks see one member."""

    engine: Engine
    member: int

    @property
    def chunks(self) -> int:
        return self.engine.chunks

    def publish(self, step: int, params: object) -> None:
        raise IbpError("a member is advanced by its batch; this is a bug")

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self.engine.each(OF_MEMBER, task, self.member, *arguments)

    def some(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self.engine.some(OF_MEMBER, task, self.member, *arguments)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        """Items begin with the first and the last chunk."""
        return self.engine.map(
            OF_MEMBER, [(first, last, task, self.member, *rest) for first, last, *rest in items]
        )

    def close(self) -> None:
        """The batch closes its engine."""


def of_chain(
    bench: AnyWorkbench, chain: int, _: int, task: str, first: int, last: int, *arguments: Scalar
) -> Any:
    """A task on the view of one chain, whose rows are all in one place."""
    return function(task)(ChainBench(bench, chain), first, last, *arguments)


@dataclass(frozen=True)
class ChainBench:
    """The same of one chain: its rows in the chunks of the data."""

    bench: AnyWorkbench
    chain: int

    @property
    def algorithm(self) -> AnyParallel:
        chains: Any = self.bench.algorithm
        algorithm: AnyParallel = chains.members[self.chain].algorithm
        return algorithm

    @property
    def source(self) -> Source:
        whole: Any = self.bench.source
        source: Source = whole.source
        return source

    def chunk(self, index: int) -> Chunk:
        return self.source.read(index)

    def params(self, step: int) -> Any:
        return self.bench.params(step).members[self.chain].params

    def state(self, index: int, step: int, chunk: Chunk | None = None) -> Any:
        start, stop = self.source.bounds(index)
        rows: RowState = self.bench.state(self.chain, step).state
        return replace(rows, z=rows.z[:, start:stop], w=rows.w[:, start:stop])


@dataclass(frozen=True)
class ChainEngine:
    """An engine whose tasks see one chain; they run where that is."""

    engine: Engine
    chain: int
    chunks: int

    def publish(self, step: int, params: object) -> None:
        raise IbpError("a chain is advanced with the others; this is a bug")

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        (parts,) = self.map(task, [(0, self.chunks, *arguments)])
        yield Part(0, self.chunks, parts)

    def some(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self.each(task, *arguments)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        asked = [(self.chain, self.chain + 1, task, *item) for item in items]
        return self.engine.map(OF_CHAIN, asked)

    def close(self) -> None:
        """The chains close their engine."""
