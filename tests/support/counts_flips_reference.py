"""Plain transcription of factorised counts with features on or off: loops over rows, words, features.

x (row, column) counts, z and y (row, feature), exposure (row); `shape` (column, feature) and `rate` (feature)
of q(Phi), e of the weights, b of the words. A row's function takes one row of each. `point`: point estimates,
without priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, lgamma, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """q(Phi), prior log odds of z, and the settings."""

    shape: Floats
    rate: Floats
    odds: Floats
    e: float
    b: float = 0.5
    point: bool = False

    def mean(self, v: int, k: int) -> float:
        return float(self.shape[v, k] / self.rate[k])

    def log_mean(self, v: int, k: int) -> float:
        """E log Phi_vk."""
        if self.point:
            return log(self.mean(v, k))
        return float(digamma(self.shape[v, k])) - log(self.rate[k])

    def size(self, k: int) -> float:
        return sum(self.mean(v, k) for v in range(len(self.shape)))


def divergence(s: float, r: float, s0: float, r0: float) -> float:
    """KL(Gamma(s, r) || Gamma(s0, r0)), by shape and rate."""
    return (s - s0) * float(digamma(s)) - lgamma(s) + lgamma(s0) + s0 * log(r / r0) + s * (r0 - r) / r


def weight(world: World, y: float, k: int, exposure: float) -> tuple[float, float]:
    """Shape and rate of q(w) of a feature with y tokens."""
    return world.e + y, world.e + exposure * world.size(k)


def log_weight(world: World, y: float, k: int, exposure: float) -> float:
    """E log w."""
    s, t = weight(world, y, k, exposure)
    return log(s / t) if world.point else float(digamma(s)) - log(t)


def shares(world: World, z: Floats, y: Floats, exposure: float, v: int) -> Floats:
    """rho (feature) of the tokens of word v."""
    lit = [k for k in range(len(z)) if z[k]]
    part = {k: exposure * exp(log_weight(world, y[k], k, exposure) + world.log_mean(v, k)) for k in lit}
    return np.array([part.get(k, 0.0) / sum(part.values()) for k in range(len(z))])


def row_value(world: World, x: Floats, z: Floats, y: Floats, exposure: float) -> float:
    """A row's part of the objective, without log x!, with rho as a variable of its own."""
    total = 0.0
    for v in range(len(x)):
        rho = shares(world, z, y, exposure, v) if x[v] else np.zeros(len(z))
        for k in range(len(z)):
            if rho[k] > 0:
                level = log(exposure) + log_weight(world, y[k], k, exposure) + world.log_mean(v, k)
                total += x[v] * rho[k] * (level - log(rho[k]))
    for k in range(len(z)):
        if z[k]:
            s, t = weight(world, y[k], k, exposure)
            total -= exposure * s / t * world.size(k)
            if not world.point:
                total += world.odds[k] - divergence(s, t, world.e, world.e)
    return total


def settled(
    world: World, x: Floats, z: Floats, y: Floats, exposure: float, rounds: int
) -> tuple[Floats, float]:
    """y after rounds of its update, and the row's value."""
    for _ in range(rounds):
        new = np.zeros(len(y))
        for v in range(len(x)):
            if x[v]:
                new += x[v] * shares(world, z, y, exposure, v)
        y = new
    return y, row_value(world, x, z, y, exposure)


def promise(world: World, x: Floats, z: Floats, y: Floats, exposure: float) -> Floats:
    """(feature) of features that are off: what to switch on first."""
    found = np.full(len(z), -inf)
    for k in range(len(z)):
        if z[k]:
            continue
        slope, t = 0.0, world.e + exposure * world.size(k)
        for v in range(len(x)):
            rate = sum(
                exp(log_weight(world, y[j], j, exposure) + world.log_mean(v, j))
                for j in range(len(z))
                if z[j]
            )
            if x[v]:
                slope += x[v] * exp(world.log_mean(v, k)) / rate
        found[k] = world.odds[k] - world.e * log(t / world.e) + x.sum() * max(log(max(slope / t, 1e-300)), 0)
    return found


def flipped(
    world: World, x: Floats, z: Floats, y: Floats, exposure: float, rounds: int, flips: int
) -> tuple[Floats, Floats]:
    """z and y of a row after a step."""
    y, value = settled(world, x, z, y, exposure, rounds)
    if not flips:
        return z, y
    tokens, hopes = x.sum(), promise(world, x, z, y, exposure)
    for k in [k for k in np.argsort(-hopes, kind="stable") if hopes[k] > 0][:flips]:
        lit = int(z.sum())
        new, begun = z.copy(), y * lit / (lit + 1)
        new[k], begun[k] = 1, tokens / (lit + 1)
        begun, found = settled(world, x, new, begun, exposure, rounds)
        if found > value:
            z, y, value = new, begun, found
    for k in [k for k in np.argsort(y, kind="stable") if z[k]][:flips]:
        if z.sum() == (1 if tokens > 0 else 0):
            break
        new, begun = z.copy(), y.copy()
        new[k], begun[k] = 0, 0
        begun = begun * tokens / begun.sum() if begun.sum() > 0 else new * tokens / max(new.sum(), 1)
        begun, found = settled(world, x, new, begun, exposure, rounds)
        if found > value:
            z, y, value = new, begun, found
    return z, y


def summed(world: World, x: Floats, z: Floats, y: Floats, exposure: Floats, length: Floats) -> dict:
    """Sums by name; weights are divided by `length` (feature) beneath the law of the tokens as it was."""
    rows, columns, features = *x.shape, len(length)
    sums = {"y": np.zeros((columns, features)), "rest": 0.0, "divergence": 0.0, "log_factorials": 0.0}
    sums |= {name: np.zeros(features) for name in ("on", "amount", "exposed")}
    for n in range(rows):
        for v in range(columns):
            sums["log_factorials"] += lgamma(x[n, v] + 1)
            rho = shares(world, z[n], y[n], exposure[n], v) if x[n, v] else np.zeros(features)
            for k in range(features):
                sums["y"][v, k] += x[n, v] * rho[k]
                if rho[k] > 0:
                    level = log(exposure[n]) + log_weight(world, y[n, k], k, exposure[n]) - log(length[k])
                    sums["rest"] += x[n, v] * rho[k] * (level - log(rho[k]))
        for k in range(features):
            if z[n, k]:
                s, t = weight(world, y[n, k], k, exposure[n])
                sums["on"][k] += 1
                sums["amount"][k] += s / (t * length[k])
                sums["exposed"][k] += exposure[n] * s / (t * length[k])
                if not world.point:
                    sums["divergence"] += divergence(s, t * length[k], world.e, world.e)
    return sums | {"tokens": x.sum(), "rows": rows}


def scored(world: World, sums: dict) -> dict[str, float]:
    """Terms of the objective by name."""
    columns, features = world.shape.shape
    counts, words = sums["rest"] - sums["log_factorials"], 0.0
    for k in range(features):
        counts -= sums["exposed"][k] * world.size(k)
        for v in range(columns):
            if sums["y"][v, k] > 0:
                counts += sums["y"][v, k] * world.log_mean(v, k)
            if not world.point:
                words -= divergence(world.shape[v, k], world.rate[k], world.b, world.b * columns)
    return {"counts": counts, "weights": -sums["divergence"], "words": words}
