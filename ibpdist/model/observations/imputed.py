"""Rows whose hidden cells are drawn, for samplers on data with cells missing in no pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.model.observations.gaussian_params import ScatteredParams, intercept_mean
from ibpdist.model.observations.gaussian_sums import ScatteredSums
from ibpdist.model.observations.intercept import RowTotals
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


def filled(chunk: Chunk, params: ScatteredParams, y: Matrix, draws: Draws) -> Chunk:
    """The chunk with its hidden cells drawn given y (feature, row), the intercept, the dictionary and the
    noise."""
    stream, root, mean = draws.stream("missing"), np.sqrt(params.noise), params.mean
    base = intercept_mean(params)
    x = chunk.x.copy()
    for rows in tiles(chunk):
        named = chunk.start + np.arange(rows.start, rows.stop)
        guess = base + y[:, rows].T.astype(np.float64) @ mean + root * stream.normal(named, len(root)).T
        np.copyto(x[rows], guess, where=~seen_of(chunk, rows), casting="same_kind")
    return Chunk(chunk.index, chunk.start, x)


def drawn_sums(
    chunk: Chunk, params: ScatteredParams, y: Matrix, second: Float, draws: Draws
) -> ScatteredSums:
    """The sums of a chunk with its hidden cells drawn."""
    whole = filled(chunk, params, y, draws)
    features, columns = params.mean.shape
    gram, cross, squared = np.zeros((features, features)), np.zeros((features, columns)), np.zeros(columns)
    for rows in tiles(chunk):
        x, now = whole.x[rows], y[:, rows]
        gram += now @ now.T
        cross += now @ x
        squared += np.einsum("nd,nd->d", x, x, dtype=np.float64)
    np.fill_diagonal(gram, second)
    on = y.sum(axis=1, dtype=np.float64)
    hidden = 0.0 if chunk.observed is None else (~chunk.observed).sum(axis=0)
    return ScatteredSums(
        rows=np.asarray(float(chunk.rows)),
        gram=gram[None],
        cross=cross,
        squared=squared,
        total=whole.x.sum(axis=0, dtype=np.float64),
        drawn=np.zeros(columns) + hidden,
        second=np.zeros((features, columns)),
        bases=np.zeros((0, features, features)),
        spectra=np.zeros((0, features, columns)),
        first=NOTHING if isinstance(params.intercept, Nothing) else RowTotals(on[None]),
    )
