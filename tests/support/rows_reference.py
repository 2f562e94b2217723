"""Rows in turn as the report has them (samplers.md 7, 8): scalar loops, all from definitions at every flip.

Slots are those of the compiled tables, so that the same uniforms reach the same entries: a feature that
goes leaves its slot to the last one, a new one takes any slot and what was there moves to the end.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logsumexp

MOST = 40
"""Numbers of own features that are looked at."""
NEW = -1


def log_marginal(x, z, noise, scale):
    """log p(X | Z), the dictionary integrated out (linear-gaussian.md 14); z (row, feature)."""
    rows, columns = x.shape
    features = z.shape[1]
    ridge = z.T @ z + noise / scale * np.eye(features)
    left = x - z @ np.linalg.solve(ridge, z.T @ x)
    total = -0.5 * rows * columns * np.log(2 * np.pi) - 0.5 * (rows - features) * columns * np.log(noise)
    total -= 0.5 * features * columns * np.log(scale) + 0.5 * columns * np.linalg.slogdet(ridge)[1]
    return total - 0.5 * np.trace(x.T @ left) / noise


def prior_odds(law, others):
    return np.log((others + law.share) / (law.rows - others))


def chosen(logs, uniform):
    """The number whose share of the whole the uniform falls into."""
    return int(np.searchsorted(np.cumsum(np.exp(logs - logsumexp(logs))), uniform))


def poisson_logs(rate):
    k = np.arange(MOST)
    return k * np.log(rate) - gammaln(k + 1)


def slots_after(slots, own, number, numbers):
    """The old slot of what comes into each slot, or NEW, with `number` features in place of those in the
    slots `own`; numbers (slot) are logits of uniforms."""
    held, numbers, left = list(range(slots)), list(numbers), set(own)
    while len(left) > number:
        k = max((j for j in range(len(held)) if held[j] in left), key=lambda j: numbers[j])
        left.remove(held[k])
        held[k], numbers[k] = held[-1], numbers[len(held) - 1]
        held.pop()
    for _ in range(number - len(own)):
        k = int(expit(numbers[len(held)]) * (len(held) + 1))
        held.append(NEW)
        held[k], held[-1] = held[-1], held[k]
    return held


def renumbered(z, held, n):
    """z (row, slot) with what `slots_after` says; new features are of row n alone."""
    mine = np.zeros(len(z))
    mine[n] = 1
    return np.array([mine if k == NEW else z[:, k] for k in held]).reshape(-1, len(z)).T


def collapsed_sweep(x, z, law, logits, births, rows=None):
    """z (row, slot) after a sweep over the first `rows` rows."""
    z = z.copy()
    for n in range(len(x) if rows is None else rows):
        own = []
        for k in range(z.shape[1]):
            others = z[:, k].sum() - z[n, k]
            if others + law.share == 0:
                own.append(k)
                continue
            logs = []
            for value in (0.0, 1.0):
                z[n, k] = value
                logs.append(log_marginal(x, z, law.noise, law.scale))
            z[n, k] = float(logits[n, k] < prior_odds(law, others) + logs[1] - logs[0])
        if law.rate:
            held = [slots_after(z.shape[1], own, number, logits[n]) for number in range(MOST)]
            tables = [renumbered(z, slots, n) for slots in held]
            logs = poisson_logs(law.rate) + [log_marginal(x, t, law.noise, law.scale) for t in tables]
            z = tables[chosen(logs, births[n])]
    return z


def uncollapsed_sweep(x, seen, z, mean, noise, law, logits, births, normal):
    """(z (row, slot), dictionary (slot, column)) after a sweep; noise (column), normal(row, place)."""
    z, mean = z.copy(), mean.copy()
    for n in range(len(x)):
        own = [k for k in range(z.shape[1]) if z[:, k].sum() - z[n, k] + law.share == 0]
        shared = [k for k in range(z.shape[1]) if k not in own]
        cells = np.flatnonzero(seen[n])
        for k in shared:
            logs, others = [], z[:, k].sum() - z[n, k]
            for value in (0.0, 1.0):
                z[n, k] = value
                left = x[n] - z[n, shared] @ mean[shared]
                logs.append(log_normal(left[cells], noise[cells] + len(own) * law.scale))
            z[n, k] = float(logits[n, k] < prior_odds(law, others) + logs[1] - logs[0])
        if law.rate:
            left = x[n] - z[n, shared] @ mean[shared]
            fits = [log_normal(left[cells], noise[cells] + k * law.scale) for k in range(MOST)]
            number = chosen(poisson_logs(law.rate) + fits, births[n])
            held = slots_after(z.shape[1], own, number, logits[n])
            z = renumbered(z, held, n)
            mean = np.array([np.zeros(x.shape[1]) if k == NEW else mean[k] for k in held])
            mean = mean.reshape(-1, x.shape[1])
            new = [k for k in range(z.shape[1]) if z[n, k] and z[:, k].sum() == 1]
            if number:
                mean[new] = look_of_own(
                    number, left, seen[n], noise, law.scale, lambda at, n=n: normal(n, at)
                )
    return z, mean


def look_of_own(number, left, seen, noise, scale, normal):
    """(feature, column) draws of what a row's own features look like: the report's matrix expression, with
    the symmetric root of the covariance."""
    made = np.zeros((number, len(left)))
    one = np.ones((number, 1))
    for d in range(len(left)):
        precision = np.eye(number) / scale + seen[d] * one @ one.T / noise[d]
        covariance = np.linalg.inv(precision)
        middle = covariance @ one[:, 0] * seen[d] * left[d] / noise[d]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
        made[:, d] = middle + root @ np.array([normal(k * len(left) + d) for k in range(number)])
    return made


def log_normal(values, variances):
    return -0.5 * (np.log(2 * np.pi * variances) + values**2 / variances).sum()
