"""The search for an orientation on a Gram matrix, against all sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from ibpdist.inference.moves import complement
from ibpdist.inference.starts.flips import descend, first_guess


def vectors(seed, size, columns=12):
    """Coefficients a (feature, column), and an intercept that a random set undoes but for noise."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(size, columns))
    chosen = rng.random(size) < 0.5
    b = -a[chosen].sum(axis=0) + 0.3 * rng.normal(size=columns)
    return a, b, chosen


def squared(a, b, chosen):
    return ((b + a[chosen].sum(axis=0)) ** 2).sum()


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(0, 127))
@settings(max_examples=50, deadline=None)
def test_no_change_of_one_or_two_improves_the_end(seed, size, start):
    a, b, _ = vectors(seed, size)
    begin = np.array([bool(start >> k & 1) for k in range(size)])
    chosen = descend(a @ a.T, a @ b, begin)
    assert squared(a, b, chosen) <= squared(a, b, begin) + 1e-9
    for k in range(size):
        for j in range(size):
            other = chosen.copy()
            other[[k, j]] ^= True
            assert squared(a, b, other) >= squared(a, b, chosen) - 1e-9


@pytest.mark.parametrize("size", [1, 3, 8, 40])
def test_the_first_guess_is_the_set_when_there_is_little_noise(size):
    a, b, chosen = vectors(size, size, columns=100)
    np.testing.assert_array_equal(first_guess(a @ a.T, a @ b), chosen)


def test_the_start_is_left_as_it_was_and_no_features_are_no_trouble():
    a, b, _ = vectors(3, 5)
    start = np.zeros(5, bool)
    descend(a @ a.T, a @ b, start)
    assert not start.any()
    none = np.zeros((0, 0))
    assert first_guess(none, np.zeros(0)).shape == (0,)
    assert descend(none, np.zeros(0), np.zeros(0, bool)).shape == (0,)
    alone = complement.Intercept(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones(1), 2.0, np.zeros(0))
    assert alone.climb(np.zeros(0, bool), True).shape == (0,)


def test_features_that_are_alike_are_no_trouble():
    a = np.ones((3, 4))
    b = -a[0]
    guess = first_guess(a @ a.T, a @ b)
    chosen = descend(a @ a.T, a @ b, guess)
    assert chosen.sum() == 1
    assert squared(a, b, chosen) == pytest.approx(0.0, abs=1e-12)


def intercept(seed, size, groups=2):
    """Coefficients and covariances at random."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(groups, size + 1, 9))
    root = rng.normal(size=(groups, size + 1, size + 1))
    return phi, complement.Intercept(
        second=phi @ phi.transpose(0, 2, 1),
        spread=root @ root.transpose(0, 2, 1) + 0.1 * np.eye(size + 1),
        columns=np.full(groups, 9.0),
        slack=rng.uniform(0.1, 3.0),
        odds=rng.normal(size=size),
    )


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 63), st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_value_is_the_density_of_the_intercept(seed, size, bits, constant):
    phi, found = intercept(seed, size)
    chosen = np.array([bool(bits >> k & 1) for k in range(size)])
    v = np.append(chosen, True).astype(float)
    wanted = found.odds @ chosen
    for g in range(2):
        width = v @ found.spread[g] @ v + constant * found.slack
        wanted += norm.logpdf(v @ phi[g], 0.0, np.sqrt(width)).sum() + 9 * 0.5 * np.log(2 * np.pi)
    assert found.value(chosen, constant) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 63), st.booleans())
@settings(max_examples=50, deadline=None)
def test_changes_are_differences_of_values_and_none_gains_at_the_end(seed, size, bits, constant):
    _, found = intercept(seed, size)
    chosen = np.array([bool(bits >> k & 1) for k in range(size)])
    for at in (chosen, found.climb(chosen, constant)):
        changes = found.changes(at, constant)
        for k in range(size):
            other = at.copy()
            other[k] ^= True
            wanted = found.value(other, constant) - found.value(at, constant)
            assert changes[k] == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    assert (changes <= 1e-6).all()
    assert found.value(at, constant) >= found.value(chosen, constant)
