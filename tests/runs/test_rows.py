"""Row results: every row once, in its place, rows first."""

import numpy as np
import pytest
import zarr

import ibpdist as ibp
from ibpdist.data.splits import held
from ibpdist.data.store import open_dataset
from ibpdist.engine._base import groups
from ibpdist.engine.tree import TreeSum
from ibpdist.runs import result, rows
from ibpdist.runs.rows import describe, in_memory, lay_out, row_labels, write
from ibpdist.storage import raw_zarr
from tests.support.toy import MemorySource, blobs, save_blobs, serial_engine, toy_run, toy_spec


@pytest.fixture
def engine(tmp_path):
    run, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs(rows=47))))
    made = serial_engine(run.path, job)
    made.publish(0, job.algorithm.init(job.algorithm.summarise(job.source.read(0)), made.bench.draws.at(0)))
    yield made
    run.close()


def test_a_block_has_one_record_a_chunk(engine):
    found = describe(engine.bench, 1, 4, 0)
    assert [part["z"][1].shape for part in found] == [(10, 3)] * 3
    assert {part["z"][0] for part in found} == {("row", "feature")}


def test_in_memory_joins_the_chunks_in_order(engine):
    named, seen = in_memory(engine, 0)
    dims, values = named["z"]
    assert dims == ("row", "feature")
    assert values.shape == (47, 3)
    state = [engine.bench.state(i, 0).share for i in range(5)]
    order = np.argsort(-engine.bench.params(0).weight, kind="stable")
    assert np.array_equal(values, np.concatenate(state)[:, order])
    np.testing.assert_allclose(seen.products, values.T @ values, rtol=1e-12)


def test_written_in_any_order_they_are_the_same(engine, tmp_path):
    store = tmp_path / "out.zarr"
    layout = lay_out(engine, engine.bench.source, 0, store)
    parts = [
        write(engine.bench, first, last, 0, str(store), *layout) for first, last in ((4, 5), (0, 2), (2, 4))
    ]
    assert [float(part.rows) for part in parts] == [7, 20, 20]
    assert np.array_equal(zarr.open_array(store, path="rows/z", mode="r")[:], in_memory(engine, 0)[0]["z"][1])


def test_moments_have_the_same_bits_however_the_chunks_are_grouped(engine, tmp_path):
    store, whole = tmp_path / "out.zarr", in_memory(engine, 0)[1]
    layout = lay_out(engine, engine.bench.source, 0, store)
    for width in (1, 2, 4):
        total = TreeSum()
        for first, last in groups(5, width):
            total.add(write(engine.bench, first, last, 0, str(store), *layout))
        assert np.array_equal(total.value().total, whole.total)
        assert np.array_equal(total.value().products, whole.products)


def test_writing_again_changes_nothing(engine, tmp_path):
    store = tmp_path / "out.zarr"
    layout = lay_out(engine, engine.bench.source, 0, store)
    for _ in range(2):
        write(engine.bench, 0, 5, 0, str(store), *layout)
    assert np.array_equal(zarr.open_array(store, path="rows/z", mode="r")[:], in_memory(engine, 0)[0]["z"][1])


def test_a_task_that_comes_late_makes_nothing(engine, tmp_path):
    """Dask makes lost results again that nobody waits for: by then the store may have its own name."""
    store = tmp_path / "out.zarr"
    layout = lay_out(engine, engine.bench.source, 0, store)
    store.rename(tmp_path / "done.zarr")
    with pytest.raises(FileNotFoundError):
        write(engine.bench, 0, 1, 0, str(store), *layout)
    assert not store.exists()


def test_one_chunk_on_disk_for_each_of_the_data(engine, tmp_path):
    lay_out(engine, engine.bench.source, 0, tmp_path / "out.zarr")
    array = zarr.open_array(tmp_path / "out.zarr", path="rows/z", mode="r")
    assert array.chunks == (10, 3)
    assert array.metadata.dimension_names == ("row", "feature")
    assert np.isnan(array[:]).all(), "what is not written yet is not taken for a result"


def test_a_chunk_that_was_being_written_is_no_part_of_a_result(tmp_path):
    run, _ = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs(rows=47))))
    staged = run.path / "result.zarr.partial"
    (staged / "rows" / "z" / "c").mkdir(parents=True)
    (staged / "rows" / "z" / f"c.0.0.12ab{raw_zarr.LITTER}").write_bytes(b"half")
    (staged / "zarr.json").write_text("{}")
    result.publish(run.path, staged)
    assert [path.name for path in (run.path / "result.zarr").rglob("*") if path.is_file()] == ["zarr.json"]
    run.close()


def test_other_dims_keep_their_order():
    values = np.arange(24).reshape(2, 3, 4)
    dims, turned = rows._turned(("feature", "row", "column"), values)
    assert dims == ("row", "feature", "column")
    assert np.array_equal(turned, values.transpose(1, 0, 2))
    assert turned.flags.c_contiguous


class Labelled(MemorySource):
    def row_coords(self, index):
        start, stop = self.bounds(index)
        return {"row": np.array([f"r{n}" for n in range(start, stop)])}


def test_labels_are_joined():
    assert row_labels(blobs()) == {}
    plain = blobs(rows=25)
    assert row_labels(Labelled(plain.x, 10))["row"].tolist() == [f"r{n}" for n in range(25)]


@pytest.mark.parametrize("workers", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, 3])
def test_rows_that_a_split_leaves_are_in_their_place(seed, workers, tmp_path):
    """Chunks of a split have different heights; those of a result have one."""
    rng = np.random.default_rng(1)
    x = (rng.random((157, 3)) < 0.4) @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(157, 6))
    ibp.ingest(x, tmp_path / "x.zarr", chunk_rows=20)
    options = {"system": "fa-vi-infinite", "K": 4, "steps": 6, "holdout": f"rows:share=0.3,seed={seed}"}
    kept = ibp.fit(str(tmp_path / "x.zarr"), run=tmp_path / "run", workers=workers, **options)
    source = held(open_dataset(tmp_path / "x.zarr"), options["holdout"])
    assert len({stop - start for start, stop in map(source.bounds, range(source.chunks - 1))}) > 1
    expected = ibp.fit(str(tmp_path / "x.zarr"), **options)
    for name in ("z", "w"):
        np.testing.assert_array_equal(kept["rows"][name].values, expected["rows"][name].values)
    assert not (tmp_path / "run" / "result.zarr" / rows.PARTS).exists()
    assert ibp.verify(tmp_path / "run") == []
