"""A pool of certified columns from many one-unit starts, and the simplest basis in it.

See starts-and-moves.md 5. With few rows the sample correlations of the true sources ruin every symmetric
method, but a single source can still be found from a random direction, and the certificate knows it. Unions
and differences of sources pass too; a basis of least entropy leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ibpdist.inference.starts import contrast
from ibpdist.inference.starts.certificate import ERROR, Binary, Columns, Space, certify, distinct, harden
from ibpdist.inference.starts.symmetric import separate

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_STARTS, _LEAST_STARTS, _START_ROWS = 400, 100, 400_000
"""One-unit searches a round; fewer when there are many rows, where each finds more and costs more."""
_ROUNDS, _WEAK_ROUNDS, _BARREN, _AGAIN = 12, 3, 4, 2
_INSIDE, _WHOLE = 40, 60
_LEAST_VARIANCE, _STILL = 0.02, 1e-5
_NEW = 0.02
"""Least squared residual of a new direction on those of the basis."""
_PLENTY = 25
"""Rows a component at which the symmetric solution, if all of it is certified, needs no search."""
_LOWER = 1e-9
_EMPTY = 0.002


@dataclass(frozen=True)
class Pool:
    """Directions (component, component_) and how many of the first are certified."""

    directions: Matrix
    certified: int


def search(into: Space, seeds: Matrix, rng: np.random.Generator) -> Pool:
    """Complete basis of directions, certified ones first; `seeds` are directions to begin with."""
    r = len(into.y)
    pool = _closed(_with(None, seeds, into), into)
    best, barren = _basis(pool), 0
    for turn in range(_WEAK_ROUNDS if weak(into.noise) else _ROUNDS):
        full, bare = len(best.z) == r, len(best.z) == 0
        if barren >= (_AGAIN if full or bare else _BARREN):
            break
        if full and turn == 0 and into.rows >= _PLENTY * r:
            break
        pool = _closed(_with(pool, _round(best.directions, full, turn, into, rng), into), into)
        new = _basis(pool)
        better = (len(new.z), -_total(new)) > (len(best.z), -_total(best) + _LOWER)
        best, barren = (new, 0) if better else (best, barren + 1)
    return _completed(best.directions, into, rng)


def weak(noise: Vector) -> bool:
    """Whether the usual balanced column could not be certified: more rounds would find false ones."""
    return bool(noise.mean() / 4 > ERROR)


def greedy(pool: Columns) -> NDArray[np.intp]:
    """Places of the basis of least weight: simple columns first, each with a new direction."""
    taken: list[int] = []
    frame = np.zeros((0, pool.directions.shape[1]))
    for k in np.argsort(_weight(pool), kind="stable"):
        if len(taken) == pool.directions.shape[1]:
            break
        d = pool.directions[k] / np.linalg.norm(pool.directions[k])
        rest = d - frame.T @ (frame @ d)
        rest -= frame.T @ (frame @ rest)
        if rest @ rest > _NEW:
            taken.append(int(k))
            frame = np.vstack([frame, rest / np.linalg.norm(rest)])
    return np.array(taken, dtype=np.intp)


def exclusive_or(z: Binary) -> Binary:
    """z_k xor z_l of all pairs whose table has an empty cell: two-valued columns of the same span.

    One of them is the sum or the difference that undoes a union, a nesting, or a disjoint pair.
    """
    rows = z.shape[1]
    both = z.astype(float) @ z.T.astype(float)
    count = np.diag(both)
    least = np.minimum(
        np.minimum(both, count[:, None] - both),
        np.minimum(count - both, rows - count[:, None] - count + both),
    )
    one, two = np.nonzero(np.triu(least <= _EMPTY * rows, 1))
    made: Binary = z[one] ^ z[two]
    return made


def _basis(pool: Columns) -> Columns:
    return pool.take(greedy(pool))


def _closed(pool: Columns, into: Space) -> Columns:
    """The pool and the certified exclusive ors of its basis."""
    return _added(pool, exclusive_or(_basis(pool).z), into)


def _with(pool: Columns | None, directions: Matrix, into: Space) -> Columns:
    """The pool and the certified columns near these directions."""
    return _added(pool, harden(directions, into), into)


def _added(pool: Columns | None, z: Binary, into: Space) -> Columns:
    """The pool and those of the columns that are certified, no column twice."""
    new = certify(z[distinct(z)], into)
    new = new.take(new.certified)
    if pool is None:
        return new
    both = Columns(
        np.concatenate([pool.z, new.z]),
        np.concatenate([pool.directions, new.directions]),
        np.concatenate([pool.ratio, new.ratio]),
        np.concatenate([pool.certified, new.certified]),
    )
    return both.take(distinct(both.z))


def _round(basis: Matrix, full: bool, turn: int, into: Space, rng: np.random.Generator) -> Matrix:
    """Directions where one-unit searches end; while the basis is short most begin in its complement."""
    starts = max(_LEAST_STARTS, min(_STARTS, _START_ROWS // into.rows))
    w = _unit(rng.standard_normal((starts, len(into.y))))
    if full:
        w[: starts // 2] = _sums(basis, starts // 2, rng)
        return one_unit(into.y, w, _WHOLE)
    free = one_unit(into.y, w[: len(w) // 2], _WHOLE)
    if not len(basis):
        return np.concatenate([free, one_unit(into.y, w[len(w) // 2 :], _WHOLE)])
    outside = complement(basis)
    inside = one_unit(outside @ into.y, _unit(w[len(w) // 2 :] @ outside.T), _INSIDE)
    return np.concatenate([free, one_unit(into.y, inside @ outside, _WHOLE - _INSIDE)])


def one_unit(y: Matrix, w: Matrix, most: int) -> Matrix:
    """Two-valued fixed points w <- g(u) Y'/N - mean(g') S w, each alone, from unit w (start, component)."""
    w, open_ = w.copy(), np.arange(len(w))
    cov = y @ y.T / y.shape[1]
    state = contrast.split(w @ y)[1]
    for turn in range(most):
        old = w[open_]
        u = old @ y
        state = _values(u, state, turn)
        g, slope = contrast.two_valued(u, state)
        new = _unit(g @ y.T / y.shape[1] - slope[:, None] * (old @ cov))
        w[open_] = new
        moves = np.abs(np.einsum("ij,ij->i", new, old)) < 1 - _STILL
        open_, state = open_[moves], state.take(moves)
        if open_.size == 0:
            break
    return w


def complement(basis: Matrix) -> Matrix:
    """Orthonormal directions outside the span of independent ones (direction, component)."""
    q = np.linalg.qr(basis.T, mode="complete")[0]
    made: Matrix = q[:, len(basis) :].T
    return made


def _values(u: Matrix, state: contrast.Mixture, turn: int) -> contrast.Mixture:
    """Class values and variance: afresh in the first turns and each third, else two more rounds."""
    if turn < 3 or turn % 3 == 0:
        state = contrast.split(u)[1]
        v = np.maximum(state.variance, _LEAST_VARIANCE)
        return contrast.Mixture(state.share, state.low, state.high, v)
    return contrast.fit(u, state, 2, _LEAST_VARIANCE)


def _completed(basis: Matrix, into: Space, rng: np.random.Generator) -> Pool:
    """Directions that are short of the dimension come from a symmetric search outside the basis."""
    certified = len(basis)
    if certified < len(into.y):
        outside = complement(basis) if certified else np.eye(len(into.y))
        rest = separate(outside @ into.y, rng, ("skew", "tanh", "cube", "skew"))
        basis = np.concatenate([basis, rest.directions @ outside])
    return Pool(basis, certified)


def _sums(basis: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """Sums and differences of two directions of a basis."""
    d = _unit(basis)
    one, two = rng.integers(len(d), size=(2, count))
    sign = rng.choice([-1.0, 1.0], size=(count, 1))
    made = d[one] + sign * d[two]
    made[one == two] = d[one[one == two]]
    return _unit(made)


def _unit(w: Matrix) -> Matrix:
    length = np.linalg.norm(w, axis=1, keepdims=True)
    made: Matrix = w / np.where(length > 0, length, 1.0)
    return made


def _weight(pool: Columns) -> Vector:
    """Entropy of a column, and a price for a residual beyond what two standard errors explain."""
    share = pool.z.mean(1)
    free = max(pool.z.shape[1] - 1 - pool.directions.shape[1], 1)
    usual = 1 + 2 * np.sqrt(2 / free)
    made: Vector = entr(share) + entr(1 - share) + 0.5 * np.log(np.maximum(pool.ratio / usual, 1.0))
    return made


def _total(pool: Columns) -> float:
    return float(_weight(pool).sum())
