"""The response of Laplace weights, compiled, against decimal arithmetic and integrals."""

import math
from itertools import pairwise

import numba
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr

from ibpdist.kernels.laplace import Laplace
from ibpdist.kernels.respond import Draw, Mean, Mode, weigh
from tests.support.laplace_reference import laplace_quantile, response

LINEAR = (0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1, 1.001, 1.5, 2, 3, 5, 10, 30, 100, 1e3, 1e4, 1e5)
QUAD = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 1e3, 1e4, 1e6, 1e8)
WITHIN = {np.float64: 2e-15, np.float32: 1e-6}
"""Largest errors: of the evidence and of the cost relative to 1 + their size, of E w relative to its size and
the standard deviation together, of E w^2 relative."""


@numba.njit
def _weighed(weights, rule, linear, quad, normal, out):
    for i in range(linear.size):
        out[0, i], out[1, i], out[2, i], out[3, i] = weigh(weights, rule, linear[i], quad[i], normal[i])


def weighed(linear, quad, normal=0.0, rule=Mean(), dtype=np.float64, weights=Laplace()):  # noqa: B008
    """(evidence, w, w2, cost) of each entry."""
    given = np.broadcast_arrays(np.atleast_1d(linear), quad, normal)
    given = [np.ascontiguousarray(one, dtype=dtype) for one in given]
    out = np.empty((4, given[0].size), dtype)
    _weighed(weights, rule, *given, out)
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_digits_on_a_wide_grid(dtype):
    for b in LINEAR:
        found = weighed(b, np.array(QUAD), dtype=dtype).astype(float).T
        for a, (evidence, w, w2, cost) in zip(QUAD, found, strict=True):
            exact, mean, variance, paid = response(float(dtype(b)), float(dtype(a)))
            within = WITHIN[dtype]
            assert abs(evidence - exact) <= within * (1 + abs(exact)), (b, a)
            assert abs(w - mean) <= within * (abs(mean) + math.sqrt(variance)), (b, a)
            assert abs(w2 / (mean * mean + variance) - 1) <= within, (b, a)
            assert abs(cost - paid) <= within * (1 + paid), (b, a)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_variance_is_above_zero(dtype):
    """As far as its precision tells E w^2 from (E w)^2."""
    rng = np.random.default_rng(0)
    a = (10 ** rng.uniform(-9, 9, 20_000)).astype(dtype)
    b = (10 ** rng.uniform(-6, 5, a.size) * rng.choice([-1, 1], a.size)).astype(dtype)
    evidence, w, w2, cost = weighed(b, a, dtype=dtype)
    assert np.isfinite([evidence, w, w2, cost]).all()
    assert (w2 >= w * w).all()
    certain = w * w > 1e-2 / np.finfo(dtype).eps / a  # the variance is about 1 / a there
    assert (w2 > w * w)[~certain].all()
    assert (cost >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_b_and_minus_b(dtype):
    b, a = np.array([0.0, 0.3, 2.0, 40.0, 1e4]), np.array([0.0, 1e-4, 1.0, 3.0, 1e3])
    evidence, w, w2, cost = weighed(b, a, dtype=dtype)
    other = weighed(-b, a, dtype=dtype)
    np.testing.assert_array_equal(other, [evidence, -w, w2, cost])
    assert w[0] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_a_quad_the_prior_is_tilted(dtype):
    """exp(b w - |w|) / 2: log Z = -log(1 - b^2), E w = 2 b / (1 - b^2), E w^2 = (2 + 6 b^2) / (1 - b^2)^2."""
    b = np.array([0.0, 1e-3, 0.2, -0.7, 0.97])
    b = b.astype(dtype).astype(float)
    one = 1 - b * b
    evidence, w, w2, cost = weighed(b, 0.0, dtype=dtype)
    within = {"rtol": 100 * np.finfo(dtype).eps, "atol": 10 * np.finfo(dtype).eps}
    np.testing.assert_allclose(evidence, -np.log(one), **within)
    np.testing.assert_allclose(w, 2 * b / one, **within)
    np.testing.assert_allclose(w2, (2 + 6 * b * b) / one**2, **within)
    np.testing.assert_allclose(cost, 2 * b * b / one + np.log(one), **within)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_cannot_happen_stays_finite(dtype):
    """A linear evidence without a quad has no density from 1 on."""
    assert np.isfinite(weighed(np.array([1.0, -1.0, 3.0, 1e4]), 0.0, dtype=dtype)).all()


@pytest.mark.parametrize(("b", "a"), [(0.0, 0.3), (0.4, 1e-3), (-3.0, 2.0), (12.0, 20.0), (1.0, 1.0)])
def test_evidence_and_moments_are_integrals(b, a):
    def over(power):
        def inside(w):
            return w**power * math.exp(b * w - a * w * w / 2 - abs(w)) / 2

        edges = [-60, -5, 0, 5, 60]
        return sum(quad(inside, *pair, epsabs=0, epsrel=1e-12, limit=400)[0] for pair in pairwise(edges))

    total, first, second = (over(power) for power in range(3))
    evidence, w, w2, cost = weighed(b, a)[:, 0]
    assert evidence == pytest.approx(math.log(total), rel=1e-10, abs=1e-10)
    assert w == pytest.approx(first / total, rel=1e-9, abs=1e-12)
    assert w2 == pytest.approx(second / total, rel=1e-9)
    assert evidence == pytest.approx(b * w - a * w2 / 2 - cost, rel=1e-9, abs=1e-12), "the bound is tight"


def test_slopes_of_the_evidence_are_the_moments():
    b, a, step = np.array([0.1, 0.9, -4.0, 30.0]), np.array([0.5, 1e-2, 3.0, 25.0]), 1e-5
    up, down = weighed(b + step, a)[0], weighed(b - step, a)[0]
    np.testing.assert_allclose((up - down) / (2 * step), weighed(b, a)[1], rtol=1e-7)
    more, less = weighed(b, a * (1 + step))[0], weighed(b, a * (1 - step))[0]
    np.testing.assert_allclose((less - more) / (a * step), weighed(b, a)[2], rtol=1e-6)


def test_a_rule_for_z_changes_nothing_of_w():
    b, a = np.array([0.3, -9.0]), np.array([2.0, 4.0])
    np.testing.assert_array_equal(weighed(b, a, rule=Mode()), weighed(b, a))


def test_the_rate_of_the_weight():
    """w ~ Laplace(0, 1 / 3) is w = v / 3 with v ~ Laplace(0, 1)."""
    evidence, w, w2, cost = weighed(1.5, 0.8, weights=Laplace(3.0))[:, 0]
    same, v, v2, price = weighed(0.5, 0.8 / 9)[:, 0]
    np.testing.assert_allclose([evidence, w, w2, cost], [same, v / 3, v2 / 9, price], rtol=1e-12)


# --- draws ---

PLACES = np.array([-6.5, -4.0, -1.5, -0.3, 0.0, 0.2, 1.0, 3.0, 6.5])


@pytest.mark.parametrize("b", [0.0, 1e-3, 0.5, -0.98, 2.0, -30.0, 500.0])
@pytest.mark.parametrize("a", [1e-4, 0.3, 1.0, 50.0, 1e5])
def test_a_draw_is_the_quantile(b, a):
    """At the probability of the normal, in both tails."""
    evidence, w, w2, cost = weighed(b, a, PLACES, Draw())
    spread = math.sqrt(response(b, a)[2])
    expected = [laplace_quantile(b, a, place) for place in PLACES]
    np.testing.assert_allclose(w, expected, rtol=1e-7, atol=1e-8 * spread)
    np.testing.assert_array_equal(w2, w * w)
    np.testing.assert_allclose(cost, np.abs(w) + math.log(2), rtol=1e-12)
    np.testing.assert_allclose(evidence, response(b, a)[0], rtol=1e-12, atol=1e-13)


def test_a_draw_without_evidence_is_one_of_the_prior():
    expected = -np.sign(PLACES) * (log_ndtr(-np.abs(PLACES)) + math.log(2))
    np.testing.assert_allclose(weighed(0.0, 0.0, PLACES, Draw())[1], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_draws_have_the_moments(dtype):
    normals = np.random.default_rng(1).normal(size=100_000)
    for b, a in [(0.0, 1e-12), (0.8, 0.0), (-3.0, 1.0), (40.0, 30.0), (0.1, 1e6)]:
        _, mean, square, _ = weighed(b, a)[:, 0]
        _, w, w2, _ = weighed(b, a, normals, Draw(), dtype)
        assert w.dtype == dtype
        error = math.sqrt((square - mean * mean) / normals.size)
        assert abs(w.mean(dtype=float) - mean) < 4 * error
        assert w2.mean(dtype=float) == pytest.approx(square, rel=0.05)
