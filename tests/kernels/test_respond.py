"""What one entry does, compiled, against the reference and against integrals."""

import numba
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from ibpdist.kernels.respond import Draw, Mean, Mode, Normal, Unit, decide, weigh
from tests.support import reference as ref

GRID = [(b, a) for b in (-30.0, -2.0, 0.0, 0.7, 25.0) for a in (0.0, 0.01, 1.0, 40.0)]


@numba.njit
def weighed(weights, rule, linear, quad, normal):
    return weigh(weights, rule, linear, quad, normal)


@numba.njit
def decided(rule, log_odds, uniform):
    return decide(rule, log_odds, uniform)


@pytest.mark.parametrize(("b", "a"), GRID)
def test_unit_weight(b, a):
    evidence, w, w2, cost = weighed(Unit(), Mean(), b, a, 0.0)
    assert evidence == b - a / 2
    assert (w, w2, cost) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize(("b", "a"), GRID)
def test_normal_weight(b, a):
    evidence, w, w2, cost = weighed(Normal(), Mean(), b, a, 0.0)
    chance, m, s2 = ref.respond_normal(0.3, b, a)
    assert expit(0.3 + evidence) == pytest.approx(chance, rel=1e-12)
    assert w == pytest.approx(m, rel=1e-12, abs=1e-300)
    assert w2 == pytest.approx(m * m + s2, rel=1e-12)
    assert cost == pytest.approx((m * m + s2 - 1 - np.log(s2)) / 2, rel=1e-10, abs=1e-12)


def test_normal_evidence_is_the_integral_over_the_weight():
    b, a = 1.7, 2.3
    w = np.linspace(-30, 30, 300_001)
    density = norm.pdf(w) * np.exp(b * w - a * w * w / 2)
    total = density.sum() * (w[1] - w[0])
    evidence, mean, square, cost = weighed(Normal(), Mean(), b, a, 0.0)
    assert evidence == pytest.approx(np.log(total), rel=1e-9)
    assert mean == pytest.approx((w * density).sum() / density.sum(), rel=1e-9)
    assert square == pytest.approx((w * w * density).sum() / density.sum(), rel=1e-9)
    assert evidence == pytest.approx(b * mean - a * square / 2 - cost, rel=1e-9), "the bound is tight"


def test_precision_of_the_weight():
    """w ~ N(0, 1 / 4) is w = v / 2 with v ~ N(0, 1)."""
    evidence, w, w2, cost = weighed(Normal(4.0), Mean(), 1.5, 0.8, 0.0)
    same, v, v2, price = weighed(Normal(), Mean(), 0.75, 0.2, 0.0)
    np.testing.assert_allclose([evidence, w, w2, cost], [same, v / 2, v2 / 4, price], rtol=1e-12)


@pytest.mark.parametrize(("b", "a"), GRID)
@pytest.mark.parametrize("precision", [1.0, 2.5])
def test_a_drawn_weight(b, a, precision):
    """The draw is that quantile of q(w | z = 1); its cost is -log p(w)."""
    evidence, w, w2, cost = weighed(Normal(precision), Draw(), b, a, 1.3)
    mean, sd = b / (precision + a), 1 / np.sqrt(precision + a)
    assert w == pytest.approx(mean + 1.3 * sd, rel=1e-12)
    assert w2 == w * w
    assert cost == pytest.approx(-norm.logpdf(w, scale=1 / np.sqrt(precision)), rel=1e-10, abs=1e-12)
    assert evidence == pytest.approx(weighed(Normal(precision), Mean(), b, a, 0.0)[0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("odds", [-800.0, -40.0, -3.0, -1e-9, 0.0, 0.2, 5.0, 40.0, 800.0])
def test_mean(odds):
    z, entropy = decided(Mean(), odds, 0.0)
    assert z == pytest.approx(expit(odds), rel=1e-14)
    low = expit(-abs(odds))
    exact = np.log1p(np.exp(-abs(odds))) + abs(odds) * low
    assert entropy == pytest.approx(exact, rel=1e-14)
    assert 0 <= entropy <= np.nextafter(np.log(2), 1)


def test_entropy_keeps_its_digits_at_both_ends():
    """float32 rounds z to one at log odds 17; the entropy must not notice (linear-gaussian.md 4)."""
    for odds in (17.0, 20.0, 30.0):
        up = decided(Mean(), np.float32(odds), np.float32(0))[1]
        down = decided(Mean(), np.float32(-odds), np.float32(0))[1]
        assert up == down
        assert up == pytest.approx(np.exp(-odds) * (1 + odds), rel=1e-6)


def test_mode():
    assert decided(Mode(), 1e-300, 0.0) == (1.0, 0.0)
    assert decided(Mode(), 0.0, 0.0) == (0.0, 0.0)
    assert decided(Mode(), -1.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("odds", [-3.0, 0.0, 2.0])
def test_draw_is_below_the_chance(odds):
    chance = expit(odds)
    assert decided(Draw(), odds, chance * (1 - 1e-12)) == (1.0, 0.0)
    assert decided(Draw(), odds, chance * (1 + 1e-12)) == (0.0, 0.0)
