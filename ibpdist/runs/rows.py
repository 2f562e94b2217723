"""Row results: written chunk by chunk by whoever has the row state, or collected in memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

from ibpdist.base.structs import Array
from ibpdist.base.threads import one_thread
from ibpdist.data._base import Labels, Source
from ibpdist.engine._base import Engine
from ibpdist.engine.tree import TreeSum
from ibpdist.engine.work import AnyWorkbench
from ibpdist.inference._base import Named
from ibpdist.runs.diagnosis import Moments, moments
from ibpdist.storage import raw_zarr

DESCRIBE = "ibpdist.runs.rows:describe"
WRITE = "ibpdist.runs.rows:write"
ROWS, PARTS = "rows", "row-parts"
"""Groups of row results, and of those with gaps until they are closed."""


def describe(bench: AnyWorkbench, first: int, last: int, step: int) -> list[Named]:
    """Row results of adjoining chunks after `step`, each with `row` as first dim."""
    with one_thread():
        return [_rows_first(bench, index, step) for index in range(first, last)]


def write(
    bench: AnyWorkbench, first: int, last: int, step: int, store: str, group: str, height: int
) -> Moments:
    """Write the row results of adjoining chunks as `lay_out` says; their moments."""
    total: TreeSum[Moments] = TreeSum()
    for index in range(first, last):
        (named,) = describe(bench, index, index + 1, step)
        for name, (_, values) in named.items():
            raw_zarr.put(Path(store) / group / name, index, values, height)
        with one_thread():
            total.add(moments(named))
    return total.value()


class RowLayout(NamedTuple):
    """Where row results are written: a group of the store, and the rows of its Zarr chunks."""

    group: str
    height: int


def lay_out(engine: Engine, source: Source, step: int, store: Path) -> RowLayout:
    """Empty arrays of the right shapes for all rows, one Zarr chunk for each data chunk.

    Zarr chunks have one height. Held-out rows leave data chunks of different heights behind: their results
    are written to arrays with a gap after each chunk, for `join_parts`.
    """
    starts, stops = zip(*map(source.bounds, range(source.chunks)), strict=True)
    height = max(stop - start for start, stop in zip(starts, stops, strict=True))
    even = all(start == index * height for index, start in enumerate(starts))
    (first,) = engine.map(DESCRIBE, [(0, 1, step)])[0]
    for name, (dims, values) in first.items():
        chunk = (height, *(max(1, size) for size in values.shape[1:]))
        raw_zarr.declare(store / ROWS / name, (source.rows, *values.shape[1:]), chunk, values.dtype, dims)
        if not even:
            gaps = (source.chunks * height, *values.shape[1:])
            raw_zarr.declare(store / PARTS / name, gaps, chunk, values.dtype, dims)
    return RowLayout(ROWS if even else PARTS, height)


def join_parts(source: Source, store: Path, layout: RowLayout) -> None:
    """Close the gaps between the row results of chunks of different heights."""
    group, height = layout
    if group == ROWS:
        return
    for folder in (store / PARTS).iterdir():
        held = zarr.open_array(folder, mode="r")
        sizes = (stop - start for start, stop in map(source.bounds, range(source.chunks)))
        parts = (np.asarray(held[at * height : at * height + size]) for at, size in enumerate(sizes))
        for index, values in enumerate(_of_equal_height(parts, height)):
            raw_zarr.put(store / ROWS / folder.name, index, values, height)
    shutil.rmtree(store / PARTS)


def in_memory(engine: Engine, step: int) -> tuple[Named, Moments]:
    """Row results of all chunks, and their moments."""
    parts = [named for part in engine.each(DESCRIBE, step) for named in part.value]
    total: TreeSum[Moments] = TreeSum()
    with one_thread():
        for part in parts:
            total.add(moments(part))
    joined = {
        name: (dims, np.concatenate([part[name][1] for part in parts]))
        for name, (dims, _) in parts[0].items()
    }
    return joined, total.value()


def row_labels(source: Source) -> dict[str, Labels]:
    """Labels and covariates of all rows by name."""
    parts: list[Mapping[str, Labels]] = [source.row_coords(index) for index in range(source.chunks)]
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}


def _of_equal_height(parts: Iterable[Array], height: int) -> Iterator[Array]:
    """The rows of adjoining parts, `height` at a time; the last may have fewer."""
    held: list[Array] = []
    for part in parts:
        held.append(part)
        while sum(map(len, held)) >= height:
            rows = np.concatenate(held)
            yield rows[:height]
            held = [rows[height:]]
    if sum(map(len, held)):
        yield np.concatenate(held)


def _rows_first(bench: AnyWorkbench, index: int, step: int) -> Named:
    algorithm: Any = bench.algorithm
    named: Named = algorithm.describe_rows(bench.state(index, step), bench.params(step))
    return {name: _turned(dims, values) for name, (dims, values) in named.items()}


def _turned(dims: tuple[str, ...], values: Array) -> tuple[tuple[str, ...], Array]:
    at = dims.index("row")
    return ("row", *dims[:at], *dims[at + 1 :]), np.ascontiguousarray(np.moveaxis(values, at, 0))
