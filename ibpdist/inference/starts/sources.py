"""Soft columns to start a fit from: separation, orientation and probabilities in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts import contrast
from ibpdist.inference.starts.certificate import space
from ibpdist.inference.starts.contrast import Mixture
from ibpdist.inference.starts.orient import orientations, regression
from ibpdist.inference.starts.pool import search
from ibpdist.inference.starts.symmetric import refine, separate

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SEARCH_ROWS = 5_000
_LEAST, _EM = 0.01, 20


@dataclass(frozen=True)
class Separation:
    """One answer: z (component, row) probabilities, and all that gives those of other rows.

    u = directions y has the class values of `mixture`; the high class has the feature.
    """

    z: Matrix
    directions: Matrix
    mixture: Mixture
    certified: int
    score: float

    def probabilities(self, y: Matrix) -> Matrix:
        """(component, row) probabilities for rows y (component, row) of the same space, not centred."""
        made: Matrix = np.clip(contrast.posterior(self.directions @ y, self.mixture), _LEAST, 1 - _LEAST)
        return made


def candidates(y: Matrix, noise: Vector, rng: np.random.Generator, most: int) -> list[Separation]:
    """Separations of y (component, row): the symmetric one, and the one of the pool where it can work.

    y is quasi-whitened (signal covariance I) with noise variances `noise` (component), and NOT
    centred: its mean tells features from complements. No column is a constant. `most` is the
    truncation level: where the rank has reached it, the spectrum was cut, what was cut is not
    the known noise, and there is no pool. No components, no separations.
    """
    r, rows = y.shape
    if r == 0 or rows < 2:
        return []
    centred = y - y.mean(1, keepdims=True)
    few = centred
    if rows > SEARCH_ROWS:
        few = centred[:, np.sort(rng.choice(rows, SEARCH_ROWS, replace=False))]
        few = few - few.mean(1, keepdims=True)
    whole = separate(few, rng)
    if rows > SEARCH_ROWS:
        whole = refine(centred, whole.directions)
    found = [_separation(whole.directions, 0, y, noise, rng)]
    if r < most and rows > r + 1:
        pool = search(space(few, noise), whole.directions, rng)
        found.append(_separation(pool.directions, pool.certified, y, noise, rng))
    return found


def _separation(w: Matrix, certified: int, y: Matrix, noise: Vector, rng: np.random.Generator) -> Separation:
    """Mixtures along directions w, turned so that the high class has the feature."""
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    mean = w @ y.mean(1)
    u = w @ y - mean[:, None]
    mixture = contrast.start(u, _EM)
    score = float(contrast.log_likelihood(u, mixture).sum() + np.linalg.slogdet(w)[1])
    mixture = _shifted(mixture, mean)
    x = y / np.sqrt(noise)[:, None]
    flip = orientations(*regression(x, contrast.posterior(w @ y, mixture)), rng, 1)[0]
    w = np.where(flip[:, None], -w, w)
    made = Separation(np.zeros((len(w), 0)), w, _turned(mixture, flip), certified, score)
    return Separation(made.probabilities(y), w, made.mixture, certified, score)


def _shifted(mixture: Mixture, by: Vector) -> Mixture:
    return Mixture(mixture.share, mixture.low + by, mixture.high + by, mixture.variance)


def _turned(mixture: Mixture, flip: NDArray[np.bool_]) -> Mixture:
    """The mixtures of -u where `flip`: the low class becomes the high one."""
    return Mixture(
        np.where(flip, 1 - mixture.share, mixture.share),
        np.where(flip, -mixture.high, mixture.low),
        np.where(flip, -mixture.low, mixture.high),
        mixture.variance,
    )
