"""A draw of the parameters of the Gaussian observation given z and w of all rows (samplers.md 2).

The intercept is integrated out while the dictionary and the noise are drawn, and is drawn last, given both.
"""

from __future__ import annotations

import numpy as np

from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.model.observations import dictionary
from ibpdist.model.observations.gaussian_params import GaussianParams, intercept_mean
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.intercept import Intercept
from ibpdist.model.observations.noise_and_scale import NoiseAndScale
from ibpdist.model.observations.rotation import Family


def drawn_params(
    observation: NoiseAndScale, params: GaussianParams, sums: GaussianSums, rng: np.random.Generator
) -> GaussianParams:
    """Dictionary, noise, scale, intercept and the law of row noise, each drawn from its conditional."""
    solved = dictionary.solve(params, dictionary.rotations(params, sums, Family.STRUCTURED))
    made = observation.drawn_variances(dictionary.draw(solved, rng), sums, rng)
    made = replace(made, intercept=drawn_intercept(made, sums, rng))
    return replace(made, row_noise=sums.drawn_row_noise(made, rng))


def drawn_intercept(
    params: GaussianParams, sums: GaussianSums, rng: np.random.Generator
) -> Intercept | Nothing:
    """b_d ~ N(xbar_d - ybar A_d, psi_d / n_d), given the dictionary and the noise; rows count by their
    precision."""
    found = sums.intercept(params)
    if isinstance(found, Nothing):
        return NOTHING
    error = np.sqrt(found.error * params.noise) * rng.standard_normal(params.noise.size)
    origin = intercept_mean(replace(params, intercept=found)) + error
    nothing = {"centre": np.zeros_like(found.centre), "error": np.zeros_like(found.error)}
    return replace(found, origin=origin, **nothing)
