"""How the noise and the scale of a Gaussian observation are learned, or drawn.

Learned variances have a weak prior worth PSEUDO cells of variance v0: log v has the density
-(PSEUDO/2) (log v + v0 / v) + const, a scaled inverse chi-squared for v. It keeps them away from
zero when K is large or a column is constant (linear-gaussian.md 1). Fits take the mode of log v.
A noise for each column has PSEUDO cells worth WEAK of the column's variance, which is the prior
Gamma(1, 0.1) on 1 / psi of standardised columns (factors.md 4): with K near the number of rows the
objective would run off without it. A scale for each feature (automatic relevance) has PSEUDO
entries of RELEVANT times the typical variance, the prior exp(-1e-3 / s) / s: features that explain
nothing shrink to it.

With `auto` columns that have mostly one value have one level of noise, noise_d = level r_d, with r_d
proportional to the variance of the column, or to their median where that is larger (factors.md 4). With one
noise r_d = 1. Each column has a noise of its own elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import replace
from ibpdist.model.observations import dictionary, gaussian_params, variances
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.facts import common, mostly_one_value
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.rotation import Rotation
from ibpdist.model.observations.settings import choice
from ibpdist.model.observations.spread import column_variances, typical_variance
from ibpdist.model.observations.variances import PSEUDO, Evidence

Float = NDArray[np.float64]
ONE_TURNS, COLUMN_TURNS = 30, 3
FLOOR = 1e-3
"""Variance of a pseudo cell of one noise for all columns, as a share of the typical variance of a cell."""
WEAK, LOWEST = 0.1, 1e-3
"""For a noise of each column, as shares of its variance: that of a pseudo cell, and the least of fits.
Draws have no least value: the prior puts e^-100 below it."""
MOSTLY, DISCRETE = 0.5, 0.1
"""Share of the most frequent value of a column above which its least noise is larger, and how much larger."""
RELEVANT = 1e-3
"""Variance of a pseudo entry of the dictionary for a scale of each feature, as a share of the typical one."""


def shared_ratios(spread: Float) -> Float:
    """(column) the noise of columns over their mean where it has one level, from their variances: columns
    that hardly vary in the rows of the fit may vary in others."""
    least = np.maximum(spread, np.median(spread))
    return np.asarray(least / least.mean())


@dataclass(frozen=True)
class NoiseAndScale:
    """`noise`: one, one for each column, by what the columns are (auto), or a fixed variance. `scale`, the
    variance of the entries of the dictionary: one, one for each feature, or fixed."""

    noise: Literal["one", "column", "auto"] | float = "one"
    scale: Literal["one", "feature"] | float = "one"

    def __post_init__(self) -> None:
        choice("noise", self.noise, ("one", "column", "auto"), number=True)
        choice("scale", self.scale, ("one", "feature"), number=True)

    @property
    def noise_by_column(self) -> bool:
        """Whether the noise of columns may differ."""
        return self.noise in ("column", "auto")

    def noise_ratios(self, spread: Float, common: Float) -> Float | None:
        """(column) the noise of columns over their mean noise, where it has one level; from the variances of
        the columns and the shares of their most frequent values. None where each has a noise of its own."""
        if not self.noise_by_column:
            return np.ones(spread.size)
        if self.noise == "column" or not mostly_one_value(common):
            return None
        return shared_ratios(spread)

    def length_prior(self, params: GaussianParams) -> Evidence | None:
        """Scales of their own follow the length of features, and their prior has a say in it."""
        if self.scale != "feature":
            return None
        cells = np.full(params.scale.size, PSEUDO)
        return Evidence(cells, PSEUDO * RELEVANT * float(params.unit) / params.scale, 0.0)

    def common_scale(self, params: GaussianParams, rng: np.random.Generator) -> float:
        """The scale that all features share; where there are no features, a draw from its prior."""
        if not isinstance(self.scale, str):
            return float(self.scale)
        none = np.zeros(1)
        shared = params.scale if params.scale.size else variances.drawn(none, none, params.unit, rng)
        return float(shared[0])

    def fitted_variances(
        self, params: GaussianParams, sums: GaussianSums, rotated: list[Rotation]
    ) -> tuple[Float, float]:
        """Noise (column), and the new common scale over the old."""
        ratios, data, prior = self.noise_ratios(params.spread, params.common), None, None
        if isinstance(self.noise, str):
            least = self.least_noise(params) if ratios is None else 0.0
            weak = self.weak(params) * sums.typical_precision(params)
            data = Evidence(sums.cells(params), sums.squares(params), weak, least)
        if self.scale == "one":
            prior = Evidence(np.asarray(float(params.mean.size)), np.zeros(()), float(params.unit))
        turns = COLUMN_TURNS if self.noise_by_column else ONE_TURNS
        return variances.fit(rotated, params.noise, float(params.scale[0]), data, prior, ratios, turns)

    def least_noise(self, params: GaussianParams) -> Float:
        """(column) more where most cells have one value: a density is paid without limit there."""
        discrete = np.where(params.common > MOSTLY, DISCRETE * params.common, 0.0)
        return np.asarray(np.maximum(LOWEST, discrete) * params.spread)

    def weak(self, params: GaussianParams) -> float | Float:
        """Variance of a pseudo cell of the noise, one or by column."""
        if self.noise_ratios(params.spread, params.common) is None:
            return WEAK * params.spread
        return FLOOR * float(params.unit)

    def pseudo_cells(self, survey: Survey) -> tuple[Float, Float]:
        """How many pseudo cells of the noise there are for each column, and their variance (column)."""
        columns, spread = survey.cells.size, column_variances(survey)
        if self.noise_ratios(spread, common(survey)) is None:
            return np.asarray(PSEUDO), WEAK * spread
        share = PSEUDO / columns if isinstance(self.noise, str) else 0.0
        return np.asarray(share), np.full(columns, FLOOR * typical_variance(survey))

    def relevances(self, params: GaussianParams) -> Float:
        """The scale of each feature at its optimum given q(A), where there is one for each (factors.md 4)."""
        if self.scale != "feature":
            return np.asarray(params.scale)
        columns = np.asarray(float(params.noise.size))
        prior = Evidence(columns, np.zeros(()), RELEVANT * float(params.unit))
        return prior.mode(gaussian_params.second_moment(params))

    def scale_prior(self, params: GaussianParams) -> float:
        """Of a scale for each feature the density of its log, normalised: their number may change."""
        if self.scale == "one":
            return variances.log_prior(params.scale[:1], float(params.unit))
        at = RELEVANT * float(params.unit)
        return variances.log_prior(params.scale / at, 1.0)

    def drawn_variances(
        self, params: GaussianParams, sums: GaussianSums, rng: np.random.Generator
    ) -> GaussianParams:
        """Noise given A and Z, scale given A, each from its inverse gamma conditional."""
        if isinstance(self.noise, str):
            misfit, cells = dictionary.residual(params, sums), sums.cells(params)
            ratios = self.noise_ratios(params.spread, params.common)
            if ratios is None:
                drawn = variances.drawn(cells, misfit, self.weak(params), rng)
            else:
                misfit, cells = (misfit / ratios).sum(keepdims=True), cells.sum(keepdims=True)
                drawn = ratios * variances.drawn(cells, misfit, self.weak(params), rng)
            params = replace(params, noise=drawn)
        if isinstance(self.scale, str):
            drawn = self._draw_scales(params, rng)
            params = replace(params, scale=np.broadcast_to(drawn, params.scale.shape).copy())
        return params

    def _draw_scales(self, params: GaussianParams, rng: np.random.Generator) -> Float:
        """One scale, or one for each feature, given the dictionary."""
        second, size = (params.mean**2).sum(axis=1), float(params.noise.size)
        if self.scale == "feature":
            at = RELEVANT * float(params.unit)
            return variances.drawn(np.full(second.size, size), second, at, rng)
        all_of_it = np.asarray([size * second.size])
        return variances.drawn(all_of_it, second.sum(keepdims=True), float(params.unit), rng)
