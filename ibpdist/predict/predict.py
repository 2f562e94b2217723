"""Densities of rows under a fitted Gaussian model, given which features they have.

Unit weights: given z the cells of a row are independent,

    x_d | z ~ N(z mean_d, noise_d + z Sigma_d z'),

exact in the dictionary A for one row, since the columns of A are independent under q (scores.md 2).
Normal weights: w is integrated out as well; with A_z the features that are on,

    x | z ~ N(0, diag(psi) + A_z' A_z),    psi_d = noise_d + sum_k z_k Sigma_d,kk,

where psi replaces y Sigma_d y' by its mean over w: exact for a dictionary without variance. Weights of
mean mu have E[y Sigma_d y'] = (z o mu) Sigma_d (z o mu)' + sum_k z_k Sigma_d,kk, and x the mean A' (z o mu).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from ibpdist.catalog import systems
from ibpdist.model.observations.covariance import shrink, variance_along
from ibpdist.model.weights._base import Weights
from ibpdist.model.weights.unit import Unit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOG_2PI = float(np.log(2 * np.pi))
CERTAIN = 500.0
"""Log odds beyond which a feature is taken as certain; keeps 0 x inf out of sums."""


@dataclass(frozen=True)
class Predictor:
    """What predicts new rows: q(A), the noise, and the prior log odds of the features.

    `mean` (feature, column), `basis` (group, feature, rank) and `spectrum` (group, rank) as in
    model/observations/gaussian_params.py, where all groups may share one basis; `noise` and `group` (column),
    `log_odds` and `active` (feature). `unit` (column) is the variance of the columns, `extra` what cells
    of a row have of it as noise beside their own (rownoise.py). `precision` divides the noise of a row; it is
    one where rows are even, and otherwise has a gamma law with `freedom` degrees of freedom
    (row_precision.py). `slab` (feature) is the mean of the weights, zero without one. Rows are taken from the
    mean of the `intercept` before they are scored.
    """

    mean: Matrix
    basis: NDArray[np.float64]
    spectrum: Matrix
    noise: Vector
    group: NDArray[np.intp]
    log_odds: Vector
    active: NDArray[np.bool_]
    weights: Weights = field(default_factory=Unit)
    unit: Vector | None = None
    extra: float = 0.0
    intercept: InterceptMoments | None = None
    slab: Vector | None = None
    precision: float = 1.0
    freedom: float | None = None

    @property
    def features(self) -> int:
        return len(self.log_odds)

    @property
    def cell_noise(self) -> Vector:
        """(column) noise of the cells of a row."""
        own = self.noise / self.precision
        if not self.extra:
            return own
        unit = self._variance_of_columns() if self.unit is None else self.unit
        return own + self.extra * unit

    @property
    def certain(self) -> bool:
        """Whether q(A) has no variance, as in a draw."""
        return not self.basis.any() and (self.intercept is None or not self.intercept.error.any())

    def _variance_of_columns(self) -> Vector:
        """(column) as the model has it: E x^2 with weights, Var x without."""
        _, share = self.activity()
        made: Vector = self.noise + share @ self.mean**2 + self.second_moments() @ self.variances()
        return made

    @property
    def tilt(self) -> Vector:
        """(feature) mean of the weights, as far as it is a parameter."""
        return np.zeros(self.features) if self.slab is None else self.slab

    def second_moments(self) -> Vector:
        """(feature) E y^2 of a row of which nothing is known."""
        made: Vector = expit(self.log_odds) * (self.weights.second + self.tilt**2)
        return made

    @property
    def weight_mean(self) -> Vector:
        """(feature) mean of the weight of a row that has the feature, if nothing else is known of it."""
        return replace(self, log_odds=np.full(self.features, CERTAIN)).activity()[0]

    def activity(self) -> tuple[Vector, Vector]:
        """(feature) mean and variance of y of a row of which nothing is known."""
        chance = expit(self.log_odds)
        variance = self.weights.variance(chance) + chance * (1 - chance) * self.tilt**2
        size = np.sqrt(np.maximum(self.second_moments() - variance, 0.0))
        return np.where(self.tilt < 0, -size, size), variance

    def typical_noise(self) -> Vector:
        """(column) noise of a row of which nothing is known, with what the variance of A adds to it."""
        mean, variance = self.activity()
        made: Vector = self.cell_noise + self.variance(mean[None])[0] + variance @ self.variances()
        return made

    def select(self, keep: NDArray[np.intp]) -> Predictor:
        """The predictor without the other features: q(A) marginalised, their z set to zero."""
        return replace(
            self,
            mean=self.mean[keep],
            basis=self.basis[:, keep],
            intercept=None if self.intercept is None else self.intercept.select(keep),
            log_odds=self.log_odds[keep],
            active=self.active[keep],
            slab=None if self.slab is None else self.slab[keep],
        )

    def plug_in(self) -> Predictor:
        """The predictor that takes the mean of A for A."""
        known = None if self.intercept is None else self.intercept.plug_in()
        return replace(self, basis=np.zeros_like(self.basis), intercept=known)

    def log_prior(self, z: Matrix) -> Vector:
        """(pattern,) log p(z) of patterns (pattern, feature)."""
        odds = np.clip(self.log_odds, -CERTAIN, CERTAIN)
        total: Vector = z @ log_expit(odds) + (1 - z) @ log_expit(-odds)
        return total

    def spread(self) -> Matrix:
        """(rank, column) variances of A along the columns of the basis."""
        return shrink(self.spectrum[self.group].T, self.noise)

    def variance(self, y: Matrix) -> Matrix:
        """(pattern, column) variance of the mean of a row with y (pattern, feature).

        It is y Sigma_d y', with y taken from the centre of the intercept, plus the variance of that given A.
        """
        if self.intercept is None:
            return self._along(y, None)
        return self._along(y, self.intercept.centre) + self.intercept.error

    def variances(self) -> Matrix:
        """(feature, column) variances of the entries of A."""
        return self._along(np.eye(self.features), None)

    def _along(self, y: Matrix, centre: Matrix | None) -> Matrix:
        """(pattern, column) y Sigma_d y', of y less the `centre` (group, feature) of the group of d."""
        spread, made = self.spread(), np.zeros((len(y), len(self.noise)))
        turn = self.group if len(self.basis) > 1 else np.zeros_like(self.group)
        for g in np.unique(turn):
            here, away = turn == g, y if centre is None else y - centre[g]
            made[:, here] = variance_along(away @ self.basis[g], spread[:, here])
        return made


