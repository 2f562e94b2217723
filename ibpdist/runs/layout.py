"""How a result lies on disk, where that differs from how it is read.

    trace/terms       all terms of the steps in one array, and the attribute `terms` names the places of its
                      last dim; `diagnostics/terms` likewise
    internals/state   the parameters as the algorithm keeps them: a file of records (records.py) as bytes

A result of the first format (no attribute `format`) has an array for each term, and the parameters as a group
`state` with an array for each field. Both are read into the same tree.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.errors import StorageError
from ibpdist.base.structs import UnreadableRecord, unpack
from ibpdist.storage import records

FORMAT = 2
INTERNALS, TERMS = "internals", "terms"
FOLDED = frozenset({"trace", "diagnostics"})
"""Groups of variables with the same dims."""
HIDDEN = ("basis", "spectrum", "group", "centre", "intercept_error")
"""Described parameters that belong to the internals: the covariance of the dictionary and the intercept."""
_OLD_STATE = "state"


def internals(params: Any, described: dict[str, Any]) -> xr.Dataset:
    """Arrays that the package needs to continue from a result and readers do not need."""
    content = np.frombuffer(records.to_bytes({"params": params}), np.uint8)
    held = {name: described[name] for name in HIDDEN if name in described}
    return xr.Dataset({**held, "state": ("byte", content)})


def state_of(result: xr.DataTree) -> Any:
    """The parameters as the algorithm keeps them."""
    if INTERNALS not in result.children or "state" not in result[INTERNALS]:
        raise StorageError("the result holds no parameters to continue from")
    content = np.asarray(result[INTERNALS].variables["state"].values, np.uint8).tobytes()
    return records.from_bytes(content, "params", Path("internals/state"))


def on_disk(result: xr.DataTree) -> xr.DataTree:
    """A tree with the variables of each folded group in one array."""
    folded = result.copy()
    for name in FOLDED & result.children.keys():
        folded[name] = xr.DataTree(_folded(result[name].to_dataset()))
    return folded


def in_memory(stored: xr.DataTree) -> xr.DataTree:
    """The tree of a result of any format, as it is read."""
    version = int(stored.attrs.pop("format", 1))
    if version > FORMAT:
        raise StorageError(f"has the format {version}, this version reads up to {FORMAT}: update ibpdist")
    if version == 1:
        return _of_first_format(stored)
    for name in FOLDED & stored.children.keys():
        stored[name] = xr.DataTree(_unfolded(stored[name].to_dataset()))
    return stored


def _folded(group: xr.Dataset) -> xr.Dataset:
    names = [str(name) for name in group.data_vars]
    values = xr.concat([group[name] for name in names], dim="term").transpose(..., "term")
    return values.drop_attrs().to_dataset(name=TERMS).assign_attrs(terms=names)


def _unfolded(group: xr.Dataset) -> xr.Dataset:
    if TERMS not in group:
        return group
    held = group[TERMS].load()
    values = {name: held.isel(term=at) for at, name in enumerate(group.attrs["terms"])}
    return xr.Dataset(values, group.coords)


def _of_first_format(stored: xr.DataTree) -> xr.DataTree:
    """Parameters were an array for each field beside an outline, and hidden arrays were in `params`."""
    if _OLD_STATE not in stored.children:
        return stored
    state, params = stored[_OLD_STATE].to_dataset().load(), stored["params"].to_dataset()
    arrays = {str(name): np.asarray(values.values) for name, values in state.data_vars.items()}
    try:
        kept = unpack(json.loads(state.attrs["outline"]), arrays)
    except UnreadableRecord as error:
        raise StorageError(f"state: {error}") from error
    hidden = [name for name in HIDDEN if name in params.variables]
    named = {name: (params[name].dims, params[name].values) for name in hidden}
    stored["params"] = xr.DataTree(params.drop_vars(hidden))
    stored[INTERNALS] = xr.DataTree(internals(kept, named))
    return stored.drop_nodes(_OLD_STATE)
