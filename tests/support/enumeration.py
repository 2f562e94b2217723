"""The exact posterior of tiny problems by enumeration, and the marginals that a sampler must have."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import logsumexp

from tests.support import reference as ref


def posterior(x, mask, noise, scale, mass, features, weights="unit", nodes=16):
    """Every binary (row, feature) matrix with its posterior probability, hyperparameters fixed."""
    rows, columns = x.shape
    psi, s = np.full(columns, noise), np.full(features, scale)
    tables, logs = [], []
    for bits in product((0.0, 1.0), repeat=rows * features):
        z = np.array(bits).reshape(rows, features)
        if weights == "unit":
            given = ref.log_p_x_given_y(x, mask, z, psi, s)
        else:
            given = ref.log_p_x_given_z_normal(x, mask, z, psi, s, nodes)
        tables.append(z)
        logs.append(ref.log_p_finite(z, mass) + given)
    return np.array(tables), np.exp(np.array(logs) - logsumexp(logs))


def events(z):
    """(sample, event) zeros and ones of z (sample, row, feature): entries, pairs, and numbers of features."""
    samples, rows, features = z.shape
    made = [z.reshape(samples, -1)]
    for k in range(features):
        made.extend((z[:, i, k] * z[:, j, k])[:, None] for i in range(rows) for j in range(i))
    made.extend((z[:, i, 0] * z[:, i, 1])[:, None] for i in range(rows) if features > 1)
    total = z.sum(axis=(1, 2))
    made.extend((total == number)[:, None] for number in range(rows * features + 1))
    return np.concatenate(made, axis=1).astype(float)


def batch_error(values, batches=40):
    """Standard error of the mean of a (sample, event) chain by batch means."""
    size = len(values) // batches
    means = values[: size * batches].reshape(batches, size, -1).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(batches)
