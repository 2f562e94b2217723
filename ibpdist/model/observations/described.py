"""Parameters of the Gaussian observation as named arrays of a result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Named, Nothing
from ibpdist.model.observations import gaussian_params
from ibpdist.model.observations.gaussian_params import GaussianParams


def described(params: GaussianParams, order: NDArray[np.intp]) -> Named:
    """What does not depend on how variances are learned, features in this order."""
    return {
        "mean": (("feature", "column"), params.mean[order]),
        "mean_sd": (("feature", "column"), np.sqrt(gaussian_params.variance(params))[order]),
        "spread": (("column",), params.spread),
        "common": (("column",), np.broadcast_to(params.common, params.spread.shape)),
        **_intercept(params),
        **params.describe(order),
    }


def _intercept(params: GaussianParams) -> Named:
    if isinstance(params.intercept, Nothing):
        return {}
    sd = np.sqrt(gaussian_params.intercept_variance(params))
    return {
        "intercept": (("column",), gaussian_params.intercept_mean(params)),
        "intercept_sd": (("column",), sd),
        "intercept_error": (("column",), params.intercept.error * params.noise),
    }
