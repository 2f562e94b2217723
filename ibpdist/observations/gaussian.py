"""Rows are sums of features plus normal noise: x_n ~ N(y_n A, diag(noise)), A_kd ~ N(0, scale_k).

Learned variances have a weak prior worth PSEUDO cells of variance v0: log v has the density
-(PSEUDO/2) (log v + v0 / v) + const, a scaled inverse chi-squared for v. It keeps them away from
zero when K is large or a column is constant (vibp 9.3). Fits take the mode of log v.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.data._base import Chunk
from ibpdist.draws import Draws
from ibpdist.errors import UsageError
from ibpdist.observations import dictionary, variances
from ibpdist.observations._base import RowState, RowSums, Survey
from ibpdist.observations.dictionary import LOG_2PI, GaussianParams, GaussianSums
from ibpdist.observations.patterns import column_groups, missing_rows
from ibpdist.observations.rotation import Family, Rotation
from ibpdist.observations.tiles import Pass, globals_of
from ibpdist.observations.variances import PSEUDO, Evidence
from ibpdist.rules import Rule, Rules
from ibpdist.structs import Named, replace
from ibpdist.weights._base import Weights

Float = NDArray[np.float64]
HEATS = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0)
ONE_TURNS, COLUMN_TURNS = 30, 3
FLOOR = 1e-3
"""Variance of a pseudo cell of the noise, as a share of the typical variance of a cell."""
EXACT_BYTES = 64 << 20
"""Largest size of the Gram matrices of all column groups for exact missing cells (DESIGN 4)."""


@dataclass(frozen=True)
class Gaussian:
    """Settings: `noise` one, column or a fixed variance; `scale` one (learned) or fixed;
    `family` of q(A); `missing` exact, latent or auto."""

    noise: Literal["one", "column"] | float = "one"
    scale: Literal["one"] | float = "one"
    family: Family = Family.STRUCTURED
    missing: Literal["auto", "exact", "latent"] = "auto"

    def __post_init__(self) -> None:
        _choice("noise", self.noise, ("one", "column"), number=True)
        _choice("scale", self.scale, ("one",), number=True)
        _choice("family", self.family, tuple(Family), number=False)
        _choice("missing", self.missing, ("auto", "exact", "latent"), number=False)
        object.__setattr__(self, "family", Family(self.family))

    name: ClassVar[str] = "gaussian"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def survey(self, chunk: Chunk) -> Survey:
        x = chunk.x.astype(np.float64)
        seen = (
            np.full(x.shape[1], float(chunk.rows)) if chunk.observed is None else chunk.observed.sum(axis=0)
        )
        return Survey(
            rows=np.asarray(float(chunk.rows)),
            cells=seen.astype(np.float64),
            total=x.sum(axis=0),
            squares=np.einsum("nd,nd->d", x, x),
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
        return GaussianParams(
            mean=np.sqrt(4.0 * noise / columns) * rng.standard_normal((features, columns)),
            entropy=np.zeros(()),
            noise=np.full(columns, noise),
            scale=np.full(features, scale),
            **self._facts(survey, features),
        )

    def adopt(self, params: GaussianParams, survey: Survey) -> GaussianParams:
        """The same dictionary and variances, those that are fixed as set. Its covariance is kept where
        the columns fall into the same groups; else the mean is taken as known exactly."""
        noise = params.noise if isinstance(self.noise, str) else np.full_like(params.noise, self.noise)
        scale = params.scale if isinstance(self.scale, str) else np.full_like(params.scale, self.scale)
        if self.noise == "one":
            noise = np.full_like(noise, noise.mean())
        facts = self._facts(survey, params.scale.size) | {"noise": noise, "scale": scale}
        if np.array_equal(params.group, facts["group"]):
            facts |= {"basis": params.basis, "spectrum": params.spectrum}
        else:
            facts["entropy"] = np.zeros(())
        return replace(params, **facts)

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
        groups, mean = len(begun.spectrum), (coarse.mean @ basis.T) / unit
        noise = np.full(unit.size, coarse.noise[0]) / unit**2
        if self.noise == "one":
            noise = np.full_like(noise, noise.mean())
        size = np.full_like(begun.scale, max(float(np.mean(mean**2)), LEAST))
        return replace(
            begun,
            mean=mean,
            basis=np.repeat(coarse.basis[:1], groups, axis=0),
            spectrum=np.repeat(coarse.spectrum[:1] * grown, groups, axis=0),
            noise=noise if isinstance(self.noise, str) else begun.noise,
            scale=size if isinstance(self.scale, str) else begun.scale,
        )

    def heated(self, params: GaussianParams) -> Iterator[GaussianParams]:
        """Noise times 64, 32, .. 1; a dictionary without a spectrum was never fitted."""
        for heat in HEATS if params.spectrum.any() else ():
            yield replace(params, noise=heat * params.noise)

    def _facts(self, survey: Survey, features: int) -> dict[str, Any]:
        """What the data decide: groups of columns, counts, sums of squares; and a covariance of zero."""
        group, latent = self._groups(survey, features)
        groups = int(group.max()) + 1
        return {
            "basis": np.zeros((groups, features, features)),
            "spectrum": np.zeros((groups, features)),
            "group": group,
            "cells": np.full(group.size, float(survey.rows)) if latent else survey.cells,
            "squares": survey.squares,
            "latent": np.asarray(int(latent)),
            "unit": np.asarray(typical_variance(survey)),
        }

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
        made = globals_of(params, chunk.x.dtype)
        return Pass.of(chunk, made, log_odds, weights, rules, state, draws, inner).run(state.ids)

    def update(
        self, params: GaussianParams, sums: GaussianSums, rule: Rule, rng: np.random.Generator
    ) -> GaussianParams:
        """q(A) and the variances at their joint optimum (vibp 9.5), or a draw of each."""
        if rule is Rule.DRAW:
            rotated = dictionary.rotations(params, sums, Family.STRUCTURED)
            return self._draw_variances(dictionary.draw(dictionary.solve(params, rotated), rng), sums, rng)
        rotated = dictionary.rotations(params, sums, self.family)
        noise, ratio = self._fit_variances(params, sums, rotated)
        params = replace(params, noise=noise, scale=params.scale * ratio)
        return dictionary.solve(params, [r.rescaled(ratio) for r in rotated])

    def magnitude(self, params: GaussianParams) -> float:
        """Sum of squares in units of the noise: the size of what cancels in the likelihood (vibp 9.9)."""
        return float((params.squares / params.noise).sum())

    def score(self, params: GaussianParams, sums: GaussianSums) -> dict[str, float]:
        """Terms of the objective (vibp 2.1, 9.2): likelihood, -KL of the dictionary, missing cells."""
        psi, cells = params.noise, params.cells
        misfit = dictionary.residual(params, sums)
        second = dictionary.second_moment(params)
        prior = psi.size * (np.log(params.scale) + LOG_2PI) + second / params.scale
        terms = {
            "likelihood": float(-0.5 * (cells * (LOG_2PI + np.log(psi)) + misfit / psi).sum()),
            "dictionary": float(params.entropy - 0.5 * prior.sum()),
        }
        if params.latent:
            terms["missing cells"] = float(sums.filled_entropy)
        if isinstance(self.noise, str):
            learned = psi if self.noise == "column" else psi[:1]
            terms["noise"] = _log_prior(learned, FLOOR * float(params.unit))
        if isinstance(self.scale, str):
            terms["scale"] = _log_prior(params.scale[:1], float(params.unit))
        return terms

    def additive(self, params: GaussianParams) -> bool:
        """Gram matrices are by group, and more rows can split a group."""
        return bool(params.latent) or len(params.spectrum) == 1

    def describe(self, params: GaussianParams, order: NDArray[np.intp]) -> Named:
        return {
            "mean": (("feature", "column"), params.mean[order]),
            "mean_sd": (("feature", "column"), np.sqrt(dictionary.variance(params))[order]),
            "noise": (("column",), params.noise)
            if self.noise == "column"
            else ((), params.noise[:1].reshape(())),
            "scale": ((), params.scale[:1].reshape(())),
            "basis": (("group", "feature", "component"), params.basis[:, order]),
            "spectrum": (("group", "component"), params.spectrum),
            "group": (("column",), params.group),
        }

    def _groups(self, survey: Survey, features: int) -> tuple[NDArray[np.intp], bool]:
        """Groups of columns, and whether missing cells are latent (then there is one group)."""
        group = column_groups(survey.missing)
        size = (int(group.max()) + 1) * features**2 * 8
        incomplete = bool((survey.missing != 0).any())
        if self.missing == "latent" or (incomplete and self.missing == "auto" and size > EXACT_BYTES):
            return np.zeros_like(group), True
        return group, False

    def _fit_variances(
        self, params: GaussianParams, sums: GaussianSums, rotated: list[Rotation]
    ) -> tuple[Float, float]:
        """Noise (column), and the new scale over the old."""
        unit, one = float(params.unit), self.noise != "column"
        data = prior = None
        if isinstance(self.noise, str):
            data = Evidence(params.cells, params.squares + sums.filled, FLOOR * unit)
        if isinstance(self.scale, str):
            prior = Evidence(np.asarray(float(params.mean.size)), np.zeros(()), unit)
        turns = ONE_TURNS if one else COLUMN_TURNS
        return variances.fit(rotated, params.noise, float(params.scale[0]), data, prior, one, turns)

    def _draw_variances(
        self, params: GaussianParams, sums: GaussianSums, rng: np.random.Generator
    ) -> GaussianParams:
        """Noise given A and Z, scale given A, each from its inverse gamma conditional."""
        if params.latent:
            raise UsageError("draws need exact missing cells: use fewer features, or set missing=exact")
        if isinstance(self.noise, str):
            misfit, cells = dictionary.residual(params, sums), params.cells
            if self.noise == "one":
                misfit, cells = misfit.sum(keepdims=True), cells.sum(keepdims=True)
            drawn = _draw_inverse_gamma(cells, misfit, FLOOR * float(params.unit), rng)
            params = replace(params, noise=np.broadcast_to(drawn, params.noise.shape).copy())
        if isinstance(self.scale, str):
            size, second = np.asarray([float(params.mean.size)]), (params.mean**2).sum(keepdims=True)[0]
            drawn = _draw_inverse_gamma(size, second, float(params.unit), rng)
            params = replace(params, scale=np.broadcast_to(drawn, params.scale.shape).copy())
        return params


LEAST = 1e-120
"""Variances below are taken for zero: their squares underflow."""


def typical_variance(survey: Survey) -> float:
    """Mean over columns of the variance of the observed cells; their mean square, or 1, if that is zero."""
    cells = np.maximum(survey.cells, 1.0)
    spread = survey.squares / cells - (survey.total / cells) ** 2
    for value in (float(spread.mean()), float((survey.squares / cells).mean())):
        if value > 1e-12 * float((survey.squares / cells).mean()) and value > LEAST:
            return value
    return 1.0


def _choice(name: str, value: object, words: tuple[str, ...], *, number: bool) -> None:
    """Refuse a setting that is neither one of the words nor, where allowed, a positive number."""
    if isinstance(value, str) and value in words:
        return
    if number and isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < np.inf:
        return
    expected = ", ".join(words) + (" or a number greater than 0" if number else "")
    raise UsageError(f"{name}: {value!r}: expected {expected}")


def _log_prior(value: Float, at: float) -> float:
    """PSEUDO cells of variance `at`, as a log density of log v, up to a constant."""
    return float(-0.5 * PSEUDO * (np.log(value) + at / value).sum())


def _draw_inverse_gamma(cells: Float, squares: Float, at: float, rng: np.random.Generator) -> Float:
    """A variance given `cells` squared deviations that sum to `squares`, and the pseudo cells."""
    half = 0.5 * (squares + PSEUDO * at)
    return np.asarray(half / rng.gamma(0.5 * (cells + PSEUDO)), dtype=np.float64)
