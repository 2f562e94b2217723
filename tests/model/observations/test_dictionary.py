"""q(A) from its basis and spectrum against inverses and sums, one column at a time."""

import numpy as np
import pytest

from ibpdist.base.structs import replace
from ibpdist.model.observations import dictionary, gaussian_params
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.rotation import Family
from tests.support.model_cases import covariances

FEATURES, COLUMNS, GROUP = 3, 5, np.array([0, 1, 0, 0, 1])
FAMILIES = list(Family)
CLOSE = {"rtol": 1e-10, "atol": 1e-11}


def made(seed=0, columns=COLUMNS, group=GROUP):
    """Parameters whose q(A) is not set yet, and sums of two groups."""
    rng = np.random.default_rng(seed)
    groups = int(group.max()) + 1
    root = rng.normal(size=(groups, FEATURES, 6))
    params = GaussianParams(
        mean=np.zeros((FEATURES, columns)),
        basis=np.zeros((groups, FEATURES, FEATURES)),
        spectrum=np.zeros((groups, FEATURES)),
        entropy=np.zeros(()),
        noise=rng.uniform(0.3, 2, columns),
        scale=rng.uniform(0.5, 2, FEATURES),
        group=group,
        cells=np.full(columns, 6.0),
        squares=rng.uniform(20, 30, columns),
        unit=np.asarray(1.0),
        spread=np.ones(columns),
        stretch=np.ones(FEATURES),
        common=np.zeros(columns),
    )
    sums = GaussianSums(
        rows=np.asarray(6.0),
        gram=root @ root.transpose(0, 2, 1),
        cross=rng.normal(size=(FEATURES, columns)),
    )
    return params, sums


def solved(params, sums, family=Family.STRUCTURED):
    return dictionary.solve(params, dictionary.rotations(params, sums, family))


