"""The dispersion of words: its likelihood and law against a transcription, and bits that nothing moves."""

from functools import reduce

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ibpdist.predict.dispersion import BOUNDS, RateCounts, count_rates, dispersed, no_rates
from tests.support import token_prediction as reference
from tests.support.token_prediction import entries_of


def bursty(rows=30, columns=40, a=0.5, length=60, seed=0):
    """Laws (row, column), and counts with rates that are drawn for each cell; a = inf has none drawn."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(columns, 0.5), rows)
    rates = laws if np.isinf(a) else laws * rng.gamma(a, 1 / a, laws.shape)
    return laws, rng.poisson(length * rates)


def test_the_law_is_the_transcription():
    laws, x = bursty()
    found = dispersed(laws, entries_of(x), 0.7)
    for n, row in enumerate(x):
        np.testing.assert_allclose(found[n], reference.burst_law(laws[n], row, 0.7), rtol=1e-10)


def test_the_law_of_rows_without_tokens_is_the_law():
    laws, x = bursty(rows=3)
    np.testing.assert_allclose(dispersed(laws, entries_of(0 * x), 0.7), laws, rtol=1e-12)


@pytest.mark.parametrize("a", [0.01, 0.3, 2.0, 50.0])
def test_differences_of_the_likelihood_are_those_of_the_transcription(a):
    """Rates stand for those of their bin, so the sum over cells is exact to few digits."""
    laws, x = bursty()
    rates = count_rates(laws, entries_of(x))
    found = rates.log_likelihood(a) - rates.log_likelihood(1.0)
    expected = reference.burst_likelihood(laws, x, a) - reference.burst_likelihood(laws, x, 1.0)
    assert found == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("a", [0.1, 0.5, 3.0])
def test_the_dispersion_is_the_most_likely_one(a):
    laws, x = bursty(rows=60, a=a, length=300)
    found = count_rates(laws, entries_of(x)).dispersion()
    best = minimize_scalar(lambda b: -reference.burst_likelihood(laws, x, np.exp(b)), bounds=(-4, 3))
    assert found == pytest.approx(np.exp(best.x), rel=5e-3)
    assert found == pytest.approx(a, rel=0.15)


def test_words_without_bursts_have_a_large_one():
    laws, x = bursty(rows=200, a=np.inf)
    assert count_rates(laws, entries_of(x)).dispersion() > 20


def test_counts_of_rows_add_in_any_order():
    laws, x = bursty(rows=31)
    seen = entries_of(x)
    whole, parts = count_rates(laws, seen), [slice(0, 1), slice(1, 17), slice(17, 31)]
    each = [count_rates(laws[part], seen.between(part.start, part.stop)) for part in parts]
    for order in ([0, 1, 2], [2, 0, 1]):
        found = reduce(RateCounts.__add__, (each[at] for at in order), no_rates())
        for name in ("cells", "tokens", "sizes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
        assert found.dispersion() == whole.dispersion()
    assert whole.cells.sum() == x.size
    assert whole.tokens.sum() == x.sum()
    assert whole.sizes.sum() == (x > 0).sum()


@pytest.mark.parametrize("seen", [np.zeros((2, 3), int), np.array([[1, 0, 0], [0, 0, 0]])])
def test_few_tokens_give_a_finite_dispersion(seen):
    laws = np.full((2, 3), 1 / 3)
    found = count_rates(laws, entries_of(seen)).dispersion()
    assert np.exp(BOUNDS[0]) <= found <= np.exp(BOUNDS[1])
