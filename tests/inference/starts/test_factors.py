"""Principal axes turned to be simple: eigenvalues, noise, and Kaiser's criterion."""

import numpy as np
import pytest

from ibpdist.inference.starts.factors import leading, loadings, most, varimax


def planted(rows=4000, columns=12, features=3, seed=1):
    """Rows of sparse factors with a noise of each column, and what they were made of."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(features, columns)) * (np.arange(columns) % features == np.arange(features)[:, None])
    psi = rng.uniform(0.05, 0.3, columns)
    x = rng.normal(size=(rows, features)) @ (2 * a) + np.sqrt(psi) * rng.normal(size=(rows, columns))
    return x, 2 * a, psi


def eigen(x, count):
    values, axes = np.linalg.eigh(x.T @ x / len(x))
    return values[::-1][:count], axes[:, ::-1][:, :count]


def simplicity(loading):
    """Sum over features of the variance of squared entries, one feature at a time."""
    return sum(np.var(row**2) for row in loading)


def test_loadings_give_back_the_covariance():
    x, a, psi = planted()
    found = loadings(*eigen(x, 3), (x**2).mean(axis=0))
    exact = a.T @ a + np.diag(psi)
    np.testing.assert_allclose(found.mean.T @ found.mean + np.diag(found.noise), exact, atol=0.35)
    np.testing.assert_allclose(found.noise, psi, rtol=0.8)


def test_turned_axes_are_the_planted_features():
    """Up to order and sign; the axes themselves are mixtures."""
    x, a, _ = planted()
    values, axes = eigen(x, 3)
    found = loadings(values, axes, (x**2).mean(axis=0)).mean

    def best(of):
        size = of / np.linalg.norm(of, axis=1, keepdims=True)
        return np.abs(size @ (a / np.linalg.norm(a, axis=1, keepdims=True)).T).max(axis=0)

    assert best(found).min() > 0.99
    assert best(axes.T).min() < best(found).min()


def test_varimax_turns_and_does_nothing_else():
    rng = np.random.default_rng(4)
    a = rng.normal(size=(4, 30)) ** 3
    found = varimax(a)
    np.testing.assert_allclose(found.T @ found, a.T @ a, rtol=1e-9, atol=1e-9)
    assert simplicity(found) > simplicity(a)


def test_varimax_is_a_maximum():
    """No turn of two features makes it simpler."""
    rng = np.random.default_rng(5)
    found = varimax(rng.normal(size=(4, 40)) ** 3)
    best = simplicity(found)
    for k in range(4):
        for j in range(k):
            for angle in (0.05, -0.05, 0.4, -0.4):
                turned = found.copy()
                c, s = np.cos(angle), np.sin(angle)
                turned[[k, j]] = c * found[k] - s * found[j], s * found[k] + c * found[j]
                assert simplicity(turned) <= best * (1 + 1e-5)


def test_leading_of_the_whole_matrix_is_its_decomposition():
    x, _, _ = planted(200)
    moments = x.T @ x / len(x)
    values, axes = leading(moments, np.eye(12), 4)
    exact, vectors = eigen(x, 4)
    np.testing.assert_allclose(values, exact, rtol=1e-10)
    np.testing.assert_allclose(np.abs((axes * vectors).sum(axis=0)), 1, rtol=1e-8)


def test_leading_from_a_probe():
    """Three products with a random probe find the leading directions of a falling spectrum."""
    rng = np.random.default_rng(6)
    vectors = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    moments = (vectors * 0.7 ** np.arange(60)) @ vectors.T
    probe = np.linalg.qr(rng.normal(size=(60, 15)))[0]
    for _ in range(2):
        probe = np.linalg.qr(moments @ probe)[0]
    values, axes = leading(moments @ probe, probe, 5)
    np.testing.assert_allclose(values, 0.7 ** np.arange(5), rtol=1e-4)
    np.testing.assert_allclose(np.abs((axes * vectors[:, :5]).sum(axis=0)), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("rows", "columns", "features", "expected"),
    [(100, 50, 10, 10), (100, 50, 80, 48), (20, 500, 80, 18), (2, 2, 5, 1), (1, 1, 1, 1)],
)
def test_how_many_features_begin(rows, columns, features, expected):
    assert most(rows, columns, features) == expected


def test_empty_columns_and_rank_deficient_data():
    x, _, _ = planted(50)
    x[:, 3] = 0
    found = loadings(*eigen(x, 10), (x**2).mean(axis=0))
    assert np.isfinite(found.mean).all()
    assert (found.noise > 0).all()
    np.testing.assert_allclose(found.mean[:, 3], 0, atol=1e-12)
    none = loadings(np.zeros(2), np.eye(4)[:, :2], np.zeros(4))
    assert (none.mean == 0).all()
    assert (none.noise == 1).all()
