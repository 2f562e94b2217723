"""Draws of chains that are kept: put in files as they come, made into arrays of the result at the end.

    draws/FIRST-LAST.rec    the draws of these steps, of every chain; written before each checkpoint

The number of features changes from draw to draw. In the result the features of a draw, by falling
prevalence, are in places 0, 1, ... of `place`, and what is beyond is NaN: places of different
draws are not the same feature until they are matched (evaluate/posterior.py).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain as chained
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from ibpdist.base.structs import Array, Named, arrays_of, dims, struct
from ibpdist.engine._base import Engine
from ibpdist.inference.stopping import AnySnapshot
from ibpdist.runs import variables
from ibpdist.runs.rows import in_memory
from ibpdist.storage import records
from ibpdist.storage.codec import zarr_codecs

HELD = 32 << 20
"""Bytes of draws that are held before they are written."""
ROWS_KEPT = 1 << 28
"""Entries of z of all draws up to which they are kept too."""
BLOCK = 1 << 20
"""Bytes of a chunk of draws, which holds at least one."""
_NAME = re.compile(r"(\d+)-(\d+)\.rec")
PLACED = ("mean", "prevalence", "chance", "id", "weight_mean", "weight_shape", "tokens")
"""What is kept of every feature of a draw."""
OPTIONAL = (
    "noise", "scale", "intercept", "weight_mean", "row_freedom", "weight_shape", "tokens", "eta",
    "concentration",
)  # fmt: skip
"""What only some models have."""


@struct("feature-draw", since=1)
class Drawn:
    """One draw of one chain; `z` (row, feature) has no rows when they are not kept. What is optional is NaN
    where the model has none."""

    mean: Array = dims("feature column")
    prevalence: Array = dims("feature")
    chance: Array = dims("feature")
    id: Array = dims("feature")
    noise: Array = dims("cell")
    scale: Array = dims("part")
    mass: Array = dims()
    z: Array = dims("row feature")
    intercept: Array = dims("column", default=np.nan)
    weight_mean: Array = dims("feature", default=np.nan)
    row_freedom: Array = dims(default=np.nan)
    weight_shape: Array = dims("feature", default=np.nan)
    tokens: Array = dims("feature", default=np.nan)
    eta: Array = dims(default=np.nan)
    concentration: Array = dims(default=np.nan)


@dataclass(frozen=True)
class Plan:
    """Which steps are kept: after `burn` every `thin`-th up to `steps`."""

    steps: int
    burn: int
    thin: int

    def kept(self) -> list[int]:
        return list(range(self.burn + self.thin, self.steps + 1, self.thin))

    def keeps(self, step: int) -> bool:
        return step > self.burn and (step - self.burn) % self.thin == 0


@dataclass
class DrawStore:
    """Keeps the draws of the chains of a run; `views` are its chains as fits of their own."""

    folder: Path
    plan: Plan
    views: Sequence[tuple[Any, Engine]]
    rows: bool
    _held: dict[str, Drawn] = field(default_factory=dict)
    _bytes: int = 0

    def begin(self, step: int) -> None:
        """Make room for the steps after `step`: what was written of them is made again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            span = _NAME.fullmatch(path.name)
            if span is None or int(span[2]) > step:
                path.unlink()

    def offer(self, now: AnySnapshot) -> None:
        """Keep the draws of a step, if the plan keeps it."""
        if not self.plan.keeps(now.step):
            return
        for chain, (algorithm, view) in enumerate(self.views):
            drawn = self._drawn(algorithm, view, now, chain)
            self._held[f"{now.step}/{chain}"] = drawn
            self._bytes += sum(array.nbytes for array in arrays_of(drawn).values())
        if self._bytes > HELD:
            self.flush()

    def flush(self) -> None:
        """Write the draws in memory."""
        if not self._held:
            return
        steps = [int(name.partition("/")[0]) for name in self._held]
        records.write(self.folder / f"{min(steps):08d}-{max(steps):08d}.rec", self._held)
        self._held, self._bytes = {}, 0

    def _drawn(self, algorithm: Any, view: Engine, now: AnySnapshot, chain: int) -> Drawn:
        named: Named = algorithm.describe(now.params.members[chain].params)
        mean = named["mean"][1]
        z = np.zeros((0, len(mean)), np.bool_)
        if self.rows:
            z = in_memory(view, now.step)[0]["z"][1] > 0.5
        return Drawn(
            mean=mean.astype(np.float32),
            z=z,
            noise=np.atleast_1d(_or_none(named, "noise", ())),
            scale=np.atleast_1d(_or_none(named, "scale", ())),
            mass=named["mass"][1],
            **{name: named[name][1] for name in ("prevalence", "chance", "id")},
            intercept=_or_none(named, "intercept", mean.shape[1:]),
            weight_mean=_or_none(named, "weight_mean", mean.shape[:1]),
            **{name: _or_none(named, name, ()) for name in ("row_freedom", "eta", "concentration")},
            **{name: _or_none(named, name, mean.shape[:1]) for name in ("weight_shape", "tokens")},
        )


