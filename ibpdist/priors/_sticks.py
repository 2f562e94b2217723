"""The optimum of the sticks' factors q(v_k) = Beta(tau_k) given the counts (vibp 3.5, 3.6, 9.6).

Everything here is in stick order. With A_k = mass + sum_{j>=k} m_j, S_k = N - m_k and a lower
bound b_k of E log(1 - pi_k), the part of the objective that depends on tau and the mass is

    sum_k [(A_k - tau_k1)(psi_k1 - psi_k+) + (1 - tau_k2)(psi_k2 - psi_k+) + log B(tau_k) + S_k b_k]
        + K log mass - mass h_N(E pi_K) + log p(mass).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ibpdist.priors import _mass
from ibpdist.priors._beta import Vector, fisher, log_moments
from ibpdist.priors._climb import climb
from ibpdist.priors.tail import h, h_slope

Lower = Callable[[Vector, Vector], tuple[Vector, Vector]]
"""(tau, off) -> the bounds b, and the gradient in tau of sum_k off_k b_k."""

_CLIMBS, _LEAST = 8, -50.0
_STEP, _GAIN = 1e-13, 1e-11
"""Relative gains at which a climb and the series of climbs stop."""


@dataclass(frozen=True)
class Problem:
    """Counts of on in stick order, rows, the mass (None: learned) and the bound in use."""

    on: Vector
    rows: float
    mass: float | None
    lower: Lower

    def best_mass(self, tau: Vector) -> float:
        """The mass at its optimum given tau (vibp 9.3, with the tail and the weak prior)."""
        if self.mass is not None:
            return self.mass
        drop = -float(np.sum(log_moments(tau)[0]))
        return (len(tau) + 1) / (_mass.RATE + drop + float(h(last_mean(tau), self.rows)))

    def value(self, tau: Vector) -> tuple[float, Vector]:
        """The objective at the best mass, and its gradient in tau."""
        mass, last = self.best_mass(tau), last_mean(tau)
        bound, slope = self.lower(tau, self.rows - self.on)
        log_on, log_off = log_moments(tau)
        gap = np.stack([mass + np.cumsum(self.on[::-1])[::-1] - tau[:, 0], 1 - tau[:, 1]], axis=1)
        terms = gap[:, 0] * log_on + gap[:, 1] * log_off + betaln(tau[:, 0], tau[:, 1])
        total = float(np.sum(terms) + (self.rows - self.on) @ bound)
        total += len(tau) * np.log(mass) - mass * float(h(last, self.rows))
        if self.mass is None:
            total += _mass.log_prior(mass)
        slope = slope + np.einsum("kij,kj->ki", fisher(tau), gap)
        return total, slope - mass * float(h_slope(last, self.rows)) * last * _last_slope(tau)


def last_mean(tau: Vector) -> float:
    """E pi_K, the mean prevalence of the last stick."""
    return float(np.exp(np.sum(_log_mean(tau))))


def from_counts(on: Vector, rows: float, mass: float) -> Vector:
    """Sticks at v_k = m_k / m_{k-1}, m_0 = N (vibp 3.6); counts must not increase."""
    before = np.concatenate([[rows], on[:-1]])
    return np.stack([mass + on, 1 + (before - on)], axis=1)


def better(problem: Problem, one: Vector, other: Vector) -> Vector:
    """The one with the higher objective."""
    return one if problem.value(one)[0] >= problem.value(other)[0] else other


def solve(problem: Problem, tau: Vector) -> Vector:
    """Climb from `tau`, again with a fresh metric until a climb gains nothing."""
    reached = problem.value(tau)[0]
    for _ in range(_CLIMBS):
        tried = _climb(problem, tau, reached)
        value = problem.value(tried)[0]
        if not value > reached:
            break
        gain, tau, reached = value - reached, tried, value
        if gain <= _GAIN * max(1.0, abs(reached)):
            break
    return tau


def _metric(tau: Vector) -> Vector:
    """Fisher information of each stick in log tau, kept away from singular."""
    information = tau[:, :, None] * fisher(tau) * tau[:, None, :]
    floor: Vector = (1e-8 + 1e-12 * tau.sum(axis=1))[:, None, None] * np.eye(2)
    return information + floor


def _climb(problem: Problem, tau: Vector, reached: float) -> Vector:
    """L-BFGS over log tau, in coordinates in which the Fisher information of each stick is 1."""
    back = np.linalg.inv(np.linalg.cholesky(_metric(tau))).transpose(0, 2, 1)
    centre, top = np.log(tau), np.log(_most(problem, tau))

    def place(y: Vector) -> Vector:
        moved: Vector = centre + np.einsum("kij,kj->ki", back, y.reshape(-1, 2))
        return moved

    def objective(y: Vector) -> tuple[float, Vector]:
        log_tau = place(y)
        if log_tau.min() < _LEAST or log_tau.max() > top:
            return -np.inf, np.zeros_like(y)
        at = np.exp(log_tau)
        value, slope = problem.value(at)
        return value, np.einsum("kij,ki->kj", back, slope * at).ravel()

    made: Vector = np.exp(place(climb(objective, np.zeros(tau.size), _STEP * max(1.0, abs(reached)))))
    return made


def _most(problem: Problem, tau: Vector) -> float:
    """No tau at an optimum is larger; far beyond, the objective is rounding noise."""
    return 4.0 * float(1 + tau.max() + len(tau) * problem.rows)


def _last_slope(tau: Vector) -> Vector:
    """Gradient of log E pi_K in tau."""
    both = tau.sum(axis=1)
    return np.stack([tau[:, 1] / (tau[:, 0] * both), -1 / both], axis=1)


def drop(tau: Vector, keep: NDArray[np.bool_]) -> Vector:
    """Tau of the kept sticks; each takes over the mean of the dropped ones before it."""
    log_mean = np.diff(np.cumsum(_log_mean(tau))[keep], prepend=0.0)
    size = tau.sum(axis=1)[keep]
    return np.stack([size * np.exp(log_mean), size * -np.expm1(log_mean)], axis=1)


def _log_mean(tau: Vector) -> Vector:
    """log E v of each stick."""
    found: Vector = -np.log1p(tau[:, 1] / tau[:, 0])
    return found
