"""Features and prevalences that a method found, beside the planted ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tests.support.factor_problems import FactorProblem, Matrix, PlantedFactors

MATCHED, ALWAYS_ON, CLOSE = 0.9, 0.95, 0.02
"""Least |cosine| of a matched feature, the prevalence beyond which a feature is always on, and the largest
mean error of the prevalences of a problem that is right."""


@dataclass(frozen=True)
class FoundFactors:
    """`features` (feature, column) and their `prevalence` (feature)."""

    features: Matrix
    prevalence: Matrix

    @classmethod
    def of_result(cls, result: xr.DataTree) -> FoundFactors:
        """The active features of a fit."""
        params = result["params"].to_dataset()
        active = params["active"].values
        return cls(params["mean"].values[active], params["prevalence"].values[active])

    @classmethod
    def of_truth(cls, planted: PlantedFactors) -> FoundFactors:
        """The planted features, dense ones among them."""
        features = np.concatenate([planted.dictionary, planted.dense])
        return cls(features, np.concatenate([planted.prevalence, np.ones(len(planted.dense))]))


@dataclass(frozen=True)
class FactorScore:
    """Share of the planted features that are matched, mean |error| of their prevalences, and the numbers of
    features that were found: those of some rows, and those that are always on."""

    recovery: float
    error: float
    sparse: int
    always: int

    def exact(self, of: FactorProblem) -> bool:
        """Whether the number of features is right, those that are always on left aside."""
        return self.sparse == of.features

    def right(self, of: FactorProblem) -> bool:
        """All features, their prevalences and their number; with dense factors all features and both
        numbers."""
        if of.dense:
            return self.recovery == 1 and self.exact(of) and self.always == of.dense
        return self.recovery == 1 and self.exact(of) and self.error <= CLOSE


def cosines(found: Matrix, planted: Matrix) -> Matrix:
    """(found, planted) |cosine| of features; zero for features without length."""
    lengths = np.outer(np.linalg.norm(found, axis=1), np.linalg.norm(planted, axis=1))
    made: Matrix = np.abs(found @ planted.T) / np.maximum(lengths, 1e-300)
    return made


def assigned(found: Matrix, planted: Matrix) -> NDArray[np.intp]:
    """(planted,) the feature assigned to each one to one, or -1 where the |cosine| is .9 or less."""
    match = np.full(len(planted), -1)
    if len(found):
        near = cosines(found, planted)
        rows, columns = linear_sum_assignment(-np.where(near > MATCHED, 1 + near, near))
        good = near[rows, columns] > MATCHED
        match[columns[good]] = rows[good]
    return match


def judged(found: FoundFactors, planted: PlantedFactors) -> FactorScore:
    """A feature that is not matched has its prevalence as error."""
    match = assigned(found.features, planted.dictionary)
    share = np.zeros(len(match))
    share[match >= 0] = found.prevalence[match[match >= 0]]
    always = int((found.prevalence > ALWAYS_ON).sum())
    error = float(np.abs(share - planted.prevalence).mean())
    return FactorScore(float((match >= 0).mean()), error, len(found.prevalence) - always, always)
