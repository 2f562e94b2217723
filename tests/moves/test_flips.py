"""The search for an orientation on a Gram matrix, against all sets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibpdist.moves import flips


def vectors(seed, size, columns=12):
    """Coefficients a (feature, column), and an intercept that a random set undoes but for noise."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(size, columns))
    chosen = rng.random(size) < 0.5
    b = -a[chosen].sum(axis=0) + 0.3 * rng.normal(size=columns)
    return a, b, chosen


def squared(a, b, chosen):
    return ((b + a[chosen].sum(axis=0)) ** 2).sum()


@given(st.integers(0, 10_000), st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_the_length_is_that_of_the_sum(seed, size):
    a, b, _ = vectors(seed, size)
    for chosen in product([False, True], repeat=size):
        chosen = np.array(chosen)
        found = flips.length(a @ a.T, a @ b, chosen) + b @ b
        assert found == pytest.approx(squared(a, b, chosen), rel=1e-9, abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(0, 127))
@settings(max_examples=50, deadline=None)
def test_no_change_of_one_or_two_improves_the_end(seed, size, start):
    a, b, _ = vectors(seed, size)
    begin = np.array([bool(start >> k & 1) for k in range(size)])
    chosen, length = flips.descend(a @ a.T, a @ b, begin)
    assert length == pytest.approx(flips.length(a @ a.T, a @ b, chosen))
    assert length <= flips.length(a @ a.T, a @ b, begin) + 1e-12
    for k in range(size):
        for j in range(size):
            other = chosen.copy()
            other[[k, j]] ^= True
            assert squared(a, b, other) >= squared(a, b, chosen) - 1e-9


@pytest.mark.parametrize("size", [1, 3, 8, 40])
def test_the_first_guess_is_the_set_when_there_is_little_noise(size):
    a, b, chosen = vectors(size, size, columns=100)
    np.testing.assert_array_equal(flips.first_guess(a @ a.T, a @ b), chosen)


def test_the_start_is_left_as_it_was_and_no_features_are_no_trouble():
    a, b, _ = vectors(3, 5)
    start = np.zeros(5, bool)
    flips.descend(a @ a.T, a @ b, start)
    assert not start.any()
    none = np.zeros((0, 0))
    assert flips.first_guess(none, np.zeros(0)).shape == (0,)
    assert flips.descend(none, np.zeros(0), np.zeros(0, bool))[1] == 0.0


def test_features_that_are_alike_are_no_trouble():
    a = np.ones((3, 4))
    b = -a[0]
    guess = flips.first_guess(a @ a.T, a @ b)
    chosen, _ = flips.descend(a @ a.T, a @ b, guess)
    assert chosen.sum() == 1
    assert squared(a, b, chosen) == pytest.approx(0.0, abs=1e-12)
