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

from ibpdist.kernels.options import INLINED

F = np.float32


@intrinsic
def _power_of_two(typingctx, whole):
    """2^n of a whole number n in a float32, |n| <= 126; sums of numba's small integers are wide ones."""

    def codegen(context, builder, signature, args):
        bias, place = (context.get_constant(types.int32, value) for value in (127, 23))
        raised = builder.add(builder.fptosi(args[0], context.get_value_type(types.int32)), bias)
        return builder.bitcast(builder.shl(raised, place), context.get_value_type(types.float32))

    return types.float32(types.float32), codegen


@intrinsic
def _nearest(typingctx, x):
    """The nearest whole number, as a float32."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(types.float32)
        return builder.call(builder.module.declare_intrinsic("llvm.rint", [kind]), args)

    return types.float32(types.float32), codegen


@njit(**INLINED)
def _exp32(x):
    """Cephes-style reduction x = n log 2 + r, |r| <= log(2)/2, and a polynomial in r."""
    x = max(x, F(-60.0))
    n: Any = _nearest(x * F(1.4426950408889634))  # type: ignore[call-arg]
    r = (x - n * F(0.693359375)) + n * F(2.12194440054690581e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    power: Any = _power_of_two(n)
    return ((p * r) * r + r + F(1.0)) * power


@njit(**INLINED)
def _log1p32(x):
    """x p(x), with p the polynomial of degree 8 nearest to log(1 + x) / x, within 4e-8 relative."""
    p = F(4.6783266886e-3)
    p = p * x - F(2.7277823347e-2)
    p = p * x + F(7.4559090463e-2)
    p = p * x - F(1.3344418977e-1)
    p = p * x + F(1.8948877807e-1)
    p = p * x - F(2.4799423786e-1)
    p = p * x + F(3.3312864802e-1)
    p = p * x - F(4.9999133941e-1)
    p = p * x + F(9.9999993426e-1)
    return x * p


def exp_negative(x):
    """exp(x) for x <= 0. float32 stops at exp(-60): products with subnormals are slow."""
    raise NotImplementedError("compiled only")


def log1p_unit(x):
    """log(1 + x) for 0 <= x <= 1."""
    raise NotImplementedError("compiled only")


@overload(exp_negative, jit_options=INLINED)
def _exp_negative(x):
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: math.exp(x)


@overload(log1p_unit, jit_options=INLINED)
def _log1p_unit(x):
    if x == types.float32:
        return lambda x: _log1p32(x)
    return lambda x: math.log1p(x)


@intrinsic
def _exponent(typingctx, x):
    """Of a positive, normal float32: the whole number n, as a float32, with 2^n <= x < 2^(n + 1)."""

    def codegen(context, builder, signature, args):
        whole = context.get_value_type(types.int32)
        bias, place = (context.get_constant(types.int32, value) for value in (127, 23))
        raised = builder.lshr(builder.bitcast(args[0], whole), place)
        return builder.sitofp(builder.sub(raised, bias), context.get_value_type(types.float32))

    return types.float32(types.float32), codegen


@njit(**INLINED)
def _log32(x):
    """n log 2 + log(x / 2^n), within 2e-7 absolute near 1 and relative elsewhere."""
    n: Any = _exponent(x)  # type: ignore[call-arg]
    power: Any = _power_of_two(-n)
    return n * F(0.6931471805599453) + _log1p32(x * power - F(1.0))


def log_positive(x):
    """log(x) for x > 0; float32 for 2^-126 <= x <= 2^126."""
    raise NotImplementedError("compiled only")


@overload(log_positive, jit_options=INLINED)
def _log_positive(x):
    if x == types.float32:
        return lambda x: _log32(x)
    return lambda x: math.log(x)
