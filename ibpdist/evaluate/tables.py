"""Tables of rows that are made chunk by chunk: datasets in memory, or Zarr stores that open with xarray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.progress import Count
from ibpdist.data._base import Labels, Source
from ibpdist.data.labels import RowLabels, as_labels, create_labels, extend, safe_names
from ibpdist.inference._base import Named
from ibpdist.storage import files, zarr_groups
from ibpdist.storage.codec import zarr_codecs


@dataclass(frozen=True)
class Rows:
    """What is found for the rows from `start` on: arrays that begin with the dim row, and labels."""

    start: int
    found: Named
    coords: dict[str, Labels]


@dataclass(frozen=True)
class Table:
    """What a table has beside its rows: attributes of all of it and of each variable, and labels of the
    columns. A store is known by its file `marker`, without which it is not overwritten."""

    marker: str
    attributes: Mapping[str, Any]
    of_variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Mapping[str, Labels] = field(default_factory=dict)


def counted(parts: Iterator[Rows], rows: int, progress: Count | None) -> Iterator[Rows]:
    """The parts, each told of when it is there."""
    for part in parts:
        yield part
        if progress:
            progress(part.start + _height(part), rows)


def in_memory(parts: list[Rows], table: Table) -> xr.Dataset:
    """All parts as one dataset."""
    held = {
        name: (dims, np.concatenate([part.found[name][1] for part in parts]), table.of_variables.get(name))
        for name, (dims, _) in parts[0].found.items()
    }
    names = _names(parts[0].coords, ["column", *held])
    coords = {
        stored: ("row", np.concatenate([part.coords[name] for part in parts]))
        for name, stored in names.items()
    }
    columns = _names(table.columns, ["row", *held, *coords])
    coords |= {stored: ("column", table.columns[name]) for name, stored in columns.items()}
    return xr.Dataset(held, coords, table.attributes)


def write(out: Path, parts: Iterator[Rows], source: Source, table: Table, overwrite: bool) -> None:
    """Build the store under a hidden name and rename it when it is complete."""
    files.refuse_existing(out, overwrite, table.marker)
    with files.staged(out) as staging, files.storage_errors(out):
        group = zarr_groups.new_group(staging)
        labels, (first, last) = RowLabels(group), source.bounds(0)
        for part in parts:
            if part.start == 0:
                _lay_out(group, part.found, source.rows, last - first)
            names = _names(part.coords, ["column", *part.found])
            coords = {stored: part.coords[name] for name, stored in names.items()}
            labels.write(part.start, coords, last - first)
            for name, (_, values) in part.found.items():
                group[name][part.start : part.start + len(values)] = values
        of_columns = _column_labels(group, table.columns, ["row", *part.found, *labels.stored])
        for name in part.found:
            said = _coordinates([*labels.stored, *of_columns])
            group[name].attrs.update({**table.of_variables.get(name, {}), **said})
        group.attrs.update(table.attributes)
        zarr_groups.consolidate(staging)
        for name in files.stored_files(staging):
            files.fsync_path(staging / name)
        files.publish(staging, out, overwrite)


def _height(part: Rows) -> int:
    return len(next(iter(part.found.values()))[1])


def _lay_out(group: Any, found: Named, rows: int, chunk: int) -> None:
    for name, (dims, values) in found.items():
        group.create_array(
            name,
            shape=(rows, *values.shape[1:]),
            chunks=(chunk, *(max(1, size) for size in values.shape[1:])),
            dtype=values.dtype,
            compressors=zarr_codecs(values.dtype.itemsize),
            fill_value=np.nan if values.dtype.kind == "f" else 0,
            dimension_names=list(dims),
            config={"write_empty_chunks": True},
        )


def _names(labels: Mapping[str, Labels], taken: list[str]) -> dict[str, str]:
    """Names of labels, other ones where they are taken: each has an array of its own."""
    return {name: f"{name}_" if name in taken else name for name in labels}


def _column_labels(group: Any, columns: Mapping[str, Labels], taken: list[str]) -> list[str]:
    """Write the labels of columns, which have the names returned."""
    names = safe_names(columns, taken)
    for name, stored in names.items():
        values = as_labels(columns[name])
        array = create_labels(group, stored, values, "column", len(values), long_name=name)
        extend(array, values, 0)
    return list(names.values())


def _coordinates(names: list[str]) -> dict[str, str]:
    others = [name for name in names if name not in ("row", "column")]
    return {"coordinates": " ".join(others)} if others else {}
