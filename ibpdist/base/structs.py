"""Frozen records of arrays whose dims are part of the type.

    @struct
    class GaussianSums:
        yx: Array = dims("feature column")          # adds up over chunks
        first: Array = dims("feature", reduce="min")
        worst: Array = dims("kept column", reduce="top", along="kept", by="misfit")

A record checks its shapes when it is made. `combine` reduces two records of neighbouring
blocks of rows field by field, left block first, so a reduction is data: every field says
how it reduces. A trailing underscore marks a second axis over the same dim
(`feature feature_`). Records nest, and a field of `parts` holds a tuple of records.

A record that is stored has a tag, which stays when its class is renamed or moved:

    @struct("gaussian-params", since=1)
    class GaussianParams:
        mean: Array = dims("feature column")
        weight: Array = dims("feature", default=1.0)     # younger than some stored records

`pack` and `unpack` turn such a record into a JSON-able outline and a flat dict of arrays, and back;
nothing is ever pickled. A field that a stored record lacks takes its default, and one that this
version does not know is left out with a note.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Literal, NoReturn, TypeVar, dataclass_transform, overload

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.stored_kinds import HOMES, TAG_OF_CLASS

Array = NDArray[Any]
Named = dict[str, tuple[tuple[str, ...], Array]]
"""Arrays with their dims by name, for a result."""
Reduction = Literal["sum", "min", "concat", "same", "top"]
T = TypeVar("T")

_KINDS: dict[str, type[Any]] = {}
"""Stored records by tag."""
_SINCE: dict[type[Any], tuple[str, int]] = {}
_LAYOUTS: dict[type[Any], list[tuple[str, tuple[str, ...], tuple[str, ...]]]] = {}
"""Array fields of a record: name, dims, and dims without trailing underscores."""
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


def record(*, default: Any, kw_only: bool) -> Any:
    """Declare a field that is a record, and the one that it is where it is not given or was not stored."""
    return dataclasses.field(default=default, kw_only=kw_only)


class UnreadableRecord(ValueError):
    """A stored record that this version cannot make; the text says why."""


def dims(
    names: str = "",
    *,
    reduce: Reduction = "sum",
    along: str = "row",
    by: str = "",
    default: float | None = None,
) -> Any:
    """Declare an array field by its dims; `along` names the dim a `concat` field grows in.

    A `top` field keeps, along that dim, as many entries as the left record has: those with the largest
    values of the field `by`, largest first, of equal ones the earlier. Records that are combined hold
    equally many, in this order, filled up with entries whose value is -inf where there are fewer.
    `default` fills the field of a record that was stored before the field existed.
    """
    facts = {"dims": tuple(names.split()), "reduce": reduce, "along": along, "by": by, "default": default}
    return dataclasses.field(metadata=facts)


@overload
def struct(tag: type[T], /) -> type[T]: ...
@overload
def struct(tag: str, /, *, since: int) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dims, parts, record))
def struct(tag: Any, /, *, since: int = 0) -> Any:
    """Make a frozen record; fields are arrays declared with `dims`, or other records.

    With a tag it can be stored. `since` counts its layouts: it rises when a stored field changes its
    meaning, so that older versions refuse what they would misread.
    """
    if isinstance(tag, type):
        return _made(tag)

    def stored(cls: type[T]) -> type[T]:
        made = _made(cls)
        known = _KINDS.setdefault(tag, made)
        if (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):
            raise TypeError(f"the tag {tag} belongs to {known.__qualname__} in {known.__module__} already")
        _KINDS[tag], _SINCE[made] = made, (tag, since)
        return made

    return stored


def _made(cls: type[T]) -> type[T]:
    cls.__post_init__ = _check  # type: ignore[attr-defined]  # the generated __init__ calls only what it sees
    made: Any = dataclasses.dataclass(frozen=True, eq=False)(cls)
    named = {f.name: f.metadata["dims"] for f in dataclasses.fields(made) if "dims" in f.metadata}
    _LAYOUTS[made] = [(name, dims, tuple(dim.rstrip("_") for dim in dims)) for name, dims in named.items()]
    return made  # type: ignore[no-any-return]


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
        if f.metadata["reduce"] == "top":
            made[f.name] = _top(left, right, f)
            continue
        axis = f.metadata["dims"].index(f.metadata["along"]) if f.metadata["reduce"] == "concat" else 0
        made[f.name] = _REDUCE[f.metadata["reduce"]](a, b, axis)
    return type(left)(**made)


def _top(left: Any, right: Any, field: dataclasses.Field[Any]) -> Array:
    """The entries of both that are kept."""
    a, b = getattr(left, field.name), getattr(right, field.name)
    values = [getattr(one, field.metadata["by"]) for one in (left, right)]
    axis = field.metadata["dims"].index(field.metadata["along"])
    found: Array = np.concatenate([a, b], axis).take(top(np.concatenate(values), a.shape[axis]), axis)
    return found


def top(values: Array, most: int) -> NDArray[np.intp]:
    """Places of the largest values, largest first, of equal ones the earlier; at most `most`."""
    return np.argsort(-values, kind="stable")[:most]


def _exact(a: Array, b: Array) -> np.dtype[Any]:
    """The type of a sum: that of float32 is float64."""
    found = np.result_type(a, b)
    return np.dtype(np.float64) if found == np.float32 else found


def _each(left: tuple[Any, ...], right: tuple[Any, ...], reuse: bool) -> tuple[Any, ...]:
    return tuple(combine(a, b, reuse=reuse) for a, b in zip(left, right, strict=True))


def replace(record: T, **changes: Any) -> T:
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


def arrays_of(record: Any) -> dict[str, Array]:
    """Arrays of a record and of those in it, by dotted name."""
    arrays: dict[str, Array] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if "dims" in f.metadata:
            arrays[f.name] = np.asarray(value)
            continue
        for prefix, one in _records_of(f, value):
            arrays.update({f"{prefix}.{name}": held for name, held in arrays_of(one).items()})
    return arrays


def pack(record: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Outline (tags by field, JSON-able) and arrays (by dotted name) of a record."""
    return _outline(record), arrays_of(record)


