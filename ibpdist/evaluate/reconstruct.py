"""Hidden cells of rows filled in by a fit, with what it expects of every cell, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.base.progress import Count
from ibpdist.data._base import Source
from ibpdist.data.output_path import refuse_place
from ibpdist.data.splits import HeldCells, Split, as_split
from ibpdist.data.wrapped import innermost
from ibpdist.engine.place import Place
from ibpdist.evaluate import tables
from ibpdist.evaluate.fitted import (
    Run,
    column_labels,
    labels_of,
    name_of,
    predictors_of,
    result_of,
    source_of,
    spec_of,
)
from ibpdist.evaluate.tables import Rows, Table
from ibpdist.inference._base import Named
from ibpdist.predict.averaged import silent
from ibpdist.predict.chunks import Shares, blocks, over_chunks
from ibpdist.predict.estimates import Sampling
from ibpdist.predict.reconstruct import Cells, Mixture, reconstructor
from ibpdist.predict.units import BackUnits, back_units, in_units_of

UNITS = ("source", "stored")
"""Units of what was ingested, or those of the dataset, which `ingest` may have centred and scaled."""
MARKER = "hidden/zarr.json"
"""File by which a store of reconstructed rows is known."""
NORMAL_95 = 1.959963984540054
"""Standard deviations on either side of the mean of a normal that hold 95 % of it."""

SENTENCES = {
    "x": "observed cells as they are, hidden cells filled with mean",
    "mean": "posterior mean of the cell without its noise, the intercept included",
    "sd": "predictive standard deviation of a new measurement of the cell: that of its features, their "
    "weights, the dictionary, the intercept and the noise",
    "low": "lower end of the 95 % predictive interval, normal approximation: mean - 1.96 sd",
    "high": "upper end of the 95 % predictive interval, normal approximation: mean + 1.96 sd",
    "hidden": "cells that are missing, or were held out of the fit",
}
LOGGED = {
    "x": "observed cells as they are, hidden cells filled with mean, a median of x",
    "mean": "posterior mean of log(1 + x) without its noise, taken back: a median of x, at least 0",
    "sd": "predictive standard deviation of a new measurement of the cell, with a log-normal 1 + x",
    "low": "lower end of the 95 % predictive interval, a quantile of x: mean - 1.96 sd of log(1 + x), taken "
    "back; at least 0",
    "high": "upper end of the 95 % predictive interval, a quantile of x: mean + 1.96 sd of log(1 + x), taken "
    "back; at least 0",
}
"""What differs where the logarithm that `ingest --log1p` took is undone."""


@dataclass(frozen=True)
class Given:
    """Rows to reconstruct: `source` as they are, and `seen`, in the units of the fit and without the cells
    that are held out of it."""

    source: Source
    seen: Source


@dataclass(frozen=True)
class Reconstruction:
    """What a fit says of rows in the units that are asked for."""

    of: Mixture
    given: Given
    back: BackUnits

    def rows(self, index: int, tick: Callable[[float], None] = silent) -> Rows:
        """The rows of a chunk; `tick` is called with the share of them that is done."""
        source, seen = self.given.source, self.given.seen
        chunk = source.read(index)
        fitted = chunk if seen is source else seen.read(index)
        names = ("x", "mean", "sd", "low", "high")
        made: dict[str, NDArray[Any]] = {name: np.empty(chunk.x.shape, source.dtype) for name in names}
        made["hidden"] = np.empty(chunk.x.shape, bool)
        for part, x, visible in blocks(fitted, tick):
            cells = self.of(x, visible, chunk.start + part.start)
            for name, values in self._values(cells).items():
                made[name][part] = values
            observed = self.back.observed(chunk.x[part])
            made["x"][part] = np.where(visible, observed, made["mean"][part])
            made["hidden"][part] = ~visible
        held: Named = {name: (("row", "column"), values) for name, values in made.items()}
        return Rows(chunk.start, held, source.row_coords(index))

    def _values(self, cells: Cells) -> dict[str, NDArray[np.float64]]:
        """Variables of cells in the units that are asked for."""
        sd = np.sqrt(cells.variance)
        return {
            "mean": self.back.values(cells.mean),
            "sd": self.back.deviations(cells.mean, sd),
            "low": self.back.values(cells.mean - NORMAL_95 * sd),
            "high": self.back.values(cells.mean + NORMAL_95 * sd),
        }


def described(back: BackUnits) -> dict[str, dict[str, str]]:
    """Attributes of the variables of cells in these units."""
    sentences = SENTENCES | LOGGED if back.log1p else SENTENCES
    return {name: {"long_name": sentence} for name, sentence in sentences.items()}


def reconstruct(
    run: Run,
    data: object = None,
    out: str | Path | None = None,
    *,
    overwrite: bool = False,
    units: str = "source",
    chains: int = 8,
    draws: int = 5,
    seed: int = 0,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    progress: Count | None = None,
) -> xr.Dataset:
    """Fill in the hidden cells of the rows of a fit, or of new rows: of each cell `x`, as it was observed or
    filled in, its posterior `mean`, predictive `sd` and 95 % interval `low` to `high`, and whether it was
    `hidden` (row, column).

    Without `data` the rows are those of the fit; cells that are missing and cells held out of the fit are
    hidden. Rows are in the units of what was ingested; with `units="stored"` in those of the dataset, if it
    was centred, scaled or logged when it was made. `chains` and `draws` (of each chain) serve where there are
    too many patterns of features to enumerate. With `out` the rows are written to a Zarr store, chunk by
    chunk, and read from there when they are used. `workers` are threads.
    """
    if units not in UNITS:
        raise UsageError(f"units is {units!r}: expected source or stored")
    place, result = Place(workers, serial, scheduler), result_of(run)
    if out is not None:
        refuse_place(out, run, spec_of(result).data if data is None else data)
    given = _own(result) if data is None else _new(result, data)
    of = reconstructor(predictors_of(result), Sampling(chains, draws, seed))
    work = Reconstruction(of, given, back_units(result, given.source, units == "stored"))
    columns = column_labels(result, given.source)
    table = Table(MARKER, _attributes(result, given.source, of), described(work.back), columns)
    told, threads = Shares(given.source, progress), place.threads(given.source)
    parts = over_chunks(lambda i: work.rows(i, partial(told.tell, i)), given.source.chunks, threads)
    with closing(parts):
        if out is None:
            return tables.in_memory(list(parts), table)
        tables.write(Path(out), parts, given.source, table, overwrite)
    written: xr.Dataset = xr.open_zarr(out)
    return written


def _own(result: xr.DataTree) -> Given:
    """The rows of a fit; refused where it saw every cell."""
    spec = spec_of(result)
    if spec.data == "memory":
        raise UsageError(
            "the fit was in memory, so its data are not kept: pass them with --data (in Python: data=...)"
        )
    source = _source(result, spec.data)
    split = as_split(spec.holdout) if spec.holdout else None
    seen = in_units_of(result, source, spec.data)
    if not _is_of_fit(result, seen, split):
        reason = (
            "these are not the data of the fit any more: their fingerprints differ; fit again, or pass "
            "them as new rows with --data (in Python: data=...)"
        )
        raise InputError(reason, file=spec.data)
    if isinstance(split, HeldCells):
        return Given(source, split.train(seen))
    if getattr(innermost(source), "missing", None) == 0:
        raise UsageError(
            "the fit saw every cell of its data, so nothing is hidden: "
            "pass rows with gaps with --data (in Python: data=...)"
        )
    return Given(source, seen)


def _new(result: xr.DataTree, data: object) -> Given:
    """Rows that are given; of those of the fit the cells that were held out of it are hidden."""
    source, spec = _source(result, data), spec_of(result)
    seen = in_units_of(result, source, name_of(data))
    split = as_split(spec.holdout) if spec.holdout else None
    if isinstance(split, HeldCells) and _is_of_fit(result, seen, split):
        return Given(source, split.train(seen))
    return Given(source, seen)


def _source(result: xr.DataTree, data: object) -> Source:
    return source_of(data, int(result["params"].sizes["column"]), labels_of(result))


def _is_of_fit(result: xr.DataTree, seen: Source, split: Split | None) -> bool:
    trained = seen if split is None else split.train(seen)
    return bool(trained.fingerprint == result.attrs["fingerprint"])


def _attributes(result: xr.DataTree, source: Source, of: Mixture) -> dict[str, str]:
    return {
        "schema": "ibpdist.reconstruction/1",
        "system": str(result.attrs["system"]),
        "method": of.words,
        "fit_fingerprint": str(result.attrs["fingerprint"]),
        "data_fingerprint": source.fingerprint,
    }
