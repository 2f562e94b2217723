"""Tokens placed by features, against a transcription and against the equation that they solve."""

import numpy as np
import pytest
from scipy.special import digamma

from ibpdist.kernels.tokens import Entries, Known, RowTokens, empty_sums, find_rho, keep_rho
from tests.support import counts_reference as reference

ETA = 0.03


def counts(rows=7, columns=9, seed=0, mean=1.5):
    return np.random.default_rng(seed).poisson(mean, (rows, columns)).astype(float)


def entries_of(x, dtype=np.float64):
    starts = np.concatenate([[0], np.cumsum((x > 0).sum(axis=1))])
    return Entries(starts, np.nonzero(x)[1], x[x > 0].astype(dtype))


def state_of(x, features=5, seed=1, dtype=np.float64, odds=None):
    """rho (row, column, feature) at random, and what a step needs of the step before."""
    rng = np.random.default_rng(seed)
    rho = rng.dirichlet(np.full(features, 0.5), x.shape) * (x > 0)[..., None]
    y, words = np.einsum("nv,nvk->nk", x, rho), np.einsum("nv,nvk->vk", x, rho)
    known = Known(
        words.astype(dtype),
        words.sum(axis=0).astype(dtype),
        rng.gamma(1.0, 0.3, features),
        rng.normal(size=features) if odds is None else odds,
        dtype(ETA),
        dtype(ETA * x.shape[1]),
        dtype(1),
    )
    return rho, known, RowTokens(y.astype(dtype), rng.gamma(2.0, 0.1, len(x)))


def stepped(x, rho, known, rows, evaluations=None):
    """rho, rows and sums after a step; rho is kept where there are no `evaluations`."""
    entries, sums = entries_of(x, known.y.dtype.type), empty_sums(*known.y.shape)
    rows = RowTokens(rows.y.copy(), rows.rate.copy())
    kept, low = rho[x > 0].astype(known.y.dtype), digamma(known.shape)
    if evaluations is None:
        keep_rho(entries, known, rows, kept, low, sums)
    else:
        find_rho(entries, known, rows, evaluations, low, sums)
    return kept, rows, sums


