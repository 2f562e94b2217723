"""Moments of a normal cut at zero, against decimal arithmetic, and quantiles of its tail."""

from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from ibpdist.kernels.cut import cut_normal, cut_ratio, quantile
from tests.support.laplace_reference import DIGITS, below


@numba.njit
def ratios(h):
    out = np.empty_like(h)
    for i in range(h.size):
        out[i] = cut_ratio(h[i])
    return out


@numba.njit
def quantiles(h, upper, lower):
    out = np.empty_like(upper)
    for i in range(upper.size):
        out[i] = quantile(h, upper[i], lower[i])
    return out


def exact(h):
    """r_2 = 1 / r_1 - h, r_1 = 1 / I_0 - h."""
    with localcontext(DIGITS):
        h = Decimal(float(h))
        return float(1 / (1 / below(h) - h) - h)


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 2e-15), (np.float32, 2e-7)])
def test_the_ratio_of_moments(dtype, within):
    h = np.concatenate([[0], np.geomspace(1e-8, 1e8, 200), np.linspace(0, 40, 200)]).astype(dtype)
    found = ratios(h)
    assert found.dtype == dtype
    assert np.abs(found / np.array([exact(one) for one in h]) - 1).max() < within


@pytest.mark.parametrize("h", [0.0, 1e-9, 0.4, 3.0, 60.0, 1e5])
def test_quantiles_of_a_normal_cut_in_its_tail(h):
    """log(I_0(h + s) / I_0(h)) - h s - s^2 / 2 is the log of the probability."""
    upper = np.concatenate([np.geomspace(1e-280, 0.1, 60), np.linspace(0.1, 1, 60)])
    s = quantiles(h, upper, 1 - upper)
    assert (np.diff(s) <= 0).all()
    if h < 100:
        np.testing.assert_allclose(log_ndtr(-h - s) - log_ndtr(-h), np.log(upper), rtol=1e-10, atol=1e-11)
    else:
        np.testing.assert_allclose(h * s, -np.log(upper), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("h", [-1e-9, -0.5, -3.0, -20.0, -1e5])
def test_quantiles_of_a_normal_with_its_mean_inside(h):
    places = np.linspace(max(h, -7.5) * 0.999, 8, 60)
    kept = ndtr(-h)
    upper, lower = ndtr(-places) / kept, (ndtr(places) - ndtr(h)) / kept
    np.testing.assert_allclose(quantiles(h, upper, lower) + h, places, rtol=1e-7, atol=1e-7)


@numba.njit
def cuts(h):
    out = np.empty((6, h.size), h.dtype)
    for i in range(h.size):
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i], out[5, i] = cut_normal(h[i])
    return out


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 4e-15), (np.float32, 2e-6)])
def test_a_normal_cut_on_either_side_of_its_mean(dtype, within):
    h = np.concatenate([-np.geomspace(1e-6, 1e3, 60)[::-1], [0], np.geomspace(1e-6, 1e6, 60)]).astype(dtype)
    exponent, shrunk, mass, mean, variance, entropy = cuts(h).astype(float)
    for i, one in enumerate(h):
        with localcontext(DIGITS):
            at = Decimal(float(one))
            total = below(at)
            first = 1 / total - at
            second = 1 - at * first
            kept_apart = at * at / 2 if at < 0 else Decimal(0)
            moments = (total / kept_apart.exp(), first, second - first * first)
            spare = kept_apart + at * first + second / 2
        np.testing.assert_allclose([mass[i], mean[i], variance[i]], [float(m) for m in moments], rtol=within)
        assert abs(entropy[i] - float(spare)) < within
    np.testing.assert_allclose(exponent, np.where(h < 0, np.square(h.astype(float)) / 2, 0), rtol=within)
    np.testing.assert_allclose(shrunk, np.exp(-np.minimum(exponent, 700)), rtol=1e-3, atol=1e-26)