@pytest.mark.parametrize("family", FAMILIES)
def test_solve_against_inverses(family):
    params, sums = made()
    found = solved(params, sums, family)
    sigma = covariances(found)
    for d, g in enumerate(GROUP):
        precision = sums.gram[g] / params.noise[d] + np.diag(1 / params.scale)
        full = np.linalg.inv(precision)
        exact = full if family is Family.STRUCTURED else np.diag(1 / np.diagonal(precision))
        np.testing.assert_allclose(sigma[d], exact, **CLOSE)
        np.testing.assert_allclose(found.mean[:, d], full @ sums.cross[:, d] / params.noise[d], **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_entropy(family):
    found = solved(*made(), family)
    exact = sum(0.5 * np.linalg.slogdet(2 * np.pi * np.e * s)[1] for s in covariances(found))
    assert float(found.entropy) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_moments(family):
    params, sums = made(1)
    found = solved(params, sums, family)
    sigma = covariances(found)
    np.testing.assert_allclose(
        gaussian_params.variance(found), np.diagonal(sigma, axis1=1, axis2=2).T, **CLOSE
    )
    second = (found.mean**2).sum(axis=1) + np.diagonal(sigma, axis1=1, axis2=2).sum(axis=0)
    np.testing.assert_allclose(gaussian_params.second_moment(found), second, **CLOSE)
    gamma = np.zeros((2, FEATURES, FEATURES))
    for d, g in enumerate(GROUP):
        gamma[g] += (np.outer(found.mean[:, d], found.mean[:, d]) + sigma[d]) / found.noise[d]
    np.testing.assert_allclose(gaussian_params.precision_gram(found), gamma, **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_residual(family):
    params, sums = made(2)
    params = replace(params, squares=params.squares + np.arange(5.0))
    found = solved(params, sums, family)
    sigma, exact = covariances(found), params.squares.copy()
    for d, g in enumerate(GROUP):
        a = found.mean[:, d]
        exact[d] += -2 * a @ sums.cross[:, d] + np.trace(sums.gram[g] @ (np.outer(a, a) + sigma[d]))
    np.testing.assert_allclose(dictionary.residual(found, sums), exact, **CLOSE)


@pytest.mark.parametrize("noise", ["one", "column"])
@pytest.mark.parametrize("family", FAMILIES)
def test_misfit_is_the_residual_in_units_of_the_noise(family, noise):
    params, sums = made(6)
    if noise == "one":
        params = replace(params, noise=np.full_like(params.noise, 0.7))
    params = replace(params, squares=params.squares + np.arange(5.0))
    found = solved(params, sums, family)
    exact = (dictionary.residual(found, sums) / found.noise).sum()
    assert dictionary.misfit(found, sums) == pytest.approx(exact, rel=1e-12)


def test_misfit_is_no_less_than_nothing():
    """Sums of float32 products may have a Gram matrix that explains more than there is."""
    params, sums = made(2)
    found = solved(params, sums, Family.STRUCTURED)
    assert dictionary.misfit(found, replace(sums, gram=-1e3 * np.abs(sums.gram))) == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_one_noise_is_a_noise_for_each_column_that_happens_to_be_the_same(family):
    """Where all columns have one noise less is computed; a column that differs by nothing to speak of
    takes the other way."""
    params, sums = made(7)
    same = replace(params, noise=np.full_like(params.noise, 0.7))
    other = replace(same, noise=same.noise * (1 + 1e-15 * np.arange(5)))
    assert len(np.unique(other.noise)) > 1
    one, each = solved(same, sums, family), solved(other, sums, family)
    np.testing.assert_allclose(one.mean, each.mean, rtol=1e-11)
    np.testing.assert_allclose(
        gaussian_params.precision_gram(one), gaussian_params.precision_gram(each), rtol=1e-11
    )


def test_structured_is_at_least_as_high():
    """The part of the bound that depends on q(A), for both families (linear-gaussian.md 6)."""
    params, sums = made(3)
    value = []
    for family in (Family.STRUCTURED, Family.FACTORISED):
        found = solved(params, sums, family)
        fit = -0.5 * (dictionary.residual(found, sums) / found.noise).sum()
        value.append(
            float(found.entropy) + fit - 0.5 * (gaussian_params.second_moment(found) / found.scale).sum()
        )
    assert value[0] > value[1] + 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_solve_is_the_maximum(family):
    """Any other mean, spectrum or basis of the family is lower."""
    params, sums = made(4)
    best = solved(params, sums, family)

    def value(p):
        sigma = covariances(p)
        entropy = sum(0.5 * np.linalg.slogdet(s)[1] for s in sigma)
        fit = -0.5 * (dictionary.residual(p, sums) / p.noise).sum()
        return entropy + fit - 0.5 * (gaussian_params.second_moment(p) / p.scale).sum()

    rng = np.random.default_rng(5)
    for _ in range(20):
        other = replace(
            best,
            mean=best.mean + 1e-3 * rng.normal(size=best.mean.shape),
            spectrum=best.spectrum * np.exp(1e-3 * rng.normal(size=best.spectrum.shape)),
        )
        assert value(other) < value(best)


def test_no_data_is_the_prior():
    params, sums = made(6)
    none = replace(sums, gram=np.zeros_like(sums.gram), cross=np.zeros_like(sums.cross))
    for family in FAMILIES:
        found = solved(params, none, family)
        assert (found.mean == 0).all()
        wide = np.broadcast_to(params.scale[:, None], (FEATURES, COLUMNS))
        np.testing.assert_allclose(gaussian_params.variance(found), wide, rtol=1e-12)


def test_draws_have_the_moments():
    params, sums = made(7, 2, np.array([0, 1]))
    found = solved(params, sums)
    rng = np.random.default_rng(8)
    drawn = np.array([dictionary.draw(found, rng).mean for _ in range(20_000)])
    sigma = covariances(found)
    for d in range(2):
        sd = np.sqrt(np.diagonal(sigma[d]))
        assert (np.abs(drawn[:, :, d].mean(axis=0) - found.mean[:, d]) < 4 * sd / np.sqrt(20_000)).all()
        error = np.outer(sd, sd) * np.sqrt(2 / 20_000)
        assert (np.abs(np.cov(drawn[:, :, d].T) - sigma[d]) < 4.5 * error).all()
    across = np.corrcoef(drawn[:, 0, 0], drawn[:, 0, 1])[0, 1]
    assert abs(across) < 4 / np.sqrt(20_000), "columns are independent"


def test_a_draw_is_known_exactly():
    found = dictionary.draw(solved(*made(9)), np.random.default_rng(1))
    assert (gaussian_params.variance(found) == 0).all()
    assert float(found.entropy) == 0
    gamma = gaussian_params.precision_gram(found)
    exact = sum(
        np.outer(found.mean[:, d], found.mean[:, d]) / found.noise[d] for d in range(5) if GROUP[d] == 1
    )
    np.testing.assert_allclose(gamma[1], exact, **CLOSE)


def test_a_gram_matrix_that_rounding_made_indefinite():
    """float32 products can leave an eigenvalue below zero; variances stay within the prior's."""
    params, sums = made(10)
    bad = sums.gram.copy()
    bad[0] = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1.0]]) - 1e-7 * np.eye(3)
    found = solved(params, replace(sums, gram=bad))
    assert np.isfinite(found.mean).all()
    spread = gaussian_params.variance(found)
    assert (spread > 0).all()
    assert (spread <= params.scale[:, None] * (1 + 1e-12)).all()
    assert (dictionary.residual(found, replace(sums, gram=bad)) >= 0).all()


