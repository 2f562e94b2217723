"""Columns that are far from zero: a fit sees their values centred, since sums of them as they are cancel.

What a model says of a row is a difference of sums of squares. Behind an offset of s standard deviations
those are s^2 times as large as what is left, and single precision holds seven digits (linear-gaussian.md
11). So where a column lies far from zero the mean of every column is taken off the stored values, in double
precision, before anything is made of them. Whether it does is known from the summaries of the columns,
which every dataset has: data without such columns are not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data._base import Chunk, Source
from ibpdist.data.store import Dataset
from ibpdist.data.summary import ColumnSummary, empty_summary, far
from ibpdist.data.transform import Transform, Vector, transform_of
from ibpdist.data.wrapped import Wrapped, innermost


class Centred(Wrapped):
    """A source whose values are centred. `center` (column) is in the units before any scaling, as that of
    `done` is, which says what was done to them in all.

    Its fingerprint is that of the data as they are: what is taken off follows from them.
    """

    def __init__(self, source: Source, center: Vector) -> None:
        super().__init__(source)
        self.center = center
        self.done = replace(ingested(source), center=center)
        self._taken = rescaled(center, self.done)

    def read(self, index: int) -> Chunk:
        chunk = self.source.read(index)
        x = np.empty_like(chunk.x)
        np.subtract(chunk.x, self._taken, out=x, dtype=np.float64, casting="same_kind")
        if chunk.observed is not None:
            x[~chunk.observed] = 0
        return Chunk(index, chunk.start, x, chunk.observed)


def centred(source: Source) -> Source:
    """The data as a fit sees them: those of the source, centred if columns are far from zero."""
    return with_center(source, center_of(source))


def with_center(source: Source, center: Vector | None) -> Source:
    """The data of a source with this taken off them, or nothing."""
    raw = source.source if isinstance(source, Centred) else source
    return raw if center is None else Centred(raw, np.asarray(center, dtype=np.float64))


def center_of(source: Source) -> Vector | None:
    """(column) means to take off the data that a fit sees; None where no column is far from zero.

    Values that were centred at ingest stay as they are. Of a split that hides cells the means are those of
    the cells that it leaves, for which far data are read once.
    """
    if isinstance(source, Centred):
        return source.center
    done = ingested(source)
    if done.center is not None:
        return None
    whole = innermost(source)
    if whole is not source and not far(summarised(whole)).any():
        return None
    table = summarised(source)
    if not far(table).any():
        return None
    mean = np.where(table["count"] > 0, table["mean"], 0.0)
    return mean if done.scale is None else mean * done.scale


def far_behind(source: Source, center: Vector) -> NDArray[np.bool_]:
    """(column) which columns of stored data are far from zero when this is taken off them."""
    table = summarised(innermost(source))
    return far({**table, "mean": table["mean"] - rescaled(center, ingested(source))})


def summarised(source: Source) -> Mapping[str, Vector]:
    """The summary of the columns of a source: its own where it has one, otherwise all of it is read."""
    known: Any = getattr(source, "column_summary", None)
    if known is not None:
        table: Mapping[str, Vector] = known()
        return table
    total = empty_summary(source.columns)
    for index in range(source.chunks):
        total = _with_chunk(total, source.read(index))
    return total.table()


def ingested(source: Any) -> Transform:
    """What was done to the values of a source when its store was made; splits see it through."""
    whole = innermost(source)
    return transform_of(whole) if isinstance(whole, Dataset) else Transform()


def done_to(source: Any) -> Transform:
    """What was done to the values of a source, by ingest and for the fit that sees them."""
    while isinstance(source, Wrapped):
        if isinstance(source, Centred):
            return source.done
        source = source.source
    return ingested(source)


def rescaled(center: Vector, done: Transform) -> Vector:
    """(column) what is to be taken off values that were scaled, and not centred yet."""
    return center if done.scale is None else center / done.scale


def _with_chunk(total: ColumnSummary, chunk: Chunk) -> ColumnSummary:
    if chunk.observed is None:
        return total.add(chunk.x)
    return total.add(np.where(chunk.observed, chunk.x, chunk.x.dtype.type(np.nan)))
