"""The last step of writing: metadata that xarray understands, then the manifest of all files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.data import layout, manifest
from ibpdist.data.labels import Labels, RowLabels, create_labels, extend, safe_names
from ibpdist.data.summary import ColumnSummary
from ibpdist.storage import files, zarr_groups

OWN_ATTRIBUTES = frozenset(
    {"schema", "layout", "source", "fingerprint", "missing", "chunk_rows"}
    | {"column_coords", "extras", "row_coords"}
)
"""Attributes that every store has; the others are those of its owner."""
SCRATCH = "scratch"
"""Folder of the staging directory for temporary files."""


@dataclass(frozen=True)
class Outline:
    """What is known of a store before its first row."""

    columns: int
    dtype: np.dtype[Any]
    chunk_rows: int
    source: str
    column_coords: Mapping[str, Labels]
    attributes: Mapping[str, Any]

    @property
    def names(self) -> list[object] | None:
        """What errors call the columns; None for their numbers."""
        held = self.column_coords.get("column")
        return None if held is None else list(held)


class Writes(Protocol):
    """A writer of rows, when all of them are there."""

    outline: Outline
    layout: ClassVar[str]
    labels: RowLabels
    extras: dict[str, tuple[Sequence[str], NDArray[Any]]]

    @property
    def sums(self) -> dict[str, tuple[int, str]]:
        """Bytes and check sums of the files of the values."""
        ...

    @property
    def summary(self) -> ColumnSummary: ...

    def manifest(self) -> manifest.Manifest:
        """Shape and chunks."""
        ...

    def put_values(self, group: Any, coordinates: list[str]) -> None:
        """What Zarr is told of the arrays of the values."""
        ...


def complete(staging: Path, group: Any, writer: Writes) -> str:
    """Write metadata, coordinates of the columns, summaries, attributes and manifest; the fingerprint."""
    shutil.rmtree(staging / SCRATCH, ignore_errors=True)
    entries = writer.manifest()
    names = safe_names(writer.outline.column_coords, ["row", *writer.labels.stored, *writer.extras])
    for name, labels in writer.outline.column_coords.items():
        extend(create_labels(group, names[name], labels, "column", len(labels)), labels, 0)
    for name, values in writer.summary.table().items():
        zarr_groups.put_array(group, f"column_{name}", ["column"], values)
    for name, (dims, extra) in writer.extras.items():
        zarr_groups.put_array(group, name, dims, extra)
    coordinates = [*writer.labels.stored, *names.values()]
    writer.put_values(group, [name for name in coordinates if name not in ("row", "column")])
    named = {
        "row_coords": writer.labels.stored,
        "column_coords": list(names.values()),
        "extras": list(writer.extras),
    }
    group.attrs.update(_attributes(writer.outline, entries, named | {"layout": writer.layout}))
    zarr_groups.consolidate(staging)
    _seal(staging, entries, writer.sums)
    return entries.fingerprint


def _attributes(outline: Outline, entries: manifest.Manifest, named: Mapping[str, Any]) -> dict[str, Any]:
    own = {
        "schema": layout.SCHEMA,
        "source": outline.source,
        "fingerprint": entries.fingerprint,
        "missing": entries.missing,
        "chunk_rows": entries.chunk_rows,
        **named,
    }
    attributes = {**outline.attributes, **own}
    if len(json.dumps(attributes)) > zarr_groups.ATTRIBUTES_LIMIT:
        raise UsageError("the attributes take more than 1 MB: store large values with put() instead")
    return attributes


def _seal(staging: Path, entries: manifest.Manifest, known: Mapping[str, tuple[int, str]]) -> None:
    """List every file with size and sum, and wait for the disk."""
    sums = dict(known)
    for name in files.stored_files(staging):
        if name not in sums:
            data = (staging / name).read_bytes()
            sums[name] = (len(data), files.file_sum(data))
            files.fsync_path(staging / name)
    sealed = manifest.Manifest(**{**vars(entries), "files": sums})
    files.write_durably(staging / entries.name, manifest.encode(sealed))
