"""Scores of a sampler: the density of hidden cells averaged over draws (log-mean-exp, vibp 8).

Each draw predicts the rows by itself, with its own features, variances and prevalences. Draws are
taken at even distances along all chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ibpdist.evaluate.predict import Predictor, predictor
from ibpdist.evaluate.sampled import Sampled

MOST = 40
"""Draws that are averaged over."""
Mask = NDArray[np.bool_]


class Scores(Protocol):
    """Scores of rows, with the mean of the dictionary and with its variance."""

    @property
    def words(self) -> str: ...

    def __call__(
        self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int
    ) -> tuple[Sampled, Sampled]: ...


@dataclass(frozen=True)
class Averaged:
    """The mean of the densities of several."""

    each: Sequence[Scores]

    @property
    def words(self) -> str:
        kinds = dict.fromkeys(one.words for one in self.each)
        return f"mean over {len(self.each)} draws of the posterior: {' or '.join(kinds)}"

    def __call__(self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int) -> tuple[Sampled, Sampled]:
        parts = [one(x, visible, hidden, start) for one in self.each]
        plug, full = (averaged([part[i] for part in parts]) for i in (0, 1))
        return plug, full


def averaged(parts: Sequence[Sampled]) -> Sampled:
    """log of the mean of exp(score) by row, and its Monte Carlo error to first order."""
    scores = np.array([part.score for part in parts])
    errors = np.array([part.error for part in parts])
    weight = softmax(scores, axis=0)
    error = np.sqrt(((weight * errors) ** 2).sum(axis=0))
    return Sampled(logsumexp(scores, axis=0) - np.log(len(parts)), error)


def predictors(result: xr.DataTree, weights: str, most: int = MOST) -> list[Predictor]:
    """Of draws at even distances, each with the features that occur in it."""
    draws = result["draws"].to_dataset()
    chains, kept = draws.sizes["chain"], draws.sizes["draw"]
    places = np.unique(np.linspace(0, chains * kept - 1, min(most, chains * kept)).astype(int))
    spread = np.asarray(result["params"]["spread"].values)
    return [_of(draws.isel(chain=at // kept, draw=at % kept), weights, spread) for at in places]


def _of(draw: xr.Dataset, weights: str, spread: NDArray[Any]) -> Predictor:
    has = draw["prevalence"].values > 0
    named = {
        "mean": draw["mean"].values[has],
        "chance": draw["chance"].values[has],
        "noise": draw["noise"].values,
        "spread": spread,
    }
    return predictor(named, weights)
