"""A fit of rows in memory that begins at given columns z: the start's own small problem."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate, align
from ibpdist.inference.ascent.params import (
    GaussianModel,
    GaussianModelParams,
    GaussianModelSums,
    ModelParams,
    ModelSums,
)
from ibpdist.inference.moves import reorient
from ibpdist.inference.moves._base import Situation
from ibpdist.inference.starts.begin import beginnings, projected
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.weights.unit import Unit

Float = NDArray[np.float64]

PASSES, MORE = 20, 10
FLAT = 1e-5


@dataclass(frozen=True)
class FittedSubsample:
    """Parameters, sums they were made of, row state, and the objective."""

    params: GaussianModelParams
    sums: GaussianModelSums
    state: RowState
    objective: float


@dataclass(frozen=True)
class SubsampleFit:
    """Rows x (row, column) with one noise, fitted under a model with at most `features` features."""

    model: GaussianModel
    features: int
    x: Float
    rng: np.random.Generator

    def fit(self, z: Float) -> FittedSubsample:
        """Passes from the columns z (feature, row) and, where there is room, a constant one; then the best
        orientation, and some passes more."""
        z = np.vstack([z, np.full((1, len(self.x)), 0.99)])[: self.features]
        begun = self._from(z)
        first = self._passes(begun, PASSES)
        turned = self._reoriented(first)
        return self._passes(turned, MORE)

    @property
    def _model(self) -> GaussianModel:
        """The same model with unit weights."""
        plain = projected(self.model).isotropic()
        return dataclasses.replace(self.model, observation=plain, weights=Unit())

    @property
    def _chunk(self) -> Chunk:
        return Chunk(0, 0, np.ascontiguousarray(self.x, dtype=np.float64))

    def _from(self, z: Float) -> FittedSubsample:
        """The optimum of the globals for given columns."""
        model, size = self._model, len(z)
        fit, survey = Coordinate(model, size), model.observation.summarise(self._chunk)
        on = z.sum(axis=1)
        params = ModelParams(
            observation=model.observation.init(survey, size, self.rng),
            **beginnings(model, on, survey, self.rng, self.features),
        )
        sums = sums_of(z, self.x)
        params, info = fit.update(params, sums, Draws(0))
        state = RowState(params.ids, z, np.zeros((0, len(self.x))))
        return FittedSubsample(params, sums, state, info.objective)

    def _passes(self, at: FittedSubsample, most: int) -> FittedSubsample:
        fit = Coordinate(self._model, len(at.params.ids))
        for _ in range(most):
            state, sums = fit.local(self._chunk, at.state, at.params, Draws(0))
            params, info = fit.update(at.params, sums, Draws(0))
            gain, at = info.objective - at.objective, FittedSubsample(params, sums, state, info.objective)
            if abs(gain) < FLAT * abs(at.objective):
                break
        return at

    def _reoriented(self, at: FittedSubsample) -> FittedSubsample:
        fresh = int(at.params.ids.max()) + 1
        total = self.x.sum(axis=0)
        situation = Situation(
            self._model, at.params, at.sums, total, at.objective, fresh, limit=self.features
        )
        found = reorient.propose(situation, self.rng)
        if found is None or found.sums is None or found.objective is None:
            return at
        return FittedSubsample(found.params, found.sums, align(at.state, found.params), found.objective)


def sums_of(z: Float, x: Float) -> GaussianModelSums:
    """Sums of rows x (row, column) with unit weights and independent columns z (feature, row)."""
    gram, on = z @ z.T, z.sum(axis=1)
    np.fill_diagonal(gram, on)
    return ModelSums(
        entries=RowSums(on, on, on, (entr(z) + entr(1 - z)).sum(axis=1), np.zeros(len(z))),
        observation=GaussianSums(np.asarray(float(len(x))), gram[None], z @ x),
    )
