"""The response of exponential weights, compiled, against decimal arithmetic and integrals."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import kstest, truncnorm

from ibpdist.kernels.exponential import Exponential
from ibpdist.kernels.respond import Draw, Mode
from tests.kernels.test_laplace import LINEAR, PLACES, QUAD, WITHIN
from tests.kernels.test_laplace import weighed as weighed_by
from tests.support.exponential_reference import exponential_quantile, response

BOTH = sorted({sign * b for b in LINEAR for sign in (-1, 1)})


def weighed(*given, weights=Exponential(), **options):  # noqa: B008
    return weighed_by(*given, weights=weights, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_digits_on_a_wide_grid(dtype):
    """Also where the linear evidence is far below and far above zero."""
    within = WITHIN[dtype]
    for b in BOTH:
        found = weighed(b, np.array(QUAD), dtype=dtype).astype(float).T
        for a, (evidence, w, w2, cost) in zip(QUAD, found, strict=True):
            exact, mean, variance, paid = response(float(dtype(b)), float(dtype(a)))
            assert abs(evidence - exact) <= within * (1 + abs(exact)), (b, a)
            assert abs(w - mean) <= within * mean, (b, a)
            assert abs(w2 / (mean * mean + variance) - 1) <= within, (b, a)
            assert abs(cost - paid) <= within * (1 + paid), (b, a)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_have_their_signs(dtype):
    rng = np.random.default_rng(0)
    a = (10 ** rng.uniform(-9, 9, 20_000)).astype(dtype)
    b = (10 ** rng.uniform(-6, 5, a.size) * rng.choice([-1, 1], a.size)).astype(dtype)
    evidence, w, w2, cost = weighed(b, a, dtype=dtype)
    assert np.isfinite([evidence, w, w2, cost]).all()
    assert (w > 0).all()
    assert (w2 >= w * w).all()
    certain = w * w > 1e-2 / np.finfo(dtype).eps / a  # the variance is about 1 / a there
    assert (w2 > w * w)[~certain].all()
    assert (cost >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_a_quad_the_prior_is_tilted(dtype):
    """Exp(1 - b): log Z = -log(1 - b), E w = 1 / (1 - b), E w^2 = 2 / (1 - b)^2."""
    b = np.array([0.0, 1e-3, 0.2, -0.7, 0.97, -30.0, -1e6])
    rate = 1 - b.astype(dtype).astype(float)
    evidence, w, w2, cost = weighed(b, 0.0, dtype=dtype)
    within = {"rtol": 10 * np.finfo(dtype).eps, "atol": 10 * np.finfo(dtype).eps}
    np.testing.assert_allclose(evidence, -np.log(rate), **within)
    np.testing.assert_allclose(w, 1 / rate, **within)
    np.testing.assert_allclose(w2, 2 / rate**2, **within)
    np.testing.assert_allclose(cost, np.log(rate) + 1 / rate - 1, **within)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_cannot_happen_stays_finite(dtype):
    """A linear evidence without a quad has no density from the rate on."""
    assert np.isfinite(weighed(np.array([1.0, 3.0, 1e4]), 0.0, dtype=dtype)).all()


@pytest.mark.parametrize(("b", "a"), [(0.0, 0.3), (0.4, 1e-3), (-3.0, 2.0), (12.0, 20.0), (1.0, 1.0)])
def test_evidence_and_moments_are_integrals(b, a):
    def over(power):
        def inside(w):
            return w**power * math.exp(b * w - a * w * w / 2 - w)

        edges = [0, 1, 5, 20, 80]
        return sum(quad(inside, *pair, epsabs=0, epsrel=1e-12, limit=400)[0] for pair in pairwise(edges))

    total, first, second = (over(power) for power in range(3))
    evidence, w, w2, cost = weighed(b, a)[:, 0]
    assert evidence == pytest.approx(math.log(total), rel=1e-10, abs=1e-10)
    assert w == pytest.approx(first / total, rel=1e-9)
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
    """w ~ Exp(3) is w = v / 3 with v ~ Exp(1)."""
    evidence, w, w2, cost = weighed(1.5, 0.8, weights=Exponential(3.0))[:, 0]
    same, v, v2, price = weighed(0.5, 0.8 / 9)[:, 0]
    np.testing.assert_allclose([evidence, w, w2, cost], [same, v / 3, v2 / 9, price], rtol=1e-12)


# --- draws ---


@pytest.mark.parametrize("b", [0.0, 1e-3, 0.5, 0.98, -0.98, 2.0, -30.0, 500.0])
@pytest.mark.parametrize("a", [1e-4, 0.3, 1.0, 50.0, 1e5])
def test_a_draw_is_the_quantile(b, a):
    """At the probability of the normal, in both tails."""
    evidence, w, w2, cost = weighed(b, a, PLACES, Draw())
    expected = [exponential_quantile(b, a, place) for place in PLACES]
    np.testing.assert_allclose(w, expected, rtol=1e-7, atol=1e-8 * math.sqrt(response(b, a)[2]))
    np.testing.assert_array_equal(w2, w * w)
    np.testing.assert_array_equal(cost, w)
    np.testing.assert_allclose(evidence, response(b, a)[0], rtol=1e-12, atol=1e-13)
    assert (w > 0).all()


def test_a_draw_without_evidence_is_one_of_the_prior():
    np.testing.assert_allclose(
        weighed(0.0, 0.0, PLACES, Draw())[1], -log_ndtr(-PLACES), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("b", "a"), [(-3.0, 1.0), (40.0, 30.0), (1.0, 0.04), (0.1, 1e6)])
def test_draws_have_the_law(b, a, dtype):
    """A normal with mean (b - 1) / a and variance 1 / a, cut at zero."""
    normals = np.random.default_rng(1).normal(size=100_000)
    w = weighed(b, a, normals, Draw(), dtype)[1]
    assert w.dtype == dtype
    sd, mean = 1 / math.sqrt(a), (b - 1) / a
    assert kstest(w, truncnorm(-mean / sd, np.inf, loc=mean, scale=sd).cdf).pvalue > 1e-3
    _, first, second, _ = weighed(b, a)[:, 0]
    error = math.sqrt((second - first * first) / normals.size)
    assert abs(w.mean(dtype=float) - first) < 4 * error
