"""Memory of ingest does not depend on the number of rows: ten times the rows within a tenth."""

import gc
import gzip
import tracemalloc

import numpy as np
import pytest
import zarr

from ibpdist.data.ingest import ingest

COLUMNS, CHUNK = 64, 2048


def npy(path, rows):
    made = np.lib.format.open_memmap(path / f"{rows}.npy", mode="w+", dtype="float32", shape=(rows, COLUMNS))
    made[:] = np.arange(COLUMNS) % 7
    return path / f"{rows}.npy"


def npz(path, rows):
    np.savez(path / f"{rows}.npz", np.load(npy(path, rows)))
    return path / f"{rows}.npz"


def csv(path, rows):
    line = ",".join(f"{i}.25" for i in range(COLUMNS)) + "\n"
    with gzip.open(path / f"{rows}.csv.gz", "wt", compresslevel=1) as file:
        file.writelines(line for _ in range(rows))
    return path / f"{rows}.csv.gz"


def store(path, rows):
    array = zarr.create_array(path / f"{rows}.zarr", shape=(rows, COLUMNS), chunks=(100, COLUMNS), dtype="f4")
    array[:] = 1
    return path / f"{rows}.zarr"


def peak(source, target, **options):
    """Bytes allocated at the highest point, the least of three runs.

    Now and then a thread of Zarr holds a block a moment longer, which adds that block to a run.
    """
    return min(highest(source, target, **options) for _ in range(3))


def highest(source, target, chunk_rows=CHUNK, **options):
    """Bytes allocated at the highest point of one run.

    What the test runner holds is frozen: with many old objects Python collects cycles (Zarr makes
    some) so rarely that they would be measured too.
    """
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        ingest(source, target, chunk_rows=chunk_rows, overwrite=True, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.slow
@pytest.mark.parametrize("make", [npy, npz, csv, store])
@pytest.mark.parametrize("options", [{}, {"center": True}], ids=["plain", "centred"])
def test_ten_times_the_rows_take_no_more_memory(tmp_path, make, options):
    few, many = (make(tmp_path, rows) for rows in (6000, 60000))
    highest(few, tmp_path / "warm.zarr", **options)
    first, second = (peak(s, tmp_path / f"{i}.zarr", **options) for i, s in enumerate((few, many)))
    assert second < 1.1 * first


@pytest.mark.slow
def test_turning_a_long_table_takes_memory_for_blocks_only(tmp_path):
    """Ten times the columns are ten times the rows of the dataset."""
    few, many = tmp_path / "few.csv", tmp_path / "many.csv"
    for path, columns in ((few, 2000), (many, 20000)):
        line = ",".join("1.5" for _ in range(columns)) + "\n"
        path.write_text(line * 500)
    highest(few, tmp_path / "warm.zarr", chunk_rows=500, rows_in="columns")
    first = peak(few, tmp_path / "a.zarr", chunk_rows=500, rows_in="columns")
    second = peak(many, tmp_path / "b.zarr", chunk_rows=500, rows_in="columns")
    assert second < 1.1 * first
