"""Frozen records of arrays whose dims are part of the type.

    @struct
    class GaussianSums:
        yx: Array = dims("feature column")          # adds up over chunks
        first: Array = dims("feature", reduce="min")

A record checks its shapes when it is made. `combine` reduces two records of neighbouring
blocks of rows field by field, left block first, so a reduction is data: every field says
how it reduces. A trailing underscore marks a second axis over the same dim
(`feature feature_`). Records nest, and a field of `parts` holds a tuple of records. `pack`
and `unpack` turn a record into a JSON-able outline and a flat dict of arrays, and back; nothing
is ever pickled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Named = dict[str, tuple[tuple[str, ...], Array]]
"""Arrays with their dims by name, for a result."""
Reduction = Literal["sum", "min", "concat", "same"]
T = TypeVar("T")

_KINDS: dict[str, type[Any]] = {}
_LAYOUTS: dict[type[Any], dict[str, tuple[str, ...]]] = {}
_REDUCE: dict[str, Callable[[Array, Array, int], Array]] = {
    "sum": lambda a, b, axis: np.add(a, b, dtype=_exact(a, b)),
    "min": lambda a, b, axis: np.minimum(a, b),
    "concat": lambda a, b, axis: np.concatenate([a, b], axis=axis),
    "same": lambda a, b, axis: a,
}


Joining = Literal["each", "join"]


def parts(reduce: Joining = "each") -> Any:
    """Declare a field that is a tuple of records: two of them are reduced one by one, or joined."""
    return dataclasses.field(metadata={"parts": reduce})


def dims(names: str = "", *, reduce: Reduction = "sum", along: str = "row") -> Any:
    """Declare an array field by its dims; `along` names the dim a `concat` field grows in."""
    return dataclasses.field(metadata={"dims": tuple(names.split()), "reduce": reduce, "along": along})


@dataclass_transform(frozen_default=True, field_specifiers=(dims, parts))
def struct(cls: type[T]) -> type[T]:
    """Make a frozen record; fields are arrays declared with `dims`, or other records."""
    cls.__post_init__ = _check  # type: ignore[attr-defined]  # the generated __init__ calls only what it sees
    made: Any = dataclasses.dataclass(frozen=True, eq=False)(cls)
    known = _KINDS.setdefault(made.__name__, made)
    if known.__module__ != made.__module__:
        raise TypeError(f"there is a record {made.__name__} in {known.__module__} already")
    _KINDS[made.__name__] = made
    _LAYOUTS[made] = {f.name: f.metadata["dims"] for f in dataclasses.fields(made) if "dims" in f.metadata}
    return made  # type: ignore[no-any-return]


def is_struct(value: object) -> bool:
    return type(value).__name__ in _KINDS and dataclasses.is_dataclass(value)


def dims_of(record: Any) -> dict[str, tuple[str, ...]]:
    """Dims of each array field of a record (nested records are left out)."""
    return _LAYOUTS[type(record)]


def combine(left: T, right: T, *, reuse: bool = False) -> T:
    """Reduce two records of adjoining row blocks, the earlier block on the left.

    With `reuse` sums are made in the arrays of the left one, which is lost.
    """
    made: dict[str, Any] = {}
    for f in dataclasses.fields(left):  # type: ignore[arg-type]
        a, b = getattr(left, f.name), getattr(right, f.name)
        if "parts" in f.metadata:
            joined = f.metadata["parts"] == "join"
            made[f.name] = a + b if joined else _each(a, b, reuse)
            continue
        if "dims" not in f.metadata:
            made[f.name] = combine(a, b, reuse=reuse)
            continue
        if reuse and f.metadata["reduce"] == "sum" and a.ndim and a.dtype == _exact(a, b):
            made[f.name] = np.add(a, b, out=a)
            continue
        axis = f.metadata["dims"].index(f.metadata["along"]) if f.metadata["reduce"] == "concat" else 0
        made[f.name] = _REDUCE[f.metadata["reduce"]](a, b, axis)
    return type(left)(**made)


def _exact(a: Array, b: Array) -> np.dtype[Any]:
    """The type of a sum: that of float32 is float64."""
    found = np.result_type(a, b)
    return np.dtype(np.float64) if found == np.float32 else found


def _each(left: tuple[Any, ...], right: tuple[Any, ...], reuse: bool) -> tuple[Any, ...]:
    return tuple(combine(a, b, reuse=reuse) for a, b in zip(left, right, strict=True))


def replace(record: T, **changes: Any) -> T:
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


def pack(record: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Outline (kinds by field, JSON-able) and arrays (by dotted name) of a record."""
    kind = type(record)
    outline: dict[str, Any] = {"kind": kind.__name__, "module": kind.__module__, "records": {}}
    arrays: dict[str, Array] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if "dims" in f.metadata:
            arrays[f.name] = np.asarray(value)
            continue
        if "parts" in f.metadata:
            outline["records"][f.name] = [
                _packed(one, f"{f.name}.{i}", arrays) for i, one in enumerate(value)
            ]
        else:
            outline["records"][f.name] = _packed(value, f.name, arrays)
    return outline, arrays


def _packed(value: Any, prefix: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Outline of a nested record, whose arrays are added under a prefix."""
    inner, held = pack(value)
    arrays.update({f"{prefix}.{name}": a for name, a in held.items()})
    return inner


def unpack(outline: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    """The record that `pack` took apart; only modules of this package are imported for it."""
    if outline["kind"] not in _KINDS and str(outline.get("module", "")).startswith("ibpdist."):
        import_module(outline["module"])
    kind = _KINDS[outline["kind"]]
    fields: dict[str, Any] = {name: a for name, a in arrays.items() if "." not in name}
    for name, inner in outline["records"].items():
        if isinstance(inner, list):
            fields[name] = tuple(unpack(one, _under(f"{name}.{i}.", arrays)) for i, one in enumerate(inner))
        else:
            fields[name] = unpack(inner, _under(f"{name}.", arrays))
    return kind(**fields)


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def _check(self: Any) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    kind = type(self).__name__
    for name, named in _LAYOUTS[type(self)].items():
        value = np.asarray(getattr(self, name))
        object.__setattr__(self, name, value)
        if value.ndim != len(named):
            raise ValueError(f"{kind}.{name} has shape {value.shape}, expected dims {named}")
        for dim, size in zip(named, value.shape, strict=True):
            known, first = sizes.setdefault(dim.rstrip("_"), (size, name))
            if known != size:
                raise ValueError(f"{kind}.{name}: {dim} is {size}, but {known} in {first}")
