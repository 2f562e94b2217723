"""An output lies beside what it is made from, never inside it or around it."""

import numpy as np
import pytest
import zarr

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.data.output_path import refuse_place


@pytest.fixture
def store(tmp_path):
    ibp.synthesise("images", tmp_path / "a.zarr", rows=20)
    return tmp_path / "a.zarr"


@pytest.mark.parametrize("name", ["run", "x/run", "x/c/0/run", "none/at/all"])
def test_inside_a_dataset(store, name):
    with pytest.raises(UsageError, match=r"lies inside the store \w+(\.zarr)?: choose a place outside it"):
        refuse_place(store / name)
    with pytest.raises(UsageError, match="lies inside"):
        refuse_place(str(store / name), "an input", 5)


@pytest.mark.parametrize("version", [2, 3])
def test_inside_what_others_made(tmp_path, version):
    zarr.create_array(str(tmp_path / "b.zarr"), shape=(4, 3), dtype="f4", zarr_format=version)
    with pytest.raises(UsageError, match=r"lies inside the store b\.zarr"):
        refuse_place(tmp_path / "b.zarr" / "run")


def test_through_a_link_or_a_detour(store, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(store)
    for place in (tmp_path / "link" / "run", tmp_path / "none" / ".." / "a.zarr" / "run"):
        with pytest.raises(UsageError, match=r"lies inside the store a\.zarr"):
            refuse_place(place)
    monkeypatch.chdir(store)
    with pytest.raises(UsageError, match=r"^run: lies inside the store a\.zarr"):
        refuse_place("run")


def test_around_its_input(store, tmp_path):
    with pytest.raises(UsageError, match=r"holds the input .*a\.zarr: choose another place"):
        refuse_place(tmp_path, store)
    with pytest.raises(UsageError, match="holds the input"):
        refuse_place(tmp_path / "sub" / "..", str(store))


def test_whatever_writes_a_store_or_a_run_asks(store, tmp_path):
    x = tmp_path / "x.npy"
    np.save(x, np.eye(5))
    grid = {"data": str(store), "system": "lg-vi-finite", "truncation": 2}
    for make in (
        lambda: ibp.ingest(x, store / "b.zarr"),
        lambda: ibp.synthesise("images", store / "b.zarr", rows=20),
        lambda: ibp.sweep(grid, store / "c", serial=True),
    ):
        with pytest.raises(UsageError, match=r"lies inside the store a\.zarr"):
            make()
    assert not (store / "b.zarr").exists()
    assert not (store / "c").exists()


def test_beside_it_is_fine(store, tmp_path):
    for place in (tmp_path / "run", tmp_path / "a.zarr.run", tmp_path / "deep" / "run", store):
        refuse_place(place, store)
        refuse_place(str(place), str(store), None)
