"""How much columns vary, from the facts of the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.observations._base import Survey

Float = NDArray[np.float64]
NARROW = 1e-3
"""Columns that vary less than this share of the typical variance count as if they varied so much."""
LEAST = 1e-120
"""Variances below are taken for zero: their squares underflow."""


def typical_variance(survey: Survey) -> float:
    """Mean over columns of the variance of the observed cells; their mean square, or 1, if that is zero."""
    cells = np.maximum(survey.cells, 1.0)
    spread = survey.squares / cells - (survey.total / cells) ** 2
    for value in (float(spread.mean()), float((survey.squares / cells).mean())):
        if value > 1e-12 * float((survey.squares / cells).mean()) and value > LEAST:
            return value
    return 1.0


def column_variances(survey: Survey) -> Float:
    """(column) variance of the observed cells, at least a share of the typical one."""
    cells = np.maximum(survey.cells, 1.0)
    spread = survey.squares / cells - (survey.total / cells) ** 2
    return np.maximum(spread, NARROW * typical_variance(survey))