def compare(x, rho, known, before, rows, sums, tolerance=1e-10):
    y, rate, expected = reference.summed(x, rho, before.y, before.rate, known.shape, known.odds)
    np.testing.assert_allclose(rows.y, y, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(rows.rate, rate, rtol=tolerance)
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(sums, name), value, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("features", [1, 5, 19])
@pytest.mark.parametrize("every", [False, True])
def test_a_step_that_keeps_rho_is_the_transcription(features, every):
    x = counts()
    x[2], x[3] = 0, 0
    x[3, 4] = 1
    rho, known, before = state_of(x, features, odds=np.full(features, np.inf) if every else None)
    odds = np.full(features, 700.0) if every else known.odds
    kept, rows, sums = stepped(x, rho, known, before)
    new = reference.placed(x, rho, before.y, before.rate, known.y, known.shape, odds, ETA)
    np.testing.assert_allclose(kept, new[x > 0], rtol=1e-10)
    compare(x, new, known._replace(odds=odds), before, rows, sums)


@pytest.mark.parametrize("evaluations", [0, 1, 4])
def test_a_step_that_keeps_y_is_the_transcription(evaluations):
    x = counts(seed=3)
    rho, known, before = state_of(x)
    _, rows, sums = stepped(x, rho, known, before, evaluations)
    shared = (before.rate, known.y, known.shape, known.odds, ETA)
    new = reference.found(x, before.y, *shared, evaluations)
    compare(x, new, known, before, rows, sums)


def test_rho_that_is_found_solves_its_equation():
    """Then another step that keeps rho, from the same y, changes nothing."""
    x = counts(seed=4)
    rho, known, before = state_of(x)
    shared = (before.y, before.rate, known.y, known.shape, known.odds, ETA)
    solved = reference.found(x, *shared, 60)
    kept, rows, _ = stepped(x, solved, known, before)
    np.testing.assert_allclose(kept, solved[x > 0], atol=1e-8)
    _, found, _ = stepped(x, rho, known, before, 60)
    np.testing.assert_allclose(found.y, rows.y, atol=1e-6)


def test_evaluations_that_are_not_averaged_alternate():
    """After an even number of them rho is sharper than the solution, after an odd number it is flatter."""
    x = counts(seed=4)
    _, known, before = state_of(x)
    shared = (before.y, before.rate, known.y, known.shape, known.odds, ETA)
    solved = reference.found(x, *shared, 60)

    def squares(rho):
        return (rho[x > 0] ** 2).sum()

    rho = reference.found(x, *shared, 0)
    for number in range(1, 6):
        assert (squares(rho) > squares(solved)) == (number % 2 == 1)
        rho = reference.placed(x, rho, *shared)


@pytest.mark.parametrize("evaluations", [None, 4])
def test_single_precision_is_close(evaluations):
    x = counts(30, 40, mean=0.7)
    rho, known, before = state_of(x, 20)
    single = state_of(x, 20, dtype=np.float32)
    _, exact, sums = stepped(x, rho, known, before, evaluations)
    _, rows, close = stepped(x, *single, evaluations)
    assert rows.y.dtype == np.float32
    np.testing.assert_allclose(rows.y, exact.y, atol=2e-5)
    np.testing.assert_allclose(close.y, sums.y, atol=2e-5)


@pytest.mark.parametrize("evaluations", [None, 4])
def test_every_token_is_placed_once(evaluations):
    x = counts()
    _, rows, sums = stepped(x, *state_of(x), evaluations)
    np.testing.assert_allclose(rows.y.sum(axis=1), x.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums.y.sum(axis=1), x.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums.y.sum(axis=0), rows.y.sum(axis=0), rtol=1e-12)
    assert sums.tokens == x.sum()


@pytest.mark.parametrize("evaluations", [None, 4])
def test_rows_apart_are_rows_together(evaluations):
    x = counts()
    rho, known, before = state_of(x)
    _, rows, sums = stepped(x, rho, known, before, evaluations)
    total = empty_sums(*known.y.shape)
    for part in (slice(0, 3), slice(3, 7)):
        own = RowTokens(before.y[part], before.rate[part])
        _, apart, some = stepped(x[part], rho[part], known, own, evaluations)
        np.testing.assert_array_equal(apart.y, rows.y[part])
        for one, more in zip(total, some, strict=True):
            one += more
    for one, both in zip(total, sums, strict=True):
        np.testing.assert_allclose(one, both, rtol=1e-12)


def test_new_rows_leave_nothing_out_of_the_words():
    """With known words alone rho ~ (y - rho + f r) phi."""
    x = counts(1, 6, seed=2)
    rho, known, before = state_of(x, 3)
    kept, _, _ = stepped(x, rho, known._replace(own=0.0), before)
    phi = (known.y + ETA) / (known.total + known.spread)
    rate = before.rate[0]
    f = np.array(
        [reference.gate(before.y[0, k], rate, known.shape[k], known.odds[k]) for k in range(len(known.shape))]
    )
    weight = (before.y[0] - rho[0] + f * known.shape) * phi
    expected = weight / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(kept, expected[x[0] > 0], rtol=1e-10)


def test_a_feature_without_tokens_or_odds_leaves_rho_finite():
    x = np.array([[2.0, 0.0], [0.0, 0.0]])
    rho, known, before = state_of(x, 3, odds=np.full(3, -800.0))
    before = RowTokens(np.zeros_like(before.y), before.rate)
    for evaluations in (None, 4):
        _, rows, sums = stepped(x, rho, known, before, evaluations)
        np.testing.assert_allclose(rows.y, [[2 / 3] * 3, [0.0] * 3])
        assert all(np.isfinite(part).all() for part in sums)
