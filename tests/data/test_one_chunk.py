"""All rows as one chunk, for each of several chains."""

import numpy as np

import ibpdist as ibp
from ibpdist.data.arrays import ArrayData
from ibpdist.data.one_chunk import Whole
from tests.support.model_cases import problem


def source(missing="complete", rows=11, chunk_rows=4):
    x, observed = problem(3, rows, 5, missing)
    return ArrayData(x if observed is None else np.where(observed, x, np.nan), chunk_rows)


def test_every_chain_sees_all_rows():
    given = source()
    whole = Whole(given, 3)
    assert (whole.chunks, whole.rows, whole.columns, whole.dtype) == (3, 11, 5, given.dtype)
    x = np.concatenate([given.read(i).x for i in range(given.chunks)])
    for chain in range(3):
        chunk = whole.read(chain)
        assert (chunk.index, chunk.start, chunk.observed) == (chain, 0, None)
        np.testing.assert_array_equal(chunk.x, x)
        assert whole.bounds(chain) == (0, 11)


def test_one_copy_is_held():
    whole = Whole(source(), 3)
    assert whole.read(0).x is whole.read(2).x


def test_missing_cells_of_some_chunks():
    x = np.arange(30.0).reshape(10, 3)
    x[7, 1] = np.nan
    whole = Whole(ArrayData(x, 4), 2)
    chunk = whole.read(1)
    assert not chunk.observed[7, 1]
    assert chunk.observed.sum() == 29
    assert chunk.x[7, 1] == 0


def test_labels_are_those_of_the_source(tmp_path):
    made = ibp.synthetic("images", rows=9, noise=0.1, seed=1)
    given = ArrayData(made.x.assign_coords(row=[f"r{i}" for i in range(9)]), 4)
    whole = Whole(given, 2)
    assert list(whole.row_coords(1)["row"]) == [f"r{i}" for i in range(9)]
    assert whole.column_coords().keys() == given.column_coords().keys()


def test_the_fingerprint_follows_data_and_chains():
    given, other = source(), source(rows=10)
    found = {Whole(given, 2).fingerprint, Whole(given, 3).fingerprint, Whole(other, 2).fingerprint}
    assert len(found) == 3
    assert Whole(given, 2).fingerprint == Whole(source(), 2).fingerprint
