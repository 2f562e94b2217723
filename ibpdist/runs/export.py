"""A result as CSV files with labels, for programs that read nothing else.

    DIR/params/NAME.csv   one file for each array of the parameters
    DIR/params/scalars.csv
    DIR/diagnosis/...     likewise the diagnosis, if there is one
    DIR/transform/...     by what columns were centred and scaled, where they were
    DIR/rows/NAME.csv     a line for each row of the data, read and written chunk by chunk
    DIR/stability/..., DIR/consensus/...
                          likewise how often features come back in subsamples, and those that do
    DIR/trace.csv         a line for each step (of each chain), a column for each term
    DIR/posterior.csv, diagnostics.csv, restarts.csv, heldout.csv
                          likewise draws, diagnostics of chains, starts, scores

Files of arrays (a, b) have a line for each a and a column for each b; arrays with three dims or
more have a line for each entry. The features of all draws are left in the result: they are many, and
place 3 of one draw is not place 3 of the next.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.progress import Count
from ibpdist.data.output_path import refuse_place
from ibpdist.runs.result import open_result
from ibpdist.runs.variables import GROUPS
from ibpdist.storage.files import publish, refuse_existing, staged, storage_errors

MARKER = "params/prevalence.csv"
CELLS = 1 << 20
"""Numbers that are read at once."""
Line = list[Any]


def export(
    run: str | Path, directory: str | Path, *, overwrite: bool = False, progress: Count | None = None
) -> list[Path]:
    """Write the result of a run as CSV files into a new directory; their paths."""
    refuse_place(directory, run)
    result, target = open_result(run), Path(directory)
    refuse_existing(target, overwrite, MARKER)
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as staging:
            _write_all(result, staging, progress)
            publish(staging, target, overwrite)
    return sorted(target.rglob("*.csv"))


def _write_all(result: xr.DataTree, into: Path, progress: Count | None) -> None:
    for group in GROUPS.values():
        if group.name not in result.children:
            continue
        values = result[group.name].to_dataset()
        if group.files == "arrays":
            _write_arrays(into / group.name, values, progress if group.name == "rows" else None)
        elif group.files == "table":
            _write(into / f"{group.name}.csv", _table(values))


def _write_arrays(into: Path, group: xr.Dataset, progress: Count | None) -> None:
    if any(not values.ndim for values in group.data_vars.values()):
        _write(into / "scalars.csv", _scalars(group))
    for name, values in group.data_vars.items():
        if values.ndim:
            _write(into / f"{name}.csv", _lines(values, progress))


def _write(path: Path, lines: Iterable[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def _scalars(data: xr.Dataset) -> Iterator[Line]:
    yield ["name", "value"]
    for name in _names(data.data_vars):
        if not data[name].ndim:
            yield [name, data[name].item()]


def _table(data: xr.Dataset) -> Iterator[Line]:
    """A line for each place along all dims, a column for each variable."""
    held = data.reset_coords([name for name in data.coords if name not in data.dims])
    names = _names(held.data_vars)
    if not names:
        return
    first, *others = xr.broadcast(*(held[name] for name in names))
    yield [*first.dims, *names]
    columns = [values.transpose(*first.dims).values.ravel() for values in (first, *others)]
    labels = product(*(_labels(first, str(dim)) for dim in first.dims))
    for at, *values in zip(labels, *columns, strict=True):
        yield [*at, *values]


def _lines(values: xr.DataArray, progress: Count | None = None) -> Iterator[Line]:
    if values.ndim > 2:
        yield from _entries(values)
        return
    first, across = str(values.dims[0]), [str(dim) for dim in values.dims[1:]]
    beside = [name for name in _names(values.coords) if values[name].dims == (first,) and name != first]
    header = [f"{across[0]} {label}" for label in _labels(values, across[0])] if across else [values.name]
    yield [first, *beside, *header]
    step = max(1, CELLS // max(1, values[:1].size))
    for start in range(0, values.sizes[first], step):
        part = values[start : start + step]
        named = [_labels(part, first, start), *(part[name].values for name in beside)]
        yield from ([*line[:-1], *np.atleast_1d(line[-1])] for line in zip(*named, part.values, strict=True))
        if progress:
            progress(min(start + step, values.sizes[first]), values.sizes[first])


def _entries(values: xr.DataArray) -> Iterator[Line]:
    yield [*values.dims, values.name]
    labels = product(*(_labels(values, str(dim)) for dim in values.dims))
    for at, value in zip(labels, values.values.ravel(), strict=True):
        yield [*at, value]


def _names(held: Iterable[Any]) -> list[str]:
    """Names in alphabetical order: the order in a folder is arbitrary."""
    return sorted(map(str, held))


def _labels(values: xr.DataArray, dim: str, start: int = 0) -> Any:
    """Labels along a dim, or numbers from `start`."""
    return values[dim].values if dim in values.coords else np.arange(start, start + values.sizes[dim])
