"""AnnData in h5ad files: X, or a layer, as compressed sparse rows (needs h5py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.data.count_sources.compressed_rows import CompressedRows, RowColumn, Stream


@dataclass
class Stored:
    """A stored array that is read from front to back."""

    array: Any
    at: int = 0

    def take(self, count: int) -> NDArray[Any]:
        found = np.asarray(self.array[self.at : self.at + count])
        self.at += len(found)
        return found


def open_h5ad(path: Path, key: str | None = None, covariates: Sequence[str] = ()) -> CompressedRows:
    """The counts of a file; `key` names another matrix than X, such as layers/counts, and `covariates` are
    columns of obs."""
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(f"{path.name}: needs h5py: pip install 'ibpdist[anndata]'") from None
    file = h5py.File(path, "r")
    held = _matrix(file, path.name, key)
    rows, columns = (int(size) for size in held.attrs.get("shape", held.attrs.get("h5sparse_shape")))

    def parts() -> tuple[Stream, Stream, Stream]:
        return Stored(held["indptr"]), Stored(held["indices"]), Stored(held["data"])

    words = _index(file, "var")
    beside = {name: _covariate(file, path.name, name) for name in covariates}
    labels = _index(file, "obs")
    named = {} if labels is None else {"row": _read(labels)}
    words = None if words is None else _read(words)(0, columns)
    return CompressedRows(path.name, rows, columns, parts, words, named | beside)


def _matrix(file: Any, name: str, key: str | None) -> Any:
    """The group of the matrix; refuses what is no matrix of compressed rows."""
    layers, wanted = [f"layers/{one}" for one in file.get("layers", {})], key or "X"
    if wanted not in file:
        raise UsageError(f"{name}: has no {wanted}: choose one of {', '.join(['X', *layers])}")
    held = file[wanted]
    encoding = held.attrs.get("encoding-type", held.attrs.get("h5sparse_format", "array"))
    if encoding in ("csr_matrix", "csr"):
        return held
    more = f", or name a layer with key={layers[0]}" if layers and key is None else ""
    kinds = {"array": ("dense", "scipy.sparse.csr_matrix(adata.X)")}
    kind, way = kinds.get(encoding, (encoding, "adata.X.tocsr()"))
    raise UsageError(f"{name}: {wanted} is {kind}: save it as csr, adata.X = {way}{more}")


def _index(file: Any, frame: str) -> Any | None:
    """The names of rows (obs) or columns (var)."""
    if frame not in file:
        return None
    held = file[frame]
    return held.get(held.attrs.get("_index", "_index"))


def _covariate(file: Any, name: str, covariate: str) -> RowColumn:
    """A column of obs; categories are told by their names."""
    frame = file.get("obs", {})
    if covariate not in frame:
        known = ", ".join(one for one in frame if one != frame.attrs.get("_index", "_index")) or "none"
        raise UsageError(f"{name}: obs has no column {covariate}: choose one of {known}")
    held = frame[covariate]
    if not hasattr(held, "keys"):
        return _read(held)
    if "codes" not in held or "categories" not in held:
        raise UsageError(
            f"{name}: covariate {covariate} is {held.attrs.get('encoding-type')}: save it as text"
        )
    names, codes = _read(held["categories"])(0, len(held["categories"])).astype(np.str_), held["codes"]
    named = np.append(names, "")  # the code of a missing one is -1

    def read(start: int, stop: int) -> NDArray[Any]:
        return np.asarray(named[np.asarray(codes[start:stop])])

    return read


def _read(held: Any) -> RowColumn:
    """Reads some values, text as text."""
    text = held.asstr() if held.dtype.kind in "OS" else held

    def read(start: int, stop: int) -> NDArray[Any]:
        found = np.asarray(text[start:stop])
        return found.astype(np.str_) if found.dtype.kind == "O" else found

    return read
