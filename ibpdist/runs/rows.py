"""Row results: written chunk by chunk by whoever has the row state, or collected in memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
PARTS = "row-parts"
"""The folder of row results of single chunks until they are joined."""


def describe(bench: AnyWorkbench, first: int, last: int, step: int) -> list[Named]:
    """Row results of adjoining chunks after `step`, each with `row` as first dim."""
    with one_thread():
        return [_rows_first(bench, index, step) for index in range(first, last)]


def write(bench: AnyWorkbench, first: int, last: int, step: int, store: str) -> Moments:
    """Write the row results of adjoining chunks to the group `rows` of a Zarr store; their moments."""
    total: TreeSum[Moments] = TreeSum()
    height, direct = _height(bench.source), _is_regular(bench.source)
    for index in range(first, last):
        (named,) = describe(bench, index, index + 1, step)
        for name, (_, values) in named.items():
            if direct:
                raw_zarr.put(Path(store) / "rows" / name, index, values, height)
            else:
                np.save(_part(Path(store), name, index), values)
        with one_thread():
            total.add(moments(named))
    return total.value()


def lay_out(engine: Engine, source: Source, step: int, store: Path) -> list[str]:
    """Empty arrays of the right shapes for all rows, one Zarr chunk for each data chunk; their names."""
    height = max(1, _height(source))
    (first,) = engine.map(DESCRIBE, [(0, 1, step)])[0]
    for name, (dims, values) in first.items():
        shape = (source.rows, *values.shape[1:])
        chunk = (height, *(max(1, size) for size in values.shape[1:]))
        raw_zarr.declare(store / "rows" / name, shape, chunk, values.dtype, dims)
    if not _is_regular(source):
        (store / PARTS).mkdir()
    return list(first)


def join_parts(source: Source, store: Path, names: Sequence[str]) -> None:
    """The chunks of row results that were written one by one, in chunks of equal height as Zarr has them.

    Rows that are held out leave chunks of different heights behind.
    """
    if _is_regular(source):
        return
    for name in names:
        parts = (np.load(_part(store, name, index)) for index in range(source.chunks))
        for at, values in enumerate(_of_equal_height(parts, _height(source))):
            raw_zarr.put(store / "rows" / name, at, values, _height(source))
    shutil.rmtree(store / PARTS)


def in_memory(engine: Engine, step: int) -> tuple[Named, Moments]:
    """Row results of all chunks, and their moments."""
    parts = [named for _, block in engine.each(DESCRIBE, step) for named in block]
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


def _is_regular(source: Source) -> bool:
    """Whether every chunk but the last has as many rows as the first, and the last no more."""
    height = _height(source)
    starts = all(source.bounds(index)[0] == index * height for index in range(source.chunks))
    return starts and source.rows <= source.chunks * height


def _height(source: Source) -> int:
    """Rows of the highest chunk."""
    sizes = (stop - start for start, stop in map(source.bounds, range(source.chunks)))
    return max(sizes, default=0)


def _part(store: Path, name: str, index: int) -> Path:
    return store / PARTS / f"{name}.{index}.npy"


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
