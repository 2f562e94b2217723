"""The last step of writing: metadata that xarray understands, then the manifest of all files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.data import layout, manifest
from ibpdist.data.labels import Labels, create_labels, extend, safe_names
from ibpdist.storage import files, zarr_groups
from ibpdist.storage.codec import zarr_codecs

if TYPE_CHECKING:
    from ibpdist.data.writer import StoreWriter

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


def complete(staging: Path, group: Any, writer: StoreWriter) -> str:
    """Write metadata, coordinates of the columns, summaries, attributes and manifest; the fingerprint."""
    shutil.rmtree(staging / SCRATCH, ignore_errors=True)
    entries = _manifest(writer)
    names = safe_names(writer.outline.column_coords, ["row", *writer.labels.stored, *writer.extras])
    for name, labels in writer.outline.column_coords.items():
        extend(create_labels(group, names[name], labels, "column", len(labels)), labels, 0)
    for name, values in writer.summary.table().items():
        zarr_groups.put_array(group, f"column_{name}", ["column"], values)
    for name, (dims, extra) in writer.extras.items():
        zarr_groups.put_array(group, name, dims, extra)
    coordinates = [*writer.labels.stored, *names.values()]
    _put_x(group, entries, [name for name in coordinates if name not in ("row", "column")])
    named = {
        "row_coords": writer.labels.stored,
        "column_coords": list(names.values()),
        "extras": list(writer.extras),
    }
    group.attrs.update(_attributes(writer.outline, entries, named))
    zarr_groups.consolidate(staging)
    _seal(staging, entries, writer.sums)
    return entries.fingerprint


def _manifest(writer: StoreWriter) -> manifest.Manifest:
    outline = writer.outline
    hashes, labels = [chunk.hash for chunk in writer.chunks], [chunk.labels for chunk in writer.chunks]
    shape = (writer.rows, outline.columns, outline.dtype, outline.chunk_rows)
    return manifest.Manifest(
        rows=writer.rows,
        columns=outline.columns,
        dtype=outline.dtype.name,
        chunk_rows=outline.chunk_rows,
        fingerprint=layout.dataset_fingerprint(*shape, hashes, labels),
        chunks=tuple(writer.chunks),
    )


def _put_x(group: Any, entries: manifest.Manifest, coordinates: list[str]) -> None:
    group.create_array(
        "x",
        shape=(entries.rows, entries.columns),
        chunks=(min(entries.rows, entries.chunk_rows), entries.columns),
        dtype=np.dtype(entries.dtype).newbyteorder("<"),
        compressors=zarr_codecs(np.dtype(entries.dtype).itemsize),
        fill_value=np.nan,
        dimension_names=["row", "column"],
        attributes={"coordinates": " ".join(coordinates)} if coordinates else {},
        config={"write_empty_chunks": True},
    )


def _attributes(
    outline: Outline, entries: manifest.Manifest, named: Mapping[str, list[str]]
) -> dict[str, Any]:
    own = {
        "schema": layout.SCHEMA,
        "layout": "dense",
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
    files.write_durably(staging / manifest.NAME, manifest.encode(sealed))
