"""Rows whose hidden cells are drawn, for samplers on data with cells missing in no pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian_params import ScatteredParams, intercept_mean
from ibpdist.model.observations.gaussian_sums import ScatteredSums
from ibpdist.model.observations.intercept import RowTotals
from ibpdist.model.observations.row_noise import Posterior, RowNoiseSums
from ibpdist.model.observations.tiles import tile_rows

Matrix = NDArray[Any]
Float = NDArray[np.float64]


def tiles(chunk: Chunk) -> list[slice]:
    step = tile_rows(chunk.x.shape[1], chunk.x.itemsize)
    return [slice(at, min(at + step, chunk.rows)) for at in range(0, chunk.rows, step)]


def seen_of(chunk: Chunk, rows: slice) -> NDArray[np.bool_]:
    if chunk.observed is None:
        return np.ones(chunk.x[rows].shape, np.bool_)
    return chunk.observed[rows]


def precision_of(state: RowState) -> Matrix | None:
    """(row) how precise the rows are, where they have a noise of their own."""
    return None if isinstance(state.precision, Nothing) else state.precision.mean


def filled(chunk: Chunk, params: ScatteredParams, y: Matrix, precision: Matrix | None, draws: Draws) -> Chunk:
    """The chunk with its hidden cells drawn given y (feature, row), the intercept, the dictionary, the noise
    and the `precision` of the rows."""
    stream, root, mean = draws.stream("missing"), np.sqrt(params.noise), params.mean
    base = intercept_mean(params)
    x = chunk.x.copy()
    for rows in tiles(chunk):
        named = chunk.start + np.arange(rows.start, rows.stop)
        error = root * stream.normal(named, len(root)).T
        if precision is not None:
            error /= np.sqrt(precision[rows, None])
        guess = base + y[:, rows].T.astype(np.float64) @ mean + error
        np.copyto(x[rows], guess, where=~seen_of(chunk, rows), casting="same_kind")
    return Chunk(chunk.index, chunk.start, x)


def drawn_sums(
    chunk: Chunk, params: ScatteredParams, y: Matrix, second: Float, state: RowState, draws: Draws
) -> ScatteredSums:
    """The sums of a chunk with its hidden cells drawn; rows count by their precision. `second` (feature)
    sums E y^2 of rows that count once."""
    times = precision_of(state)
    whole = filled(chunk, params, y, times, draws)
    features, columns = params.mean.shape
    gram, cross, about = np.zeros((features, features)), np.zeros((features, columns)), np.zeros((2, columns))
    on = np.zeros(features)
    for rows in tiles(chunk):
        x, now = whole.x[rows], y[:, rows]
        counted, weighted = (now, x) if times is None else (now * times[rows], x * times[rows, None])
        gram += counted @ now.T
        cross += counted @ x
        on += counted.sum(axis=1, dtype=np.float64)
        about += weighted.sum(axis=0, dtype=np.float64), np.einsum("nd,nd->d", weighted, x, dtype=np.float64)
    if times is None:
        np.fill_diagonal(gram, second)
    hidden = 0.0 if chunk.observed is None else (~chunk.observed).sum(axis=0)
    return ScatteredSums(
        rows=np.asarray(float(chunk.rows)),
        gram=gram[None],
        cross=cross,
        squared=about[1],
        total=about[0],
        drawn=np.zeros(columns) + hidden,
        second=np.zeros((features, columns)),
        bases=np.zeros((0, features, features)),
        spectra=np.zeros((0, features, columns)),
        first=NOTHING if isinstance(params.intercept, Nothing) else RowTotals(on[None]),
        precisions=NOTHING if times is None else _precisions(times, columns),
    )


def _precisions(times: Matrix, columns: int) -> RowNoiseSums:
    """Of rows all of whose cells count."""
    known = Posterior.known(times.astype(np.float64))
    return known.sums(np.full(times.size, float(columns)), NOTHING)
