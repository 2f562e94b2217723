"""Plain factor analysis as a rival: scikit-learn's, scored in closed form on columns of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibpdist.predict.predict import Predictor, predictor
from ibpdist.predict.rownoise import EVEN, UNEVEN, RowNoise
from ibpdist.predict.sampled import Sampling
from ibpdist.predict.sequential import closed
from tests.support.real_matrices import Split

RANKS = (5, 10, 20, 30, 40, 60, 80, 120)
LEAST = 1e-12


@dataclass(frozen=True)
class Rival:
    """A rank and its scores in nats per hidden cell, plain and with rows of uneven noise."""

    rank: int
    plain: float
    mixed: float


def rivals(of: Split) -> Iterator[Rival]:
    """Every rank that the data allow; missing cells are zero, the mean, while it is fitted."""
    for rank in RANKS:
        if rank < min(of.train.shape):
            law, centre = fitted(np.nan_to_num(of.train), rank)
            yield Rival(rank, *(scored(law, of.test - centre, how) for how in (EVEN, UNEVEN)))


def fitted(x: NDArray[np.float64], rank: int) -> tuple[Predictor, NDArray[np.float64]]:
    from sklearn.decomposition import FactorAnalysis

    method = "lapack" if min(x.shape) <= 200 else "randomized"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = FactorAnalysis(rank, svd_method=method, random_state=0).fit(x)
    params = {
        "mean": found.components_,
        "noise": np.maximum(found.noise_variance_, LEAST),
        "prevalence": np.ones(rank),
        "spread": np.ones(x.shape[1]),
    }
    return predictor(params, "normal"), found.mean_


def scored(law: Predictor, test: NDArray[np.float64], row_noise: RowNoise) -> float:
    """Even columns are visible, odd ones hidden."""
    seen = ~np.isnan(test)
    even = np.arange(test.shape[1]) % 2 == 0
    visible, hidden, x = seen & even, seen & ~even, np.nan_to_num(test)
    parts = [closed(replace(law, extra=u), x, visible, hidden, Sampling())[0] for u in row_noise.levels]
    return float(row_noise.mixed(parts).score.sum() / hidden.sum())
