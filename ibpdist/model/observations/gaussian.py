"""Rows are sums of features plus normal noise: x_n ~ N(y_n A, diag(noise)), A_kd ~ N(0, scale_k).

Learned variances have a weak prior worth PSEUDO cells of variance v0: log v has the density
-(PSEUDO/2) (log v + v0 / v) + const, a scaled inverse chi-squared for v. It keeps them away from
zero when K is large or a column is constant (linear-gaussian.md 1). Fits take the mode of log v.
A noise for each column has PSEUDO cells worth WEAK of the column's variance, which is the prior
Gamma(1, 0.1) on 1 / psi of standardised columns (factors.md 4): with K near the number of rows the
objective would run off without it. A scale for each feature (automatic relevance) has PSEUDO
entries of RELEVANT times the typical variance, the prior exp(-1e-3 / s) / s: features that explain
nothing shrink to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import Named, replace
from ibpdist.data._base import Chunk
from ibpdist.model.observations import dictionary, variances
from ibpdist.model.observations._base import RowState, RowSums, Survey
from ibpdist.model.observations.dictionary import LOG_2PI, GaussianParams, GaussianSums, ScatteredParams
from ibpdist.model.observations.patterns import column_groups, many, missing_rows, refined
from ibpdist.model.observations.rotation import Family, Rotation
from ibpdist.model.observations.scattered import ScatteredPass, filled
from ibpdist.model.observations.settings import choice, route
from ibpdist.model.observations.spread import LEAST, column_variances, typical_variance
from ibpdist.model.observations.tiles import Pass, globals_of
from ibpdist.model.observations.variances import PSEUDO, Evidence
from ibpdist.model.weights._base import Weights

Float = NDArray[np.float64]
HEATS = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0)
ONE_TURNS, COLUMN_TURNS = 30, 3
TINY = 1e-24
"""The least fixed noise, as a share of the variance of a cell: squares over smaller ones overflow float32."""
FLOOR = 1e-3
"""Variance of a pseudo cell of one noise for all columns, as a share of the typical variance of a cell."""
WEAK, LOWEST = 0.1, 1e-3
"""For a noise of each column, as shares of its variance: that of a pseudo cell, and the least of fits.
Draws have no least value: the prior puts e^-100 below it."""
RELEVANT = 1e-3
"""Variance of a pseudo entry of the dictionary for a scale of each feature, as a share of the typical one."""
EXACT_BYTES = 64 << 20
"""Largest size of the Gram matrices of all column groups of new rows that are taken at once."""
COVARIANCE = ("basis", "spectrum", "ahead")


@dataclass(frozen=True)
class Gaussian:
    """Settings: `noise` one, column or a fixed variance; `scale` one or feature (learned) or fixed;
    `family` of q(A). Missing cells are exact by either route: `missing` groups has a Gram matrix for each
    group of columns that are missing together, rows has one for each row; auto and exact take the
    cheaper of them."""

    noise: Literal["one", "column"] | float = "one"
    scale: Literal["one", "feature"] | float = "one"
    family: Family = Family.STRUCTURED
    missing: Literal["auto", "exact", "groups", "rows"] = "auto"

    def __post_init__(self) -> None:
        choice("noise", self.noise, ("one", "column"), number=True)
        choice("scale", self.scale, ("one", "feature"), number=True)
        choice("family", self.family, tuple(Family), number=False)
        route(self.missing)
        object.__setattr__(self, "family", Family(self.family))

    name: ClassVar[str] = "gaussian"
    has_row_density: ClassVar[bool] = True
    dense: ClassVar[bool] = False
    passes: ClassVar[type[Pass]] = Pass
    by_rows: ClassVar[bool] = True
    """Whether rows can have Gram matrices of their own."""
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def survey(self, chunk: Chunk) -> Survey:
        x = chunk.x
        seen = (
            np.full(x.shape[1], float(chunk.rows)) if chunk.observed is None else chunk.observed.sum(axis=0)
        )
        return Survey(
            rows=np.asarray(float(chunk.rows)),
            cells=seen.astype(np.float64),
            total=x.sum(axis=0, dtype=np.float64),
            squares=np.einsum("nd,nd->d", x, x, dtype=np.float64),
            missing=missing_rows(chunk),
        )

    def init(self, survey: Survey, features: int, rng: np.random.Generator) -> GaussianParams:
        """A random dictionary, noise as large as the data's variance.

        Its length makes the first log odds random projections of the rows with variance 4,
        whatever the number of columns: larger ones switch every feature off in wide data.
        """
        unit, columns = typical_variance(survey), survey.cells.size
        noise = unit if isinstance(self.noise, str) else self.noise
        scale = unit if isinstance(self.scale, str) else self.scale
        if noise < TINY * unit:
            raise UsageError(
                f"noise is {noise:g}, but the cells have a variance of {unit:.3g}: expected a variance of at "
                f"least {TINY:g} of that, or noise=one to learn it"
            )
        each = column_variances(survey) if self.noise == "column" else np.full(columns, noise)
        kind, facts = self._facts(survey, features)
        return kind(
            mean=np.sqrt(4.0 * each / columns) * rng.standard_normal((features, columns)),
            entropy=np.zeros(()),
            noise=each,
            scale=np.full(features, scale),
            stretch=np.ones(features),
            **facts,
        )

    def adopt(self, params: GaussianParams, survey: Survey) -> GaussianParams:
        """The same dictionary and variances, those that are fixed as set. Its covariance is kept where
        the columns fall into the same groups; else the mean is taken as known exactly."""
        noise = params.noise if isinstance(self.noise, str) else np.full_like(params.noise, self.noise)
        scale = params.scale if isinstance(self.scale, str) else np.full_like(params.scale, self.scale)
        if self.noise == "one":
            noise = np.full_like(noise, noise.mean())
        if self.scale == "one":
            scale = np.full_like(scale, scale.mean())
        kind, facts = self._facts(survey, params.scale.size)
        facts |= {"noise": noise, "scale": scale, "stretch": np.ones(params.scale.size), "mean": params.mean}
        if kind is type(params) and np.array_equal(params.group, facts["group"]):
            return replace(params, **{n: v for n, v in facts.items() if n not in COVARIANCE})
        return kind(**facts, entropy=np.zeros(()))

    def met(self, params: GaussianParams, chunk: Chunk) -> Iterator[tuple[Chunk, GaussianParams]]:
        """Rows of other data, where other columns may be missing together, with the parameters for them."""
        if chunk.observed is None or isinstance(params, ScatteredParams):
            yield chunk, params
            return
        most = max(EXACT_BYTES, 2 * params.basis.nbytes) // max(params.basis[0].nbytes, 1)
        for part, group, old in refined(chunk, params.group, most):
            yield part, replace(params, group=group, basis=params.basis[old], spectrum=params.spectrum[old])

    def isotropic(self) -> Gaussian:
        """The same with one noise for all columns, as there is in units of the noise."""
        return dataclasses.replace(self, noise="one") if isinstance(self.noise, str) else self

    def lifted(
        self,
        coarse: GaussianParams,
        survey: Survey,
        basis: Float,
        unit: Float,
        grown: float,
        rng: np.random.Generator,
    ) -> GaussianParams:
        """Parameters for all columns from those of data projected on `basis` (column, component) in units
        `unit` (column), with `grown` times as many rows."""
        begun = self.init(survey, coarse.scale.size, rng)
        mean = (coarse.mean @ basis.T) / unit
        noise = np.full(unit.size, coarse.noise[0]) / unit**2
        if self.noise == "one":
            noise = np.full_like(noise, noise.mean())
        size = np.full_like(begun.scale, max(float(np.mean(mean**2)), LEAST))
        return replace(
            begun,
            mean=mean,
            basis=np.repeat(coarse.basis[:1], len(begun.basis), axis=0),
            spectrum=np.repeat(coarse.spectrum[:1] * grown, len(begun.spectrum), axis=0),
            noise=noise if isinstance(self.noise, str) else begun.noise,
            scale=size if isinstance(self.scale, str) else begun.scale,
        )

    def units(self, survey: Survey) -> Float:
        """(column) units in which all columns count alike: of columns with a noise of their own, how
        much they vary."""
        return np.sqrt(column_variances(survey)) if self.noise == "column" else np.ones(survey.cells.size)

    def begun(self, params: GaussianParams, mean: Float, noise: Float) -> GaussianParams:
        """Initial parameters with this dictionary and noise (column), as far as they are not fixed."""
        each = noise if self.noise == "column" else np.full_like(noise, noise.mean())
        size = np.maximum((mean**2).mean(axis=1), LEAST)
        scale = size if self.scale == "feature" else np.full_like(size, size.mean())
        return replace(
            params,
            mean=mean,
            noise=each if isinstance(self.noise, str) else params.noise,
            scale=scale if isinstance(self.scale, str) else params.scale,
        )

    def cooling_path(self, params: GaussianParams) -> Iterator[GaussianParams]:
        """Noise times 64, 32, .. 1; a dictionary without a spectrum was never fitted."""
        for heat in HEATS if params.spectrum.any() else ():
            yield replace(params, noise=heat * params.noise)

    def tempered(self, params: GaussianParams, heat: float) -> GaussianParams:
        """Noise and scale so many times as large."""
        return replace(params, noise=heat * params.noise, scale=heat * params.scale)

    def _facts(self, survey: Survey, features: int) -> tuple[type[GaussianParams], dict[str, Any]]:
        """What the data decide: by which route missing cells are exact, groups of columns, counts, sums of
        squares; and a covariance of zero."""
        group, by_rows = self._groups(survey, features)
        groups, none = int(group.max()) + 1, np.zeros((features, features))
        facts = {
            "basis": np.zeros((groups, features, features)),
            "spectrum": np.zeros((group.size if by_rows else groups, features)),
            "group": group,
            "cells": survey.cells,
            "squares": survey.squares,
            "unit": np.asarray(typical_variance(survey)),
            "spread": column_variances(survey),
        }
        return (ScatteredParams, facts | {"ahead": none}) if by_rows else (GaussianParams, facts)

    def length_prior(self, params: GaussianParams) -> Evidence | None:
        """Scales of their own follow the length of features, and their prior has a say in it."""
        if self.scale != "feature":
            return None
        cells = np.full(params.scale.size, PSEUDO)
        return Evidence(cells, PSEUDO * RELEVANT * float(params.unit) / params.scale, 0.0)

    def stretched(
        self, params: GaussianParams, sums: GaussianSums, stretch: Float
    ) -> tuple[GaussianParams, GaussianSums]:
        """Longer features and smaller weights; those of the rows are divided when the rows are next met."""
        made = replace(
            params,
            mean=params.mean * stretch[:, None],
            **params.longer(stretch),
            entropy=params.entropy + params.noise.size * np.log(stretch).sum(),
            scale=params.scale * stretch**2,
            stretch=stretch,
        )
        return made, sums.stretched(stretch)

    def current(self, state: RowState, params: GaussianParams) -> RowState:
        """Row state in the units of a dictionary that was stretched since."""
        if not state.w.shape[0] or (params.stretch == 1).all():
            return state
        # In float64: a dictionary of nothing may be stretched beyond what the rows' precision can hold.
        smaller = np.divide(state.w, params.stretch[:, None], out=np.empty_like(state.w), casting="same_kind")
        return replace(state, w=smaller)

    def sweep(
        self,
        chunk: Chunk,
        params: GaussianParams,
        log_odds: Float,
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> tuple[RowState, RowSums, GaussianSums]:
        state = self.current(state, params)
        if isinstance(params, ScatteredParams):
            one = ScatteredPass.of(chunk, params, log_odds, weights, rules, state, draws, inner)
            return one.run(state.ids)
        made = globals_of(params, chunk.x.dtype)
        return self.passes.of(chunk, made, log_odds, weights, rules, state, draws, inner).run(state.ids)

    def impute(
        self, chunk: Chunk, params: GaussianParams, weights: Weights, state: RowState, draws: Draws
    ) -> Chunk:
        """The chunk as the sums of its draws have it: with the cells that were drawn, if any were."""
        if not isinstance(params, ScatteredParams):
            return chunk
        return filled(chunk, params, weights.combine(state.z, state.w), draws)

    def update(
        self, params: GaussianParams, sums: GaussianSums, rule: Rule, rng: np.random.Generator
    ) -> GaussianParams:
        """q(A) and the variances at their joint optimum (linear-gaussian.md 6, 8), or a draw of each."""
        if rule is Rule.DRAW:
            rotated = dictionary.rotations(params, sums, Family.STRUCTURED)
            return self._draw_variances(dictionary.draw(dictionary.solve(params, rotated), rng), sums, rng)
        rotated = dictionary.rotations(params, sums, self.family)
        noise, ratio = self._fit_variances(params, sums, rotated)
        params = replace(params, noise=noise, scale=params.scale * ratio)
        solved = dictionary.solve(params, [r.rescaled(ratio) for r in rotated])
        return replace(solved, scale=self._relevances(solved))

    def magnitude(self, params: GaussianParams) -> float:
        """Sum of squares in units of the noise: what cancels in the likelihood (linear-gaussian.md 11)."""
        return float((params.squares / params.noise).sum())

    def score(self, params: GaussianParams, sums: GaussianSums) -> dict[str, float]:
        """Terms of the objective (linear-gaussian.md 3): likelihood, -KL of the dictionary.

        For draws with cells missing in no pattern the likelihood is that of all cells, hidden ones as drawn.
        """
        constant = sums.cells(params) @ (LOG_2PI + np.log(params.noise))
        likelihood = -0.5 * (constant + dictionary.misfit(params, sums))
        return {"likelihood": float(likelihood), **self.priors(params)}

    def priors(self, params: GaussianParams) -> dict[str, float]:
        """The terms of the score that need no rows."""
        second = dictionary.second_moment(params)
        prior = params.noise.size * (np.log(params.scale) + LOG_2PI) + second / params.scale
        terms = {"dictionary": float(params.entropy - 0.5 * prior.sum())}
        if isinstance(self.noise, str):
            learned = params.noise if self.noise == "column" else params.noise[:1]
            terms["noise"] = variances.log_prior(learned, self._weak(params))
        if isinstance(self.scale, str):
            terms["scale"] = self._scale_prior(params)
        return terms

    def common_scale(self, params: GaussianParams, rng: np.random.Generator) -> float:
        """The scale that all features share; where there are no features, a draw from its prior."""
        if not isinstance(self.scale, str):
            return float(self.scale)
        none = np.zeros(1)
        shared = params.scale if params.scale.size else variances.drawn(none, none, params.unit, rng)
        return float(shared[0])

    def additive(self, params: GaussianParams) -> bool:
        """Gram matrices are by group, and more rows can split a group."""
        return len(params.spectrum) == 1

    def describe(self, params: GaussianParams, order: NDArray[np.intp]) -> Named:
        shared = params.scale[0] if params.scale.size else np.nan
        return {
            "mean": (("feature", "column"), params.mean[order]),
            "mean_sd": (("feature", "column"), np.sqrt(dictionary.variance(params))[order]),
            "noise": (("column",), params.noise)
            if self.noise == "column"
            else ((), params.noise[:1].reshape(())),
            "scale": (("feature",), params.scale[order])
            if self.scale == "feature"
            else ((), np.asarray(shared)),
            "spread": (("column",), params.spread),
            **params.describe(order),
        }

    def _groups(self, survey: Survey, features: int) -> tuple[NDArray[np.intp], bool]:
        """Groups of columns, and whether each row has a Gram matrix of its own (then there is one group)."""
        group = column_groups(survey.missing)
        wanted = self.missing == "rows" or (self.missing != "groups" and many(group, features))
        by_rows = self.by_rows and wanted and bool(group.any())
        return (np.zeros_like(group), True) if by_rows else (group, False)

    def _fit_variances(
        self, params: GaussianParams, sums: GaussianSums, rotated: list[Rotation]
    ) -> tuple[Float, float]:
        """Noise (column), and the new common scale over the old."""
        one = self.noise != "column"
        data = prior = None
        if isinstance(self.noise, str):
            least = 0.0 if one else LOWEST * params.spread
            data = Evidence(sums.cells(params), sums.squares(params), self._weak(params), least)
        if self.scale == "one":
            prior = Evidence(np.asarray(float(params.mean.size)), np.zeros(()), float(params.unit))
        turns = ONE_TURNS if one else COLUMN_TURNS
        return variances.fit(rotated, params.noise, float(params.scale[0]), data, prior, one, turns)

    def _weak(self, params: GaussianParams) -> float | Float:
        """Variance of a pseudo cell of the noise, one or by column."""
        return WEAK * params.spread if self.noise == "column" else FLOOR * float(params.unit)

    def _relevances(self, params: GaussianParams) -> Float:
        """The scale of each feature at its optimum given q(A), where there is one for each (factors.md 4)."""
        if self.scale != "feature":
            return np.asarray(params.scale)
        columns = np.asarray(float(params.noise.size))
        prior = Evidence(columns, np.zeros(()), RELEVANT * float(params.unit))
        return prior.mode(dictionary.second_moment(params))

    def _scale_prior(self, params: GaussianParams) -> float:
        """Of a scale for each feature the density of its log, normalised: their number may change."""
        if self.scale == "one":
            return variances.log_prior(params.scale[:1], float(params.unit))
        at = RELEVANT * float(params.unit)
        return variances.log_prior(params.scale / at, 1.0)

    def _draw_variances(
        self, params: GaussianParams, sums: GaussianSums, rng: np.random.Generator
    ) -> GaussianParams:
        """Noise given A and Z, scale given A, each from its inverse gamma conditional."""
        if isinstance(self.noise, str):
            misfit, cells = dictionary.residual(params, sums), sums.cells(params)
            if self.noise == "one":
                misfit, cells = misfit.sum(keepdims=True), cells.sum(keepdims=True)
            drawn = variances.drawn(cells, misfit, self._weak(params), rng)
            params = replace(params, noise=np.broadcast_to(drawn, params.noise.shape).copy())
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
