"""What made a result: versions, the kernels of BLAS, the data by their fingerprint."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ibpdist import __version__
from ibpdist.base.threads import kernels
from ibpdist.data._base import Source
from ibpdist.data.centring import Centred
from ibpdist.data.wrapped import innermost

CENTER = "center"
"""The fact that holds the means which a fit takes off its data (data/centring.py), where it does."""
PACKAGES = ("numpy", "scipy", "numba", "dask", "distributed", "zarr", "xarray")


def versions() -> dict[str, str]:
    """Installed versions of what decides the bits of a result."""
    return {"ibpdist": __version__, "python": platform.python_version()} | {
        name: _version(name) for name in PACKAGES
    }


def facts(source: Source) -> dict[str, Any]:
    """Shape, chunking and fingerprint of the data, versions, machine and BLAS kernels, and the shape of
    images if rows are images, and the means that the fit takes off its data, if it does; JSON-able."""
    return {
        "fingerprint": source.fingerprint,
        "rows": source.rows,
        "columns": source.columns,
        "chunks": source.chunks,
        "chunk_rows": chunk_rows(source),
        "dtype": str(source.dtype),
        "versions": versions(),
        "machine": platform.machine(),
        "blas": kernels(),
        **image(source),
        **center(source),
    }


def image(source: Source) -> dict[str, Any]:
    """`image`, height and width, when the dataset below all wrappers has images as rows."""
    held: Mapping[str, Any] = getattr(innermost(source), "attributes", {})
    return {"image": held["image"]} if "image" in held else {}


def center(source: Source) -> dict[str, Any]:
    """`center`, the means that a fit takes off its data, when it does."""
    return {CENTER: source.center.tolist()} if isinstance(source, Centred) else {}


def chunk_rows(source: Source) -> int:
    """Rows of a chunk; only the last may have fewer."""
    if source.chunks == 0:
        return 0
    start, stop = source.bounds(0)
    return stop - start


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
