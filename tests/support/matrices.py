"""Small matrices and files for the tests of the data package."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.data.store import Dataset, create, open_dataset

Matrix = np.ndarray[Any, Any]


def matrix(
    rows: int = 50, columns: int = 7, seed: int = 0, dtype: str = "float64", missing: int = 0
) -> Matrix:
    """Normal values with `missing` cells set to NaN."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)).astype(dtype)
    x.flat[rng.choice(x.size, missing, replace=False)] = np.nan
    return x


def stored(path: Path, x: Matrix, *, chunk_rows: int | None = 16, **options: Any) -> Dataset:
    """A store of x, which is appended at once."""
    coords = options.pop("row_coords", None)
    with create(path, columns=x.shape[1], dtype=x.dtype, chunk_rows=chunk_rows, **options) as writer:
        writer.append(x, row_coords=coords)
    return open_dataset(path)


def values(source: Any) -> Matrix:
    """All rows of a source, missing cells as NaN."""
    chunks = [source.read(index) for index in range(source.chunks)]
    return np.concatenate([c.x if c.observed is None else np.where(c.observed, c.x, np.nan) for c in chunks])


def labels(source: Any, name: str) -> list[Any]:
    """A row coordinate of all chunks."""
    return [label for index in range(source.chunks) for label in source.row_coords(index)[name].tolist()]


def write_csv(
    path: Path,
    x: Matrix,
    *,
    delimiter: str = ",",
    header: Sequence[str] = (),
    rows: Sequence[str] = (),
    missing: str = "NA",
    end: str = "\n",
) -> Path:
    """A text table of x with repr() of each value."""
    cells = [[missing if np.isnan(v) else repr(float(v)) for v in row] for row in x]
    lines = [[rows[i], *row] if len(rows) else row for i, row in enumerate(cells)]
    lines = [list(header), *lines] if len(header) else lines
    text = "".join(delimiter.join(line) + end for line in lines)
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "wb") as file:
        file.write(text.encode())
    return path


def listing(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def named(x, names):
    """A matrix (row, column) with labels of its rows."""
    return xr.DataArray(x, {"row": np.asarray(names)}, ("row", "column"))
