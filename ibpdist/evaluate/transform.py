"""Features of new rows under the parameters of a fit, chunk by chunk and out of core.

The local step of the algorithm is repeated with the parameters fixed, from where a fit with such
parameters would start its rows (hot, so that they do not stay where they happen to start), until
no entry changes any more. Samplers give the mean of their draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, count, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.progress import Count
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.catalog import systems
from ibpdist.data._base import Chunk, Source
from ibpdist.data.output_path import refuse_place
from ibpdist.engine.place import Place
from ibpdist.evaluate import tables
from ibpdist.evaluate.fitted import Run, result_of, rows_for, spec_of
from ibpdist.evaluate.tables import Rows, Table
from ibpdist.inference._base import Named, RowInference
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import AnyModelParams
from ibpdist.inference.in_turn.sequential import Sequential
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.capabilities import Grouped
from ibpdist.model.observations.row_noise import RowPrecision
from ibpdist.predict.chunks import over_chunks

TOLERANCE = 1e-5
LIMIT = 500
"""Most passes over a chunk."""

_INNER = 4
_BURN, _KEEP = 20, 100
MARKER = "z/zarr.json"
"""File by which a store of features is known."""


@dataclass(frozen=True)
class Inference:
    """An algorithm with the parameters of a fit."""

    algorithm: RowInference
    params: AnyModelParams
    seed: int = 0
    tolerance: float = TOLERANCE

    def rows(self, source: Source, index: int) -> Rows:
        """z (and w) of the rows of a chunk."""
        chunk = source.read(index)
        parts = [
            self._named(part, replace(self.params, observation=seen)) for part, seen in self._blocks(chunk)
        ]
        joined = {name: np.concatenate([part[name][1] for part in parts], axis=-1) for name in parts[0]}
        found: Named = {
            name: (("row", "feature")[: table.ndim], np.ascontiguousarray(table.T))
            for name, table in joined.items()
        }
        return Rows(chunk.start, found, source.row_coords(index))

    def _blocks(self, chunk: Chunk) -> Iterator[tuple[Chunk, Any]]:
        """Rows with the parameters of the observation for the cells that they miss."""
        observation, params = self.algorithm.model.observation, self.params.observation
        if isinstance(observation, Grouped):
            return observation.per_row_params(params, chunk)
        return iter([(chunk, params)])

    def _named(self, chunk: Chunk, params: AnyModelParams) -> Named:
        state = self.algorithm.start(chunk, params, Draws(self.seed))
        steps = accumulate(
            count(1),
            lambda now, step: self.algorithm.local(chunk, now, params, Draws(self.seed, step))[0],
            initial=state,
        )
        ended = self._converged(steps) if self.algorithm.monotone() else _mean(steps)
        return self.algorithm.describe_rows(ended, params)

    def _converged(self, steps: Iterator[RowState]) -> RowState:
        for before, now in islice(pairwise(steps), LIMIT):
            if _change(before, now) < self.tolerance:
                break
        return now


def transform(
    run: Run,
    data: object,
    out: str | Path | None = None,
    *,
    overwrite: bool = False,
    tolerance: float = TOLERANCE,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    progress: Count | None = None,
) -> xr.Dataset:
    """z (row, feature) of new rows (E z, or the share of draws), and w where rows have weights.

    Data that were ingested raw, and arrays, are centred and scaled as those of the fit were.
    Features are those of the result, in its order. With `out` they are written to a Zarr store,
    chunk by chunk, and read from there when they are used. `workers` are threads.
    """
    place = Place(workers, serial, scheduler)
    if out is not None:
        refuse_place(out, run, data)
    result = result_of(run)
    source = rows_for(result, data)
    inference, table = inference_of(result, tolerance), Table(MARKER, _attributes(result, source))
    threads = place.threads(source)
    parts = over_chunks(lambda index: inference.rows(source, index), source.chunks, threads)
    with closing(parts):
        found = tables.counted(parts, source.rows, progress)
        if out is None:
            return tables.in_memory(list(found), table)
        tables.write(Path(out), found, source, table, overwrite)
    written: xr.Dataset = xr.open_zarr(out)
    return written


def inference_of(result: xr.DataTree, tolerance: float = TOLERANCE) -> Inference:
    """The algorithm of a result with its parameters."""
    from ibpdist.runs.layout import state_of

    spec = spec_of(result)
    built = systems.build(spec.system, int(result.attrs["truncation"]), inner=_INNER, settings=spec.set)
    if isinstance(built, Sequential):
        algorithm: RowInference = Coordinate(built.model, 1, _INNER)
    else:
        algorithm = built.row_inference()
    return Inference(algorithm, state_of(result), spec.seed, tolerance)


def _mean(steps: Iterator[RowState]) -> RowState:
    """Mean of z and of precisions over draws, and of w over the draws that have the feature."""
    state = next(steps)
    z, y, precision = np.zeros(state.z.shape), np.zeros(state.w.shape), np.zeros(state.z.shape[1])
    for drawn in islice(steps, _BURN, _BURN + _KEEP):
        z += drawn.z
        y += drawn.z * drawn.w if drawn.w.size else 0
        precision += 0 if isinstance(drawn.precision, Nothing) else drawn.precision.mean
    w = np.divide(y, z, out=np.zeros_like(y), where=z > 0) if y.size else y
    own = NOTHING if isinstance(drawn.precision, Nothing) else RowPrecision(precision / _KEEP)
    return replace(drawn, z=(z / _KEEP).astype(state.z.dtype), w=w.astype(state.w.dtype), precision=own)


def _change(before: RowState, now: RowState) -> float:
    """Largest change of an entry of z, or of z w as a share of the largest w."""
    if not now.z.size:
        return 0.0
    change = float(np.abs(now.z - before.z).max())
    if not now.w.size:
        return change
    largest = max(float(np.abs(now.w).max()), 1.0)
    return max(change, float(np.abs(now.z * now.w - before.z * before.w).max()) / largest)


def _attributes(result: xr.DataTree, source: Source) -> dict[str, Any]:
    return {
        "schema": "ibpdist.features/1",
        "system": str(result.attrs["system"]),
        "fit_fingerprint": str(result.attrs["fingerprint"]),
        "data_fingerprint": source.fingerprint,
    }
