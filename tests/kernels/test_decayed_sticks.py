"""The absence and its slopes: plain series, closed forms, differences; climbs against another optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaln, digamma, gammaln, polygamma

from ibpdist.kernels import gamma
from ibpdist.kernels.decayed_sticks import Decay, Stick, absence, absences, climb_block
from ibpdist.model.priors._octaves import octaves

NODES = octaves()
EULER = 0.5772156649015329


def delta(*at):
    return absence(*(float(value) for value in at), *NODES)[0]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ((1, 1, 1, 1), 0.35507),
        ((50, 1.5, 1, 50), 3.2366),
        ((500, 1.5, 0.7, 600), 5.7283),
        ((4900, 1.5, 1, 4900), 7.7941),
        ((4900, 1.2, 0.3, 4900), 8.4607),
        ((200, 1.2, 6, 200), 3.4133),
        ((2, 1.5, 12, 5), 0.06783),
    ],
)
def test_known_values(at, value):
    assert delta(*at) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("at", [(50, 1.5, 3, 50), (3, 2, 1, 4), (4900, 20, 5, 200), (1000, 3, 2, 1e5)])
def test_the_plain_series(at):
    a, b, u, v = at
    m = np.arange(1.0, 1_000_000)
    terms = np.exp(betaln(a + m, b) - betaln(a, b) - u * np.log1p(m / v)) / m
    plain = terms.sum() + terms[-1] * m[-1] / (b + u)
    assert delta(*at) == pytest.approx(plain, rel=1e-6)


def test_closed_forms():
    for a, b in ((2.0, 1.5), (300.0, 2.0), (0.4, 7.0)):
        assert delta(a, b, 1e-12, 1.0) == pytest.approx(digamma(a + b) - digamma(b), rel=1e-8)
    for a, v in ((2.2, 7.3), (40.0, 3.0)):
        wanted = EULER + (v * digamma(1 + a) - a * digamma(1 + v)) / (v - a)
        assert delta(a, 1, 1, v) == pytest.approx(wanted, rel=1e-11)


def test_against_draws():
    rng = np.random.default_rng(0)
    stick, decay = rng.beta(3.0, 2.0, 400_000), rng.gamma(2.5, 1 / 4.0, 400_000)
    drawn = -np.log1p(-stick * np.exp(-decay))
    assert abs(delta(3, 2, 2.5, 4) - drawn.mean()) < 4.5 * drawn.std() / np.sqrt(drawn.size)


@pytest.mark.parametrize("seed", range(8))
def test_slopes_are_differences(seed):
    at = np.exp(np.random.default_rng(seed).uniform(np.log(0.3), np.log(40), 4))
    found = np.array(absence(*at, *NODES)[1:])
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-5 * at[i]
        slope = (delta(*(at + step)) - delta(*(at - step))) / (2 * step[i])
        assert found[i] == pytest.approx(slope, rel=1e-5, abs=1e-12 * delta(*at))


def test_what_is_nearly_never_there():
    """Terms below the smallest number are nothing, and nothing is not a number."""
    found = absence(0.3, 5e5, 800.0, 0.5, *NODES)
    assert np.isfinite(found).all()
    assert 0 <= found[0] < 1e-6


def test_of_many_atoms():
    sticks, decays = np.array([[2.0, 3.0], [50.0, 1.5]]), np.array([[1.0, 2.0], [1.0, 50.0]])
    np.testing.assert_array_equal(
        absences(sticks, decays, *NODES), [delta(2, 3, 1, 2), delta(50, 1.5, 1, 50)]
    )


@pytest.mark.parametrize("counts", [(0.0, 1.2, 300.0), (250.0, 40.0, 20.0), (3.0, 0.3, 900.0)])
def test_a_stick_climbs_to_the_optimum(counts):
    on, off, weight = counts

    def loss(log):
        a, b = np.exp(log)
        both = digamma(a + b)
        odds = (on + 1 - a) * (digamma(a) - both) + (off + 1 - b) * (digamma(b) - both)
        return -(odds + betaln(a, b) - weight * delta(a, b, 2.0, 5.0))

    found = climb_block(Stick(on, off, weight, 2.0, 5.0), 1.0, 1.0, *NODES)
    other = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
    assert loss(np.log(found)) <= other.fun + 1e-6


@pytest.mark.parametrize("counts", [(0.4, 3.0, 200.0), (5.0, 80.0, 0.0), (0.0, 1.5, 5000.0)])
def test_a_decay_climbs_to_the_optimum(counts):
    shape, rate, weight = counts

    def loss(log):
        u, v = np.exp(log)
        entropy = u - np.log(v) + gammaln(u) + (1 - u) * digamma(u)
        return -(shape * (digamma(u) - np.log(v)) - rate * u / v + entropy - weight * delta(3, 2, u, v))

    found = climb_block(Decay(shape, rate, weight, 3.0, 2.0), 1.0, 1.0, *NODES)
    other = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
    assert loss(np.log(found)) <= other.fun + 1e-6


def test_without_absence_a_step_is_conjugate():
    for block, from_here, best in (
        (Stick(12.0, 5.0, 0.0, 1.0, 1.0), (7.0, 2.0), (13.0, 6.0)),
        (Decay(3.0, 5.0, 0.0, 1.0, 1.0), (7.0, 2.0), (4.0, 5.0)),
    ):
        assert climb_block(block, *from_here, *NODES) == pytest.approx(best, rel=1e-12)


def test_nodes_sum_polynomials_of_an_octave():
    """Eight nodes sum polynomials of degree 15 over 16 .. 31."""
    nodes, shares = (values[:8] for values in NODES)
    whole = np.arange(16.0, 32.0)
    for power in range(16):
        left, right = (shares * (nodes / 32) ** power).sum(), ((whole / 32) ** power).sum()
        assert left == pytest.approx(right, rel=1e-12)


def test_gamma_functions():
    for x in (1e-6, 0.2, 1.0, 11.9, 12.0, 40.5, 1e7):
        assert gamma.digamma(x) == pytest.approx(digamma(x), rel=1e-13, abs=1e-14)
        assert gamma.trigamma(x) == pytest.approx(float(polygamma(1, x)), rel=1e-12)
    for x in (12.0, 33.0, 1e6):
        stirling = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi)
        assert gamma.log_gamma_rest(x) == pytest.approx(gammaln(x) - stirling, abs=2e-9)
