"""q(A) seen in its eigenbasis, where it and both variances cost O(K D) to update, not O(K^2 D).

With scale s = r^2 and r G r = U diag(e) U', B = diag(r) U and R = B' P, the mean of column d is
B (R_d / (psi_d + e)), and everything the variances need follows from e and R^2 alone:

    E |x_d - Y A_d|^2 = x_d'x_d - sum_j R_jd^2 (e_j + 2 psi_d) / (psi_d + e_j)^2
                        + sum_j c_j psi_d / (psi_d + c_j)
    sum_kd E A_kd^2 / s_k = sum_jd R_jd^2 / (psi_d + e_j)^2 + sum_jd psi_d / (psi_d + c_j)

where c is the spectrum of the family's covariance (e, or diag(r G r) when factorised). A new
common scale rho s multiplies B by sqrt(rho), e and c by rho. So noise and scale are set by EM
to convergence between one rotation into the basis and one out of it (linear-gaussian.md 8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
BLOCK = 8
Columns = slice | NDArray[np.intp]


class Family(StrEnum):
    """What q(A) may depend on: all features of a column jointly, or each alone."""

    STRUCTURED = "structured"
    FACTORISED = "factorised"


@dataclass(frozen=True)
class Rotation:
    """One group of columns in its eigenbasis.

    `turn` is U, `cross` (feature, column) is U' diag(r) P, `spectrum` e; `own_turn` and
    `own_spectrum` are those of the covariance. `root` (feature) is r.
    """

    columns: Columns
    root: Float
    turn: Float
    spectrum: Float
    cross: Float
    own_turn: Float
    own_spectrum: Float
    lift: float = 1.0
    """What `cross` is yet to be multiplied by: it is large."""

    @classmethod
    def of(
        cls, columns: Columns, gram: Float, cross: Float, squares: Float, scale: Float, family: Family
    ) -> Rotation:
        """From Y'Y, Y'x and the sums of squares of x (column)."""
        root = np.sqrt(scale)
        scaled = root[:, None] * gram * root
        e, u = np.linalg.eigh(scaled)
        e = np.maximum(e, 0.0)
        own = (u, e) if family is Family.STRUCTURED else (np.eye(len(root)), np.diagonal(scaled))
        return cls(columns, root, u, e, _possible((u.T * root) @ cross, e, squares), *own)

    def rescaled(self, ratio: float) -> Rotation:
        """The same when all scales are multiplied by `ratio`."""
        step = np.sqrt(ratio)
        return replace(
            self,
            root=self.root * step,
            spectrum=self.spectrum * ratio,
            lift=self.lift * step,
            own_spectrum=self.own_spectrum * ratio,
        )

    def mean(self, noise: Float) -> Float:
        """(feature, column) mean of q(A) for the columns' noise; one noise is divided by in the basis."""
        basis = self.lift * self.root[:, None] * self.turn
        if (noise == noise[:1]).all():
            return np.asarray((basis / (noise[:1] + self.spectrum)) @ self.cross)
        shrunk = noise + self.spectrum[:, None]
        return np.asarray(basis @ np.divide(self.cross, shrunk, out=shrunk))

    def evidence(self, noise: Float) -> float:
        """log p of the columns with the dictionary integrated out, over what it is without a dictionary."""
        shrunk = noise + self.spectrum[:, None]
        told = (self.lift * self.cross) ** 2 / (noise * shrunk)
        return 0.5 * float((told - np.log(shrunk / noise)).sum())

    def basis(self) -> Float:
        return np.asarray(self.root[:, None] * self.own_turn)


def _possible(cross: Float, spectrum: Float, squares: Float) -> Float:
    """Cross products within R_jd^2 <= e_j sum x_d^2 (Cauchy-Schwarz), which rounding can break.

    The mean of a direction is R / (psi + e): where float32 products of rows far from zero lost
    a small e_j, it grew without limit.
    """
    root, widest = np.sqrt(spectrum), np.sqrt(squares)
    for first in range(0, len(cross), BLOCK):  # a few rows at a time, which stay in cache
        part = cross[first : first + BLOCK]
        most = np.outer(root[first : first + BLOCK], widest)
        np.minimum(part, most, out=part)
        np.maximum(part, np.negative(most, out=most), out=part)
    return cross
