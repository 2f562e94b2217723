"""From any matrix to a dataset: checked, converted and stored in one streaming pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.check import checked, result_dtype
from ibpdist.data.column_warnings import empty_columns, warnings_of
from ibpdist.data.count_sources._base import CountTable
from ibpdist.data.count_writer import CountWriter
from ibpdist.data.finalise import SCRATCH, Outline
from ibpdist.data.ingest_counts import ingest_counts
from ibpdist.data.output_path import refuse_place
from ibpdist.data.sources import Options, open_table
from ibpdist.data.sources._base import Block, Table
from ibpdist.data.summary import empty_summary
from ibpdist.data.transform import Transform, fitted
from ibpdist.data.writer import StoreWriter, outlined, reserved
from ibpdist.storage import files

Count = Callable[[int, int | None], None]


@dataclass(frozen=True)
class IngestReport:
    """What was stored, and what the user should know about it."""

    rows: int
    columns: int
    dtype: str
    missing: int
    fingerprint: str
    warnings: tuple[str, ...]
    seconds: float


def ingest(
    source: Any,
    store: str | Path,
    *,
    center: bool = False,
    scale: bool = False,
    log1p: bool = False,
    dtype: str = "auto",
    rows_in: str = "rows",
    key: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    label_column: str | int | None = None,
    covariates: Sequence[str] = (),
    vocabulary: str | Path | None = None,
    chunk_rows: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Count | None = None,
) -> IngestReport:
    """Store a matrix (a path, an array, a DataFrame, a DataArray, a Dask array) as a dataset.

    Empty cells, NA and NaN are missing cells. `rows_in="columns"` takes the columns of the source
    as rows. `key` chooses an array of an npz file or a Zarr group. Text tables: `header` and
    `label_column` are found out unless given, `covariates` are columns kept beside the rows.
    Files of counts by their cells that are not zero (docword, LDA-C, Matrix Market, npz of scipy, h5ad) are
    stored so; `vocabulary` is a file with a word a line. Centring and scaling read the source twice.
    Datasets keep `attributes`, such as {"image": [28, 28]} where rows are images; the report draws features
    so. `progress` is called with rows done and in all.
    """
    begun, target = time.monotonic(), Path(store)
    _refuse_inside(source, target)
    refuse_place(target, source)
    words = None if vocabulary is None else Path(vocabulary)
    options = Options(rows_in, key, delimiter, header, label_column, tuple(covariates), words)
    with reserved(target, overwrite) as staging:
        with files.storage_errors(target):
            (staging / SCRATCH).mkdir()
        table = open_table(source, staging / SCRATCH, options)
        if isinstance(table, CountTable):
            asked = {"center": center, "scale": scale, "log1p": log1p, "chunk_rows": chunk_rows}
            counts = ingest_counts(table, staging, target, asked, attributes or {}, progress)
            with files.storage_errors(target):
                files.publish(staging, target, overwrite)
            return _report(
                counts, (*table.notes, *empty_columns(counts.summary, counts.outline.names)), begun
            )
        kind = result_dtype(table.dtype, dtype)
        attributes_of_table = {**getattr(table, "attributes", {}), **(attributes or {})}
        outline = outlined(
            table.columns, kind, chunk_rows, table.column_coords(), table.name, attributes_of_table
        )
        transform = _transform(table, outline, log1p=log1p, center=center, scale=scale)
        writer = _written(table, staging, target, outline, transform, progress)
        with files.storage_errors(target):
            files.publish(staging, target, overwrite)
    return _report(writer, (*table.notes, *warnings_of(writer.summary, outline.names, kind)), begun)


def _report(writer: StoreWriter | CountWriter, notes: tuple[str, ...], begun: float) -> IngestReport:
    outline, missing = writer.outline, writer.manifest().missing
    size, seconds = (writer.rows, outline.columns, outline.dtype.name), time.monotonic() - begun
    return IngestReport(*size, missing, writer.fingerprint, notes, seconds)


def _written(
    table: Table, staging: Path, target: Path, outline: Outline, transform: Transform, progress: Count | None
) -> StoreWriter:
    """The second pass, or the only one: every block checked, transformed, appended."""
    if not transform.is_identity:
        described = {**outline.attributes, "transform": transform.attributes()}
        outline = replace(outline, attributes=described)
    writer = StoreWriter(staging, target, outline)
    for name, values in (("center", transform.center), ("scale", transform.scale)):
        if values is not None:
            writer.put(f"transform_{name}", ["column"], values)
    for block in _read(table, outline.chunk_rows):
        x = transform.apply(block.x, start=writer.rows, file=table.name, columns=outline.names)
        writer.append(x, row_coords=block.row_coords)
        if progress:
            progress(writer.rows, table.rows)
    writer.finish()
    return writer


def _transform(table: Table, outline: Outline, *, log1p: bool, center: bool, scale: bool) -> Transform:
    first = Transform(log1p=log1p)
    if not (center or scale):
        return first
    summary, row = empty_summary(outline.columns), 0
    for block in _read(table, outline.chunk_rows):
        place: Mapping[str, Any] = {"start": row, "file": table.name, "columns": outline.names}
        values = checked(block.x, np.dtype(np.float64), **place)
        summary = summary.add(first.apply(values, **place))
        row += len(values)
    return fitted(summary.table(), log1p=log1p, center=center, scale=scale)


def _read(table: Table, rows: int) -> Iterator[Block]:
    """The blocks of a table; what the operating system refuses to read is an InputError."""
    try:
        yield from table.blocks(rows)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", file=table.name, kind="file"
        ) from error


def _refuse_inside(source: Any, target: Path) -> None:
    """The output must not be part of the input, which it would change while it is read."""
    if isinstance(source, str | Path) and Path(source).exists():
        origin, output = Path(source).resolve(), target.resolve()
        if output == origin or origin in output.parents:
            what = "is the input itself" if output == origin else f"lies inside the input {origin.name}"
            raise UsageError(f"{target}: {what}: choose a place outside it")
