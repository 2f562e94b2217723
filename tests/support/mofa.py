"""MOFA (mofapy2) as a rival: the factor model that it found, where it is installed.

Its factors are standard normal before they are seen; here their length is that of the posterior. NaN is
missing.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from tests.support.missing_rivals import LEAST_NOISE, FactorLaw

Matrix = NDArray[np.float64]
LIBRARY = "mofapy2"
RANKS = (5, 15, 30)


@dataclass(frozen=True)
class Mofa:
    """`scores` (row, factor) with their second moments, `directions` (factor, column), `noise` (column)."""

    scores: Matrix
    second: Matrix
    directions: Matrix
    noise: Matrix

    def law(self, mean: Matrix) -> FactorLaw:
        """The law of a row about the mean of the columns."""
        lengths = np.sqrt(self.second.mean(axis=0))
        return FactorLaw(mean, self.directions * lengths[:, None], np.maximum(self.noise, LEAST_NOISE))


def installed() -> bool:
    """Whether the library is there."""
    return find_spec(LIBRARY) is not None


def trained(x: Matrix, factors: int, sparse_scores: bool = False) -> Mofa:
    """MOFA with this many factors, with spike and slab on the scores or without."""
    with redirect_stdout(StringIO()):
        model = import_module(f"{LIBRARY}.run.entry_point").entry_point()
        model.set_data_options(scale_views=False)
        model.set_data_matrix([[x]])
        model.set_model_options(factors=factors, spikeslab_factors=sparse_scores, spikeslab_weights=False)
        model.set_train_options(seed=0, verbose=False, quiet=True)
        model.build()
        model.run()
    nodes = model.model.nodes
    found, weights = nodes["Z"].getExpectations(), nodes["W"].getExpectations()[0]
    precision = np.asarray(nodes["Tau"].getExpectations()[0]["E"])
    return Mofa(
        np.asarray(found["E"]),
        np.asarray(found["E2"]),
        np.asarray(weights["E"]).T,
        1 / np.atleast_2d(precision).mean(axis=0),
    )


def laws(x: Matrix) -> list[FactorLaw]:
    """The laws of each rank that the data allow."""
    mean = np.nanmean(x, axis=0)
    return [trained(x, rank).law(mean) for rank in RANKS if rank < min(x.shape)]
