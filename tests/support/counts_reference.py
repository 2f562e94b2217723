"""Plain transcription of the collapsed step of counts: loops over rows, words, features; scalars.

x (row, column) counts, rho (row, column, feature), zero where x is.
"""

from __future__ import annotations

from math import exp, log

import numpy as np
from scipy.special import digamma

EMPTY, LEAST_RATE = 1.0, 1e-8
"""Rows without tokens count as having one in their rate, and rates have a least one."""


def gate(y, rate, shape, odds):
    """f: how likely the row has the feature when it is expected to have y tokens of it."""
    without = exp(odds) * (rate / (1 + rate)) ** shape
    return 1 - exp(-y) * (1 - without / (1 + without))


def right_side(x, rho, y, f, shape, word, total, eta):
    """rho (feature) of the tokens of one entry, each of which leaves itself out; word (feature) is Y_v."""
    features, columns = len(y), x.shape[1]
    weight = np.zeros(features)
    for k in range(features):
        here = max(y[k] - rho[k], 0) + f[k] * shape[k]
        weight[k] = here * (max(word[k] - rho[k], 0) + eta) / (total[k] - rho[k] + eta * columns)
    return weight / weight.sum()


def placed(x, rho, y, rate, words, shape, odds, eta):
    """rho after a step that keeps it; words (column, feature) is Y."""
    new, total = np.zeros_like(rho), words.sum(axis=0)
    for n, v in np.argwhere(x > 0):
        f = [gate(y[n, k], rate[n], shape[k], odds[k]) for k in range(len(shape))]
        new[n, v] = right_side(x, rho[n, v], y[n], f, shape, words[v], total, eta)
    return new


def found(x, y, rate, words, shape, odds, eta, evaluations):
    """rho of a step that keeps y alone."""
    rho = placed(x, np.zeros((*x.shape, len(shape))), y, rate, words, shape, odds, eta)
    for _ in range(evaluations):
        rho = 0.5 * (rho + placed(x, rho, y, rate, words, shape, odds, eta))
    return rho


def summed(x, rho, before, rate, shape, odds):
    """(y, rate, sums by name) given rho, y `before` and the rates before."""
    rows, features = len(x), len(shape)
    y = np.einsum("nv,nvk->nk", x, rho)
    rates = np.zeros(rows)
    on, seen, exposed = np.zeros((3, features))
    for n in range(rows):
        f = [gate(y[n, k], rate[n], shape[k], odds[k]) for k in range(features)]
        rates[n] = max(sum(f[k] * shape[k] for k in range(features)) / max(x[n].sum(), EMPTY), LEAST_RATE)
        for k in range(features):
            f_now = gate(y[n, k], rates[n], shape[k], odds[k])
            on[k] += f_now
            exposed[k] += f_now * log((1 + rates[n]) / rates[n])
            some = 1 - exp(-y[n, k])
            if some > 0:
                seen[k] += some * (digamma(shape[k] + y[n, k] / some) - digamma(shape[k]))
    sums = {
        "y": np.einsum("nv,nvk->vk", x, rho),
        "on": on,
        "seen": seen,
        "exposed": exposed,
        "change": abs(y - before).sum(),
        "tokens": float(x.sum()),
    }
    return y, rates, sums
