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

from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
BLOCK = 8
GAIN = 1e-3
"""Nats a column that a basis must promise to be measured."""
TIE = 1e-11
"""Relative difference of two bounds that may be rounding."""
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

    def ahead(self) -> Float:
        """A basis for the covariances of the next step to be measured in; zeros: none."""
        return np.zeros_like(self.turn)


@dataclass(frozen=True)
class Scattered(Rotation):
    """All columns in the eigenbasis of the Gram matrix of all rows, with covariances of their own in one
    basis: `own_spectrum` is (feature, column), and `own_turn` any matrix."""

    ahead_turn: Float | None = None

    @classmethod
    def best(cls, whole: Rotation, noise: Float, bases: Float, spectra: Float) -> Scattered:
        """The covariances with the highest bound at this noise (column): of those in the `bases`, in which
        the spectra of the columns were measured, and those of rows without gaps, whose spectra are too
        large where there are gaps, so that their bound is too low."""
        wide = np.repeat(whole.own_spectrum[:, None], noise.size, axis=1)
        found = [_normalised(basis, e, whole.root) for basis, e in zip(bases, spectra, strict=True)]
        found.append((whole.own_turn, wide))
        at = _first_best([_gain(turn, e, noise) for turn, e in found])
        turn, spectrum = found[at]
        given = {f.name: getattr(whole, f.name) for f in fields(Rotation)}
        made = cls(**given | {"own_turn": turn, "own_spectrum": spectrum})
        # What was just taken stays for a step: a basis costs as much to measure as a product with the data.
        return made if at else replace(made, ahead_turn=_worth(whole, turn, wide, noise))

    def ahead(self) -> Float:
        if self.ahead_turn is None:
            return super().ahead()
        return np.asarray(self.root[:, None] * self.ahead_turn)


def _first_best(gains: list[float]) -> int:
    """The place of the highest; of those that differ by rounding, the first."""
    at = 0
    for i, gain in enumerate(gains):
        if not gains[at] >= gain - TIE * abs(gain):
            at = i
    return at


def _normalised(basis: Float, spectrum: Float, root: Float) -> tuple[Float, Float]:
    """U with basis = diag(root) U and columns of length 1, as the form 1 / (1 + e / psi) takes for granted;
    and its spectra (feature, column)."""
    turn = basis / root[:, None]
    length = np.sqrt((turn**2).sum(axis=0))
    if not length.all():
        return turn, spectrum
    return turn / length, spectrum / length[:, None] ** 2


def _worth(whole: Rotation, turn: Float, wide: Float, noise: Float) -> Float | None:
    """The eigenvectors of the Gram matrix of all rows, if rows without gaps would gain by them."""
    if whole.own_turn is not whole.turn:
        return None
    now = np.einsum("ij,i,ij->j", whole.turn.T @ turn, whole.spectrum, whole.turn.T @ turn)
    gain = _gain(whole.turn, wide, noise) - _gain(turn, np.repeat(now[:, None], noise.size, axis=1), noise)
    return whole.turn if gain > GAIN * noise.size else None


def _gain(turn: Float, spectrum: Float, noise: Float) -> float:
    """What the covariances add to the bound, but for a constant; a basis of zeros is no covariance."""
    return noise.size * float(np.linalg.slogdet(turn)[1]) - 0.5 * float(np.log1p(spectrum / noise).sum())


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
