"""What a loop of steps needs from the place where it runs, and from the record it keeps.

Params of step s are those after its update (step 0: the initial ones), and so is row state:
step s reads params and row state of step s - 1. What is asked of the data before the fit begins
is published as params of the steps -1, -2, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ibpdist.inference._base import Local, Params

Scalar = str | int | float
SURVEY = "ibpdist.engine.work:survey"
LOOK = "ibpdist.engine.work:look"
ADVANCE = "ibpdist.engine.work:advance"
SAVE = "ibpdist.engine.work:save"


@dataclass(frozen=True)
class Block:
    """What a group of chunks gives for one step: its sums, and facts about the work."""

    sums: Any
    seconds: float = 0.0
    replayed: int = 0
    """Steps of single chunks that were made again because their row state was not at hand."""


class Part(NamedTuple):
    """What a task gave for a group of adjoining chunks."""

    first: int
    chunks: int
    value: Any


class History(Protocol[Params, Local]):
    """The record of a run that row state can be rebuilt from."""

    def publish(self, step: int, params: Params) -> None: ...

    def params(self, step: int) -> Params: ...

    def state(self, chunk: int, step: int) -> tuple[int, Local] | None:
        """Newest committed row state of a chunk that is not after `step`, with its step."""
        ...

    def save(self, step: int, first: int, states: Sequence[Local]) -> Mapping[str, str]:
        """Store row states of adjoining chunks; hashes by file name. Not yet committed."""
        ...


class Engine(Protocol):
    """Runs tasks. A task is the name `module:function` of a function of (workbench, ...)."""

    @property
    def chunks(self) -> int: ...

    def publish(self, step: int, params: object) -> None: ...

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        """`task(bench, first, last, *arguments)` for every group of chunks, in their order."""
        ...

    def some(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        """The same in any order: for results that are added up."""
        ...

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        """`task(bench, *item)` for every item, in their order."""
        ...

    def close(self) -> None: ...


def groups(chunks: int, width: int, borders: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Aligned groups of `width` chunks, a power of 2: smaller ones where a border would be inside, so that
    none is, and the last may be shorter."""
    found, first = [], 0
    while first < chunks:
        size = min(width, first & -first or width)
        while any(first < border < first + size for border in borders):
            size //= 2
        found.append((first, min(first + size, chunks)))
        first += size
    return found
