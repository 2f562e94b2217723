"""Plain transcription of the prediction of counts (counts.md 8): loops over rows, words, features; scalars.

seen (row, column) counts, words (column, feature) the tokens of the fit.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import gammaln

from ibpdist.data.entries import Entries
from ibpdist.predict.tokens import TokenPredictor
from tests.support.counts_reference import EMPTY, LEAST_RATE, gate


def entries_of(x):
    starts = np.concatenate([[0], np.cumsum((x > 0).sum(axis=1))])
    return Entries(starts, np.nonzero(x)[1].astype(np.int32), x[x > 0].astype(np.int64))


def predictor(columns=9, features=4, seed=0, every=False):
    """A fit of 40 tokens of every feature."""
    rng = np.random.default_rng(seed)
    y = 40 * rng.dirichlet(np.full(columns, 0.3), features).T
    odds = np.full(features, np.inf) if every else rng.normal(size=features)
    return TokenPredictor(y, rng.gamma(1.0, 0.3, features), odds, 0.02, 0.7)


def placed(of, x, steps):
    """y (feature), rate and f (feature) of one row x (column) after some steps."""
    columns, features = of.y.shape
    shape, smoothing, length = of.shape, of.smoothing, max(x.sum(), EMPTY)
    odds = np.minimum(of.odds, 700.0)
    y, rho, rate = np.zeros(features), np.zeros((columns, features)), of.presence / length
    total = [sum(of.y[v, k] for v in range(columns)) for k in range(features)]
    for _ in range(steps):
        f = [gate(y[k], rate, shape[k], odds[k]) for k in range(features)]
        new = np.zeros((columns, features))
        for v in np.flatnonzero(x):
            for k in range(features):
                here = max(y[k] - rho[v, k], 0) + f[k] * shape[k]
                new[v, k] = here * (of.y[v, k] + smoothing) / (total[k] + smoothing * columns)
            new[v] /= new[v].sum()
        rho = new
        y = np.array([sum(x[v] * rho[v, k] for v in range(columns)) for k in range(features)])
        f = [gate(y[k], rate, shape[k], odds[k]) for k in range(features)]
        rate = max(sum(f[k] * shape[k] for k in range(features)) / length, LEAST_RATE)
    return y, rate, [gate(y[k], rate, shape[k], odds[k]) for k in range(features)]


def law(of, x, steps):
    """(column) the law of the words of one row."""
    y, _, f = placed(of, x, steps)
    columns, features = of.y.shape
    found = np.zeros(columns)
    for v in range(columns):
        for k in range(features):
            word = (of.y[v, k] + of.smoothing) / (of.y[:, k].sum() + of.smoothing * columns)
            found[v] += (y[k] + f[k] * of.shape[k]) * word
    return found / found.sum()


def burst_likelihood(laws, x, a):
    """log Pr(x) of tokens (row, column) with negative binomial counts."""
    found = 0.0
    for n, v in np.ndindex(*x.shape):
        rate = laws[n, v] * x[n].sum()
        found += gammaln(a + x[n, v]) - gammaln(a) - gammaln(x[n, v] + 1) + a * log(a / (a + rate))
        found += x[n, v] * log(rate / (a + rate))
    return found


def burst_law(law, x, a):
    """(column) the law of one row with a rate of its own for each word."""
    found = [law[v] * (a + x[v]) / (a + x.sum() * law[v]) for v in range(len(x))]
    return np.array(found) / sum(found)
