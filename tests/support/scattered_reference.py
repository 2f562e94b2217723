"""The step of the dictionary where cells are missing in no pattern, by scalar loops (linear-gaussian.md 9).

Hidden cells are filled with what the rows expect of them under the old dictionary, and what the variance of
y adds to them is taken about the old dictionary: there that costs nothing, elsewhere it lowers the bound, and
all columns have the Gram matrix of all rows. Covariances are B diag(1 / (1 + e_d / psi_d)) B'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi

import numpy as np

from tests.support import reference as ref

GAIN = 1e-3


@dataclass(frozen=True)
class Filled:
    """`gram` (K, K) of all rows, `cross` (K, D) and `squares` (D,) of x with its hidden cells filled."""

    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray


def variance_y(state, n, k):
    return ref.pair_y(state.nu, state.m, state.s2, n, k, k) - (state.nu[n, k] * state.m[n, k]) ** 2


def expected(state, phi, n, d):
    return sum(state.nu[n, k] * state.m[n, k] * phi[k, d] for k in range(len(phi)))


def filled(state, old):
    """Sums with hidden cells filled from the old dictionary (K, D)."""
    (rows, columns), features = state.mask.shape, len(old)
    gram = ref.gram(state.nu, state.m, state.s2, np.ones((rows, 1), bool))[0]
    cross, squares = np.zeros((features, columns)), np.zeros(columns)
    for n, d in np.ndindex(rows, columns):
        x = state.x[n, d] if state.mask[n, d] else expected(state, old, n, d)
        squares[d] += x**2
        for k in range(features):
            cross[k, d] += state.nu[n, k] * state.m[n, k] * x
            if not state.mask[n, d]:
                cross[k, d] += variance_y(state, n, k) * old[k, d]
                squares[d] += variance_y(state, n, k) * old[k, d] ** 2
    return Filled(gram, cross, squares)


def spectrum(state, basis):
    """(K, D) sums of E (y B)_j^2 over visible cells."""
    features = len(basis)
    found = np.zeros((features, state.mask.shape[1]))
    for n, d in np.argwhere(state.mask):
        for j in range(features):
            mean = sum(state.nu[n, k] * state.m[n, k] * basis[k, j] for k in range(features))
            spread = sum(variance_y(state, n, k) * basis[k, j] ** 2 for k in range(features))
            found[j, d] += mean**2 + spread
    return found


def unit_length(basis, e, s):
    """Columns b of the basis with b' diag(1/s) b = 1, and their spectra."""
    basis, e = basis.copy(), e.copy()
    for j in range(len(s)):
        length = sum(basis[k, j] ** 2 / s[k] for k in range(len(s)))
        basis[:, j] /= length**0.5
        e[j] /= length
    return basis, e


def gain(basis, e, psi):
    """Entropy of the covariances less what they cost, but for a constant."""
    volume = np.log(abs(np.linalg.det(basis)))
    return sum(volume - 0.5 * sum(log(1 + e[j, d] / psi[d]) for j in range(len(e))) for d in range(len(psi)))


def fresh(gram, s, structured, columns):
    """The basis of rows without gaps, and its spectra, which are too large where there are gaps."""
    root = np.sqrt(s)
    scaled = root[:, None] * gram * root
    e, turn = np.linalg.eigh(scaled) if structured else (np.diagonal(scaled), np.eye(len(s)))
    return root[:, None] * turn, np.repeat(np.maximum(e, 0.0)[:, None], columns, axis=1)


def covariance(state, bases, sums, structured):
    """The best of the bases (with their spectra), by the bound."""
    found = [fresh(sums.gram, state.s, structured, len(state.psi))]
    found += [unit_length(basis, spectrum(state, basis), state.s) for basis in bases]
    return max(found, key=lambda one: gain(*one, state.psi))


def solved(state, sums, basis, e):
    """phi and sigma at their optimum; phi solves (G + psi / s) phi = P."""
    phi, sigma = state.phi.copy(), state.sigma.copy()
    for d in range(len(state.psi)):
        phi[:, d] = np.linalg.solve(sums.gram + state.psi[d] * np.diag(1 / state.s), sums.cross[:, d])
        sigma[d] = basis @ np.diag(1 / (1 + e[:, d] / state.psi[d])) @ basis.T
    return replace(state, phi=phi, sigma=sigma)


def error(state, sums, e):
    """(D,) expected squares of what is left, in the bound that is maximised."""
    found = np.zeros(len(state.psi))
    for d, psi in enumerate(state.psi):
        a = state.phi[:, d]
        mean = sums.squares[d] - 2 * sums.cross[:, d] @ a + a @ sums.gram @ a
        found[d] = mean + sum(e[j, d] / (1 + e[j, d] / psi) for j in range(len(e)))
    return found


def likelihood(state, sums, e):
    left = error(state, sums, e)
    each = [
        n * log(2 * pi * psi) + r / psi for n, psi, r in zip(state.mask.sum(0), state.psi, left, strict=True)
    ]
    return -0.5 * sum(each)
