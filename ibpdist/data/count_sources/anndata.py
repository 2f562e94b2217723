"""AnnData in h5ad files: X, or a layer, as compressed sparse rows (needs h5py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.data.count_sources.compressed_rows import CompressedRows, Stream


@dataclass
class Stored:
    """A stored array that is read from front to back."""

    array: Any
    at: int = 0

    def take(self, count: int) -> NDArray[Any]:
        found = np.asarray(self.array[self.at : self.at + count])
        self.at += len(found)
        return found


def open_h5ad(path: Path, key: str | None = None) -> CompressedRows:
    """The counts of a file; `key` names another matrix than X, such as layers/counts."""
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(f"{path.name}: needs h5py: pip install 'ibpdist[anndata]'") from None
    file = h5py.File(path, "r")
    name = key or "X"
    layers = [f"layers/{one}" for one in file.get("layers", {})]
    if name not in file:
        raise UsageError(
            f"{path.name}: has no {name}: choose one of X{''.join(', ' + one for one in layers)}"
        )
    held = file[name]
    encoding = held.attrs.get("encoding-type", held.attrs.get("h5sparse_format", "array"))
    if encoding not in ("csr_matrix", "csr"):
        more = f", or name a layer with key={layers[0]}" if layers and key is None else ""
        raise UsageError(
            f"{path.name}: {name} is {encoding}: save it as csr, adata.X = adata.X.tocsr(){more}"
        )
    rows, columns = (int(size) for size in held.attrs.get("shape", held.attrs.get("h5sparse_shape")))

    def parts() -> tuple[Stream, Stream, Stream]:
        return Stored(held["indptr"]), Stored(held["indices"]), Stored(held["data"])

    return CompressedRows(path.name, rows, columns, parts, _index(file, "var"), _index(file, "obs"))


def _index(file: Any, frame: str) -> NDArray[Any] | None:
    """The names of rows (obs) or columns (var)."""
    if frame not in file:
        return None
    held = file[frame]
    name = held.attrs.get("_index", "_index")
    if name not in held:
        return None
    values = held[name].asstr()[...] if hasattr(held[name], "asstr") else held[name][...]
    return np.asarray(values, dtype=np.str_)
