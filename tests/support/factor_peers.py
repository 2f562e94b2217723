"""Other methods for planted factors, given the true number of features.

They know no prevalence: the rows of a component are the upper of two means of |score - mode|.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from tests.support import mofa
from tests.support.factor_match import FoundFactors
from tests.support.factor_problems import Matrix

Peer = Callable[[Matrix, int], FoundFactors]


def peers() -> Iterator[tuple[str, Peer | None]]:
    """Name and method of every peer; None for one that is not installed."""
    for name, (library, method) in PEERS.items():
        yield name, method if find_spec(library) else None


def half_sample_mode(values: Matrix) -> float:
    """The mode, as the densest half of the densest half, down to two or three values."""
    left = np.sort(values)
    while len(left) > 3:
        half = (len(left) + 1) // 2
        widths = left[half - 1 :] - left[: len(left) - half + 1]
        first = int(widths.argmin())
        left = left[first : first + half]
    if len(left) == 3:
        low, high = np.diff(left)
        left = left[:2] if low < high else left[1:]
    return float(left.mean())


def upper_share(values: Matrix) -> float:
    """Share of the values in the upper of the two clusters with the least squares."""
    ordered, total = np.sort(values), values.sum()
    below = np.arange(1, len(values))
    first = np.cumsum(ordered)[:-1]
    between = first**2 / below + (total - first) ** 2 / (len(values) - below)
    return float(1 - below[between.argmax()] / len(values))


def with_prevalence(scores: Matrix, features: Matrix) -> FoundFactors:
    """Components (row, feature), (feature, column) with the share of the rows away from the mode."""
    away = [np.abs(column - half_sample_mode(column)) for column in scores.T]
    return FoundFactors(features, np.array([upper_share(column) for column in away]))


def filled(x: Matrix) -> Matrix:
    """The mean of its column in every missing cell."""
    return np.where(np.isfinite(x), x, np.nanmean(x, axis=0))


def _centred(x: Matrix) -> Matrix:
    """Values less the means of their columns, which not every method takes off by itself."""
    made: Matrix = x - x.mean(axis=0)
    return made


def _clipped(x: Matrix) -> Matrix:
    """Values with zero for those below."""
    return np.maximum(x, 0.0)


def _decomposition(name: str, prepared: Callable[[Matrix], Matrix] = _centred, **options: Any) -> Peer:
    """A method of scikit-learn's decomposition module with components (feature, column)."""

    def found(x: Matrix, features: int) -> FoundFactors:
        made = getattr(import_module("sklearn.decomposition"), name)(features, random_state=0, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = made.fit_transform(prepared(filled(x)))
        directions = made.mixing_.T if name == "FastICA" else made.components_
        return with_prevalence(scores, directions)

    return found


def _mofa(x: Matrix, features: int) -> FoundFactors:
    """MOFA with spike and slab on the factors."""
    found = mofa.trained(x, features, sparse_scores=True)
    return with_prevalence(found.scores, found.directions)


PEERS: dict[str, tuple[str, Peer]] = {
    "FastICA": ("sklearn", _decomposition("FastICA", whiten="unit-variance", max_iter=500)),
    "FA+varimax": ("sklearn", _decomposition("FactorAnalysis", rotation="varimax")),
    "SparsePCA": ("sklearn", _decomposition("SparsePCA", max_iter=100, method="cd")),
    "DictionaryLearning": (
        "sklearn",
        _decomposition("DictionaryLearning", max_iter=50, fit_algorithm="cd", transform_algorithm="lasso_cd"),
    ),
    "NMF": ("sklearn", _decomposition("NMF", _clipped, init="nndsvda", max_iter=500)),
    "MOFA": (mofa.LIBRARY, _mofa),
}
"""Library and method."""
