"""Densities and draws of the atoms of a beta process against plain sums, quadrature and scipy."""

import itertools
import math

import numpy as np
import pytest
from numba import njit
from scipy import integrate, stats

from ibpdist.kernels import atom_draws, atom_laws
from ibpdist.kernels.atom_laws import AtomState, Fixed, Level, Numbers, Ridge, Scaled, Stick
from ibpdist.kernels.rounds import EXACT, EXCHANGEABLE

LAWS = pytest.mark.parametrize("law", [int(EXCHANGEABLE), int(EXACT)])
OTHERS = np.array([2, 0, 3, 1, 0])


def paid(law, others):
    return 1 / (1 + others) if law == EXACT else 1.0


def numbers(seed=0):
    return Numbers(np.array([seed, 7], np.uint64), np.zeros(1, np.int64))


@njit
def density(block, x):
    return atom_laws.density(block, x)


@njit
def slices(drawn, block, at, found):
    for i in range(found.size):
        at = atom_laws.draw_slice(drawn, block, at)
        found[i] = at


@LAWS
@pytest.mark.parametrize("x", [1e-6, 0.4, 3.0, 900.0, 1e60])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_later_rounds_are_a_poisson_law_with_weights(law, x, last):
    terms = np.zeros(5)
    found = atom_laws.later_rounds(x, last, OTHERS, law, terms)
    logs = np.array(
        [j * math.log(x) - math.lgamma(j + 1) + math.log(paid(law, OTHERS[j + 1])) for j in range(last - 1)]
    )
    if last == 1:
        assert found == -np.inf
        return
    assert found == pytest.approx(np.logaddexp.reduce(logs) - x, rel=1e-12)
    shares = terms[: last - 1] / terms[: last - 1].sum()
    np.testing.assert_allclose(shares, np.exp(logs - np.logaddexp.reduce(logs)), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("decay", [0.0, 1e-9, 0.3, 40.0])
@pytest.mark.parametrize("stick", [1e-9, 0.4, 1 - 1e-9])
def test_prevalences(decay, stick):
    on, off = atom_laws.prevalence(decay, math.log(stick), math.log1p(-stick))
    assert on == pytest.approx(math.log(stick) - decay, rel=1e-12)
    plain = (1 - stick) - stick * math.expm1(-decay)
    assert off == pytest.approx(math.log(plain) if plain < 0.5 else math.log1p(-stick * math.exp(-decay)))


def differences(block, log_density, points):
    """Of the block and of a plain density: constants do not matter."""
    found = np.array([density(block, x) for x in points])
    plain = np.array([log_density(x) for x in points])
    return found - found[0], plain - plain[0]


def test_the_density_of_a_stick():
    n1, n0, c, decay = 3.0, 9.0, 1.7, 0.6

    def plain(x):
        v = 1 / (1 + math.exp(-x))
        jacobian = v * (1 - v)
        pi = v * math.exp(-decay)
        return math.log(pi**n1 * (1 - pi) ** n0 * c * (1 - v) ** (c - 1) * jacobian)

    found, expected = differences(Stick(n1, n0, c, decay), plain, [-4.0, -1.0, 0.3, 2.0, 5.0])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@LAWS
@pytest.mark.parametrize("c", [0.4, 2.5])
def test_the_density_of_a_decay_given_the_prevalence(law, c):
    size, last = 2.3, 4

    def plain(x):
        decay = size / (1 + math.exp(-x))
        v = math.exp(decay - size)
        jacobian = decay * (size - decay) / size
        rounds = sum(
            stats.gamma.pdf(decay, d - 1, scale=1 / c) * paid(law, OTHERS[d - 1]) for d in range(2, last + 1)
        )
        return math.log(rounds * c * (1 - v) ** (c - 1) * v * jacobian)

    block = Ridge(size, c, last, law, OTHERS, np.zeros(5))
    found, expected = differences(block, plain, [-5.0, -1.0, 0.2, 1.5, 4.0])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def fixed(on, off, law=int(EXCHANGEABLE), bounds=(-9.0, 9.0)):
    return Fixed(np.array(on, float), np.array(off, float), np.zeros(4), law, 2.0, 3.0, *bounds)


def test_the_density_of_the_concentration_in_its_own_units():
    """c T and c log(1 - V) stay: their law does not know c, so only rows and the prior of c tell."""
    on, off, c = [2, 0, 5], [4, 6, 1], 1.3
    decays, v = np.array([0.0, 0.7, 0.2]), np.array([0.3, 0.2, 0.9])
    atoms = AtomState(np.array([1, 3, 2]), decays, np.log(v), np.log1p(-v))

    def plain(x):
        new = math.exp(x)
        total = stats.gamma.logpdf(new, 2.0, scale=1 / 3.0) + x
        for k in range(3):
            stick = 1 - (1 - v[k]) ** (c / new)
            pi = stick * math.exp(-decays[k] * c / new)
            total += on[k] * math.log(pi) + off[k] * math.log(1 - pi)
        return total

    found, expected = differences(Scaled(fixed(on, off), atoms, c), plain, [-1.5, -0.4, 0.0, 0.8, 2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert density(Scaled(fixed(on, off), atoms, c), 9.5) == -np.inf


@pytest.mark.parametrize(
    ("block", "log_density"),
    [
        (Level(2.5, 4.0, -9.0, 9.0), lambda x: 2.5 * x - 4 * math.exp(x)),
        (Level(2.5, 4.0, -0.4, 9.0), lambda x: 2.5 * x - 4 * math.exp(x) if x > -0.4 else -math.inf),
    ],
)
def test_slices_have_the_law_of_the_density(block, log_density):
    found = np.empty(12_000)
    slices(numbers(), block, -0.2, found)
    total = integrate.quad(lambda x: math.exp(log_density(x)), -9, 9, points=[-0.4])[0]
    edges = np.quantile(found, [0.1, 0.3, 0.5, 0.7, 0.9])
    for edge in edges:
        share = integrate.quad(lambda x: math.exp(log_density(x)), -9, edge, points=[-0.4])[0] / total
        below = (found <= edge).reshape(40, -1).mean(axis=1)
        assert abs(below.mean() - share) < 4.5 * below.std(ddof=1) / math.sqrt(40)


@njit
def drawn_firsts(drawn, on, off, found):
    for i in range(len(found)):
        found[i, 0], found[i, 1] = atom_draws._draw_first(drawn, on, off)


@pytest.mark.parametrize(("on", "off"), [(3.0, 0.4), (1.0, 20.0), (5.0, 1e-4)])
def test_sticks_of_the_first_round_are_beta(on, off):
    found = np.empty((4000, 2))
    drawn_firsts(numbers(), on, off, found)
    assert np.isfinite(found).all()
    if off > 0.01:
        assert stats.kstest(np.exp(found[:, 0]), stats.beta(on, off).cdf).pvalue > 1e-4
        np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, rtol=1e-12)
    else:
        assert np.median(found[:, 1]) == pytest.approx(math.log(0.5) / off, rel=0.1)


@LAWS
def test_weights_of_rounds_are_those_of_all_ways_to_draw_them(law):
    """E exp(weight) over the rounds that are drawn is the sum over all rounds of the decays."""
    c, decays, last = 1.4, np.array([0.0, 0.9, 0.0, 2.0, 0.5]), 3
    total = 0.0
    for found in itertools.product(range(1, last + 1), repeat=5):
        if any((d == 1) != (t == 0) for d, t in zip(found, decays, strict=True)):
            continue
        value = math.prod(
            stats.poisson.pmf(d - 2, c * t) for d, t in zip(found, decays, strict=True) if d > 1
        )
        total += value / (
            math.prod(math.factorial(found.count(r)) for r in set(found)) if law == EXACT else 1
        )
    drawn, weights, others, terms = numbers(), [], np.zeros(last, np.int64), np.zeros(last)
    for _ in range(4000):
        rounds = np.where(decays > 0, 2, 1)
        arguments = (decays, last, law, rounds)
        weight = atom_draws.round_weights(drawn, c, *arguments, True, others, terms)
        assert weight == pytest.approx(
            atom_draws.round_weights(drawn, c, *arguments, False, others, terms), rel=1e-12
        )
        np.testing.assert_array_equal(others, np.bincount(rounds - 1, minlength=last))
        weights.append(math.exp(weight))
    error = np.std(weights) / math.sqrt(len(weights))
    assert abs(np.mean(weights) - total) <= 4.5 * error + 1e-12


def test_known_concentrations_stay_and_bounds_hold():
    for low, high in ((0.3, 0.3), (0.2, 0.4)):
        atoms = AtomState(np.array([1, 2]), np.array([0.0, 0.4]), np.log([0.3, 0.3]), np.log([0.7, 0.7]))
        c, drawn = math.exp(0.3), numbers()
        for _ in range(50):
            c = atom_draws.draw_atoms(drawn, fixed([3, 0], [2, 5], bounds=(low, high)), atoms, c, 2, 1)
            assert low - 1e-12 <= math.log(c) <= high + 1e-12
            assert (atoms.rounds <= 4).all()
            assert ((atoms.decays == 0) == (atoms.rounds == 1)).all()
