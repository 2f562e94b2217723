"""Independent components of scores: rotations, signs, and where a component is off."""

import numpy as np
import pytest

from ibpdist.inference.starts.factors import Axes, regressed_scores
from ibpdist.inference.starts.independent import (
    NORMAL_LOG_COSH,
    above_edge,
    above_median,
    half_sample_mode,
    independent,
    negentropy,
)


def sources(rows=4000, components=4, seed=1):
    """Sparse positive amounts, centred and of unit variance, and a rotation of them."""
    rng = np.random.default_rng(seed)
    s = (rng.random((components, rows)) < 0.3) * rng.gamma(2.0, 0.5, (components, rows))
    s = (s - s.mean(axis=1, keepdims=True)) / s.std(axis=1, keepdims=True)
    turn = np.linalg.qr(rng.normal(size=(components, components)))[0]
    mixed = turn @ s
    values, axes = np.linalg.eigh(mixed @ mixed.T / rows)
    return s, (axes / np.sqrt(values)) @ axes.T @ mixed


@pytest.mark.parametrize("tries", [1, 3])
def test_sparse_sources_are_separated(tries):
    s, mixed = sources()
    found = independent(mixed, np.random.default_rng(2), tries)
    np.testing.assert_allclose(found.turn @ found.turn.T, np.eye(4), atol=1e-8)
    alike = np.corrcoef(np.vstack([found.turn @ mixed, s]))[:4, 4:]
    assert (np.abs(alike).max(axis=1) > 0.97).all()
    assert (alike[np.arange(4), np.abs(alike).argmax(axis=1)] > 0).all(), "amounts are positive"


def test_a_component_is_off_at_its_mode():
    s, mixed = sources()
    found = independent(mixed, np.random.default_rng(2))
    np.testing.assert_allclose(np.sort(found.off), np.sort(s.min(axis=1)), atol=0.15)


def test_the_mode_is_where_most_values_are():
    rng = np.random.default_rng(3)
    off, on = rng.normal(1.0, 0.05, 700), rng.normal(4.0, 1.0, 300)
    assert half_sample_mode(np.append(off, on)) == pytest.approx(1.0, abs=0.05)
    assert half_sample_mode(np.array([2.0])) == 2.0
    assert half_sample_mode(np.array([1.0, 3.0])) == 2.0


def test_negentropy_is_none_for_normal_components():
    rng = np.random.default_rng(4)
    normal = rng.normal(size=(2, 200_000))
    assert negentropy(normal) < 1e-5
    assert negentropy(rng.laplace(scale=2**-0.5, size=(2, 20_000))) > 1e-3
    assert np.log(np.cosh(normal)).mean() == pytest.approx(NORMAL_LOG_COSH, abs=2e-3)


def spectrum(rows=1000, columns=50, signals=5, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, signals)) @ rng.normal(size=(signals, columns)) + rng.normal(
        size=(rows, columns)
    )
    return np.linalg.eigvalsh(x.T @ x / rows)[::-1]


def test_counts_of_components():
    values = spectrum()
    facts = float(values.sum()), 1000, 50
    assert above_edge(values, *facts) == 5
    assert above_median(values, *facts) >= 5
    leading = values[:12]
    assert above_edge(leading, *facts) == 5
    assert above_median(leading, *facts) >= 5


def axes(seed=6, components=3, columns=8):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(columns, components)))[0]
    values = np.array([9.0, 5.0, 2.0])
    variances = np.square(vectors) @ values + 0.3
    return Axes(values, vectors, variances, 1 + rng.random(columns), rng.normal(size=columns), values), rng


def test_turned_axes_explain_the_same():
    of, rng = axes()
    turn, off = np.linalg.qr(rng.normal(size=(2, 2)))[0], np.array([-1.0, 0.5])
    found, origin = of.turned(turn, off)
    plain, mean = of.turned(np.eye(2), np.zeros(2))
    np.testing.assert_allclose(
        found.mean[:2].T @ found.mean[:2], plain.mean[:2].T @ plain.mean[:2], atol=1e-12
    )
    np.testing.assert_array_equal(found.mean[2], plain.mean[2])
    np.testing.assert_array_equal(mean, of.origin)
    np.testing.assert_allclose(origin, of.origin + off @ found.mean[:2])


def test_scores_are_centred_and_white():
    of, rng = axes()
    x = of.origin + (rng.normal(size=(500, 3)) * 3 @ of.vectors.T + rng.normal(size=(500, 8))) / of.unit
    for observed in (np.ones(x.shape, bool), rng.random(x.shape) < 0.7):
        found = of.scores(np.where(observed, x, 0.0), observed, 2)
        np.testing.assert_allclose(found.mean(axis=1), 0.0, atol=1e-10)
        np.testing.assert_allclose(found @ found.T / 500, np.eye(2), atol=1e-8)


def test_scores_of_rows_with_gaps_are_posterior_means():
    rng = np.random.default_rng(7)
    loading, noise = rng.normal(size=(3, 6)), 0.2 + rng.random(6)
    x, observed = rng.normal(size=(20, 6)), rng.random((20, 6)) < 0.6
    found = regressed_scores(loading, noise, np.where(observed, x, 0.0), observed)
    for row, seen in enumerate(observed):
        a, psi = loading[:, seen], noise[seen]
        expected = np.linalg.solve(np.eye(3) + (a / psi) @ a.T, (a / psi) @ x[row, seen])
        np.testing.assert_allclose(found[row], expected, atol=1e-10)


def test_noisy_rows_are_not_quiet():
    of, rng = axes()
    size = np.where(np.arange(200) < 60, 5.0, 0.5)
    x = of.origin + rng.normal(size=(200, 8)) * size[:, None] / of.unit
    quiet = of.quiet(x, np.ones(x.shape, bool))
    assert quiet.sum() == 100
    assert quiet[:60].mean() < 0.1
