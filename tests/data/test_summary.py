"""Column summaries: one pass in any portions against numpy on everything."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.data.summary import FIELDS, empty_summary, summary_of
from tests.support.matrices import matrix


def of(x, portions=()):
    summary, edges = empty_summary(x.shape[1]), [0, *portions, len(x)]
    for start, stop in itertools.pairwise(edges):
        summary = summary.add(x[start:stop])
    return summary.table()


@pytest.mark.parametrize("missing", [0, 40])
@given(portions=st.lists(st.integers(0, 60), max_size=4).map(sorted))
def test_portions_do_not_matter(missing, portions):
    x = matrix(60, 5, missing=missing) * 3 + 100
    table = of(x, portions)
    np.testing.assert_array_equal(table["count"], (~np.isnan(x)).sum(axis=0))
    np.testing.assert_allclose(table["mean"], np.nanmean(x, axis=0), rtol=1e-13)
    np.testing.assert_allclose(table["sd"], np.nanstd(x, axis=0), rtol=1e-10)
    np.testing.assert_array_equal(table["min"], np.nanmin(x, axis=0))
    np.testing.assert_array_equal(table["max"], np.nanmax(x, axis=0))


def test_more_rows_than_a_tile_in_single_precision():
    x = matrix(3000, 3, dtype="float32")
    np.testing.assert_allclose(of(x)["mean"], x.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(of(x)["sd"], x.astype(float).std(axis=0), rtol=1e-12)


def test_a_huge_offset_does_not_spoil_the_spread():
    x = matrix(5000, 2) + 1e9
    np.testing.assert_allclose(of(x, [1000, 1700])["sd"], x.std(axis=0), rtol=1e-6)


def test_columns_never_observed_are_nan_and_counted_zero():
    x = np.array([[1.0, np.nan], [3.0, np.nan]])
    table = of(x)
    assert table["count"].tolist() == [2, 0]
    for name in FIELDS[1:]:
        assert np.isnan(table[name][1])
        assert np.isfinite(table[name][0])


def test_a_stored_summary_goes_on():
    x = matrix(60, 4, missing=30)
    x[:30, 2] = np.nan
    kept = summary_of(of(x[:30]))
    table = kept.add(x[30:]).table()
    for name, values in of(x).items():
        np.testing.assert_allclose(table[name], values, rtol=1e-12)
