"""The flow that stores a matrix as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from prefect import flow

import ibpdist as ibp
from flows import artifacts
from flows.steps import given, perform, step
from ibpdist.base.errors import OutputInUse


@step("ingest")
def ingest_step(source: str, store: str, **options: Any) -> str:
    """Store a matrix, unless it is stored already; the path of the dataset."""
    if Path(store).exists():
        _refuse_other(source, store)
        return store
    report = ibp.ingest(source, store, **options)
    notes = "".join(f"; {warning}" for warning in report.warnings)
    artifacts.say(store, "dataset", f"{store}: {report.rows:,} rows of {report.columns:,} columns{notes}")
    return store


@flow(name="ingest")
def ingest(
    source: str,
    store: str,
    rows_in: Literal["rows", "columns"] = "rows",
    center: bool = False,
    scale: bool = False,
    log1p: bool = False,
    chunk_rows: int | None = None,
    vocabulary: str | None = None,
) -> str:
    """Store a matrix as a dataset, checked and in chunks; nothing is done when it is there.

    Args:
        source: The matrix, such as a CSV file, a .npy file, a Zarr array, or a file of counts.
        store: The dataset to make, NAME.zarr.
        rows_in: Columns when the source has its rows as columns.
        center: Subtract from every column its mean.
        scale: Divide every column by its standard deviation.
        log1p: Take the logarithm of 1 + x first.
        chunk_rows: Rows of a chunk; chosen when not given.
        vocabulary: A file with a word a line, for files of counts.
    """
    options = given(center=center, scale=scale, log1p=log1p, chunk_rows=chunk_rows, vocabulary=vocabulary)
    return perform(ingest_step, source, store, rows_in=rows_in, **options)


def _refuse_other(source: str, store: str) -> None:
    """Refuse a store of another source."""
    known = ibp.open_dataset(store).attributes.get("source")
    if known != Path(source).name:
        raise OutputInUse(
            f"{store}: holds data of {known}, not of {source}; choose another name for the store"
        )
