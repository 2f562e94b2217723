"""A row met by particles: its predictive density, and what they know afterwards."""

import numpy as np
import pytest

from ibpdist.kernels.particle import Tables, meet
from tests.support.rows_reference import log_marginal

NOISE, SCALE = 0.4, 1.3


def blank(count, slots, columns, groups=1):
    return Tables(
        inverse=np.zeros((count, groups, slots, slots)),
        mean=np.zeros((count, slots, columns)),
        on=np.zeros((count, slots)),
        sizes=np.zeros(count, np.int64),
    )


def story(rng, rows, slots):
    """z (row, slot) of a buffet's guests, and how many dishes each opens."""
    z, new, size = np.zeros((rows, slots)), [], 0
    for n in range(rows):
        z[n, :size] = rng.random(size) < z[:n, :size].sum(axis=0) / (n + 1)
        new.append(min(int(rng.poisson(1.5)), slots - size))
        z[n, size : size + new[-1]] = 1
        size += new[-1]
    return z[:, :size], np.array(new)


@pytest.mark.parametrize("seed", range(4))
def test_predictive_densities_multiply_to_the_marginal(seed):
    rng = np.random.default_rng(seed)
    x, stories = rng.normal(size=(6, 3)) * 1.5, [story(rng, 6, 12) for _ in range(3)]
    tables, total = blank(3, 12, 3), np.zeros(3)
    for n in range(6):
        z = np.zeros((3, 12))
        for p, (who, new) in enumerate(stories):
            known = int(new[:n].sum())
            z[p, :known] = who[n, :known]
        new = np.array([of[1][n] for of in stories])
        total += meet(x[n], np.ones(1, bool), np.array([0, 3]), z, new, NOISE, SCALE, tables)
    for p, (who, new) in enumerate(stories):
        assert total[p] == pytest.approx(log_marginal(x, who, NOISE, SCALE), abs=1e-9)
        assert tables.sizes[p] == new.sum() == who.shape[1]
        np.testing.assert_array_equal(tables.on[p, : who.shape[1]], who.sum(axis=0))
        ridge = who.T @ who + NOISE / SCALE * np.eye(who.shape[1])
        size = who.shape[1]
        np.testing.assert_allclose(tables.inverse[p, 0, :size, :size], np.linalg.inv(ridge), atol=1e-10)
        np.testing.assert_allclose(tables.mean[p, :size], np.linalg.solve(ridge, who.T @ x), atol=1e-10)


def test_columns_of_a_group_that_is_missing_are_left_out():
    """Two groups: one seen by all rows, the other by some; each has the marginal of its own rows."""
    rng = np.random.default_rng(9)
    x, (who, new) = rng.normal(size=(6, 5)), story(rng, 6, 12)
    seen = np.array([[1, 1], [1, 0], [1, 1], [1, 0], [1, 1], [1, 1]], bool)
    tables, total = blank(1, 12, 5, 2), 0.0
    for n in range(6):
        z, known = np.zeros((1, 12)), int(new[:n].sum())
        z[0, :known] = who[n, :known]
        row = np.where(np.repeat(seen[n], [3, 2]), x[n], 0.0)
        total += meet(row, seen[n], np.array([0, 3, 5]), z, new[n : n + 1], NOISE, SCALE, tables)[0]
    rows = seen[:, 1]
    expected = log_marginal(x[:, :3], who, NOISE, SCALE) + log_marginal(x[rows, 3:], who[rows], NOISE, SCALE)
    assert total == pytest.approx(expected, abs=1e-9)


def test_the_new_dishes_of_a_row_are_written_to_its_z():
    tables, z = blank(2, 4, 2), np.zeros((2, 4))
    meet(np.ones(2), np.ones(1, bool), np.array([0, 2]), z, np.array([1, 3]), NOISE, SCALE, tables)
    np.testing.assert_array_equal(z, [[1, 0, 0, 0], [1, 1, 1, 0]])
