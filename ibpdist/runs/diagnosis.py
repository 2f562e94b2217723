"""What to think of a fit: what each feature explains, which are barely used, which look like one.

Everything follows from the parameters and the moments of the rows, y = E z E w, so it costs no
look at the data.

    explained     variance of the fitted rows over that of the data, mean over the rows taken off:
                  C_kk |a_k|^2 / V for feature k alone, tr(A' C A) / V together
    correlation   of y_k and y_l over the rows: near 1 for one feature that was split in two
    cosine        of a_k and a_l in units of the noise: near 1 or -1 for one feature that comes in
                  different amounts

C (feature, feature) is the covariance of y over the rows, A (feature, column) the dictionary, V the
variance of a row of the data. Shares of features that occur together do not add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from ibpdist.base.structs import Array, Named, dims, struct
from ibpdist.runs import variables

if TYPE_CHECKING:
    import xarray as xr

Float = NDArray[np.float64]
Pairs = NDArray[np.bool_]

NEEDED = ("mean", "prevalence", "active", "noise", "spread")
"""Names of a description without which there is no diagnosis."""
RARE, FEWEST = 0.01, 2.0
"""A feature is barely used in less than this share of the rows, or in fewer rows than this."""
CONSTANT = 0.002
"""A feature whose variance over the rows is at most this share of its mean square is a constant."""
DENSE = 0.95
"""A feature that more than this share of the rows have is always on: who has it is not the answer."""
IDLE = 2.0
"""A feature whose part of the data, a sum of squares in units of the noise, is below explains nothing:
its gain is half of that, in nats, before it pays for anything."""
SAME_ROWS, SAME_SHAPE = 0.9, 0.95
"""Correlation and cosine from which two features look like one."""
CHANCE = 0.05
"""Most pairs of random directions expected to be as close as two features of the same shape."""


@struct
class Moments:
    """Sums over rows of y = z w, and of products of its entries."""

    rows: Array = dims()
    total: Array = dims("feature")
    products: Array = dims("feature feature_")

    @property
    def covariance(self) -> Float:
        """(feature, feature) of y over the rows."""
        rows = max(float(self.rows), 1.0)
        mean = self.total / rows
        centred: Float = self.products / rows - np.outer(mean, mean)
        return centred


def moments(named: Named) -> Moments:
    """Of the row results of a chunk, rows first."""
    z = named["z"][1].astype(np.float64)
    y = z * named["w"][1] if "w" in named else z
    return Moments(rows=np.asarray(float(len(y))), total=y.sum(axis=0), products=y.T @ y)


@dataclass(frozen=True)
class Found:
    """The parameters that a diagnosis needs: (feature, column), (feature), (feature), (column), (column)."""

    mean: Float
    prevalence: Float
    active: NDArray[np.bool_]
    noise: Float
    spread: Float

    @classmethod
    def of(cls, described: Named) -> Found | None:
        if not set(NEEDED) <= set(described):
            return None
        held = {name: np.asarray(described[name][1]) for name in NEEDED}
        noise = np.broadcast_to(held["noise"], held["spread"].shape)
        return cls(**held | {"noise": noise})


def diagnose(described: Named, row_moments: Moments, truncation: int) -> xr.Dataset | None:
    """Of a fit with at most `truncation` features; None for a model whose features are not a dictionary.

    Dims: feature; pairs of features are (feature, feature_). `used_up`: as many features as were
    provided are active and explain something.
    """
    fitted = Found.of(described)
    if fitted is None:
        return None
    rows, (each, together) = float(row_moments.rows), explained(fitted, row_moments.covariance)
    constant = fitted.active & is_constant(row_moments)
    idle = fitted.active & ~constant & (strength(fitted, row_moments) < IDLE)
    likely = fitted.active & ~constant & ~idle
    rare = likely & (fitted.prevalence * rows < max(RARE * rows, FEWEST))
    correlation, cosine = correlations(row_moments.covariance), cosines(fitted.mean / np.sqrt(fitted.noise))
    values = {
        "explained": each,
        "explained_together": together,
        "constant": constant,
        "dense": likely & (fitted.prevalence > DENSE),
        "idle": idle,
        "rare": rare,
        "correlation": correlation,
        "cosine": cosine,
        "same_rows": pairs(correlation >= SAME_ROWS, likely),
        "same_shape": pairs(np.abs(cosine) >= least_cosine(fitted.mean.shape), likely),
        "used_up": bool((fitted.active & ~idle).sum() >= truncation),
    }
    import xarray as xr  # only whoever writes the result needs it, not every worker

    return xr.Dataset(variables.DIAGNOSIS.named(values))


def explained(fitted: Found, covariance: Float) -> tuple[Float, float]:
    """Shares of the variance of the data: (feature) of each alone, and of all together."""
    whole = float(fitted.spread.sum())
    gram = fitted.mean @ fitted.mean.T
    each: Float = np.diagonal(covariance) * np.diagonal(gram) / whole
    return each, float((covariance * gram).sum() / whole)


def strength(fitted: Found, row_moments: Moments) -> Float:
    """(feature) sum of squares of y_k a_k about its mean, in units of the noise."""
    size = (fitted.mean**2 / fitted.noise).sum(axis=1)
    squares: Float = float(row_moments.rows) * np.diagonal(row_moments.covariance) * size
    return squares


def is_constant(row_moments: Moments) -> NDArray[np.bool_]:
    """(feature) whether all rows have it in the same amount."""
    square = np.diagonal(row_moments.products) / max(float(row_moments.rows), 1.0)
    flags: NDArray[np.bool_] = np.diagonal(row_moments.covariance) <= CONSTANT * square
    return flags


def correlations(covariance: Float) -> Float:
    """(feature, feature), zero for a feature that does not vary."""
    return _scaled(covariance, 1e-12)


def cosines(dictionary: Float) -> Float:
    """(feature, feature) between the rows of a dictionary, zero for one of zeros."""
    return _scaled(dictionary @ dictionary.T, 0.0)


def least_cosine(shape: tuple[int, ...]) -> float:
    """Cosine from which features (feature, column) have the same shape, and not by chance.

    Of random directions in D dimensions the share I_{1 - c^2}((D - 1) / 2, 1 / 2) has |cosine| > c.
    """
    features, columns = shape
    if columns < 2:
        return float("inf")
    count = max(features * (features - 1) / 2, 1.0)
    tried = np.linspace(SAME_SHAPE, 1.0, 1001)
    by_chance = count * betainc((columns - 1) / 2, 0.5, 1 - tried**2)
    return float(tried[np.argmax(by_chance <= CHANCE)])


def pairs(alike: Pairs, of: NDArray[np.bool_]) -> Pairs:
    """(feature, feature) each pair once, the lower number first, both among the features `of`."""
    flags: Pairs = np.triu(alike & np.outer(of, of), 1)
    return flags


def _scaled(products: Float, least: float) -> Float:
    size = np.sqrt(np.clip(np.diagonal(products), 0.0, None))
    size = np.where(size**2 > least, size, np.inf)
    scaled: Float = np.clip(products / np.outer(size, size), -1.0, 1.0)
    return scaled
