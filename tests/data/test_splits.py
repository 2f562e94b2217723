"""Held-out data: a function of seed and row, never of chunks; nothing held out is seen in training."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.splits import HeldCells, HeldRows, as_split, describe, held, parse_split
from tests.support.matrices import labels, matrix, stored, values


def masks(split, source):
    return np.concatenate([split.mask(source, index) for index in range(source.chunks)])


@pytest.mark.parametrize("fresh", [False, True])
def test_the_protocol_of_the_report(fresh):
    """The last half of the rows, one third of the columns; one common set unless fresh."""
    split = HeldCells(seed=3, fresh=fresh)
    hidden = masks(split, ArrayData(matrix(41, 12), 8))
    assert not hidden[:21].any()
    assert (hidden[21:].sum(axis=1) == 4).all()
    patterns = {row.tobytes() for row in hidden[21:]}
    assert len(patterns) > 10 if fresh else len(patterns) == 1


@pytest.mark.parametrize("split", [HeldCells(seed=1), HeldCells(seed=1, fresh=True), HeldRows(0.3, seed=1)])
def test_chunks_do_not_matter(split, monkeypatch):
    x = matrix(60, 9, missing=20)
    whole = values(split.train(ArrayData(x, 60)))
    for chunk_rows in (1, 7, 16):
        np.testing.assert_array_equal(values(split.train(ArrayData(x, chunk_rows))), whole)
    monkeypatch.setattr("ibpdist.data.splits._TILE_CELLS", 20)
    np.testing.assert_array_equal(values(split.train(ArrayData(x, 16))), whole)


def test_training_does_not_see_what_is_hidden():
    x = matrix(40, missing=30)
    source = ArrayData(x, 16)
    split = HeldCells(share=0.4, seed=5)
    train, hidden = split.train(source), masks(split, source)
    assert train.fingerprint != source.fingerprint
    for index in range(train.chunks):
        chunk, (start, stop) = train.read(index), train.bounds(index)
        observed = np.ones(chunk.x.shape, bool) if chunk.observed is None else chunk.observed
        np.testing.assert_array_equal(observed, ~np.isnan(x[start:stop]) & ~hidden[start:stop])
        assert (chunk.x[~observed] == 0).all()
        np.testing.assert_array_equal(chunk.x[observed], x[start:stop][observed])
    seen = np.concatenate([source.read(i).observed for i in range(3)])
    assert (hidden <= seen).all()
    assert hidden.any()


def test_rows_above_the_hidden_part_are_the_chunks_themselves():
    source = ArrayData(matrix(40), 10)
    train = HeldCells().train(source)
    assert [train.read(index).observed is None for index in range(4)] == [True, True, False, False]
    assert np.shares_memory(train.read(0).x, source.read(0).x)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.booleans())
def test_shares_of_columns(columns, share, fresh):
    hidden = HeldCells(share=share, rows=1, fresh=fresh).hidden(0, 5, 5, columns).sum(axis=1)
    assert (hidden == min(columns - 1, max(1, round(share * columns)))).all()


def test_seeds_differ_and_cells_are_held_evenly():
    first, second = (HeldCells(rows=1, fresh=True, seed=s).hidden(0, 3000, 3000, 9) for s in (1, 2))
    assert (first != second).any()
    # 3000 rows, 3 of 9: binomial with sd sqrt(3000 x 1/3 x 2/3) = 26
    assert (np.abs(first.sum(axis=0) - 1000) < 130).all()
    sets = {HeldCells(seed=s).columns(9).tobytes() for s in range(20)}
    assert len(sets) > 10


def test_held_rows_part_the_rows():
    x = matrix(200, missing=50)
    source = ArrayData(x, 16)
    split = HeldRows(0.25, seed=4)
    train, test = split.train(source), split.test(source)
    mask = split.hidden(0, 200)
    assert 20 < mask.sum() < 80
    np.testing.assert_array_equal(values(train), x[~mask])
    np.testing.assert_array_equal(values(test), x[mask])
    assert train.rows + test.rows == 200
    assert len({train.fingerprint, test.fingerprint, source.fingerprint}) == 3


def test_rows_are_numbered_without_gaps_and_labels_follow(tmp_path):
    names = [f"r{i}" for i in range(100)]
    data = stored(tmp_path / "a.zarr", matrix(100), row_coords={"row": names}, column_coords={"k": range(7)})
    split = HeldRows(0.5, seed=2)
    for part, mask in ((split.train(data), ~split.hidden(0, 100)), (split.test(data), split.hidden(0, 100))):
        assert labels(part, "row") == [name for name, kept in zip(names, mask, strict=True) if kept]
        bounds = [part.bounds(index) for index in range(part.chunks)]
        assert bounds[0][0] == 0
        assert bounds[-1][1] == part.rows
        assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
        assert [part.read(index).start for index in range(part.chunks)] == [start for start, _ in bounds]
        assert part.column_coords()["k"].tolist() == list(range(7))
        with pytest.raises(IndexError):
            part.bounds(part.chunks)


def test_chunks_without_rows_are_left_out():
    source = ArrayData(matrix(50), 1)
    split = HeldRows(0.5, seed=2)
    train = split.train(source)
    assert train.chunks == train.rows == int((~split.hidden(0, 50)).sum())
    assert all(train.read(index).rows == 1 for index in range(train.chunks))


def test_later_rows_change_nothing_for_earlier_ones():
    split = HeldRows(0.3, seed=9)
    np.testing.assert_array_equal(split.hidden(0, 1000)[:70], split.hidden(0, 70))
    np.testing.assert_array_equal(split.hidden(0, 1000)[100:], split.hidden(100, 1000))


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("cells", HeldCells()),
        ("cells:share=0.2,seed=7", HeldCells(share=0.2, seed=7)),
        (" cells: share=.5 , fresh=true, rows=1 ", HeldCells(share=0.5, fresh=True, rows=1)),
        ("rows:share=0.25", HeldRows(share=0.25)),
        ("rows:seed=99999999999999999999", HeldRows(seed=99999999999999999999)),
    ],
)
def test_recipes_as_text(text, split):
    assert parse_split(text) == split
    assert parse_split(describe(split)) == split
    assert as_split(text) == split


def test_a_number_is_a_share_of_columns():
    assert as_split(0.2) == HeldCells(share=0.2)
    source = ArrayData(matrix(40), 16)
    assert held(source, 0.2).fingerprint == held(source, "cells:share=0.2").fingerprint
    assert held(source, 0.2).fingerprint != held(source, 0.3).fingerprint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("columns:share=0.1", "starts with 'columns', expected cells, rows, tokens"),
        ("rows:fresh=true", "unknown key 'fresh', expected one of share, seed"),
        ("cells:share=many", "share is 'many', which is not a float"),
        ("cells:seed=1.5", "seed is '1.5', which is not a int"),
        ("cells:fresh=1", "fresh is '1', which is not a bool"),
        ("cells:share=0", "share is 0.0: expected more than 0 and less than 1"),
        ("cells:share=nan", "share is nan"),
        ("cells:rows=0", "rows is 0.0"),
        ("rows:share=1", "share is 1.0"),
    ],
)
def test_bad_recipes_are_usage_errors(text, said):
    with pytest.raises(UsageError, match=said) as caught:
        parse_split(text)
    assert caught.value.code == 2


def test_splits_that_leave_nothing_are_refused():
    with pytest.raises(UsageError, match="single column"):
        HeldCells().train(ArrayData(matrix(10, 1)))
    with pytest.raises(UsageError, match="no row of 2 is held out"):
        HeldRows(0.001).test(ArrayData(matrix(2)))
    with pytest.raises(UsageError, match="no row of 2 is left to train on"):
        HeldRows(0.999).train(ArrayData(matrix(2)))
