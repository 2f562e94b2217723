"""True columns leave the residual that the noise explains; wrong ones leave more."""

import numpy as np
import pytest

from ibpdist.inference.starts.certificate import Binary, Space, certify, distinct, harden, regress, space
from ibpdist.inference.starts.contrast import split
from tests.support.start_cases import plant, whitened


@pytest.fixture(scope="module")
def few_rows() -> tuple[Binary, Space]:
    made = plant(100, 500, 25, 0.3)
    found, y = whitened(made.x, 40)
    assert found.rank == 25
    return made.z.astype(bool), space(y, found.ratio)


def test_true_columns_are_certified_with_a_ratio_near_one(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    found = certify(z, into)
    assert found.certified.all()
    assert np.all(found.ratio > 0.5)
    assert np.all(found.ratio < 2)
    assert np.mean(found.ratio) == pytest.approx(1.0, abs=0.25)


def test_wrong_splits_are_refused(few_rows: tuple[Binary, Space]) -> None:
    _, into = few_rows
    u = np.random.default_rng(0).standard_normal((200, 25)) @ into.y
    wrong = certify(split(u)[0], into)
    assert not wrong.certified.any()
    assert np.min(wrong.ratio) > 5


def test_a_few_wrong_rows_are_seen(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    wrong = z.copy()
    wrong[:, :3] = ~wrong[:, :3]
    assert np.all(certify(wrong, into).ratio > 2 * certify(z, into).ratio)


def test_a_complement_passes_as_its_column_does(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    one, other = certify(z, into), certify(~z, into)
    np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-6)
    np.testing.assert_allclose(other.directions, -one.directions, atol=1e-8)


def test_too_small_classes_and_constants_are_refused(few_rows: tuple[Binary, Space]) -> None:
    _, into = few_rows
    z = np.zeros((3, 100), dtype=bool)
    z[1, 7] = True
    z[2] = True
    found = certify(z, into)
    assert not found.certified.any()
    assert not np.isnan(found.ratio).any()


def test_regression_is_least_squares_with_a_mean(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    design = np.vstack([into.y, np.ones(100)]).T
    expected = np.linalg.lstsq(design, z.T.astype(float), rcond=None)[0][:-1].T
    np.testing.assert_allclose(regress(z, into), expected, atol=1e-9)


def test_the_ratio_by_its_definition(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    c = regress(z, into)
    residual = (z - z.mean(1, keepdims=True)) - c @ into.y
    expected = (100 - 1 - 25) * (c**2 @ into.noise)
    np.testing.assert_allclose(certify(z, into).ratio, (residual**2).sum(1) / expected, rtol=1e-6)


def test_hardening_returns_from_near_a_true_column(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    c = certify(z, into).directions
    c /= np.linalg.norm(c, axis=1, keepdims=True)
    near = c + 0.03 * np.random.default_rng(0).standard_normal(c.shape)
    found = harden(near, into)
    back = np.minimum((found != z).sum(1), (found == z).sum(1))
    assert np.sum(back == 0) >= 24


def test_hard_columns_are_fixed_points(few_rows: tuple[Binary, Space]) -> None:
    z, into = few_rows
    assert np.array_equal(split(regress(z, into) @ into.y)[0], z)


def test_duplicates_up_to_complement_are_dropped_in_order() -> None:
    z = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 0]], bool)
    assert distinct(z).tolist() == [0, 2, 5]
    assert distinct(np.zeros((0, 4), bool)).tolist() == []


def test_space_centres_and_counts() -> None:
    y = np.random.default_rng(0).standard_normal((3, 20)) + 5
    into = space(y, np.ones(3))
    np.testing.assert_allclose(into.y.mean(1), 0, atol=1e-12)
    assert into.rows == 20
