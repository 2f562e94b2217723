"""Features of new rows under the parameters of a fit, chunk by chunk and out of core.

Posterior means are averages over patterns of features, as in scores and in reconstructions
(predict/reconstruct.py). The mean-field estimate is that of the row step of the fit (mean_field.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Count
from ibpdist.catalog import systems
from ibpdist.data._base import Source
from ibpdist.data.output_path import refuse_place
from ibpdist.engine.place import Place
from ibpdist.evaluate import tables
from ibpdist.evaluate.counts import FoldedRows, folded_rows
from ibpdist.evaluate.fitted import (
    Run,
    column_labels,
    labels_of,
    name_of,
    of_counts,
    predictor_of,
    result_of,
    source_of,
)
from ibpdist.evaluate.mean_field import TOLERANCE, MeanField, mean_field
from ibpdist.evaluate.reconstruct import described
from ibpdist.evaluate.tables import Rows, Table
from ibpdist.inference._base import Named
from ibpdist.predict.averaged import silent
from ibpdist.predict.chunks import Shares, blocks, over_chunks
from ibpdist.predict.estimates import Sampling
from ibpdist.predict.reconstruct import Cells, Reconstructor, RowPosterior
from ibpdist.predict.units import BackUnits, back_units, in_units_of
from ibpdist.runs import variables

ESTIMATES = ("posterior", "mean-field")
"""Posterior means, or the row step of the fit, which is faster and says nothing of cells."""
MARKER = "z/zarr.json"
"""File by which a store of features is known."""
ROW, CELL = ("row", "feature"), ("row", "column")


@dataclass(frozen=True)
class PosteriorMeans:
    """Rows in the units of a fit, what it says of them, and the way back to their own units."""

    source: Source
    of: Reconstructor
    back: BackUnits

    @property
    def words(self) -> str:
        return self.of.words

    def rows(self, index: int, tick: Callable[[float], None] = silent) -> Rows:
        """Features and cells of the rows of a chunk; `tick` is called with the share of them that is done."""
        chunk, parts = self.source.read(index), []
        for part, x, visible in blocks(chunk, tick):
            parts.append(self._named(*self.of.posterior(x, visible, chunk.start + part.start)))
        held: Named = {
            name: (dims, np.concatenate([part[name][1] for part in parts]))
            for name, (dims, _) in parts[0].items()
        }
        return Rows(chunk.start, held, self.source.row_coords(index))

    def _named(self, rows: RowPosterior, cells: Cells) -> Named:
        """By name, in the precision of the data."""
        of, sd = self.of.predictor, np.sqrt(cells.variance)
        found: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {"z": (ROW, rows.z)}
        if of.weights.has_weights:
            found["w"] = (ROW, rows.w)
        if of.freedom is not None:
            found["precision"] = (("row",), rows.precision)
        found["mean"] = (CELL, self.back.values(cells.mean))
        found["sd"] = (CELL, self.back.deviations(cells.mean, sd))
        return {name: (dims, values.astype(self.source.dtype)) for name, (dims, values) in found.items()}


def transform(
    run: Run,
    data: object,
    out: str | Path | None = None,
    *,
    estimate: str = "posterior",
    overwrite: bool = False,
    chains: int = 8,
    draws: int = 5,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    progress: Count | None = None,
) -> xr.Dataset:
    """Features of new rows given the cells that are observed, and what the fit expects of all cells.

    Posterior means: `z` (row, feature), the probability that the row has the feature; `w`, the mean of its
    weight if it has it, so that z w is the mean of the product; `precision` (row) where the fit has row
    noise; `mean` and `sd` (row, column) of every cell, as `reconstruct` has them. They are averages over
    all patterns of features, or over `chains` annealed chains of `draws` each where there are too many.
    With `estimate="mean-field"` z, w and precision are found by the row step of the fit, repeated until no
    entry changes by `tolerance`: faster, and one pattern where several explain a row. Of a sampler the
    features are those of the draw in its `params`. Of counts z and w are found by the row step with either
    estimate: z w are the tokens that a row is expected to have of a feature, and z w times `mean` of the fit
    those of each word.

    Data that were ingested raw, and arrays, are centred and scaled as those of the fit were; cells are in the
    units of what was ingested. Features are those of the result, in its order. With `out` they are written
    to a Zarr store, chunk by chunk, and read from there when they are used. `workers` are threads.
    """
    if estimate not in ESTIMATES:
        raise UsageError(f"estimate is {estimate!r}: expected {' or '.join(ESTIMATES)}")
    place = Place(workers, serial, scheduler)
    if out is not None:
        refuse_place(out, run, data)
    result = result_of(run)
    columns = int(result["params"].sizes["column"])
    given = source_of(data, columns, labels_of(result), of_counts(result))
    source, back = in_units_of(result, given, name_of(data)), back_units(result, given)
    work: PosteriorMeans | MeanField | FoldedRows
    if systems.of_result(result.attrs).counts:
        work = folded_rows(result, source)
    elif estimate == "posterior":
        work = PosteriorMeans(
            source, Reconstructor(predictor_of(result), Sampling(chains, draws, seed)), back
        )
    else:
        work = mean_field(result, source, tolerance)
    attributes = {"estimate": estimate, "method": work.words, **_attributes(result, source)}
    table = Table(MARKER, attributes, _described(back), column_labels(result, source))
    told, threads = Shares(source, progress), place.threads(source)
    parts = over_chunks(lambda index: work.rows(index, partial(told.tell, index)), source.chunks, threads)
    with closing(parts):
        if out is None:
            return tables.in_memory(list(parts), table)
        tables.write(Path(out), parts, source, table, overwrite)
    written: xr.Dataset = xr.open_zarr(out)
    return written


def _described(back: BackUnits) -> Mapping[str, Mapping[str, str]]:
    """Attributes of the variables."""
    rows = {variable.name: variable.attributes() for variable in variables.ROWS.variables}
    return {**described(back), **rows}


def _attributes(result: xr.DataTree, source: Source) -> dict[str, Any]:
    return {
        "schema": "ibpdist.features/1",
        "system": str(result.attrs["system"]),
        "fit_fingerprint": str(result.attrs["fingerprint"]),
        "data_fingerprint": source.fingerprint,
    }
