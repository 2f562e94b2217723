"""The report's factors of infinite ICA: q(s) is a Laplace law that does not depend on z (ica.md 2).

Plain NumPy, one feature after the other, all rows at once. Noise and scale are known; prevalences have the
finite prior Beta(mass / K, 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, digamma, expit

HALVINGS = 40


@dataclass(frozen=True)
class Laplaces:
    """q: chances nu (row, feature), places mu and widths eta of q(s), dictionary phi (feature, column) with
    variances var (feature), tau (feature, side)."""

    x: np.ndarray
    nu: np.ndarray
    mu: np.ndarray
    eta: np.ndarray
    phi: np.ndarray
    var: np.ndarray
    tau: np.ndarray
    noise: float
    scale: float
    mass: float

    @property
    def y(self):
        return self.nu * self.mu

    @property
    def square(self):
        """E y^2."""
        return self.nu * (self.mu**2 + 2 * self.eta**2)

    @property
    def size(self):
        """E A_k A_k' of each feature."""
        return self.x.shape[1] * self.var + (self.phi**2).sum(axis=1)


def own_value(nu, a, b, mu, eta):
    """What the objective has of one signal, beside log(2 e): jointly concave in mu and eta."""
    gain = nu * (b * mu - a * mu**2 / 2 - a * eta**2)
    return gain - np.abs(mu) - eta * np.exp(-np.abs(mu) / eta) + np.log(eta)


def own_best(nu, a, b, steps=60):
    """mu and eta where `own_value` is highest, by damped Newton steps in (|mu|, eta)."""
    flip, b = np.where(b < 0, -1.0, 1.0), np.abs(b)
    mu, eta = 0.5 * b / a, np.minimum(1.0, 1 / np.sqrt(2 * a + 1e-12))
    for _ in range(steps):
        x = mu / eta
        e = np.exp(-x)
        slope = nu * (b - a * mu) - (1 - e), -2 * nu * a * eta - (1 + x) * e + 1 / eta
        bend = -nu * a - e / eta, x * e / eta, -2 * nu * a - x**2 * e / eta - 1 / eta**2
        det = bend[0] * bend[2] - bend[1] ** 2
        along = (
            -(bend[2] * slope[0] - bend[1] * slope[1]) / det,
            -(bend[0] * slope[1] - bend[1] * slope[0]) / det,
        )
        now, part = own_value(nu, a, b, mu, eta), np.ones_like(mu)
        for _ in range(HALVINGS):
            new = np.maximum(mu + part * along[0], 0), np.maximum(eta + part * along[1], eta / 10)
            worse = own_value(nu, a, b, *new) < now - 1e-13 * np.abs(now)
            if not worse.any():
                break
            part = np.where(worse, part / 2, part)
        mu, eta = np.where(worse, mu, new[0]), np.where(worse, eta, new[1])
    return flip * mu, eta


def rows_updated(q):
    """Signals and chances, feature after feature."""
    nu, mu, eta = q.nu.copy(), q.mu.copy(), q.eta.copy()
    odds = digamma(q.tau[:, 0]) - digamma(q.tau[:, 1])
    for k in range(len(q.phi)):
        y = nu * mu
        left = q.x - y @ q.phi + np.outer(y[:, k], q.phi[k])
        a, b = q.size[k] / q.noise, left @ q.phi[k] / q.noise
        mu[:, k], eta[:, k] = own_best(nu[:, k], a, b)
        nu[:, k] = expit(odds[k] - a * (mu[:, k] ** 2 + 2 * eta[:, k] ** 2) / 2 + b * mu[:, k])
    return replace(q, nu=nu, mu=mu, eta=eta)


def globals_updated(q):
    """Prevalences, then the rows of the dictionary one by one, whose factors are independent."""
    on, features = q.nu.sum(axis=0), len(q.phi)
    tau = np.column_stack([q.mass / features + on, 1 + len(q.x) - on])
    phi, var = q.phi.copy(), 1 / (1 / q.scale + q.square.sum(axis=0) / q.noise)
    for k in range(features):
        left = q.x - q.y @ phi + np.outer(q.y[:, k], phi[k])
        phi[k] = var[k] / q.noise * (q.y[:, k] @ left)
    return replace(q, tau=tau, phi=phi, var=var)


def objective(q):
    """The bound, term by term (ica.md 2)."""
    rows, columns = q.x.shape
    features, (one, two) = len(q.phi), q.tau.T
    first, second, both = digamma(one), digamma(two), digamma(one + two)
    share, nu = q.mass / features, np.clip(q.nu, 1e-300, 1 - 1e-16)
    total = (np.log(share) + (share - 1) * (first - both)).sum()
    total += (betaln(one, two) - (one - 1) * first - (two - 1) * second + (one + two - 2) * both).sum()
    total += (q.nu * first + (1 - q.nu) * second - both).sum()
    total -= (nu * np.log(nu) + (1 - nu) * np.log1p(-nu)).sum()
    total += (-np.abs(q.mu) - q.eta * np.exp(-np.abs(q.mu) / q.eta) + np.log(q.eta) + 1).sum()
    total -= 0.5 * (columns * np.log(2 * np.pi * q.scale) + q.size / q.scale).sum()
    total += 0.5 * columns * np.log(2 * np.pi * np.e * q.var).sum()
    left = q.x - q.y @ q.phi
    spread = q.square * q.size - q.y**2 * (q.phi**2).sum(axis=1)
    misfit = (left**2).sum() + spread.sum()
    return float(total - 0.5 * rows * columns * np.log(2 * np.pi * q.noise) - 0.5 * misfit / q.noise)


def fitted(q, steps):
    """The factors and the objective after every step."""
    values = []
    for _ in range(steps):
        q = globals_updated(rows_updated(q))
        values.append(objective(q))
    return q, np.array(values)
