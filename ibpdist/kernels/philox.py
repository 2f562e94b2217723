"""Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): random bits as a function of a counter."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibpdist.kernels.options import INLINED, OPTIONS

_LOW = np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_32 = np.uint64(32)


@njit(**INLINED)
def _philox(c0, c1, c2, c3, k0, k1):
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0 = ((p1 >> _32) ^ c1 ^ k0) & _LOW
        c1 = p1 & _LOW
        c2 = ((p0 >> _32) ^ c3 ^ k1) & _LOW
        c3 = p0 & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@njit(cache=True, **OPTIONS)
def _blocks(counters, key):
    """The four words of each counter; for checking against published vectors."""
    out = np.empty_like(counters)
    for i in range(counters.shape[0]):
        c = counters[i]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = _philox(c[0], c[1], c[2], c[3], key[0], key[1])
    return out


@njit(cache=True, **OPTIONS)
def _fill(k0, k1, c3, numbers, out):
    width, rows = out.shape
    for pair in range((width + 1) // 2):
        for r in range(rows):
            row = numbers[r]
            a, b, c, d = _philox(row & _LOW, row >> _32, np.uint64(pair), c3, k0, k1)
            out[2 * pair, r] = (np.float64(((a << _32) | b) >> np.uint64(12)) + 0.5) * 2.0**-52
            if 2 * pair + 1 < width:
                out[2 * pair + 1, r] = (np.float64(((c << _32) | d) >> np.uint64(12)) + 0.5) * 2.0**-52


def uniforms(key: NDArray[np.uint32], start: int, rows: int, width: int) -> NDArray[np.float64]:
    """(width, rows) uniforms strictly inside (0, 1); entry (j, r) depends on key, j and start + r."""
    return uniforms_of(key, np.arange(start, start + rows), width)


def uniforms_of(key: NDArray[np.uint32], rows: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """The same for rows in any order: entry (j, r) depends on key, j and rows[r]."""
    out = np.empty((width, rows.size))
    k = key.astype(np.uint64)
    _fill(k[0], k[1], k[2], rows.astype(np.uint64), out)
    return out


def blocks(counters: NDArray[np.uint64], key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Raw words for (n, 4) counters under a two-word key."""
    words: NDArray[np.uint64] = _blocks(counters, key)
    return words
