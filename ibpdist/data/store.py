"""A dataset on disk: `NAME.zarr`, Zarr v3, `x (row, column)` in row chunks; opens with xarray.open_zarr.

Missing cells are NaN in `x` itself; there is no second array to keep in step with it. `read`
gives them as zeros with a mask, as the rest of the package expects. Values are float32 or
float64, counts too: float32 holds them exactly up to 2^24, and lz4 packs either well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import IbpError, StorageError
from ibpdist.data import layout
from ibpdist.data._base import Chunk
from ibpdist.data.labels import Labels, read_labels
from ibpdist.data.manifest import Manifest, load
from ibpdist.data.reader import damaged, reader_for
from ibpdist.data.summary import FIELDS
from ibpdist.data.urls import refuse_urls
from ibpdist.data.writer import StoreWriter, create
from ibpdist.storage import files, zarr_groups

__all__ = ["Dataset", "StoreWriter", "create", "open_dataset"]


def open_dataset(path: str | Path) -> Dataset:
    """The dataset at a path, its metadata checked against the manifest."""
    refuse_urls(path)
    store = Path(path)
    if not store.exists():
        with suppress(IbpError), files.staged(store):
            files.restore_retired(store)
    if not store.exists():
        raise StorageError(f"{store}: does not exist: check the name or make it with `ibpdist ingest`")
    known = load(store)
    if known.of_counts:
        from ibpdist.data.count_store import CountDataset

        return CountDataset(store, known)
    return Dataset(store, known)


class Dataset:
    """A store that is read chunk by chunk; a `Source`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._open()
        self._group: Any = zarr_groups.open_group(path)
        self.attributes: Mapping[str, Any] = zarr_groups.attributes_of(self._group)

    def _open(self) -> None:
        """Check the metadata of the values, and make what reads them."""
        self._shape, codecs = _checked_metadata(self.path, self.manifest)
        self._reader = reader_for(self.path, self.manifest.files, codecs)

    def content_hash(self, index: int) -> str:
        """Hash of the values of a chunk as they are stored now."""
        read = self.read(index)
        x = read.x if read.observed is None else np.where(read.observed, read.x, self.dtype.type(np.nan))
        return layout.content_hash(x)

    def chunk_file(self, index: int) -> str:
        """What messages call the values of a chunk."""
        return f"x/c/{index}/0"

    def fingerprint_of(self, hashes: Sequence[str], labels: Sequence[str]) -> str:
        """The fingerprint of a dataset like this one with these values and labels."""
        return layout.dataset_fingerprint(
            self.rows, self.columns, self.dtype, self.chunk_rows, hashes, labels
        )

    @property
    def rows(self) -> int:
        return self.manifest.rows

    @property
    def columns(self) -> int:
        return self.manifest.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.manifest.dtype)

    @property
    def chunks(self) -> int:
        return len(self.manifest.chunks)

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint

    @property
    def missing(self) -> int:
        """Number of missing cells."""
        return self.manifest.missing

    @property
    def chunk_rows(self) -> int:
        """Rows of every chunk but the last."""
        return self.manifest.chunk_rows

    def bounds(self, index: int) -> tuple[int, int]:
        return layout.chunk_bounds(index, self.rows, self.chunk_rows)

    def read(self, index: int) -> Chunk:
        return self.read_into(index, np.empty(self._shape, dtype=self.dtype))

    def read_into(self, index: int, buffer: NDArray[Any]) -> Chunk:
        """Read into a buffer (chunk row, column) that the caller reuses; the chunk is a view of it."""
        start, stop = self.bounds(index)
        with self._unchanged():
            self._reader.read(index, buffer)
        x = buffer[: stop - start]
        if not self.manifest.chunks[index].missing:
            return Chunk(index, start, x)
        observed = ~np.isnan(x)
        x[~observed] = 0
        return Chunk(index, start, x, observed)

    def row_coords(self, index: int) -> dict[str, Labels]:
        start, stop = self.bounds(index)
        key = f"c/{index}"
        return {name: self._labels(name, key, start, stop) for name in self.attributes["row_coords"]}

    def column_coords(self) -> dict[str, Labels]:
        names = self.attributes["column_coords"]
        return {name: self._labels(name, "c/0", 0, self.columns) for name in names}

    def column_summary(self) -> dict[str, NDArray[np.float64]]:
        """count, mean, sd, min and max of the observed cells of each column."""
        return {name: self._labels(f"column_{name}", "c/0", 0, self.columns) for name in FIELDS}

    @property
    def extras(self) -> dict[str, tuple[str, ...]]:
        """Dims of the small arrays that were stored beside the data, by name."""
        return {name: tuple(self._group[name].metadata.dimension_names) for name in self.attributes["extras"]}

    def extra(self, name: str) -> NDArray[Any]:
        """A small array that was stored beside the data."""
        if name not in self.attributes["extras"]:
            raise StorageError(f"{self.path}: has no array {name!r}")
        with self._unchanged():
            for file in self.manifest.files:
                if file.startswith(f"{name}/"):
                    check_file(self.path, file, self.manifest)
        return np.asarray(self._group[name][...])

    def verify(self) -> list[str]:
        """A sentence for each thing that is wrong with the stored files; reads everything."""
        from ibpdist.data.verify import verify_dataset

        return verify_dataset(self.path)

    def _labels(self, name: str, key: str, start: int, stop: int) -> Labels:
        with self._unchanged():
            for file in (f"{name}/zarr.json", f"{name}/{key}"):
                check_file(self.path, file, self.manifest)
        return read_labels(self._group[name], start, stop)

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Distinguish damage from a sound store that took the place of the one that was opened."""
        try:
            yield
        except StorageError:
            replaced = self._replaced()
            if replaced is None:
                raise
            raise replaced from None

    def _replaced(self) -> StorageError | None:
        """The error for a store that took the place of this one, if one did."""
        with suppress(StorageError):
            now = load(self.path)
            if now.fingerprint != self.fingerprint:
                return changed(self.path, self.rows, now.rows)
        return None


def changed(data: Path | str, before: int, now: int) -> StorageError:
    """The error for data that others replaced or appended to while a fit or another command read them."""
    how = f"from {before:,} rows to {now:,}" if before != now else "to other values"
    return StorageError(
        f"{data}: the data changed, {how}, since the fit or other work on them began: fit again; a run that "
        "was begun cannot go on with other rows"
    )


def check_file(store: Path, name: str, manifest: Manifest) -> None:
    """StorageError unless a stored file has the size and the sum of the manifest."""
    problem = file_problem(store, name, manifest)
    if problem:
        raise damaged(store, name, problem)


def file_problem(store: Path, name: str, manifest: Manifest) -> str:
    """What is wrong with a stored file, in words; empty when nothing is."""
    if name not in manifest.files:
        return "is not listed in the manifest"
    size, total = manifest.files[name]
    try:
        found = (store / name).stat().st_size
        if found != size:
            return f"has {found} bytes instead of {size}"
        return "" if files.file_sum((store / name).read_bytes()) == total else "the check sum does not match"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _checked_metadata(store: Path, manifest: Manifest) -> tuple[tuple[int, int], list[Any]]:
    """Shape of a stored chunk and codecs of `x`, after the metadata agree with the manifest."""
    for name in ("zarr.json", "x/zarr.json"):
        check_file(store, name, manifest)
    content = json.loads((store / "x/zarr.json").read_bytes())
    shape = [manifest.rows, manifest.columns]
    chunk = [min(manifest.rows, manifest.chunk_rows), manifest.columns]
    expected = layout.chunk_count(manifest.rows, manifest.chunk_rows)
    held = all(f"x/c/{index}/0" in manifest.files for index in range(expected))
    if content["shape"] != shape or content["chunk_grid"]["configuration"]["chunk_shape"] != chunk:
        raise StorageError(f"{store}: x/zarr.json and the manifest tell different shapes: ingest again")
    size = chunk[0] * chunk[1] * np.dtype(manifest.dtype).itemsize
    if len(manifest.chunks) != expected or not held or size > layout.LIMIT_BYTES:
        raise StorageError(f"{store}: the manifest does not fit the shape {tuple(shape)}: ingest again")
    return (chunk[0], chunk[1]), content["codecs"]
