"""exp and log1p of the loop over rows, against numpy in double precision."""

import numba
import numpy as np
import pytest

from ibpdist.kernels.scalars import exp_negative, log1p_unit, log_positive


@numba.njit
def exps(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exp_negative(x[i])
    return out


@numba.njit
def logs(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = log1p_unit(x[i])
    return out


@pytest.fixture(scope="module")
def negative():
    """Down to -60, where float32 stops; dense near 0 and at the edges of the reduction."""
    edges = -np.log(2) * (np.arange(86) + 0.5)
    near = np.concatenate([np.nextafter(edges.astype(np.float32), np.float32(way)) for way in (-99, 99)])
    return np.concatenate([-np.linspace(0, 59.99, 200_001), -np.logspace(-8, 0, 500), near])


def test_exp_float32(negative):
    x = negative.astype(np.float32)
    x = x[x >= -60]
    found = exps(x)
    assert found.dtype == np.float32
    assert np.max(np.abs(found / np.exp(x.astype(np.float64)) - 1)) < 2e-7


def test_log1p_float32():
    x = np.concatenate([np.linspace(0, 1, 200_001), np.logspace(-30, 0, 2000)]).astype(np.float32)
    found = logs(x)
    assert found.dtype == np.float32
    assert found[0] == 0
    exact = np.log1p(x[x > 0].astype(np.float64))
    assert np.max(np.abs(found[x > 0] / exact - 1)) < 3e-7


def test_double_is_the_library(negative):
    x = negative.astype(np.float64)
    np.testing.assert_array_max_ulp(exps(x), np.exp(x), 2)
    u = np.linspace(0, 1, 10_001)
    np.testing.assert_array_max_ulp(logs(u), np.log1p(u), 2)


def test_far_out():
    """float32 stays at exp(-60), a normal number; float64 goes to zero."""
    far = np.array([-60.0, -61.0, -1e4, -np.inf], np.float32)
    found = exps(far)
    assert (found == found[0]).all()
    assert found[0] == pytest.approx(np.exp(-60), rel=1e-6)
    assert found[0] > np.finfo(np.float32).tiny
    assert exps(np.array([-np.inf, -800.0])).tolist() == [0.0, 0.0]


def test_ends_are_exact():
    for dtype in (np.float32, np.float64):
        assert exps(np.zeros(1, dtype))[0] == 1
        assert logs(np.zeros(1, dtype))[0] == 0
        assert logs(np.ones(1, dtype))[0] == pytest.approx(np.log(2), rel=3e-7)


@numba.njit
def positive_logs(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = log_positive(x[i])
    return out


def test_log_of_any_positive_number():
    near = 1 + np.linspace(-0.3, 0.4, 5001)
    x = np.concatenate([np.geomspace(2.0**-126, 2.0**126, 200_001), near, 2.0 ** np.arange(-126, 127)])
    found, exact = positive_logs(x.astype(np.float32)), np.log(x.astype(np.float32).astype(float))
    assert found.dtype == np.float32
    assert np.max(np.abs(found - exact) / (1 + np.abs(exact))) < 2e-7
    np.testing.assert_allclose(positive_logs(x), np.log(x), rtol=1e-15)
