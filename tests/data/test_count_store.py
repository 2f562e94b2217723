"""Stores of counts: chunks of equal work, any portions, checked like dense stores, the same fits."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse

from ibpdist.base.errors import InputError, StorageError
from ibpdist.data import layout
from ibpdist.data._base import Chunk
from ibpdist.data.append import append
from ibpdist.data.count_writer import CountWriter
from ibpdist.data.entries import entries_of
from ibpdist.data.finalise import Outline
from ibpdist.data.store import open_dataset
from ibpdist.data.writer import reserved
from ibpdist.storage import files


def counts(rows=50, columns=12, seed=0):
    x = np.random.default_rng(seed).poisson(0.6, (rows, columns)).astype(np.float32)
    x[3] = 0
    return x


def stored(path, x, portions=(50,), labels=False):
    """A store of counts, written in portions."""
    outline = Outline(x.shape[1], np.dtype(np.float32), 1, "counts", {}, {})
    with reserved(path, False) as staging:
        writer, start = CountWriter(staging, path, outline), 0
        for size in portions:
            part = x[start : start + size]
            coords = {"row": [f"r{n}" for n in range(start, start + len(part))]} if labels else {}
            writer.append(entries_of(Chunk(0, start, part)), coords)
            start += size
        writer.finish()
        files.publish(staging, path, False)
    return open_dataset(path)


@pytest.fixture
def small(monkeypatch):
    """Chunks of few entries."""
    monkeypatch.setattr(layout, "LEAST_ENTRIES", 40)
    monkeypatch.setattr(layout, "MOST_ENTRIES", 40)
    monkeypatch.setattr(layout, "ROW_ENTRIES", 1)


def values(data):
    return np.concatenate([data.read(index).x for index in range(data.chunks)])


@pytest.mark.parametrize("portions", [(50,), (7,) * 8, (1,) * 50])
def test_counts_come_back_whatever_the_portions(tmp_path, small, portions):
    x = counts()
    data = stored(tmp_path / "x.zarr", x, portions)
    np.testing.assert_array_equal(values(data), x)
    assert data.fingerprint == stored(tmp_path / "y.zarr", x).fingerprint
    assert (data.rows, data.columns) == x.shape
    sizes = [data.read(index).entries.counts.size for index in range(data.chunks)]
    assert max(sizes) <= 40
    assert min(sizes[:-1]) > 40 - 12
    assert data.verify() == []


def test_a_row_of_many_entries_is_a_chunk(tmp_path, small):
    x = np.ones((4, 60), np.float32)
    assert stored(tmp_path / "x.zarr", x).chunks == 4


def test_xarray_opens_it(tmp_path, small):
    x = counts()
    stored(tmp_path / "x.zarr", x, labels=True)
    found = xr.open_zarr(tmp_path / "x.zarr")
    assert found["counts"].dims == found["column_of_entry"].dims == ("entry",)
    starts = np.concatenate([[0], np.cumsum(found["entries_of_row"].values)])
    rows = np.repeat(np.arange(50), np.diff(starts))
    made = np.zeros_like(x)
    made[rows, found["column_of_entry"].values] = found["counts"].values
    np.testing.assert_array_equal(made, x)
    assert found["row"].values[7] == "r7"


def test_labels_and_summaries(tmp_path, small):
    x = counts()
    data = stored(tmp_path / "x.zarr", x, (20, 30), labels=True)
    first, last = data.bounds(2)
    assert data.row_coords(2)["row"].tolist() == [f"r{n}" for n in range(first, last)]
    table = data.column_summary()
    np.testing.assert_allclose(table["mean"], x.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table["sd"], x.astype(float).std(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(table["max"], x.max(axis=0))
    np.testing.assert_array_equal(table["min"], x.min(axis=0))


@pytest.mark.parametrize("name", ["counts/c/1", "column_of_entry/c/0", "entries_of_row/c/0"])
def test_damage_is_found(tmp_path, small, name):
    data = stored(tmp_path / "x.zarr", counts())
    file = data.path / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(StorageError, match="check sum"):
        values(open_dataset(data.path))
    assert any(name in problem for problem in data.verify())
    file.unlink()
    with pytest.raises(StorageError, match="is missing"):
        values(open_dataset(data.path))


def test_chunks_are_read_without_dense_values(tmp_path, small):
    chunk = stored(tmp_path / "x.zarr", counts()).read(0)
    assert "x" not in chunk.__dict__
    assert chunk.rows == chunk.entries.rows
    part = chunk.part(1, 3)
    np.testing.assert_array_equal(part.x, chunk.x[1:3])
    kept = np.arange(chunk.rows) % 2 == 0
    np.testing.assert_array_equal(chunk.taken(kept, 0, 0).x, chunk.x[kept])


@pytest.mark.parametrize("first", [1, 17, 49])
@pytest.mark.parametrize("kind", ["array", "sparse", "store"])
def test_rows_are_appended_as_if_they_had_been_there(tmp_path, small, first, kind):
    x = counts()
    stored(tmp_path / "x.zarr", x[:first], (first,))
    rows = {"array": x[first:], "sparse": sparse.csr_matrix(x[first:])}.get(kind)
    if rows is None:
        rows = stored(tmp_path / "more.zarr", x[first:], (50 - first,))
    data = append(tmp_path / "x.zarr", rows)
    whole = stored(tmp_path / "whole.zarr", x)
    np.testing.assert_array_equal(values(data), x)
    assert data.fingerprint == whole.fingerprint
    assert data.verify() == []
    for name, expected in whole.column_summary().items():
        np.testing.assert_allclose(data.column_summary()[name], expected, rtol=1e-10, atol=1e-12)


def test_labels_come_with_rows_that_are_appended(tmp_path, small):
    x = counts()
    stored(tmp_path / "x.zarr", x[:20], (20,), labels=True)
    with pytest.raises(InputError, match="give row_coords with 'row'"):
        append(tmp_path / "x.zarr", x[20:])
    data = append(tmp_path / "x.zarr", x[20:], {"row": [f"r{n}" for n in range(20, 50)]})
    assert data.fingerprint == stored(tmp_path / "whole.zarr", x, labels=True).fingerprint
    with pytest.raises(InputError, match="has 3 columns, the dataset has 12"):
        append(tmp_path / "x.zarr", x[:, :3], {"row": ["a"] * 50})


def test_what_is_no_count_is_not_appended(tmp_path, small):
    x = counts()
    before = stored(tmp_path / "x.zarr", x).fingerprint
    with pytest.raises(InputError, match="is no count"):
        append(tmp_path / "x.zarr", x[:4] + 0.5)
    assert open_dataset(tmp_path / "x.zarr").fingerprint == before
