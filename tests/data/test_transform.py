"""Transforms of columns: done, described, undone."""

import numpy as np
import pytest

from ibpdist.base.errors import InputError
from ibpdist.data.summary import empty_summary
from ibpdist.data.transform import Transform, fitted
from tests.support.matrices import matrix


@pytest.mark.parametrize("log1p", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_undo_is_the_inverse_of_apply(log1p, center, scale):
    x = np.abs(matrix(30, missing=4)) * 20
    table = empty_summary(7).add(Transform(log1p).apply(x)).table()
    made = fitted(table, log1p=log1p, center=center, scale=scale)
    np.testing.assert_allclose(made.undo(made.apply(x)), x, rtol=1e-12)
    assert made.attributes() == {"log1p": log1p, "center": center, "scale": scale}
    assert made.is_identity == (not (log1p or center or scale))
    done = made.apply(x)
    if center:
        np.testing.assert_allclose(np.nanmean(done, axis=0), 0, atol=1e-12)
    if scale:
        np.testing.assert_allclose(np.nanstd(done, axis=0), 1, rtol=1e-12)


def test_the_identity_touches_nothing():
    x = matrix(5).astype("float32")
    assert Transform().apply(x) is x


def test_constant_and_empty_columns_stay_finite():
    x = np.array([[np.log(3.0), np.nan, 1.0], [np.log(3.0), np.nan, 2.0]])
    made = fitted(empty_summary(3).add(x).table(), log1p=False, center=True, scale=True)
    done = made.apply(x)
    np.testing.assert_allclose(done[:, 0], 0, atol=1e-15)
    assert np.isnan(done[:, 1]).all()
    assert done[:, 2].tolist() == [-1, 1]


def test_missing_cells_are_not_negative():
    assert np.isnan(Transform(log1p=True).apply(np.array([[np.nan, 1.0]]))[0, 0])
    with pytest.raises(InputError, match=r"a\.csv: row 7, column 1: '-1\.0': is negative"):
        Transform(log1p=True).apply(np.array([[np.nan, -1.0]]), start=7, file="a.csv")
