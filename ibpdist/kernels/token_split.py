"""Which tokens of a row are hidden: draws without replacement, from numbers of the row alone."""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.philox import _LOW, _32, _philox


@njit(cache=True, **OPTIONS)
def hide_tokens(rows, starts, counts, wanted, key):
    """(entry) how many tokens of each entry are hidden, `wanted` (row) of each row.

    Tokens of row r are entries starts[r] .. starts[r + 1], each `counts` times. A token is taken with the
    number of those still wanted over those still left, so that all choices are as likely; its uniform
    depends on the key, the number of its row (`rows`) and its place in the row.
    """
    hidden = np.zeros(counts.size, np.int64)
    for r in range(rows.size):
        need, left, place = wanted[r], np.int64(0), np.uint64(0)
        for e in range(starts[r], starts[r + 1]):
            left += counts[e]
        row = np.uint64(rows[r])
        for e in range(starts[r], starts[r + 1]):
            for _ in range(counts[e]):
                if need == 0:
                    break
                a, b, _, _ = _philox(row & _LOW, row >> _32, place & _LOW, place >> _32, key[0], key[1])
                uniform = np.float64(((a << _32) | b) >> np.uint64(12)) * 2.0**-52
                place += np.uint64(1)
                if uniform * left < need:
                    hidden[e] += 1
                    need -= 1
                left -= 1
    return hidden
