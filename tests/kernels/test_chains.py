"""The pieces of the chains of rows with weights, against linear algebra and enumeration."""

import itertools

import numpy as np
from scipy.special import logsumexp
from scipy.stats import kstest

from ibpdist.draws import Draws
from ibpdist.kernels import chains

KEY = Draws(3).key("test")


def numbers(count, row=5, chain=2):
    return np.array([chains._numbers(np.uint64(row), chain, at, KEY) for at in range(count)])


def test_numbers_are_uniform_and_normal():
    made = numbers(20_000)
    assert kstest(made[:, 0], "uniform").pvalue > 1e-3
    assert kstest(made[:, 1], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(made.T)[0, 1]) < 0.03
    assert ((made[:, 0] > 0) & (made[:, 0] < 1)).all()


def test_numbers_depend_on_row_chain_and_place():
    base = numbers(50)
    np.testing.assert_array_equal(numbers(50), base)
    for other in (numbers(50, row=6), numbers(50, chain=3), numbers(50, row=5 + (1 << 32))):
        assert (other != base).all()


def gram_and_pull(features=4, seed=1):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(features, 6))
    return root @ root.T, 2 * rng.normal(size=features)


def evidence(gram, pull, on):
    inner = np.eye(len(on)) + gram[np.ix_(on, on)]
    return 0.5 * pull[on] @ np.linalg.solve(inner, pull[on]) - 0.5 * np.linalg.slogdet(inner)[1]


def test_evidence_of_the_features_that_are_on():
    gram, pull = gram_and_pull()
    lower, half = np.empty((4, 4)), np.empty(4)
    for on in ([], [2], [0, 3], [3, 1, 0, 2]):
        places = np.array([*on, *[0] * (4 - len(on))])
        chains._factor(gram, places, len(on), lower)
        found = chains._evidence(lower, pull, places, len(on), half)
        np.testing.assert_allclose(found, evidence(gram, pull, np.array(on, int)), rtol=1e-12, atol=1e-14)


def test_redrawn_weights_have_the_posterior_given_z():
    gram, pull = gram_and_pull()
    on, lower, half, y = np.array([3, 0, 2, 0]), np.empty((4, 4)), np.empty(4), np.zeros(4)
    drawn = []
    for t in range(20_000):
        chains._factor(gram, on, 3, lower)
        chains._evidence(lower, pull, on, 3, half)
        chains._redraw(lower, on, 3, half, np.uint64(1), 0, 3 * t, KEY, y)
        drawn.append(y[on[:3]].copy())
    spread = np.linalg.inv(np.eye(3) + gram[np.ix_(on[:3], on[:3])])
    np.testing.assert_allclose(np.mean(drawn, axis=0), spread @ pull[on[:3]], atol=0.03)
    np.testing.assert_allclose(np.cov(np.array(drawn).T), spread, atol=0.02)


def test_sweeps_have_the_posterior_of_the_patterns():
    """Frequencies of the 16 patterns after many sweeps against their exact probabilities."""
    gram, pull = gram_and_pull(seed=2)
    odds = np.array([-0.5, 0.3, 0.0, -1.0])
    y, on = np.zeros(4), np.empty(4, np.int64)
    patterns = list(itertools.product([0, 1], repeat=4))
    log_weight = [odds @ np.array(z) + evidence(gram, pull, np.flatnonzero(z)) for z in patterns]
    exact = np.exp(log_weight - logsumexp(log_weight))
    seen = np.zeros(16)
    for t in range(60_000):
        count = chains._flip(gram, pull, odds, 1.0, np.uint64(9), 0, 4 * t, KEY, y, on)
        assert count == (y != 0).sum()
        seen[patterns.index(tuple((y != 0).astype(int)))] += 1
    np.testing.assert_allclose(seen / seen.sum(), exact, atol=0.02)


def test_a_block_that_says_nothing_adds_nothing():
    gram, pull = gram_and_pull()
    grams, pulls = np.array([gram, gram]), np.array([[pull], [pull]])
    found = chains.left_to_right(grams, pulls, np.zeros(4), np.array([0]), 3, 5, 2, KEY)
    assert found.shape == (1, 1, 3)
    np.testing.assert_allclose(found, 0, atol=1e-12)
