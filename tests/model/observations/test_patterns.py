"""Which rows are observed in the same columns: groups of columns and runs of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ibpdist.data._base import Chunk
from ibpdist.model.observations.patterns import column_groups, missing_rows, row_hash, runs_of

MASKS = arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 6)))


def chunk(observed, start=0):
    return Chunk(0, start, np.zeros(observed.shape), observed)


def grouped(observed):
    return column_groups(missing_rows(chunk(observed)))


def test_row_hash_is_splitmix64():
    """The first outputs of the generator seeded with zero."""
    assert [f"{h:016x}" for h in row_hash(0, 2)] == ["e220a8397b1dcdaf", "6e789e6aa1b965f4"]


def test_row_hash_is_of_the_global_row():
    np.testing.assert_array_equal(row_hash(5, 7), row_hash(0, 12)[5:])
    assert np.unique(row_hash(0, 10_000)).size == 10_000


def test_nothing_missing():
    assert (missing_rows(Chunk(0, 0, np.zeros((3, 2)))) == 0).all()
    assert (missing_rows(chunk(np.ones((3, 2), bool))) == 0).all()
    assert column_groups(np.zeros(4, np.uint64)).tolist() == [0, 0, 0, 0]


@given(MASKS)
def test_groups_are_columns_missing_in_the_same_rows(observed):
    group = grouped(observed)
    assert set(group) == set(range(group.max() + 1))
    for a in range(group.size):
        for b in range(group.size):
            assert (group[a] == group[b]) == (observed[:, a] == observed[:, b]).all()


@given(MASKS)
def test_groups_are_numbered_as_they_come(observed):
    """Their numbers say nothing of the hashes: q(A) has its covariances in this order."""
    group = grouped(observed)
    assert list(dict.fromkeys(group.tolist())) == list(range(group.max() + 1))


def test_the_numbers_of_groups_do_not_follow_the_hashes():
    assert column_groups(np.array([9, 4, 9, 1, 4], np.uint64)).tolist() == [0, 1, 0, 2, 1]


@given(MASKS, st.integers(0, 12))
def test_missing_rows_add_up_over_chunks(observed, cut):
    cut = min(cut, len(observed))
    parts = missing_rows(chunk(observed[:cut])) + missing_rows(chunk(observed[cut:], cut))
    np.testing.assert_array_equal(parts, missing_rows(chunk(observed)))


@given(MASKS)
def test_runs_observe_the_same_groups(observed):
    group = grouped(observed)
    runs = runs_of(observed, len(observed), group)
    order = np.arange(len(observed)) if runs.order is None else runs.order
    assert sorted(order) == list(range(len(observed)))
    assert (runs.starts[0], runs.starts[-1]) == (0, len(observed))
    assert (np.diff(runs.starts) > 0).all()
    for i, mask in enumerate(runs.masks):
        rows = observed[order[runs.starts[i] : runs.starts[i + 1]]]
        np.testing.assert_array_equal(rows, np.broadcast_to(mask[group].astype(bool), rows.shape))
    assert len(np.unique(runs.masks, axis=0)) == len(runs.masks), "equal patterns are in one run"


@given(MASKS, st.integers(0, 11), st.integers(1, 12))
def test_cut_is_the_part_of_each_run(observed, first, size):
    rows = len(observed)
    first = min(first, rows - 1)
    last = min(first + size, rows)
    runs = runs_of(observed, rows, grouped(observed))
    starts, masks = runs.cut(first, last)
    assert (starts[0], starts[-1]) == (0, last - first)
    whole = np.repeat(np.arange(len(runs.masks)), np.diff(runs.starts))[first:last]
    part = np.repeat(np.arange(len(masks)), np.diff(starts))
    np.testing.assert_array_equal(runs.masks[whole], masks[part])
    assert (np.diff(starts) > 0).all()


@given(MASKS, st.integers(0, 11), st.integers(1, 12))
def test_rows_of_a_tile(observed, first, size):
    rows = len(observed)
    runs = runs_of(observed, rows, grouped(observed))
    order = np.arange(rows) if runs.order is None else runs.order
    last = min(first + size, rows)
    np.testing.assert_array_equal(np.arange(rows)[runs.rows(first, last)], order[first:last])


def test_complete_rows_are_one_run_in_their_order():
    runs = runs_of(None, 9, np.zeros(3, int))
    assert runs.order is None
    assert runs.starts.tolist() == [0, 9]
    assert runs.masks.tolist() == [[1.0]]


def test_sorted_patterns_need_no_order():
    observed = np.array([[0, 1], [0, 1], [1, 1]], bool)
    assert runs_of(observed, 3, grouped(observed)).order is None
    assert runs_of(observed[::-1], 3, grouped(observed[::-1])).order is not None


@pytest.mark.parametrize("columns", [1, 8, 9, 70])
def test_more_groups_than_bits_of_a_byte(columns):
    rng = np.random.default_rng(columns)
    observed = rng.random((40, columns)) < 0.5
    runs = runs_of(observed, 40, grouped(observed))
    assert len(runs.masks) == len(np.unique(observed, axis=0))
