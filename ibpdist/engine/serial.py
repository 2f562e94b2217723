"""The engine without a cluster: the specification that every other engine agrees with, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ibpdist.engine._base import LOOK, SURVEY, Part, Scalar, groups
from ibpdist.engine.work import AnyWorkbench

WIDTH = 16
"""Chunks of a group; bounds what is held at once when row state is saved."""


def function(task: str) -> Any:
    """The function that `module:function` names."""
    module, name = task.split(":")
    return getattr(import_module(module), name)


class Serial:
    """One workbench, all chunks in order."""

    def __init__(self, bench: AnyWorkbench) -> None:
        self.bench = bench

    @property
    def chunks(self) -> int:
        return self.bench.source.chunks

    def publish(self, step: int, params: object) -> None:
        self.bench.history.publish(step, params)

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        run = function(task)
        width = 1 if task in (SURVEY, LOOK) else WIDTH  # a look is told of chunk by chunk; same bits
        for first, last in groups(self.chunks, width):
            yield Part(first, last - first, run(self.bench, first, last, *arguments))

    def some(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self.each(task, *arguments)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        run = function(task)
        return [run(self.bench, *item) for item in items]

    def close(self) -> None:
        """Nothing is held."""


class MemoryHistory:
    """The record of a fit without a directory: the row state in memory is never lost, so it is short."""

    def __init__(self) -> None:
        self._params: dict[int, object] = {}

    def publish(self, step: int, params: object) -> None:
        self._params = {at: p for at, p in self._params.items() if at >= step - 1} | {step: params}

    def params(self, step: int) -> Any:
        return self._params[step]

    def state(self, chunk: int, step: int) -> tuple[int, Any] | None:
        return None

    def save(self, step: int, first: int, states: Sequence[object]) -> dict[str, str]:
        return {}
