"""Facts of the data that the Gaussian observation needs once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data._base import Chunk
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.patterns import missing_rows

Float = NDArray[np.float64]
LOOKED = 256
"""Rows of a chunk in which the most frequent values of columns are looked for."""
MOSTLY = 0.7
"""Mean share of the most frequent value above which columns have mostly one value."""


def survey_of(chunk: Chunk) -> Survey:
    """The facts of a chunk; reduced over chunks like sums."""
    x = chunk.x
    every = np.full(x.shape[1], float(chunk.rows))
    return Survey(
        rows=np.asarray(float(chunk.rows)),
        cells=every if chunk.observed is None else chunk.observed.sum(axis=0).astype(np.float64),
        total=x.sum(axis=0, dtype=np.float64),
        squares=np.einsum("nd,nd->d", x, x, dtype=np.float64),
        missing=missing_rows(chunk),
        **_most_frequent(x, chunk.observed),
    )


def counts_survey(chunk: Chunk) -> Survey:
    """The facts of a chunk of counts, from cells that are not zero; frequent values are not looked for."""
    entries, columns = chunk.entries, chunk.columns
    none, counts = np.zeros(columns), entries.counts.astype(np.float64)
    return Survey(
        rows=np.asarray(float(chunk.rows)),
        cells=np.full(columns, float(chunk.rows)),
        total=np.bincount(entries.columns, counts, columns),
        squares=np.bincount(entries.columns, counts**2, columns),
        missing=np.zeros(columns, np.uint64),
        looked=none,
        common=none,
    )


def common(survey: Survey) -> Float:
    """(column) share of the cells that have the most frequent value, of those that were looked at."""
    found: Float = survey.common / np.maximum(survey.looked, 1.0)
    return found


def mostly_one_value(common: Float) -> bool:
    """Whether columns have mostly one value, from the share of the most frequent one (column)."""
    return float(np.mean(common)) > MOSTLY


def _most_frequent(x: NDArray[Any], observed: NDArray[np.bool_] | None) -> dict[str, Float]:
    """(column) of some rows the number of observed cells, and of those with the most frequent value, both
    less one."""
    rows = np.unique(np.linspace(0, len(x) - 1, min(len(x), LOOKED)).astype(int))
    ordered = np.sort(np.where(observed[rows], x[rows], np.nan) if observed is not None else x[rows], axis=0)
    looked = np.count_nonzero(~np.isnan(ordered), axis=0).astype(np.float64)
    longest, run = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for before, now in pairwise(np.concatenate([np.full((1, x.shape[1]), np.nan), ordered])):
        run = np.where(now == before, run + 1, np.where(np.isnan(now), 0.0, 1.0))
        longest = np.maximum(longest, run)
    # Without the first row of the chunk: in few rows every value is frequent.
    return {"looked": np.maximum(looked - 1, 0), "common": np.maximum(longest - 1, 0)}
