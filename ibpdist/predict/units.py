"""Units of a fit: what was done to its data when they were stored is done to new rows as well.

A result says what that was: flags in the attribute `transform`, and where columns were centred or scaled
the numbers `center` and `scale` (column) in the group /transform. Results made before have no such
attribute. The attribute `centred_by_fit` says that the data were not centred when they were stored: columns
were far from zero, so the fit did it (data/centring.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data._base import Chunk, Source
from ibpdist.data.centring import Centred, done_to, far_behind, rescaled, with_center
from ibpdist.data.transform import Transform, Vector
from ibpdist.data.wrapped import Wrapped

ATTRIBUTE = GROUP = "transform"
BY_FIT = "centred_by_fit"
NUMBERS = ("center", "scale")


class Transformed(Wrapped):
    """Rows in the units of a fit, with the fingerprint of what was given."""

    def __init__(self, source: Source, done: Transform, name: str | None) -> None:
        super().__init__(source)
        self._done, self._name = done, name

    def read(self, index: int) -> Chunk:
        chunk = self.source.read(index)
        x = self._done.apply(chunk.x, start=chunk.start, file=self._name).astype(self.dtype)
        if chunk.observed is not None:
            x[~chunk.observed] = 0
        return Chunk(index, chunk.start, x, chunk.observed)


@dataclass(frozen=True)
class BackUnits:
    """Takes values in the units of a fit back: what was done to its data, `fit`, is undone.

    `given` was done to the rows at hand when they were stored. With `stored` values are in the units of
    these rows as they are stored, otherwise in those of what they were made of.
    """

    fit: Transform
    given: Transform
    stored: bool = False

    @property
    def log1p(self) -> bool:
        """Whether a logarithm is undone."""
        return self.fit.log1p and not self._as_stored

    @property
    def _as_stored(self) -> bool:
        return self.stored and not self.given.is_identity

    def observed(self, x: NDArray[Any]) -> NDArray[Any]:
        """Rows at hand: as they are where they are stored in these units."""
        return x if self._as_stored else self.given.undo(x) if not self.given.is_identity else x

    def values(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of cells. Those of counts are not negative."""
        linear = self._linear(x)
        return np.maximum(np.expm1(linear), 0.0) if self.log1p else linear

    def deviations(self, mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard deviations of cells that are normal in the units of the fit."""
        spread = sd if self.fit.scale is None else sd * self.fit.scale
        if self._as_stored and self.given.scale is not None:
            spread = spread / self.given.scale
        if not self.log1p:
            return spread
        square = np.square(spread)
        made: NDArray[np.float64] = np.exp(self._linear(mean) + square / 2) * np.sqrt(np.expm1(square))
        return made

    def _linear(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        values = replace(self.fit, log1p=False).undo(x)
        if not self._as_stored:
            return values
        made: NDArray[np.float64] = replace(self.given, log1p=False).apply(values)
        return made


def back_units(result: xr.DataTree, source: Source, stored: bool = False) -> BackUnits:
    """The way from the units of a fit to those of the rows of a source."""
    ours, theirs = recorded(result), done_to(source)
    return BackUnits(theirs if ours is None else ours, theirs, stored or ours is None)


def numbers(done: Transform) -> dict[str, Vector]:
    """The numbers of a transform by name, those that it has."""
    held = {name: getattr(done, name) for name in NUMBERS}
    return {name: values for name, values in held.items() if values is not None}


def described(done: Transform, labels: Mapping[str, Any]) -> dict[str, xr.Dataset]:
    """The group of a result that holds the numbers, unless there are none."""
    held = {name: ("column", values) for name, values in numbers(done).items()}
    return {GROUP: xr.Dataset(held, labels)} if held else {}


def attributes(source: Source) -> dict[str, Any]:
    """The attributes of a result that say what was done to its data."""
    said: dict[str, Any] = {ATTRIBUTE: json.dumps(done_to(source).attributes())}
    return said | {BY_FIT: True} if isinstance(source, Centred) else said


def recorded(result: xr.DataTree) -> Transform | None:
    """What was done to the data of a fit; None when the result does not say."""
    if ATTRIBUTE not in result.attrs:
        return None
    done = json.loads(result.attrs[ATTRIBUTE])
    held = {name: np.asarray(result[GROUP][name].values) for name in NUMBERS if done[name]}
    return Transform(bool(done["log1p"]), **held)


def centred_by_fit(result: xr.DataTree) -> bool:
    """Whether a fit took off the means of columns that were not centred when its data were stored."""
    return bool(result.attrs.get(BY_FIT, False))


def centred_alike(result: xr.DataTree, source: Source) -> Source:
    """The data of a fit that begins with the features of a result: where it centres them, by what was taken
    off the data of the result, unless that leaves them far from zero."""
    theirs = recorded(result)
    if not isinstance(source, Centred) or theirs is None or theirs.center is None:
        return source
    alike = _same(replace(theirs, center=None), replace(source.done, center=None))
    served = alike and len(theirs.center) == source.columns and not far_behind(source, theirs.center).any()
    return with_center(source, theirs.center) if served else source


def in_units_of(result: xr.DataTree, source: Source, name: str | None) -> Source:
    """A source of raw rows transformed as the data of the fit were, one that was transformed so as it is;
    any other is refused."""
    ours, theirs = recorded(result), done_to(source)
    if ours is None or _same(ours, theirs):
        return source
    if theirs.is_identity:
        return Transformed(source, ours, name)
    stored = replace(ours, center=None) if centred_by_fit(result) else ours
    if ours.center is not None and _same(stored, theirs):
        return Transformed(source, Transform(center=rescaled(ours.center, ours)), name)
    unlike = "other numbers" if stored.attributes() == theirs.attributes() else _flags(stored)
    raise InputError(
        f"was ingested with {_flags(theirs)}, the data of the fit with {unlike}: ingest it without, so that "
        "what was done to the data of the fit is done to it",
        file=name or "the data",
        kind="transform",
    )


def _same(one: Transform, other: Transform) -> bool:
    a, b = numbers(one), numbers(other)
    return one.attributes() == other.attributes() and all(np.array_equal(a[name], b[name]) for name in a)


def _flags(done: Transform) -> str:
    return (
        " ".join(f"--{name}" for name, given in done.attributes().items() if given) or "nothing of the kind"
    )
