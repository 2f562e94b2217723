"""Writing a dataset: rows in, in any portions; a complete, verified-by-construction store out.

    with create("a.zarr", columns=256, dtype="float32") as writer:
        writer.append(rows)                  # as often as you like

The store is built under a hidden name and renamed when complete. If anything is raised inside
the block nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data import layout
from ibpdist.data.check import checked, refuse_shape, result_dtype
from ibpdist.data.finalise import Outline, complete
from ibpdist.data.labels import RESERVED, Labels, RowLabels, as_labels, joined
from ibpdist.data.manifest import NAME, ChunkEntry, Manifest, name_in
from ibpdist.data.summary import ColumnSummary, empty_summary
from ibpdist.storage import codec, files, zarr_groups


@contextmanager
def create(
    path: str | Path,
    *,
    columns: int,
    dtype: DTypeLike = np.float32,
    chunk_rows: int | None = None,
    column_coords: Mapping[str, Any] | None = None,
    source: str = "",
    attributes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Iterator[StoreWriter]:
    """A writer for a new store; `column` in column_coords labels the columns, `source` names the origin."""
    target = Path(path)
    kind = result_dtype(np.dtype(dtype), np.dtype(dtype).name)
    outline = outlined(columns, kind, chunk_rows, column_coords or {}, source, attributes or {})
    with reserved(target, overwrite) as staging:
        writer = StoreWriter(staging, target, outline)
        yield writer
        writer.finish()
        with files.storage_errors(target):
            files.publish(staging, target, overwrite)


def outlined(
    columns: int,
    dtype: np.dtype[Any],
    chunk_rows: int | None,
    column_coords: Mapping[str, Any],
    source: str,
    attributes: Mapping[str, Any],
) -> Outline:
    """The outline of a new store, checked."""
    refuse_shape((1, columns), file=source or None)
    rule = layout.checked_chunk_rows(chunk_rows, columns, dtype)
    coords = {name: as_labels(values) for name, values in column_coords.items()}
    for name, values in coords.items():
        if len(values) != columns:
            raise InputError(f"{len(values)} labels {name!r} for {columns} columns", kind="labels")
    return Outline(columns, dtype, rule, source, coords, dict(attributes))


@contextmanager
def reserved(target: Path, overwrite: bool) -> Iterator[Path]:
    """The staging directory of an output that may be made; its folder `scratch` is not kept."""
    files.refuse_existing(target, overwrite, name_in(target) or NAME)
    with files.staged(target) as staging:
        with files.storage_errors(target):
            files.restore_retired(target)
            files.refuse_existing(target, overwrite, name_in(target) or NAME)
        yield staging


class StoreWriter:
    """Collects rows into chunks and writes each chunk when it is full."""

    layout: ClassVar[str] = "dense"

    def __init__(self, staging: Path, target: Path, outline: Outline) -> None:
        self.outline = outline
        self.rows, self.fingerprint = 0, ""
        self.summary: ColumnSummary = empty_summary(outline.columns)
        self.chunks: list[ChunkEntry] = []
        self.sums: dict[str, tuple[int, str]] = {}
        self.extras: dict[str, tuple[Sequence[str], NDArray[Any]]] = {}
        self._staging, self._target = staging, target
        with files.storage_errors(target):
            self._group = zarr_groups.new_group(staging)
        self.labels = RowLabels(self._group)
        self._waiting: list[NDArray[Any]] = []
        self._coords: list[Mapping[str, Labels]] = []
        self._held = self._counted = 0

    @property
    def missing(self) -> int:
        """Missing cells in the chunks written so far."""
        return sum(chunk.missing for chunk in self.chunks)

    def append(
        self,
        rows: NDArray[Any],
        observed: NDArray[np.bool_] | None = None,
        row_coords: Mapping[str, Any] | None = None,
    ) -> None:
        """Add rows (row, column); NaN cells, and those not observed, are missing.

        `row_coords` holds labels (`row`) and covariates of these rows; every call gives the same names.
        """
        x = np.asarray(rows)
        self._refuse_width(x)
        coords = {str(name): as_labels(values) for name, values in (row_coords or {}).items()}
        self._refuse_coords(coords, len(x))
        taken = 0
        while taken < len(x):
            stop = min(len(x), taken + self.outline.chunk_rows - self._held)
            observed_part = None if observed is None else observed[taken:stop]
            self._take(
                x[taken:stop], observed_part, {name: values[taken:stop] for name, values in coords.items()}
            )
            taken = stop

    def put(self, name: str, dims: Sequence[str], values: Any) -> None:
        """Store a small array beside the data, for example a planted truth."""
        if name in RESERVED or name in self.labels.stored or name in ("row", "column"):
            raise UsageError(f"an array {name!r} is part of every dataset: choose another name")
        self.extras[name] = (tuple(dims), np.asarray(values))

    def adopt(self, chunk: ChunkEntry, row_coords: Mapping[str, Labels]) -> None:
        """Take over a full chunk whose file is in the staging directory already."""
        with files.storage_errors(self._target):
            stored = self.labels.write(self.rows, row_coords, self.outline.chunk_rows)
        self.chunks.append(replace(chunk, labels=layout.labels_hash(stored)))
        self.rows += self.outline.chunk_rows

    def resume_summary(self, summary: ColumnSummary, rows: int) -> None:
        """Start from a summary that has counted the first `rows` rows."""
        self.summary, self._counted = summary, rows

    def finish(self) -> None:
        """Write the rest, the metadata and the manifest; done by `create` at the end of its block."""
        if not self.rows:
            raise InputError("has no rows", file=self.outline.source or None, kind="empty")
        if self._held:
            self._flush()
        with files.storage_errors(self._target):
            self.fingerprint = complete(self._staging, self._group, self)

    def manifest(self) -> Manifest:
        """Shape and chunks."""
        outline = self.outline
        hashes, labels = [chunk.hash for chunk in self.chunks], [chunk.labels for chunk in self.chunks]
        shape = (self.rows, outline.columns, outline.dtype, outline.chunk_rows)
        return Manifest(
            rows=self.rows,
            columns=outline.columns,
            dtype=outline.dtype.name,
            chunk_rows=outline.chunk_rows,
            fingerprint=layout.dataset_fingerprint(*shape, hashes, labels),
            chunks=tuple(self.chunks),
        )

    def put_values(self, group: Any, coordinates: list[str]) -> None:
        """What Zarr is told of `x`."""
        group.create_array(
            "x",
            shape=(self.rows, self.outline.columns),
            chunks=(min(self.rows, self.outline.chunk_rows), self.outline.columns),
            dtype=self.outline.dtype.newbyteorder("<"),
            compressors=codec.zarr_codecs(self.outline.dtype.itemsize),
            fill_value=np.nan,
            dimension_names=["row", "column"],
            attributes={"coordinates": " ".join(coordinates)} if coordinates else {},
            config={"write_empty_chunks": True},
        )

    def _take(
        self, x: NDArray[Any], observed: NDArray[np.bool_] | None, coords: Mapping[str, Labels]
    ) -> None:
        """Hold at most the rest of one chunk."""
        outline = self.outline
        if observed is not None:
            x = np.where(observed, x, x.dtype.type(0))
        values = checked(
            x,
            outline.dtype,
            start=self.rows,
            file=outline.source or None,
            columns=outline.names,
        )
        if observed is not None:
            values = np.where(observed, values, outline.dtype.type(np.nan))
        held = np.shares_memory(values, x) and len(x) < outline.chunk_rows
        self._waiting.append(values.copy() if held else values)
        self._coords.append(coords)
        self._held += len(x)
        self.rows += len(x)
        if self._held == outline.chunk_rows:
            self._flush()

    def _flush(self) -> None:
        x = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        index, start = len(self.chunks), self.rows - self._held
        shape = self.outline.chunk_rows if index else len(x)
        coords = {name: joined(name, [c[name] for c in self._coords]) for name in self._coords[0]}
        with files.storage_errors(self._target):
            stored = self.labels.write(start, coords, shape)
            self._store(f"x/c/{index}/0", codec.encode(_padded(x, shape)))
        self.summary = self.summary.add(x[max(0, self._counted - start) :])
        missing = int(np.count_nonzero(np.isnan(x)))
        self.chunks.append(ChunkEntry(layout.content_hash(x), missing, layout.labels_hash(stored)))
        self._waiting, self._coords, self._held = [], [], 0

    def _store(self, name: str, data: bytes) -> None:
        files.write_durably(self._staging / name, data)
        self.sums[name] = (len(data), files.file_sum(data))

    def _refuse_width(self, x: NDArray[Any]) -> None:
        file = self.outline.source or None
        if x.ndim != 2:
            refuse_shape(x.shape, file=file)
        if x.shape[1] != self.outline.columns:
            raise InputError(
                f"has {x.shape[1]} columns, the dataset has {self.outline.columns}", file=file, kind="shape"
            )

    def _refuse_coords(self, coords: Mapping[str, Labels], rows: int) -> None:
        known = (
            set(self._coords[0]) if self._coords else set(self.labels.names) if self.chunks else set(coords)
        )
        if set(coords) != known:
            raise InputError(
                f"row coordinates {sorted(coords)} differ from {sorted(known)} of the rows before",
                file=self.outline.source or None,
                kind="labels",
            )
        for name, values in coords.items():
            if len(values) != rows:
                raise InputError(f"{len(values)} labels {name!r} for {rows} rows", kind="labels")


def _padded(x: NDArray[Any], rows: int) -> NDArray[Any]:
    """x with rows of NaN after it, as Zarr stores the last chunk."""
    if len(x) == rows:
        return x
    full = np.full((rows, x.shape[1]), np.nan, dtype=x.dtype)
    full[: len(x)] = x
    return full
