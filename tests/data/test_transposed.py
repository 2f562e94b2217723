"""Turning a table through a file: the same cells, whatever the sizes of the blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import StorageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.sources.array import table_of
from ibpdist.data.sources.stored import SourceTable
from ibpdist.data.sources.transposed import Transposed
from tests.support.matrices import matrix


def whole(table, rows):
    return np.concatenate([block.x for block in table.blocks(rows)])


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 12), st.integers(1, 200))
def test_turned_cells_are_the_cells(tmp_path_factory, rows, columns, step, size):
    x = matrix(rows, columns, missing=min(3, rows * columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ibpdist.data.sources.transposed._BLOCK_BYTES", 8 * size)
        turned = Transposed(table_of(x), tmp_path_factory.mktemp("turned"))
    assert (turned.rows, turned.columns) == (columns, rows)
    np.testing.assert_array_equal(whole(turned, step), x.T)
    np.testing.assert_array_equal(whole(turned, 1), x.T)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "uint64"])
def test_the_type_is_kept(tmp_path, dtype):
    x = (np.abs(matrix(9, 4)) * 5).astype(dtype)
    turned = Transposed(table_of(x), tmp_path)
    assert turned.dtype == dtype
    np.testing.assert_array_equal(whole(turned, 3), x.T)


def test_labels_change_sides(tmp_path):
    table = table_of(matrix(3, 2))
    table._row_coords = {"row": np.array(["a", "b", "c"]), "batch": np.arange(3)}
    table._column_coords = {"column": np.array(["u", "v"]), "length": np.arange(2)}
    turned = Transposed(table, tmp_path)
    assert {name: labels.tolist() for name, labels in turned.column_coords().items()} == {
        "column": ["a", "b", "c"],
        "batch": [0, 1, 2],
    }
    blocks = list(turned.blocks(1))
    assert [block.row_coords["row"].tolist() for block in blocks] == [["u"], ["v"]]
    assert [block.row_coords["length"].tolist() for block in blocks] == [[0], [1]]


def test_a_source_can_be_turned(tmp_path):
    x = matrix(20, 3, missing=4)
    turned = Transposed(SourceTable(ArrayData(x, 7), "a"), tmp_path)
    np.testing.assert_array_equal(whole(turned, 2), x.T)


def test_a_full_disk_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="cannot be written"):
        Transposed(table_of(matrix(3, 2)), tmp_path / "absent")
