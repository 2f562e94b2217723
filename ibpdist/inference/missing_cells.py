"""Missing cells drawn given everything else: rows without gaps, which extend the chain by a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk

Float = NDArray[np.float64]


def impute(data: Chunk, z: NDArray[Any], mean: Float, noise: Float, draws: Draws) -> Float:
    """x (row, column) in float64, from z (feature, row), the dictionary and the noise of each column."""
    x = data.x.astype(np.float64)
    if data.observed is None:
        return x
    guess = z.T.astype(np.float64) @ mean
    guess += np.sqrt(noise) * draws.normal("missing", data.start, data.rows, x.shape[1]).T
    return np.where(data.observed, x, guess)
