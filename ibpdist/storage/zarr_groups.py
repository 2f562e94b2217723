"""The few things we ask of Zarr: groups and arrays on a local disk, guarded against hostile metadata."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import StorageError

METADATA_LIMIT = 16 << 20
ATTRIBUTES_LIMIT = 1 << 20


def new_group(path: Path) -> Any:
    import zarr

    return zarr.open_group(path, mode="w-" if not path.exists() else "a", zarr_format=3)


def open_group(path: Path) -> Any:
    """The group at a path, read only; its consolidated metadata are not used, each array tells its own."""
    import zarr

    refuse_large_metadata(path)
    try:
        return zarr.open_group(path, mode="r", zarr_format=3, use_consolidated=False)
    except Exception as error:
        raise StorageError(f"{path}: zarr.json cannot be read: {error}") from error


def refuse_large_metadata(path: Path) -> None:
    """StorageError when a metadata file is so large that reading it would be the attack."""
    for name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"):
        file = path / name
        if file.is_file() and file.stat().st_size > METADATA_LIMIT:
            raise StorageError(f"{path}: {name} is larger than {METADATA_LIMIT >> 20} MB: not read")


def put_array(group: Any, name: str, dims: Sequence[str], values: NDArray[Any]) -> None:
    """A small array in one chunk, with crc32c like everything else."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    text = values.dtype.kind == "U"
    array = group.create_array(
        name,
        shape=values.shape,
        chunks=tuple(max(1, size) for size in values.shape),
        dtype="string" if text else values.dtype,
        compressors=[ZstdCodec(level=3), Crc32cCodec()],
        fill_value=np.nan if values.dtype.kind == "f" else ("" if text else 0),
        dimension_names=list(dims),
        config={"write_empty_chunks": True},
    )
    array[...] = values


def consolidate(path: Path) -> None:
    """Metadata of all arrays in the root, so that xarray opens the store with one read."""
    import zarr

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(path, zarr_format=3)


def attributes_of(group: Any) -> Mapping[str, Any]:
    return dict(group.attrs)
