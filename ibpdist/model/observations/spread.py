"""How much columns vary, from the facts of the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.model.observations._base import Survey

Float = NDArray[np.float64]
NARROW = 1e-3
"""Columns that vary less than this share of the typical variance count as if they varied so much."""
LEAST = 1e-120
"""Variances below are taken for zero: their squares underflow."""


def typical_variance(survey: Survey) -> float:
    """Mean over columns of the variance of the observed cells; their mean square, or 1, if that is zero.
    Columns with fewer than two cells say nothing, unless there are no others."""
    told = _told(survey)
    squares = float((survey.squares / np.maximum(survey.cells, 1.0)).mean(where=told))
    for value in (float(_spread(survey).mean(where=told)), squares):
        if value > 1e-12 * squares and value > LEAST:
            return value
    return 1.0


def column_variances(survey: Survey) -> Float:
    """(column) variance of the observed cells, at least a share of the typical one, which is taken for
    those of columns that do not tell."""
    typical = typical_variance(survey)
    return np.where(_told(survey), np.maximum(_spread(survey), NARROW * typical), typical)


def _told(survey: Survey) -> NDArray[np.bool_]:
    """(column) whether the cells tell how much they vary."""
    several = survey.cells > 1
    return several if several.any() else np.ones_like(several)


def _spread(survey: Survey) -> Float:
    cells = np.maximum(survey.cells, 1.0)
    return np.asarray(survey.squares / cells - (survey.total / cells) ** 2)