@dataclass(frozen=True)
class InterceptMoments:
    """`mean` (column), the variance given A `error` (column), and what it owes to A: b = mean + `centre`
    (group, feature) (E A - A)."""

    mean: Vector
    error: Vector
    centre: Matrix

    @classmethod
    def of(cls, params: Mapping[str, Any], groups: int, features: int) -> InterceptMoments | None:
        if "intercept" not in params:
            return None
        mean = np.asarray(params["intercept"], dtype=float)
        centre = np.asarray(params.get("centre", np.zeros((groups, features))), dtype=float)
        return cls(mean, np.asarray(params.get("intercept_error", np.zeros(len(mean))), dtype=float), centre)

    def select(self, keep: NDArray[np.intp]) -> InterceptMoments:
        return replace(self, centre=self.centre[:, keep])

    def plug_in(self) -> InterceptMoments:
        return replace(self, error=np.zeros_like(self.error))


def predictor(params: Mapping[str, Any], weights: str = "unit") -> Predictor:
    """A predictor from named arrays such as the `/params` of a result.

    Without `basis` the covariance of A is the diagonal of `mean_sd`, or nothing. The odds are those
    of `chance`, E pi: `log_odds`, those of the variational update, make rare features too rare, and
    serve only where there is no `chance`, as `prevalence` where there is neither. Without `active`
    all features are. Rows are even unless `row_freedom` is a finite number.
    """
    mean = np.asarray(params["mean"], dtype=float)
    features, columns = mean.shape
    noise = np.broadcast_to(np.asarray(params["noise"], dtype=float), columns).copy()
    basis, spectrum, group = _covariance(params, mean, noise)
    active = np.asarray(params.get("active", np.ones(features)), dtype=bool)
    unit = np.asarray(params["spread"], dtype=float) if "spread" in params else None
    if unit is not None:
        # Columns that hardly vary in the rows of the fit may vary in others.
        unit = np.maximum(unit, np.median(unit))
    odds, found = _odds(params, features), systems.weights_of(weights)
    return Predictor(
        mean,
        basis,
        spectrum,
        noise,
        group,
        odds,
        active,
        found,
        unit,
        intercept=InterceptMoments.of(params, len(basis), features),
        slab=np.asarray(params["weight_mean"], dtype=float) if "weight_mean" in params else None,
        freedom=_freedom(params),
    )


class Density(Protocol):
    """log p(x in `cells` | z) up to nothing; `x` (row, column) is zero outside `cells`.

    `cells` (row, column) is 0 or 1, or one row of them for all.
    """

    def grid(self, x: Matrix, cells: Matrix, z: Matrix) -> Matrix:
        """(row, pattern): every row under every pattern (pattern, feature)."""
        ...

    def each(self, x: Matrix, cells: Matrix, z: Matrix) -> Vector:
        """(row,): every row under its own pattern (row, feature)."""
        ...