def test_cross_products_that_rounding_made_impossible():
    """A direction that no row has, but with a cross product: its mean is zero, not R / noise."""
    params, sums = made(11)
    none = np.zeros((2, FEATURES, FEATURES))
    none[:, 0, 0] = 1e8
    found = solved(params, replace(sums, gram=none, cross=np.full_like(sums.cross, 50.0)))
    assert (found.mean[1:] == 0).all()
    np.testing.assert_allclose(found.mean[0], 50.0 / (1e8 + params.noise / params.scale[0]), rtol=1e-10)


def test_possible_cross_products_are_left_alone():
    """Cauchy-Schwarz holds for sums over rows, with equality when a feature explains a column."""
    rng = np.random.default_rng(12)
    y = rng.normal(size=(8, FEATURES))
    x = np.column_stack([y @ rng.normal(size=FEATURES), 3 * y[:, 0], rng.normal(size=(8, 3))])
    params, sums = made(12)
    gram, cross = np.stack([y.T @ y] * 2), y.T @ x
    sums = replace(sums, gram=gram, cross=cross)
    found = solved(replace(params, squares=(x**2).sum(axis=0)), sums)
    for d, psi in enumerate(params.noise):
        exact = np.linalg.solve(gram[0] + psi * np.diag(1 / params.scale), cross[:, d])
        np.testing.assert_allclose(found.mean[:, d], exact, **CLOSE)


@pytest.mark.parametrize("features", [0, 1, 7])
def test_a_known_dictionary_of_other_features(features):
    """Variances and facts stay; there is no covariance left, and no gram matrix is needed for the moments."""
    params = solved(*made(4))
    mean = np.random.default_rng(0).normal(size=(features, COLUMNS))
    found = dictionary.known(params, mean, np.full(features, 0.7))
    assert (gaussian_params.variance(found) == 0).all()
    np.testing.assert_allclose(gaussian_params.second_moment(found), (mean**2).sum(axis=1))
    np.testing.assert_array_equal(found.noise, params.noise)
    assert found.basis.shape == (2, features, features)
    assert float(found.entropy) == 0
    gamma = gaussian_params.precision_gram(found).sum(axis=0)
    np.testing.assert_allclose(gamma, (mean / params.noise) @ mean.T, **CLOSE)
    sums = replace(made(4)[1], gram=np.zeros((2, features, features)), cross=np.zeros((features, COLUMNS)))
    again = dictionary.draw(solved(found, sums), np.random.default_rng(1))
    assert again.mean.shape == (features, COLUMNS)
