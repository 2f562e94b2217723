"""The sweep over features as a loop over rows and features, with any response, for the tests of kernels."""

from __future__ import annotations

import math

import numpy as np

from tests.support import exponential_reference, laplace_reference
from tests.support import reference as ref

QUANTILE = {
    "laplace": (laplace_reference.response, laplace_reference.laplace_quantile, math.log(2)),
    "exponential": (exponential_reference.response, exponential_reference.exponential_quantile, 0.0),
}
"""Response and quantile of weights whose density is not normal, and -log p(0)."""


def respond(weights, rule, odds, b, a, u, g):
    """(z, w, w2, entropy, cost) of one entry; cost is that of w given z = 1 under the untilted prior."""
    if weights == "unit":
        log_odds, w, w2, cost = odds + b - a / 2, 1.0, 1.0, 0.0
    elif weights in QUANTILE:
        response, quantile, least = QUANTILE[weights]
        evidence, w, variance, cost = response(b, a)
        log_odds, w2 = odds + evidence, w * w + variance
        if rule == "draw":
            w = quantile(b, a, g)
            w2, cost = w * w, abs(w) + least
    else:
        v = 1 / (1 + a)
        m = v * b
        log_odds = odds + (math.log(v) + m * b) / 2
        w, w2, cost = m, m * m + v, (m * m + v - 1 - math.log(v)) / 2
        if rule == "draw":
            w = m + math.sqrt(v) * g
            w2, cost = w * w, (w * w + math.log(2 * math.pi)) / 2
    chance = ref.respond_unit(log_odds, 0.0, 0.0)[0]
    if rule == "mean":
        low, high = sorted((chance, ref.respond_unit(-log_odds, 0.0, 0.0)[0]))
        entropy = -high * math.log1p(-low) - (low * math.log(low) if low > 0 else 0.0)
        return chance, w, w2, entropy, cost
    z = float(log_odds > 0) if rule == "mode" else float(u < chance)
    return z, w, w2, 0.0, cost


def size(weights, rule, b, a, w):
    """E |w| of one entry whose E w is `w`, of weights with two sides."""
    if weights != "laplace":
        return 0.0
    return abs(w) if rule == "draw" else laplace_reference.laplace_size(b, a)


def loop(f, gamma, runs, prior, tilt, precision, z, w, weights, rule, noise, inner):
    """New z, w, E y^2 (feature, row) and sums (5, run, feature) of on, entropy, cost, E y^2 and E |y|."""
    features, rows = f.shape
    precision, square = np.ones(rows) if precision is None else precision, np.zeros(f.shape)
    z, w = z.copy(), (w.copy() if weights != "unit" else np.ones_like(z))
    sums = np.zeros((5, len(runs) - 1, features))
    for r in range(rows):
        p = int(np.searchsorted(runs, r, side="right")) - 1
        y = z[:, r] * w[:, r]
        for turn in range(inner):
            for k in range(features):
                b = f[k, r] - sum(gamma[p, k, j] * y[j] for j in range(features) if j != k)
                b = precision[r] * b + tilt[k]
                u, g = (table[turn * features + k, r] if table.size else 0.0 for table in noise)
                odds = prior[k] if prior.ndim == 1 else prior[k, r]
                a = precision[r] * gamma[p, k, k]
                made = respond(weights, rule, odds, b, a, u, g)
                z[k, r], w[k, r] = made[:2]
                y[k] = made[0] * made[1]
                square[k, r] = made[0] * made[2]
                if turn == inner - 1:
                    of_sides = made[0] * size(weights, rule, b, a, made[1])
                    sums[:, p, k] += made[0], made[3], made[0] * made[4], made[0] * made[2], of_sides
    return z, w, square, sums


def tables(seed, features, runs, weights, rule, inner, before=0, after=0):
    """Inputs of a sweep over the rows `before ..` of a larger chunk, at random."""
    rng = np.random.default_rng(seed)
    rows = runs[-1]
    whole = before + rows + after
    root = rng.normal(size=(len(runs) - 1, features, features + 1)) * 0.6
    shape = (features, whole)
    z = rng.uniform(0, 1, shape)
    made = {
        "f": rng.normal(size=(features, rows)) * 2,
        "gamma": root @ root.transpose(0, 2, 1),
        "prior": rng.normal(size=features),
        "tilt": rng.normal(size=features),
        "precision": None,
        "z": z if rule == "mean" else np.round(z),
        "w": rng.normal(size=shape if weights != "unit" else (0, whole)),
        "noise": (np.zeros((0, 0)), np.zeros((0, 0))),
    }
    if rule == "draw":
        wide = (inner * features, whole)
        made["noise"] = (rng.random(wide), rng.normal(size=wide))
    return made
