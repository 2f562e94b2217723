"""Formats that can be ingested, one file each; which one it is follows from the thing itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.count_sources._base import CountTable
from ibpdist.data.count_sources.held import CountRows
from ibpdist.data.dense_rows import by_entries
from ibpdist.data.sources._base import Table
from ibpdist.data.sparse_array import SparseArray, is_sparse

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_USERS = {
    "key": "npz files, Zarr groups, Datasets and h5ad",
    "delimiter": "text tables",
    "header": "text tables",
    "label_column": "text tables and DataFrames",
    "covariates": "text tables, DataFrames and h5ad",
    "vocabulary": "files of counts: docword, LDA-C, Matrix Market, npz of scipy",
}


@dataclass(frozen=True)
class Options:
    """How to read a source; each format uses its own."""

    rows_in: str = "rows"
    key: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    label_column: str | int | None = None
    covariates: Sequence[str] = ()
    vocabulary: Path | None = None


def open_table(source: Any, scratch: Path, options: Options) -> Table | CountTable:
    """The table of a path or an array; temporary files go to the directory `scratch`."""
    if options.rows_in not in ("rows", "columns"):
        raise UsageError(f"rows_in is {options.rows_in!r}: expected rows or columns")
    if not isinstance(source, str | Path):
        return _of_object(source, scratch, options)
    path = Path(source)
    if not path.exists():
        raise InputError("does not exist: check the name", file=str(source), kind="file")
    try:
        return _of_path(path, scratch, options)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path.name, kind="file") from error


def _of_object(thing: Any, scratch: Path, options: Options) -> Table | CountTable:
    from ibpdist.data.sources.array import table_of
    from ibpdist.data.sources.frame import frame_table, is_frame

    if is_sparse(thing):
        _refuse_unused(options, "sparse matrix")
        return CountRows(SparseArray(thing.T if options.rows_in == "columns" else thing), "array")
    if hasattr(thing, "read") and hasattr(thing, "fingerprint"):
        _refuse_unused(options, "dataset")
        return _of_source(thing, "dataset", scratch, options)
    if is_frame(thing):
        _refuse_unused(options, "DataFrame", "label_column", "covariates")
        beside: dict[str, Any] = {"label_column": options.label_column, "covariates": options.covariates}
        return frame_table(thing, rows_in=options.rows_in, **beside)
    _refuse_unused(options, "array", *(["key"] if hasattr(thing, "data_vars") else []))
    return table_of(thing, rows_in=options.rows_in, key=options.key)


def _of_source(source: Any, name: str, scratch: Path, options: Options) -> Table | CountTable:
    """The rows of a dataset; they stay entries where they are."""
    from ibpdist.data.sources.stored import SourceTable

    if not by_entries(source):
        return _turned(SourceTable(source, name), scratch, options)
    if options.rows_in == "columns":
        raise UsageError(f"{name}: columns of counts cannot be taken as rows: turn the matrix first")
    return CountRows(source, name)


def _of_path(path: Path, scratch: Path, options: Options) -> Table | CountTable:
    from ibpdist.data.sources import csv, npy

    if path.is_dir():
        return _of_directory(path, scratch, options)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    of_counts = _of_counts(path, suffix, options)
    if of_counts is not None:
        return of_counts
    if path.suffix == ".npy":
        _refuse_unused(options, path.name)
        return npy.open_npy(path, rows_in=options.rows_in)
    if path.suffix == ".npz":
        _refuse_unused(options, path.name, "key")
        return npy.open_npz(path, scratch, key=options.key, rows_in=options.rows_in)
    if suffix not in _TEXT:
        raise UsageError(
            f"{path.name}: unknown file format: expected .npy, .npz, .csv, .tsv, .txt, .mtx (text also .gz), "
            ".h5ad, Zarr"
        )
    _refuse_unused(options, path.name, "delimiter", "header", "label_column", "covariates")
    table = csv.CsvTable(
        path,
        delimiter=options.delimiter,
        header=options.header,
        label_column=options.label_column,
        covariates=options.covariates,
    )
    return _turned(table, scratch, options)


def _of_counts(path: Path, suffix: str, options: Options) -> CountTable | None:
    """The table of a file of counts by the cells that are not zero; None of other files."""
    from ibpdist.data.count_sources import kinds
    from ibpdist.data.count_sources.anndata import open_h5ad

    name = kinds.kind_of(path, suffix)
    if name is None:
        return None
    turned = options.rows_in == "columns"
    if name == "anndata":
        _refuse_unused(options, path.name, "key", "covariates")
        if turned:
            raise kinds.refuse_turned(path.name)
        return open_h5ad(path, options.key, options.covariates)
    _refuse_unused(options, path.name, "vocabulary")
    return kinds.open_counts(name, path, options.vocabulary, turned)


def _of_directory(path: Path, scratch: Path, options: Options) -> Table | CountTable:
    from ibpdist.data import manifest
    from ibpdist.data.sources.zarr import is_zarr, open_zarr
    from ibpdist.data.store import open_dataset

    if manifest.is_ours(path):
        _refuse_unused(options, path.name, *(["key"] if options.key == "x" else []))
        return _of_source(open_dataset(path), path.name, scratch, options)
    if not is_zarr(path):
        raise InputError("is a directory but not Zarr: expected a matrix", file=path.name, kind="format")
    _refuse_unused(options, path.name, "key")
    return _turned(open_zarr(path, key=options.key), scratch, options)


def _refuse_unused(options: Options, what: str, *used: str) -> None:
    """UsageError for an option that says nothing about a source of this format."""
    for name, users in _USERS.items():
        value = getattr(options, name)
        if name not in used and value not in (None, ()):
            raise UsageError(f"{what}: has no use for {name}={value!r}, which is for {users}: leave it out")


def _turned(table: Table, scratch: Path, options: Options) -> Table:
    from ibpdist.data.sources.transposed import Transposed

    return Transposed(table, scratch) if options.rows_in == "columns" else table
