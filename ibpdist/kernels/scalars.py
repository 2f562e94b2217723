"""exp and log1p for loops over rows that must vectorise: no calls, no branches.

In float32 they are polynomials, within 2e-7 relative on the stated ranges; float64 uses the
C library, since double precision is for checking and for hard data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic
from numba.extending import overload

F = np.float32


@intrinsic
def _float_of_bits(typingctx, bits):
    signature = types.float32(types.int32)

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return signature, codegen


@njit(inline="always")
def _exp32(x):
    """Cephes-style reduction x = n log 2 + r, |r| <= log(2)/2, and a polynomial in r."""
    x = max(x, F(-60.0))
    n = F(math.floor(x * F(1.4426950408889634) + F(0.5)))
    r = (x - n * F(0.693359375)) + n * F(2.12194440054690581e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    power: Any = _float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))  # type: ignore[call-arg]
    return ((p * r) * r + r + F(1.0)) * power


@njit(inline="always")
def _log1p32(x):
    """log(1 + x) = 2 atanh(s), s = x / (2 + x) <= 1/3, by its series."""
    s = x / (F(2.0) + x)
    t = s * s
    p = F(2 / 13)
    p = p * t + F(2 / 11)
    p = p * t + F(2 / 9)
    p = p * t + F(2 / 7)
    p = p * t + F(2 / 5)
    p = p * t + F(2 / 3)
    return s * (p * t + F(2.0))


def exp_negative(x):
    """exp(x) for x <= 0. float32 stops at exp(-60): products with subnormals are slow."""
    raise NotImplementedError("compiled only")


def log1p_unit(x):
    """log(1 + x) for 0 <= x <= 1."""
    raise NotImplementedError("compiled only")


@overload(exp_negative, inline="always")
def _exp_negative(x):
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: math.exp(x)


@overload(log1p_unit, inline="always")
def _log1p_unit(x):
    if x == types.float32:
        return lambda x: _log1p32(x)
    return lambda x: math.log1p(x)