def _outline(record: Any) -> dict[str, Any]:
    if type(record) not in _SINCE:
        raise TypeError(f"{type(record).__qualname__} cannot be stored: it has no tag")
    tag, since = _SINCE[type(record)]
    inner: dict[str, Any] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if "parts" in f.metadata:
            inner[f.name] = [_outline(one) for one in value]
        elif "dims" not in f.metadata:
            inner[f.name] = _outline(value)
    return {"tag": tag, "since": since, "records": inner}


def _records_of(field: dataclasses.Field[Any], value: Any) -> Iterator[tuple[str, Any]]:
    """Records in a field with the prefixes of the names of their arrays."""
    if "parts" in field.metadata:
        yield from ((f"{field.name}.{i}", one) for i, one in enumerate(value))
    else:
        yield field.name, value


def unpack(outline: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    """The record that `pack` took apart, in this or another version; UnreadableRecord when that cannot be."""
    kind, tag = _kind(outline)
    fields: dict[str, Any] = {name: a for name, a in arrays.items() if "." not in name}
    for name, inner in outline["records"].items():
        if isinstance(inner, list):
            fields[name] = tuple(unpack(one, _under(f"{name}.{i}.", arrays)) for i, one in enumerate(inner))
        else:
            fields[name] = unpack(inner, _under(f"{name}.", arrays))
    known = {f.name: f for f in dataclasses.fields(kind)}
    unknown = ", ".join(name for name in sorted(fields.keys() - known.keys()) if np.any(fields[name]))
    if unknown:
        warnings.warn(f"ignoring {unknown} of {tag}, which this version does not know", stacklevel=2)
    held = fields.keys() & known.keys()
    sizes = {dim: size for name in held for dim, size in _sizes(known[name], fields[name])}
    lacking = [f for f in known.values() if f.name not in fields and f.default is dataclasses.MISSING]
    missing = {f.name: _default(tag, f, sizes) for f in lacking}
    return kind(**{name: value for name, value in fields.items() if name in known}, **missing)


def _kind(outline: Mapping[str, Any]) -> tuple[type[Any], str]:
    """The record that an outline is of, with its tag. The first format named the class instead."""
    tag = outline["tag"] if "tag" in outline else TAG_OF_CLASS.get(outline["kind"], outline["kind"])
    if tag not in _KINDS and tag in HOMES:
        import_module(HOMES[tag])
    if tag not in _KINDS:
        raise UnreadableRecord(f"holds a record of the kind {tag!r}, which this version does not know")
    kind = _KINDS[tag]
    if outline.get("since", 1) > _SINCE[kind][1]:
        raise UnreadableRecord(f"holds a record {tag!r} of a newer version: update ibpdist")
    return kind, tag


def _sizes(field: dataclasses.Field[Any], value: Any) -> Iterator[tuple[str, int]]:
    return zip(field.metadata.get("dims", ()), np.shape(value), strict=False)


def _default(tag: str, field: dataclasses.Field[Any], sizes: Mapping[str, int]) -> Array:
    """What fills a field that a stored record lacks."""
    value, named = field.metadata.get("default"), field.metadata.get("dims", ())
    if value is None or not set(named) <= sizes.keys():
        raise UnreadableRecord(
            f"holds a record {tag!r} without {field.name!r}, which this version needs: fit again, or use the "
            "version that wrote it"
        )
    return np.full([sizes[dim] for dim in named], value)


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def _check(self: Any) -> None:
    """Make arrays of the fields and compare their sizes; records are made often, so this is short."""
    held = self.__dict__
    sizes: dict[str, int] = {}
    for name, named, dims in _LAYOUTS[type(self)]:
        value = held[name]
        if type(value) is not np.ndarray:
            value = np.asarray(value)
            object.__setattr__(self, name, value)
        if len(value.shape) != len(dims):
            kind = type(self).__name__
            raise ValueError(f"{kind}.{name} has shape {value.shape}, expected dims {named}")
        for dim, size in zip(dims, value.shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                _refuse_size(self, name, dim)


def _refuse_size(self: Any, wrong: str, dim: str) -> NoReturn:
    """Say which two fields disagree."""
    found = [
        (name, named[i], getattr(self, name).shape[i])
        for name, named, dims in _LAYOUTS[type(self)]
        for i in range(len(dims))
        if dims[i] == dim
    ]
    first, _, known = found[0]
    named, size = next((named, size) for name, named, size in found if name == wrong and size != known)
    raise ValueError(f"{type(self).__name__}.{wrong}: {named} is {size}, but {known} in {first}")


@struct("nothing", since=1)
class Nothing:
    """Stands where there is no record."""


NOTHING = Nothing()
