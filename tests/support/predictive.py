"""The predictive density written out one row, one pattern and one cell at a time."""

import itertools
import math
from dataclasses import replace

import numpy as np

from ibpdist.catalog import systems
from ibpdist.predict.kinds import kinds
from ibpdist.predict.predict import Predictor


def enumerate_at_most(monkeypatch, features):
    """Rows of predictors with more features are scored by chains, whatever their weights."""
    for density, kind in kinds().items():
        monkeypatch.setitem(kinds(), density, replace(kind, enumerated=min(features, kind.enumerated)))


def make_predictor(features, columns, seed, weights="unit", groups=2, strength=1.0):
    """A predictor with a dictionary of some variance, columns in `groups` groups, noise by column."""
    rng = np.random.default_rng(seed)
    gram = rng.normal(size=(groups, features + 3, features))
    scale = rng.uniform(0.5, 2.0, features)
    basis, spectrum = np.zeros((groups, features, features)), np.zeros((groups, features))
    for g in range(groups):
        root = np.sqrt(scale)
        spectrum[g], vectors = np.linalg.eigh(root[:, None] * (gram[g].T @ gram[g]) * root)
        basis[g] = root[:, None] * vectors
    return Predictor(
        mean=strength * rng.normal(size=(features, columns)),
        basis=basis,
        spectrum=spectrum,
        noise=rng.uniform(0.3, 1.5, columns),
        group=rng.integers(0, groups, columns),
        log_odds=rng.normal(size=features),
        active=np.ones(features, dtype=bool),
        weights=systems.weights_of(weights),
    )


def covariances(of):
    """Sigma_d of every column, from the Gram matrices that basis and spectrum stand for."""
    made = []
    for d in range(len(of.noise)):
        basis, spectrum = of.basis[of.group[d]], of.spectrum[of.group[d]]
        made.append(basis @ np.diag(1 / (1 + spectrum / of.noise[d])) @ basis.T)
    return made


def log_given(of, x, cells, z):
    """log p(x in cells | z) of one row at its precision."""
    z, sigma = np.array(z, dtype=float), covariances(of)
    if not of.weights.has_weights:
        total = 0.0
        for d in np.flatnonzero(cells):
            variance = of.noise[d] / of.precision + z @ sigma[d] @ z
            total += -0.5 * math.log(2 * math.pi * variance) - (x[d] - z @ of.mean[:, d]) ** 2 / variance / 2
        return total
    psi = np.array([of.noise[d] / of.precision + z @ np.diag(sigma[d]) for d in range(len(x))])
    loaded = z[:, None] * of.mean
    whole = (np.diag(psi) + loaded.T @ loaded)[np.ix_(cells, cells)]
    value = x[cells]
    return -0.5 * (
        np.linalg.slogdet(2 * math.pi * whole)[1]
        + (value @ np.linalg.solve(whole, value) if cells.any() else 0)
    )


def log_predictive(of, x, visible, hidden):
    """log p(hidden | visible) of one row by a plain sum over patterns."""
    above = below = 0.0
    for z in itertools.product([0, 1], repeat=len(of.log_odds)):
        prior = 1.0
        for on, odds in zip(z, of.log_odds, strict=True):
            pi = 1 / (1 + math.exp(-odds))
            prior *= pi if on else 1 - pi
        below += prior * math.exp(log_given(of, x, visible, z))
        above += prior * math.exp(log_given(of, x, visible | hidden, z))
    return math.log(above) - math.log(below)


def rows_of(of, rows, seed):
    """Rows drawn from the predictor with its mean dictionary."""
    rng = np.random.default_rng(seed)
    z = rng.random((rows, of.features)) < 1 / (1 + np.exp(-of.log_odds))
    y = z * of.weights.sample(*z.shape, rng.normal(size=z.shape)) if of.weights.has_weights else z
    return y @ of.mean + np.sqrt(of.noise) * rng.normal(size=(rows, len(of.noise))), z
