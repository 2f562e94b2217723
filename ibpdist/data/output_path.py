"""Where an output may lie: neither inside a store, which it would damage, nor around what it is made from."""

from __future__ import annotations

from pathlib import Path

from ibpdist.base.errors import UsageError
from ibpdist.data.sources.zarr import is_zarr
from ibpdist.data.urls import refuse_urls


def refuse_place(target: str | Path, *inputs: object) -> None:
    """Refuse an output inside a Zarr store, whose files are then not those that were written, and one that
    holds an input, which goes when the output is replaced. Inputs other than paths are in memory."""
    refuse_urls(target, *inputs)
    output = Path(target).resolve()
    for parent in output.parents:
        if is_zarr(parent):
            raise UsageError(f"{target}: lies inside the store {parent.name}: choose a place outside it")
    for given in inputs:
        if isinstance(given, str | Path) and output in Path(given).resolve().parents:
            raise UsageError(f"{target}: holds the input {given}: choose another place")
