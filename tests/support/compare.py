"""Records, and results of fits, that must have the same bits."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ibpdist as ibp
from ibpdist.base.structs import arrays_of

BESIDE = {"heldout", "restarts"}
"""Groups of a result that are no part of the fit: scored after it, or a table of several fits."""


def assert_same_record(one: Any, other: Any) -> None:
    """Two structs, and the structs in them, are of the same types and have arrays of the same bits."""
    assert _types(one) == _types(other)
    arrays, other_arrays = arrays_of(one), arrays_of(other)
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)
        assert array.dtype == other_arrays[name].dtype, name


def assert_close_record(found: Any, wanted: Any, **tolerance: float) -> None:
    """The arrays of two structs are close, array by array; `tolerance` as of `assert_allclose`."""
    arrays, others = arrays_of(found), arrays_of(wanted)
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(array, others[name], err_msg=name, **tolerance)


def assert_same_result(one: xr.DataTree | Path, other: xr.DataTree | Path) -> None:
    """Two results, or the runs that hold them, are of the same fit: its groups have the same bits."""
    first, second = (ibp.open_result(place) if isinstance(place, Path) else place for place in (one, other))
    assert first.children.keys() - BESIDE == second.children.keys() - BESIDE
    for name in first.children.keys() - BESIDE:
        left, right = (result[name].to_dataset().compute() for result in (first, second))
        assert left.identical(right), name


def _types(record: Any) -> tuple[type, list[Any]]:
    """The type of a struct, and those of the structs in it."""
    values = [getattr(record, field.name) for field in fields(record)]
    parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return type(record), [_types(part) for part in parts if is_dataclass(part)]
