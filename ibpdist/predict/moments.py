"""Posterior moments of the features of rows given their visible cells: E z, and of y = z w E y and E y y'.

What a row says of any of its cells depends on y alone, so that these are all that has to be averaged over
patterns of features, or over draws of them (scores.md 16):

    E[y | v] = sum_z p(z | v) E[y | z, v],      E[y y' | v] = sum_z p(z | v) E[y y' | z, v].

Unit weights: y = z. Normal weights w ~ N(mu, 1): with F = A_z (x / psi) and M = I + A_z diag(1 / psi) A_z'
over the visible cells, y given z is normal with mean M^-1 (F + mu_z) and covariance M^-1. Other weights are
drawn together with z, and the draws are of y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.model.weights._base import RowDensity
from ibpdist.predict.predict import Matrix, NormalDensity, Predictor, Vector

Places = NDArray[np.intp]
Cube = NDArray[np.float64]

NEGLIGIBLE = 1e-9
"""Probability of a pattern that is left out of the moments of a row."""
_NUMBERS = 1 << 22
"""Numbers in the dictionaries of the patterns that are treated at once."""


@dataclass(frozen=True)
class Moments:
    """E z, `on` (row, feature), and `mean` (row, feature) and `second` (row, feature, feature) of y, or parts
    of their sums."""

    on: Matrix
    mean: Matrix
    second: Cube

    @classmethod
    def none(cls, rows: int, features: int) -> Moments:
        shape = rows, features
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((*shape, features)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.on + other.on, self.mean + other.mean, self.second + other.second)

    def scaled(self, by: Vector) -> Moments:
        """Every row times a number of its own."""
        return Moments(self.on * by[:, None], self.mean * by[:, None], self.second * by[:, None, None])

    def put(self, rows: Places, part: Moments) -> None:
        """Other moments for some rows."""
        self.on[rows], self.mean[rows], self.second[rows] = part.on, part.mean, part.second

    def add(self, rows: Places, part: Moments) -> None:
        """Add the moments of some rows, each of them once, to theirs."""
        self.on[rows] += part.on
        self.mean[rows] += part.mean
        self.second[rows] += part.second

    @property
    def covariance(self) -> Cube:
        made: Cube = self.second - self.mean[:, :, None] * self.mean[:, None, :]
        return made


class Conditional(Protocol):
    """Moments given z, or y, and the visible cells of rows: `x` (row, column) is zero where `cells`, 0 or 1,
    are not visible. Both methods sum them over the patterns of a row, each times its `share`."""

    def over(self, x: Matrix, cells: Matrix, z: Matrix, share: Matrix) -> Moments:
        """Patterns (pattern, feature) that all rows have in common; `share` (row, pattern)."""
        ...

    def paired(self, x: Matrix, cells: Matrix, rows: Places, z: Matrix, share: Vector) -> Moments:
        """Pairs of a row (pair) and a pattern (pair, feature), with a share each (pair)."""
        ...


class KnownConditional:
    """Patterns say what y is: w = 1, or they are draws of y."""

    def __init__(self, of: Predictor) -> None:
        """Nothing of a predictor is needed."""

    def over(self, x: Matrix, cells: Matrix, z: Matrix, share: Matrix) -> Moments:
        features = z.shape[1]
        pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), features**2)
        return Moments(share @ (z != 0), share @ z, (share @ pairs).reshape(-1, features, features))

    def paired(self, x: Matrix, cells: Matrix, rows: Places, z: Matrix, share: Vector) -> Moments:
        made = Moments.none(len(x), z.shape[1])
        for part in parts(len(rows), z.shape[1] ** 2):
            n, y, weight = rows[part], z[part], share[part][:, None]
            np.add.at(made.on, n, weight * (y != 0))
            np.add.at(made.mean, n, weight * y)
            np.add.at(made.second, n, (weight * y)[:, :, None] * y[:, None, :])
        return made


class NormalConditional:
    """w normal: the weights of a pattern have a mean and a covariance in closed form."""

    def __init__(self, of: Predictor) -> None:
        self.of, self._density = of, NormalDensity(of)

    def over(self, x: Matrix, cells: Matrix, z: Matrix, share: Matrix) -> Moments:
        made = Moments.none(len(x), z.shape[1])
        for part in parts(len(z), z.shape[1] * len(x)):
            rows, patterns = np.nonzero(share[:, part] > NEGLIGIBLE)
            weights = share[:, part][rows, patterns]
            made = made + self.paired(x, cells, rows, z[part][patterns], weights)
        return made

    def paired(self, x: Matrix, cells: Matrix, rows: Places, z: Matrix, share: Vector) -> Moments:
        made, width = Moments.none(len(x), z.shape[1]), int(z.sum(axis=1).max(initial=0))
        np.add.at(made.on, rows, share[:, None] * z)
        if not width:
            return made
        for part in parts(len(rows), width * x.shape[1]):
            n, on = rows[part], self.given(x[rows[part]], cells[rows[part]], z[part])
            second = on.covariance + on.mean[:, :, None] * on.mean[:, None, :]
            weight = share[part]
            np.add.at(made.mean, (n[:, None], on.features), weight[:, None] * on.mean)
            both = (n[:, None, None], on.features[:, :, None], on.features[:, None, :])
            np.add.at(made.second, both, weight[:, None, None] * second)
        return made

    def given(self, x: Matrix, cells: Matrix, z: Matrix) -> WeightsGiven:
        """Weights of pairs of a row and a pattern."""
        return weights_given(self.of.mean, self._density.noise(z), x, cells, z, self.of.slab)


class WeightsGiven(NamedTuple):
    """Moments of the weights of patterns: `features` (pattern, place) that are on come first; `mean`
    (pattern, place) and `covariance` (pattern, place, place) are zero where fewer are on."""

    features: Places
    mean: Matrix
    covariance: Cube


def weights_given(
    dictionary: Matrix, psi: Matrix, x: Matrix, cells: Matrix, z: Matrix, slab: Vector | None = None
) -> WeightsGiven:
    """Weights w ~ N(slab, 1) of the features that are on in z (pattern, feature), given `cells` of x
    (pattern, column) with noise psi (pattern, column): mean M^-1 (F + slab) and covariance M^-1."""
    width = int(z.sum(axis=1).max(initial=0))
    features = np.argsort(-z, axis=1, kind="stable")[:, :width]
    on = np.take_along_axis(z, features, axis=1)
    loadings = dictionary[features] * on[:, :, None]
    scaled = loadings * (cells / psi)[:, None, :]
    inverse = np.linalg.inv(np.eye(width) + scaled @ loadings.transpose(0, 2, 1))
    pull = (scaled @ x[:, :, None])[:, :, 0]
    if slab is not None:
        pull = pull + slab[features] * on
    mean = (inverse @ pull[:, :, None])[:, :, 0] * on
    return WeightsGiven(features, mean, inverse * on[:, :, None] * on[:, None, :])


CONDITIONALS: Mapping[RowDensity, Callable[[Predictor], Conditional]] = {
    RowDensity.INDEPENDENT: KnownConditional,
    RowDensity.CLOSED: NormalConditional,
    RowDensity.SAMPLED: KnownConditional,
}
"""By how the density of a row is found."""


def conditional(of: Predictor) -> Conditional:
    """Moments of rows of a predictor given their features, or given draws of y."""
    return CONDITIONALS[of.weights.density](of)


def parts(count: int, numbers: int) -> Iterator[slice]:
    """Slices of `count` patterns, with so many numbers each, that are treated at once."""
    step = max(1, _NUMBERS // max(1, numbers))
    return (slice(at, at + step) for at in range(0, count, step))