class UnitDensity:
    """w = 1: cells are independent given z."""

    def __init__(self, of: Predictor) -> None:
        self.of = of

    def grid(self, x: Matrix, cells: Matrix, z: Matrix) -> Matrix:
        mean, variance = self._moments(z)
        fixed = np.log(variance) + LOG_2PI + mean**2 / variance
        made: Matrix = x @ (mean / variance).T - 0.5 * (x**2 @ (1 / variance).T + cells @ fixed.T)
        return made

    def each(self, x: Matrix, cells: Matrix, z: Matrix) -> Vector:
        mean, variance = self._moments(z)
        made: Vector = -0.5 * (cells * ((x - mean) ** 2 / variance + np.log(variance) + LOG_2PI)).sum(1)
        return made

    def _moments(self, z: Matrix) -> tuple[Matrix, Matrix]:
        return z @ self.of.mean, self.of.cell_noise + self.of.variance(z)


class NormalDensity:
    """w ~ N(mu, 1), integrated out through the matrix determinant and inversion lemmas.

    With F = A_z (x / psi) + mu_z and M = I + A_z diag(1 / psi) A_z',
    -2 log p = sum log(2 pi psi) + log |M| + sum x^2 / psi + mu_z' mu_z - F' M^-1 F.
    """

    def __init__(self, of: Predictor) -> None:
        self.of = of
        self._variances = of.variances()

    def noise(self, z: Matrix) -> Matrix:
        """(pattern, column) psi of patterns (pattern, feature)."""
        made: Matrix = self.of.cell_noise + self.of.variance(z * self.of.tilt) + z @ self._variances
        return made

    def grid(self, x: Matrix, cells: Matrix, z: Matrix) -> Matrix:
        made = np.empty((len(x), len(z)))
        for p, pattern in enumerate(z):
            made[:, p] = self._one(x, cells, pattern)
        return made

    def _one(self, x: Matrix, cells: Matrix, pattern: Vector) -> Vector:
        on = pattern > 0
        psi, dictionary, tilt = self.noise(pattern[None])[0], self.of.mean[on], self.of.tilt[on]
        k = len(dictionary)
        pairs = (dictionary[:, None] * dictionary[None]).reshape(k * k, len(psi))
        inner = np.eye(k) + ((cells / psi) @ pairs.T).reshape(len(cells), k, k)
        seen = (x / psi) @ dictionary.T + tilt
        shared = len(cells) == 1
        solved = np.linalg.solve(inner, seen.T[None] if shared else seen[:, :, None])
        explained = np.einsum("nk,nk->n", seen, solved[0].T if shared else solved[:, :, 0])
        fixed = cells @ (np.log(psi) + LOG_2PI) + np.linalg.slogdet(inner)[1] + tilt @ tilt
        made: Vector = -0.5 * (fixed + x**2 @ (1 / psi) - explained)
        return made

    def each(self, x: Matrix, cells: Matrix, z: Matrix) -> Vector:
        width = int(z.sum(1).max(initial=0))
        order = np.argsort(-z, axis=1, kind="stable")[:, :width]
        psi, on = self.noise(z), np.take_along_axis(z, order, 1)
        dictionary, tilt = self.of.mean[order] * on[:, :, None], self.of.tilt[order] * on
        scaled = dictionary * (cells / psi)[:, None, :]
        inner = np.eye(width) + scaled @ dictionary.transpose(0, 2, 1)
        seen = scaled @ x[:, :, None] + tilt[:, :, None]
        explained = (seen * np.linalg.solve(inner, seen)).sum((1, 2))
        fixed = (cells * (np.log(psi) + LOG_2PI)).sum(1) + np.linalg.slogdet(inner)[1]
        made: Vector = -0.5 * (fixed + (x**2 / psi).sum(1) + (tilt**2).sum(1) - explained)
        return made


def _covariance(
    params: Mapping[str, Any], mean: Matrix, noise: Vector
) -> tuple[NDArray[np.float64], Matrix, NDArray[np.intp]]:
    """Basis, spectrum and groups of q(A), whichever way it is described."""
    features, columns = mean.shape
    if "basis" in params:
        group = np.asarray(params["group"], dtype=np.intp)
        return np.asarray(params["basis"], float), np.asarray(params["spectrum"], float), group
    if "mean_sd" not in params:
        zero = np.zeros((1, features, features)), np.zeros((1, features))
        return *zero, np.zeros(columns, dtype=np.intp)
    # One group a column, with basis diag(sd) and no spectrum: Sigma_d = diag(sd^2).
    basis = np.asarray(params["mean_sd"], dtype=float).T[:, :, None] * np.eye(features)
    return basis, np.zeros((columns, features)), np.arange(columns)


def _odds(params: Mapping[str, Any], features: int) -> Vector:
    """(feature,) prior log odds that a new row has each feature."""
    if "log_odds" in params and "chance" not in params:
        return np.asarray(params["log_odds"], dtype=float)
    given = params.get("chance", params.get("prevalence", np.ones(features)))
    return _logit(np.asarray(given, dtype=float))


def _freedom(params: Mapping[str, Any]) -> float | None:
    found = float(np.asarray(params.get("row_freedom", np.inf)))
    return found if np.isfinite(found) else None


def _logit(probability: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        made: Vector = np.log(probability) - np.log1p(-probability)
    return made
