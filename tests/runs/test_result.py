"""Results as trees: complete or absent, lazy rows, and parameters to go on from."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr
import zarr

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.runs import result
from ibpdist.runs.layout import state_of
from ibpdist.runs.loop import drive
from ibpdist.runs.result import hashes, is_complete, load, open_result
from ibpdist.storage import sealed
from tests.support.toy import MemorySource, Toy, blobs, save_blobs, serial_engine, toy_run, toy_spec


@pytest.fixture
def run(tmp_path):
    made, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs())))
    drive(made, job, serial_engine(made.path, job))
    made.close()
    return made.path


def test_groups_and_dims(run):
    found = open_result(run)
    assert set(found.children) == {"params", "rows", "trace", "internals"}
    assert found["params"]["mean"].dims == ("feature", "column")
    assert found["rows"]["z"].dims == ("row", "feature")
    assert found["rows"]["z"].shape == (230, 3)
    assert found["trace"]["objective"].dims == ("step",)
    assert found["trace"]["step"].values.tolist() == list(range(1, 13))


def test_attributes_say_where_it_comes_from(run):
    attrs = open_result(run).attrs
    assert attrs["system"] == "toy"
    assert attrs["truncation"] == 3
    assert attrs["seed"] == "7"
    assert attrs["rows"] == 230
    assert attrs["chunk_rows"] == 10
    assert attrs["stop"] == "step limit"
    assert attrs["stopped"] == "stopped at the limit of 12 steps"
    assert attrs["fingerprint"] == blobs().fingerprint
    assert "truncation: 3" in attrs["spec"]
    assert json.loads(attrs["versions"])["numpy"] == np.__version__
    assert all(lib["architecture"] for lib in json.loads(attrs["blas"]))
    assert not {"nonce", "schema"} & set(attrs)


def test_features_of_rows_are_in_the_order_of_the_parameters(run):
    found = open_result(run)
    share = found["rows"]["z"].mean("row").values
    assert np.allclose(share, found["params"]["prevalence"].values)
    assert (np.diff(share) <= 0).all()


def test_rows_are_chunked_as_the_data_and_lazy(run):
    array = zarr.open_array(run / "result.zarr", path="rows/z", mode="r")
    assert array.chunks == (10, 3)
    assert array.nchunks_initialized == 23
    assert open_result(run)["rows"]["z"].chunks[0] == (10,) * 23


def test_opens_with_plain_xarray(run):
    found = xr.open_zarr(run / "result.zarr", group="rows", consolidated=False)
    assert found["z"].shape == (230, 3)


def test_opens_by_either_name(run):
    assert open_result(run / "result.zarr").identical(open_result(str(run)))


def test_parameters_come_back_bit_for_bit(run):
    from ibpdist.engine.checkpoint import Checkpoints

    found, kept = state_of(open_result(run)), Checkpoints(run).params(12)
    assert np.array_equal(found.centre, kept.centre)
    assert np.array_equal(found.weight, kept.weight)
    assert type(found) is type(kept)


def test_a_tree_without_parameters_is_refused():
    with pytest.raises(StorageError, match="no parameters to continue from"):
        state_of(xr.DataTree())


def test_unfinished_and_foreign_are_told_apart(run, tmp_path):
    shutil.rmtree(run / "result.zarr")
    assert not is_complete(run)
    with pytest.raises(StorageError, match="is not finished; continue it with resume"):
        open_result(run)
    (tmp_path / "file").write_text("")
    for name, why in ((".", "result.zarr is missing"), ("file", "it is a file"), ("no", "nothing is there")):
        sentence = rf"is not a run \({why}\); name the directory that fit wrote$"
        with pytest.raises(StorageError, match=sentence):
            open_result(tmp_path / name)


def test_a_copy_opens_under_any_name(run, tmp_path):
    whole = open_result(run).load()
    shutil.copytree(run / "result.zarr", tmp_path / "copy")
    whole.to_zarr(tmp_path / "written.zarr")
    shutil.copytree(run / "result.zarr", run / "beside.zarr")
    for copy in (tmp_path / "copy", str(tmp_path / "written.zarr"), run / "beside.zarr"):
        assert open_result(copy).load().identical(whole)
        assert np.array_equal(state_of(open_result(copy)).centre, state_of(whole).centre)


def test_a_result_that_cannot_be_read_names_verify(run):
    (run / "result.zarr" / "zarr.json").write_text("{")
    with pytest.raises(
        StorageError, match=r"zarr\.json: damaged: it does not match its hash; take the result"
    ):
        open_result(run)
    copy = shutil.copytree(run / "result.zarr", run / "without-a-list")
    with pytest.raises(StorageError, match="check it with verify"):
        open_result(copy)


def test_a_missing_chunk_is_named_not_filled(run):
    (run / "result.zarr" / "rows" / "z" / "c.4.0").unlink()
    with pytest.raises(StorageError, match=r"rows/z/c\.4\.0: is missing"):
        open_result(run)


def test_a_damaged_file_is_an_error_not_a_value(run):
    rng = np.random.default_rng(0)
    files = [p for p in (run / "result.zarr").rglob("*") if p.is_file()]
    assert len(files) > 30
    for file in files:
        raw = file.read_bytes()
        flipped = bytearray(raw)
        flipped[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        with pytest.raises(StorageError, match="damaged"):
            load(open_result(run))
        file.write_bytes(raw)
    load(open_result(run))


def test_swapped_chunks_are_an_error_not_other_rows(run):
    """The check sums of Zarr cannot tell which chunk they are of."""
    one, other = (run / f"result.zarr/rows/z/c.{n}.0" for n in "01")
    a, b = one.read_bytes(), other.read_bytes()
    one.write_bytes(b)
    other.write_bytes(a)
    found = open_result(run)
    with pytest.raises(StorageError, match=r"rows/z/c\.[01]\.0: damaged"):
        found["rows"]["z"].values  # noqa: B018


def test_an_array_that_does_not_belong_is_refused(run):
    shutil.copytree(run / "result.zarr/params/mean", run / "result.zarr/params/mean2")
    with pytest.raises(StorageError, match=r"params/mean2/zarr\.json: does not belong to the result"):
        load(open_result(run))


def test_a_result_can_be_copied_away(run, tmp_path):
    copied = shutil.copytree(run / "result.zarr", tmp_path / "copy" / "result.zarr")
    assert open_result(copied).identical(open_result(run))


def test_loading_gets_every_array(run):
    found = load(open_result(run))
    shutil.rmtree(run / "result.zarr")
    assert found.attrs["system"] == "toy"
    for node in found.subtree:
        for values in node.variables.values():
            assert values.chunks is None
    assert np.isfinite(found["rows"]["z"].values).all()


def test_a_crash_while_writing_leaves_none(run, tmp_path, monkeypatch):
    other, job = toy_run(tmp_path / "other", toy_spec(save_blobs(tmp_path / "y.npy", blobs())))
    plain = result.publish
    monkeypatch.setattr(result, "publish", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        drive(other, job, serial_engine(other.path, job))
    assert not is_complete(other.path)
    monkeypatch.setattr(result, "publish", plain)
    drive(other, job, serial_engine(other.path, job))
    assert hashes(other.path / "result.zarr").keys() == hashes(run / "result.zarr").keys()
    other.close()


def test_the_listing_covers_every_file(run):
    listed = sealed.read(run / "result.json")
    assert listed == hashes(run / "result.zarr")
    assert {"zarr.json", "rows/z/c.0.0", "params/mean/zarr.json"} <= set(listed)


class Labelled(MemorySource):
    """A source with labels and a covariate."""

    def row_coords(self, index):
        start, stop = self.bounds(index)
        return {"row": np.array([f"cell {n}" for n in range(start, stop)]), "age": np.arange(start, stop)}

    def column_coords(self):
        return {"column": np.array([f"gene {n}" for n in range(self.columns)])}


def test_labels_are_kept_to_the_end(tmp_path):
    made, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs())))
    job = type(job)(job.spec, Toy(), Labelled(job.source.x, job.source.width))
    drive(made, job, serial_engine(made.path, job))
    made.close()
    found = open_result(made.path)
    assert [str(label) for label in found["rows"]["row"].values[[0, 229]]] == ["cell 0", "cell 229"]
    assert found["rows"]["age"].values.tolist() == list(range(230))
    assert [str(label) for label in found["params"]["column"].values] == [f"gene {n}" for n in range(5)]
    assert "z" in found["rows"].sel(row="cell 17").to_dataset()


def test_a_tree_is_read_as_it_was_stored(tmp_path):
    """Numbers, text, dates, labels and attributes; Zarr reads every array by itself."""
    labels = {
        "column": ["a", "b"],
        "batch": ("column", ["x", ""]),
        "day": ("feature", np.array(["2001-01-01", "NaT", "1999-12-31"], "datetime64[ns]")),
    }
    one = xr.Dataset({"mean": (("feature", "column"), np.ones((3, 2)))}, labels)
    root = xr.Dataset(attrs={"steps": 3, "moves": ["delete"]})
    result.store(xr.DataTree(root, children={"params": xr.DataTree(one)}), tmp_path / "t")
    found = xr.open_datatree(tmp_path / "t", engine="zarr", consolidated=False)
    assert found.attrs == root.attrs
    xr.testing.assert_equal(found["params"].to_dataset().load(), one)
    assert set(found["params"].coords) == set(labels)
    assert zarr.open_array(tmp_path / "t", path="params/batch", mode="r")[:].tolist() == ["x", ""]


def test_a_small_result_is_few_files(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 8))
    ibp.fit(x, system="lg-vi-infinite", K=5, run=tmp_path / "run", seed=1)
    shutil.rmtree(tmp_path / "run" / "data.zarr")
    assert len([path for path in (tmp_path / "run").rglob("*") if path.is_file()]) < 100


def test_what_readers_do_not_need_is_apart(tmp_path):
    """A result shows no internals: they are in a group of their own, with the parameters as one array."""
    x = np.random.default_rng(0).normal(size=(60, 8))
    for options in ({}, {"run": tmp_path / "run"}):
        found = ibp.fit(x, system="lg-vi-infinite", K=5, seed=1, **options)
        assert set(found["internals"].variables) == {"state", "basis", "spectrum", "group"}
        assert not {"basis", "spectrum", "group"} & set(found["params"].variables)
        assert found["internals"]["state"].dims == ("byte",)
        assert "format" not in found.attrs
