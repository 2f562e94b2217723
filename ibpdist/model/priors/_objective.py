"""The objective of the sticks' factors q(v_k) = Beta(tau_k) given the counts (priors.md 10).

Everything here is in stick order. With A_k = mass + sum_{j>=k} m_j, S_k = N - m_k and a lower
bound b_k of E log(1 - pi_k), the part of the objective that depends on tau and the mass is

    sum_k [(A_k - tau_k1)(psi_k1 - psi_k+) + (1 - tau_k2)(psi_k2 - psi_k+) + log B(tau_k) + S_k b_k]
        + K log mass - mass h_N(E pi_K) + log p(mass).

A learned mass is at its optimum (K + 1) / C, where C is its cost. Slopes are then those at that
mass, and (mass^2 / (K + 1)) C' C'^T is added to the curvature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

from ibpdist.model.priors import _mass
from ibpdist.model.priors._beta import Sticks, Vector, log_slopes, sticks, weighted
from ibpdist.model.priors._bound import Bend, Bound, Lower
from ibpdist.model.priors._tail_bend import Tail, tail
from ibpdist.model.priors.tail import h

_LEAST, _BEYOND = -50.0, 1e3
"""log tau of an optimum is larger; tau is smaller than the second times what the rows can give."""

_APART = np.array([[1.0, -1.0], [-1.0, 1.0]])


@dataclass(frozen=True)
class Outside:
    """A point too far out to be an optimum, where all is rounding noise."""

    value: float = -math.inf


@dataclass(frozen=True)
class Problem:
    """Counts of on in stick order, rows, the mass (None: learned) and the bound in use."""

    on: Vector
    rows: float
    mass: float | None
    lower: Lower

    def look(self, log_tau: Vector) -> Seen | Outside:
        """The objective at the best mass, with what a step needs; `log_tau` may be flat."""
        if not (log_tau.min() > _LEAST and log_tau.max() < self._most()):
            return Outside()
        at = sticks(np.exp(log_tau.reshape(-1, 2)))
        off, last = self.rows - self.on, last_mean(at.tau)
        price = float(h(last, self.rows))
        mass, bound = self.best_mass(at, price), self.lower(at, off)
        gap = np.stack([mass + np.cumsum(self.on[::-1])[::-1], np.ones(len(off))], axis=1) - at.tau
        own = np.sum(gap * at.log) + np.sum(betaln(at.tau[:, 0], at.tau[:, 1]))
        value = float(own + off @ bound.value) + len(off) * math.log(mass) - mass * price
        if self.mass is None:
            value += _mass.log_prior(mass)
        own_slope, own_bend = weighted(at, gap + bound.weight)
        end = tail(at, self.rows, last, mass, learned=self.mass is None)
        slope = own_slope + bound.slope - mass * end.pull * end.slope
        return Seen(at, bound, mass, value, slope.reshape(-1), own_bend, end)

    def best_mass(self, at: Sticks, price: float) -> float:
        """The mass at its optimum given the sticks and h_N(E pi_K)."""
        if self.mass is not None:
            return self.mass
        return (len(at.tau) + 1) / (_mass.RATE - float(np.sum(at.log[:, 0])) + price)

    def _most(self) -> float:
        """The largest log tau to look at; a learned mass is at most (K + 1) / rate."""
        features = len(self.on)
        mass = (features + 1) / _mass.RATE if self.mass is None else self.mass
        return math.log(_BEYOND * (1 + mass + features * self.rows))


@dataclass(frozen=True)
class Seen:
    """The objective at one tau; `slope` in log tau, flat; `own` the curvature of the log moments."""

    at: Sticks
    bound: Bound
    mass: float
    value: float
    slope: Vector
    own: Vector
    tail: Tail

    def bend(self, damping: float) -> Vector:
        """Minus the curvature along `moved`, plus `damping` times the Fisher information.

        The lower triangle counts.
        """
        tau, both, slopes, rest = self.at.tau, self.at.both, log_slopes(self.at), self.bound.bend()
        left, right = self.tail.columns(slopes)
        one, two = self.slope.reshape(-1, 2).T
        turn = (one + 2 * two) * tau[:, 0] / both - self.tail.lost * tau[:, 0] * tau[:, 1] / (both * both)
        blocks = (1 + damping) * tau[:, :, None] * slopes - self.own + rest.blocks
        blocks += turn[:, None, None] * _APART
        return Bend(
            np.concatenate([rest.left, left], axis=2), np.concatenate([rest.right, right], axis=2), blocks
        ).dense()

    def moved(self, step: Vector) -> Vector:
        """log tau after a step, which goes straight in s = -log E v and l = log(1 / var log v).

        The counts fix s and l separately, so the objective is nearly quadratic there. With
        g(s) = log(1 - exp(-s)), log tau = (l + g, l + 2 g + s) to first order of the variance;
        g'' is what `bend` adds as a turn. s never gets below 0: from half of it on it shrinks
        by a factor.
        """
        odds = self.at.tau[:, 1] / self.at.tau[:, 0]
        one, two = step.reshape(-1, 2).T
        fall, more = np.log1p(odds), (two - one) * self.at.tau[:, 1] / self.at.both
        precision = np.log(self.at.both / odds) + one - more / odds
        half = 0.5 * fall
        fall = np.where(more < -half, half * np.exp(np.minimum(more / half + 1, 0.0)), fall + more)
        with np.errstate(divide="ignore"):
            gone = np.log(-np.expm1(-fall))
        return np.stack([precision + gone, precision + 2 * gone + fall], axis=1).reshape(-1)


def last_mean(tau: Vector) -> float:
    """E pi_K, the mean prevalence of the last stick."""
    return math.exp(-float(np.sum(np.log1p(tau[:, 1] / tau[:, 0]))))
