"""Rows are sums of features plus normal noise: x_n ~ N(y_n A, diag(noise)), A_kd ~ N(0, scale_k).

How noise and scale are learned is in noise_and_scale.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import NOTHING, Named, Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.model.observations import dictionary, gaussian_params, variances
from ibpdist.model.observations._base import RowState, RowSums, Score, Survey
from ibpdist.model.observations.described import described
from ibpdist.model.observations.drawn import drawn_params
from ibpdist.model.observations.facts import common, mostly_one_value, survey_of
from ibpdist.model.observations.gaussian_params import LOG_2PI, GaussianParams, ScatteredParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.imputed import filled, precision_of
from ibpdist.model.observations.intercept import initial as initial_intercept
from ibpdist.model.observations.intercept import regrouped
from ibpdist.model.observations.noise_and_scale import NoiseAndScale
from ibpdist.model.observations.patterns import column_groups, many, refined
from ibpdist.model.observations.rotation import Family
from ibpdist.model.observations.row_noise import START, RowNoise
from ibpdist.model.observations.scattered import ScatteredPass
from ibpdist.model.observations.settings import choice, flag, route
from ibpdist.model.observations.spread import LEAST, column_variances, typical_variance
from ibpdist.model.observations.tiles import Pass, globals_of
from ibpdist.model.weights._base import EntryPrior, Weights

Float = NDArray[np.float64]
HEATS = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0)
TINY = 1e-24
"""The least fixed noise, as a share of the variance of a cell: squares over smaller ones overflow float32."""
EXACT_BYTES = 64 << 20
"""Largest size of the Gram matrices of all column groups of new rows that are taken at once."""
COVARIANCE = ("basis", "spectrum", "ahead")


@dataclass(frozen=True)
class Gaussian(NoiseAndScale):
    """Settings: `noise` one, column, auto or a fixed variance; `scale` one or feature (learned) or fixed;
    `family` of q(A). Missing cells are exact by either route: `missing` groups has a Gram matrix for each
    group of columns that are missing together, rows has one for each row; auto and exact take the
    cheaper of them. With `intercept` every row has a value of each column beside its features; with
    `row_noise` learn some rows are noisier than others."""

    family: Family = Family.STRUCTURED
    missing: Literal["auto", "exact", "groups", "rows"] = "auto"
    intercept: bool = False
    row_noise: Literal["learn", "none"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("family", self.family, tuple(Family), number=False)
        route(self.missing)
        flag("intercept", self.intercept)
        choice("row_noise", self.row_noise, ("learn", "none"), number=False)
        object.__setattr__(self, "family", Family(self.family))

    name: ClassVar[str] = "gaussian"
    counts: ClassVar[bool] = False
    has_row_density: ClassVar[bool] = True
    dense: ClassVar[bool] = False
    passes: ClassVar[type[Pass]] = Pass
    by_rows: ClassVar[bool] = True
    """Whether rows can have Gram matrices of their own."""
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})
    fit_settings: ClassVar[Mapping[str, object]] = {}

    def summarise(self, chunk: Chunk) -> Survey:
        return survey_of(chunk)

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
        ratios = self._ratios(survey)
        each = column_variances(survey) if ratios is None else noise * ratios
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
        ratios = self._ratios(survey)
        if isinstance(self.noise, str) and ratios is not None:
            noise = noise.mean() * ratios
        if self.scale == "one":
            scale = np.full_like(scale, scale.mean())
        kind, facts = self._facts(survey, params.scale.size)
        facts |= {"noise": noise, "scale": scale, "stretch": np.ones(params.scale.size), "mean": params.mean}
        alike = kind is type(params) and np.array_equal(params.group, facts["group"])
        facts["intercept"] = gaussian_params.adopted_intercept(params, facts["intercept"], alike)
        if not (isinstance(facts["row_noise"], Nothing) or isinstance(params.row_noise, Nothing)):
            facts["row_noise"] = replace(facts["row_noise"], freedom=params.row_noise.freedom)
        if alike:
            return replace(params, **{n: v for n, v in facts.items() if n not in COVARIANCE})
        return kind(**facts, entropy=np.zeros(()))

    def per_row_params(self, params: GaussianParams, chunk: Chunk) -> Iterator[tuple[Chunk, GaussianParams]]:
        """Rows of other data, where other columns may be missing together, with the parameters for them."""
        if chunk.observed is None or isinstance(params, ScatteredParams):
            yield chunk, params
            return
        most = max(EXACT_BYTES, 2 * params.basis.nbytes) // max(params.basis[0].nbytes, 1)
        for part, group, old in refined(chunk, params.group, most):
            yield (
                part,
                replace(
                    params,
                    group=group,
                    basis=params.basis[old],
                    spectrum=params.spectrum[old],
                    intercept=regrouped(params.intercept, old),
                ),
            )

    def isotropic(self) -> Gaussian:
        """The same with one noise for all columns, as there is in units of the noise, and no intercept."""
        plain = dataclasses.replace(self, intercept=False, row_noise="none")
        return dataclasses.replace(plain, noise="one") if isinstance(self.noise, str) else plain

    def origin(self, survey: Survey) -> Float:
        """(column) where rows without features are taken to be when a fit begins."""
        return survey.total / np.maximum(survey.cells, 1.0) if self.intercept else np.zeros(survey.cells.size)

    def moved(self, params: GaussianParams, origin: Float) -> GaussianParams:
        """The same with rows that have no feature at `origin` (column), where there is an intercept."""
        if isinstance(params.intercept, Nothing):
            return params
        centre = np.zeros_like(params.intercept.centre)
        return replace(params, intercept=replace(params.intercept, origin=origin, centre=centre))

    def widened(self, params: GaussianParams, survey: Survey, grown: float) -> GaussianParams:
        """Parameters for all rows from those of a sample, of which there are `grown` times as many."""
        made = self.adopt(params, survey)
        return replace(made, spectrum=made.spectrum * grown)

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
        blank = self.init(survey, coarse.scale.size, rng)
        mean = (coarse.mean @ basis.T) / unit
        noise = np.full(unit.size, coarse.noise[0]) / unit**2
        ratios = self._ratios(survey)
        if ratios is not None:
            noise = noise.mean() * ratios
        size = np.full_like(blank.scale, max(float(np.mean(mean**2)), LEAST))
        return replace(
            blank,
            mean=mean,
            basis=np.repeat(coarse.basis[:1], len(blank.basis), axis=0),
            spectrum=np.repeat(coarse.spectrum[:1] * grown, len(blank.spectrum), axis=0),
            noise=noise if isinstance(self.noise, str) else blank.noise,
            scale=size if isinstance(self.scale, str) else blank.scale,
        )

    def units(self, survey: Survey) -> Float:
        """(column) units in which all columns count alike: of columns with a noise of their own, how
        much they vary."""
        ratios = self._ratios(survey)
        return np.sqrt(column_variances(survey) if ratios is None else ratios)

    def initial(self, params: GaussianParams, mean: Float, noise: Float | None = None) -> GaussianParams:
        """Initial parameters with this dictionary and noise (column), as far as they are not fixed; without
        `noise` variances stay as they are."""
        if noise is None:
            return replace(params, mean=mean)
        ratios = self.noise_ratios(params.spread, params.common)
        each = noise if ratios is None else noise.mean() * ratios
        size = np.maximum((mean**2).mean(axis=1), LEAST)
        scale = size if self.scale == "feature" else np.full_like(size, size.mean())
        return replace(
            params,
            mean=mean,
            noise=each if isinstance(self.noise, str) else params.noise,
            scale=scale if isinstance(self.scale, str) else params.scale,
        )

    def cooling_path(self, params: GaussianParams) -> Iterator[GaussianParams]:
        """Noise times 64, 32, .. 1; a dictionary without a spectrum was never fitted. While it is hot rows
        are even: they would take the heat for precision."""
        for heat in HEATS if params.spectrum.any() else ():
            even = NOTHING if heat > 1 else params.row_noise
            yield replace(params, noise=heat * params.noise, row_noise=even)

    def tempered(self, params: GaussianParams, heat: float) -> GaussianParams:
        """Noise and scale `heat` times as large; rows are even, as they would take the heat for precision."""
        return replace(params, noise=heat * params.noise, scale=heat * params.scale, row_noise=NOTHING)

    def _facts(self, survey: Survey, features: int) -> tuple[type[GaussianParams], dict[str, Any]]:
        """What the data decide: by which route missing cells are exact, groups of columns, counts, sums of
        squares; and a covariance of zero."""
        group, by_rows = self._groups(survey, features)
        groups, none = int(group.max()) + 1, np.zeros((features, features))
        facts: dict[str, Any] = {
            "basis": np.zeros((groups, features, features)),
            "spectrum": np.zeros((group.size if by_rows else groups, features)),
            "group": group,
            "cells": survey.cells,
            "squares": survey.squares,
            "unit": np.asarray(typical_variance(survey)),
            "spread": column_variances(survey),
            "intercept": NOTHING,
            "common": common(survey),
            "row_noise": self._row_noise(survey),
        }
        if self.intercept:
            facts["intercept"] = initial_intercept(survey.total, survey.cells, groups, features)
        return (ScatteredParams, facts | {"ahead": none}) if by_rows else (GaussianParams, facts)

    def rescaled(
        self, params: GaussianParams, sums: GaussianSums, lengths: Float
    ) -> tuple[GaussianParams, GaussianSums]:
        """Longer features and smaller weights; those of the rows are divided when the rows are next met."""
        made = replace(
            params,
            mean=params.mean * lengths[:, None],
            **params.longer(lengths),
            entropy=params.entropy + params.noise.size * np.log(lengths).sum(),
            scale=params.scale * lengths**2,
            stretch=lengths,
        )
        return made, sums.rescaled(lengths)

    def strength(self, params: GaussianParams) -> Float:
        """(feature) sum over columns of the squares of the dictionary, in units of the noise."""
        made: Float = np.square(params.mean) @ (1 / params.noise)
        return made

    def last_lengths(self, params: GaussianParams) -> Float:
        """(feature) by how much the last update rescaled each feature."""
        return np.asarray(params.stretch)

    def without_rescaling(self, params: GaussianParams) -> GaussianParams:
        """The same for rows whose state is made under these parameters."""
        return replace(params, stretch=np.ones_like(params.stretch))

    def in_current_units(self, state: RowState, params: GaussianParams) -> RowState:
        """Row state after the last update rescaled the features."""
        if not state.w.shape[0] or (params.stretch == 1).all():
            return state
        # In float64: a dictionary of nothing may be rescaled beyond what the rows' precision can hold.
        smaller = np.divide(state.w, params.stretch[:, None], out=np.empty_like(state.w), casting="same_kind")
        return replace(state, w=smaller)

    def sweep(
        self,
        chunk: Chunk,
        params: GaussianParams,
        prior: EntryPrior,
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> tuple[RowState, RowSums, GaussianSums]:
        state = self.in_current_units(state, params)
        if isinstance(params, ScatteredParams):
            one = ScatteredPass.of(chunk, params, prior, weights, rules, state, draws, inner)
            return one.run(state.ids)
        made = globals_of(params, chunk.x.dtype)
        return self.passes.of(chunk, made, prior, weights, rules, state, draws, inner).run(state.ids)

    def impute(
        self, chunk: Chunk, params: GaussianParams, weights: Weights, state: RowState, draws: Draws
    ) -> Chunk:
        """The chunk as the sums of its draws have it: with the cells that were drawn, if any were."""
        if not isinstance(params, ScatteredParams):
            return chunk
        return filled(chunk, params, weights.combine(state.z, state.w), precision_of(state), draws)

    def update(
        self, params: GaussianParams, sums: GaussianSums, rule: Rule, rng: np.random.Generator
    ) -> GaussianParams:
        """q(A) and the variances at their joint optimum (linear-gaussian.md 6, 8), or a draw of each."""
        if rule is Rule.DRAW:
            return drawn_params(self, params, sums, rng)
        rotated = dictionary.rotations(params, sums, self.family)
        noise, ratio = self.fitted_variances(params, sums, rotated)
        params = replace(params, noise=noise, scale=params.scale * ratio)
        solved = dictionary.solve(params, [r.rescaled(ratio) for r in rotated])
        return replace(
            solved,
            scale=self.relevances(solved),
            intercept=sums.intercept(solved),
            row_noise=sums.best_row_noise(solved),
        )

    def magnitude(self, params: GaussianParams) -> float:
        """Sum of squares in units of the noise: what cancels in the likelihood (linear-gaussian.md 11)."""
        return float((params.squares / params.noise).sum())

    def score(self, params: GaussianParams, sums: GaussianSums) -> Score:
        """Terms of the objective (linear-gaussian.md 3): likelihood, -KL of the dictionary.

        For draws with cells missing in no pattern the likelihood is that of all cells, hidden ones as drawn.
        """
        likelihood = -0.5 * (sums.constant(params) + dictionary.misfit(params, sums))
        terms = {"likelihood": float(likelihood), **sums.row_noise_score(params), **self.priors(params)}
        return Score(terms, self.magnitude(params))

    def priors(self, params: GaussianParams) -> dict[str, float]:
        """The terms of the score that need no rows."""
        second = gaussian_params.second_moment(params)
        prior = params.noise.size * (np.log(params.scale) + LOG_2PI) + second / params.scale
        terms = {"dictionary": float(params.entropy - 0.5 * prior.sum())}
        if isinstance(self.noise, str):
            ratios = self.noise_ratios(params.spread, params.common)
            learned = params.noise if ratios is None else params.noise[:1] / ratios[:1]
            terms["noise"] = variances.log_prior(learned, self.weak(params))
        if isinstance(self.scale, str):
            terms["scale"] = self.scale_prior(params)
        return terms

    def padded(self, params: GaussianParams, features: int) -> GaussianParams:
        """With features more of which nothing is known, as long as a typical one."""
        typical = np.median(params.scale) if params.scale.size else float(params.unit)
        scale = np.append(params.scale, np.full(features, typical))
        return dictionary.known(params, np.pad(params.mean, ((0, features), (0, 0))), scale)

    def additive(self, params: GaussianParams) -> bool:
        """Gram matrices are by group, and more rows can split a group."""
        return len(params.spectrum) == 1

    def describe(self, params: GaussianParams, order: NDArray[np.intp]) -> Named:
        shared = params.scale[0] if params.scale.size else np.nan
        return {
            "noise": (("column",), params.noise)
            if self.noise_by_column
            else ((), params.noise[:1].reshape(())),
            "scale": (("feature",), params.scale[order])
            if self.scale == "feature"
            else ((), np.asarray(shared)),
            **described(params, order),
            **self._described_row_noise(params),
        }

    def _described_row_noise(self, params: GaussianParams) -> Named:
        """Infinite degrees of freedom where rows were not given a noise of their own."""
        if self.row_noise == "none":
            return {}
        return {"row_freedom": ((), np.asarray(gaussian_params.freedom_of(params)))}

    def _row_noise(self, survey: Survey) -> RowNoise | Nothing:
        """Nothing where columns have mostly one value: there it pays for what is no structure."""
        even = self.row_noise == "none" or mostly_one_value(common(survey))
        return NOTHING if even else RowNoise(np.asarray(START), *self.pseudo_cells(survey))

    def _ratios(self, survey: Survey) -> Float | None:
        """`noise_ratios` of the data."""
        return self.noise_ratios(column_variances(survey), common(survey))

    def _groups(self, survey: Survey, features: int) -> tuple[NDArray[np.intp], bool]:
        """Groups of columns, and whether each row has a Gram matrix of its own (then there is one group)."""
        group = column_groups(survey.missing)
        wanted = self.missing == "rows" or (self.missing != "groups" and many(group, features))
        by_rows = self.by_rows and wanted and bool(group.any())
        return (np.zeros_like(group), True) if by_rows else (group, False)
