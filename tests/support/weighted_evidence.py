"""The evidence of the finite model with two weighted features, from draws of the features of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def log_evidence(
    x: NDArray[Any],
    noise: float,
    scale: float,
    mass: float,
    draw: str = "laplace",
    draws: int = 1_000_000,
) -> tuple[float, float]:
    """And its error: the dictionary integrated out, so that columns are N(0, noise I + scale y y'), and the
    mean over draws of y from the prior; `draw` is the method of a generator that draws weights."""
    rng = np.random.default_rng(5)
    chance = rng.beta(mass / 2, 1, (draws, 1, 2))
    y = (rng.random((draws, len(x), 2)) < chance) * getattr(rng, draw)(size=(draws, len(x), 2))
    covariance = noise * np.eye(len(x)) + scale * y @ y.transpose(0, 2, 1)
    log = np.sum(x * np.linalg.solve(covariance, np.broadcast_to(x, (draws, *x.shape))), axis=(1, 2))
    fixed = np.linalg.slogdet(covariance)[1] + len(x) * np.log(2 * np.pi)
    density = np.exp(-0.5 * (log + x.shape[1] * fixed))
    return float(np.log(density.mean())), float(density.std() / density.mean() / np.sqrt(draws))