def _or_none(named: Named, name: str, shape: tuple[int, ...]) -> Array:
    """Values of a draw, NaN where the model has none."""
    return np.asarray(named[name][1], np.float64) if name in named else np.full(shape, np.nan)


def read(folder: Path) -> Iterator[tuple[int, int, Drawn]]:
    """(step, chain, draw) of all that were kept, in order of the steps."""
    for path in sorted(folder.glob("*.rec")):
        for name, drawn in records.read_all(path):
            step, _, chain = name.partition("/")
            yield int(step), int(chain), drawn


def places(folder: Path) -> int:
    """The largest number of features of any draw."""
    return max((len(drawn.prevalence) for _, _, drawn in read(folder)), default=0)


def lacking(folder: Path) -> set[str]:
    """What no draw has."""
    found = set(OPTIONAL)
    for _, _, drawn in read(folder):
        found -= {name for name in found if not np.isnan(getattr(drawn, name)).all()}
    return found


def write(folder: Path, staged: Path, plan: Plan, chains: int) -> None:
    """The draws as the group `draws` of a Zarr store, one after the other."""
    kept = {step: at for at, step in enumerate(plan.kept())}
    draws = read(folder)
    first = next(draws, None)
    if first is None:
        return
    room, without = places(folder), lacking(folder)
    group = zarr.open_group(staged, mode="a").require_group("draws")
    forms = _forms(first[2], chains, len(kept), room)
    blocks = {name: _Blocks(_array(group, name, *form)) for name, form in forms if name not in without}
    for step, chain, drawn in chained((first,), draws):
        parts = _parts(drawn)
        for name, block in blocks.items():
            block.put(chain, kept[step], parts[name])
    for block in blocks.values():
        block.flush()


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _parts(drawn: Drawn) -> Mapping[str, Array]:
    """The arrays of a draw; of rows, features last."""
    names = dict.fromkeys((*PLACED, *OPTIONAL, "mass", "noise", "scale"))
    arrays = {name: np.asarray(getattr(drawn, name)) for name in names}
    arrays["noise"], arrays["scale"] = _flat(arrays["noise"]), _flat(arrays["scale"])
    return arrays | ({"z": np.asarray(drawn.z)} if drawn.z.shape[0] else {})


def _flat(values: Array) -> Array:
    """A single variance as a number."""
    return values.reshape(()) if values.size == 1 else values


def _forms(
    like: Drawn, chains: int, draws: int, room: int
) -> Iterator[tuple[str, tuple[tuple[str, ...], tuple[int, ...], np.dtype[Any]]]]:
    """Name, dims, shape and type of each array for draws such as this one."""
    for name, values in _parts(like).items():
        chain, draw, *named = variables.DRAWS[name].dims_of(2 + values.ndim)
        shape = tuple(room if dim == "place" else size for dim, size in zip(named, values.shape, strict=True))
        kind = np.dtype(np.bool_) if name == "z" else np.dtype(np.float32 if name == "mean" else np.float64)
        yield name, ((chain, draw, *named), (chains, draws, *shape), kind)


@dataclass
class _Blocks:
    """The chunk of each chain that is being filled, in memory: each is written once."""

    array: Any
    _held: dict[int, tuple[int, Array]] = field(default_factory=dict)

    def put(self, chain: int, draw: int, values: Array) -> None:
        """A draw, which fills a corner of its place; draws of a chain come in order."""
        _, each, *shape = self.array.chunks
        first = draw - draw % each
        if chain in self._held and self._held[chain][0] != first:
            self._write(chain)
        if chain not in self._held:
            some = min(each, self.array.shape[1] - first)
            empty = np.full((some, *shape), self.array.fill_value, self.array.dtype)
            self._held[chain] = first, empty
        self._held[chain][1][draw - first, *(slice(0, size) for size in values.shape)] = values

    def flush(self) -> None:
        for chain in list(self._held):
            self._write(chain)

    def _write(self, chain: int) -> None:
        first, block = self._held.pop(chain)
        # A chunk has room for a column or place where there is none.
        inside = tuple(slice(0, size) for size in self.array.shape[2:])
        self.array[chain, first : first + len(block)] = block[(slice(None), *inside)]


def _array(group: Any, name: str, named: tuple[str, ...], shape: tuple[int, ...], kind: np.dtype[Any]) -> Any:
    """An array with one chunk for some draws of a chain."""
    each = max(1, int(np.prod(shape[2:])) * kind.itemsize)
    some = max(1, min(shape[1], BLOCK // each))
    return group.create_array(
        name,
        shape=shape,
        chunks=(1, some, *(max(1, size) for size in shape[2:])),
        dtype=kind,
        compressors=zarr_codecs(kind.itemsize),
        fill_value=np.nan if kind.kind == "f" else 0,
        dimension_names=list(named),
        chunk_key_encoding={"name": "default", "separator": "."},
        config={"write_empty_chunks": True},
    )
