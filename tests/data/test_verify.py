"""Damage of any stored file is named, by verify and where it can hurt also on reading."""

import json
import shutil

import numpy as np
import pytest

from ibpdist.base.errors import StorageError
from ibpdist.data.manifest import NAME, Manifest, encode, load
from ibpdist.data.store import open_dataset
from ibpdist.data.verify import verify_dataset
from ibpdist.storage.files import stored_files
from tests.support.matrices import matrix, stored


@pytest.fixture
def data(tmp_path):
    coords = {"row": [f"r{i}" for i in range(40)], "batch": np.arange(40)}
    columns = {"column": list("abcdefg")}
    return stored(tmp_path / "a.zarr", matrix(40, missing=4), row_coords=coords, column_coords=columns)


def flip(path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at // 8 % len(raw)] ^= 1 << at % 8
    path.write_bytes(bytes(raw))


def test_a_sound_store_has_no_problems(data):
    assert data.verify() == []
    assert verify_dataset(data.path) == []


def test_one_flipped_bit_in_each_file_is_named(data, tmp_path):
    rng, names = np.random.default_rng(0), list(stored_files(data.path))
    assert {"zarr.json", "x/zarr.json", NAME, "x/c/2/0", "row/c/1", "column_mean/c/0"} <= set(names)
    for name in names:
        for _ in range(3):
            copy = tmp_path / "copy.zarr"
            shutil.copytree(data.path, copy)
            flip(copy / name, int(rng.integers(8 * (copy / name).stat().st_size)))
            problems = verify_dataset(copy)
            assert len(problems) == 1, name
            assert name in problems[0]
            shutil.rmtree(copy)


def test_a_missing_and_a_foreign_file_are_named(data):
    (data.path / "row/c/1").unlink()
    (data.path / "x/c/0/0.1234.partial").write_bytes(b"")
    problems = verify_dataset(data.path)
    assert any("row/c/1: is missing" in problem for problem in problems)
    assert any("x/c/0/0.1234.partial: is not part of the dataset" in problem for problem in problems)
    assert len(problems) == 2


def test_what_is_damaged_cannot_be_used(data):
    for name, use in {
        "row/c/1": lambda d: d.row_coords(1),
        "batch/c/1": lambda d: d.row_coords(1),
        "column/c/0": lambda d: d.column_coords(),
        "column_sd/c/0": lambda d: d.column_summary(),
    }.items():
        raw = (data.path / name).read_bytes()
        (data.path / name).unlink()
        with pytest.raises(StorageError, match=f"chunk {name.partition('/')[2]}: is missing"):
            use(open_dataset(data.path))
        (data.path / name).write_bytes(raw)
        flip(data.path / name, 13)
        with pytest.raises(StorageError, match="the check sum does not match"):
            use(open_dataset(data.path))
        (data.path / name).write_bytes(raw)
        use(open_dataset(data.path))


@pytest.mark.parametrize("name", ["zarr.json", "x/zarr.json", NAME])
@pytest.mark.parametrize("at", [0, 100, 2001])
def test_damaged_metadata_are_found_on_opening(data, name, at):
    flip(data.path / name, at)
    with pytest.raises(StorageError) as caught:
        open_dataset(data.path)
    assert name in str(caught.value)
    assert caught.value.code == 4


def test_values_that_do_not_fit_the_manifest_are_found(data, tmp_path):
    """Files exchanged together with their sums: only the hashes of the values tell."""
    other = stored(tmp_path / "b.zarr", matrix(40, seed=1))
    listed = load(data.path)
    name = "x/c/1/0"
    shutil.copy(other.path / name, data.path / name)
    sums = {**listed.files, name: load(other.path).files[name]}
    (data.path / NAME).write_bytes(encode(Manifest(**{**vars(listed), "files": sums})))
    assert verify_dataset(data.path) == [f"{data.path}: x/c/1/0: holds other values than were written"]


def rewritten(data, **changes):
    (data.path / NAME).write_bytes(encode(Manifest(**{**vars(load(data.path)), **changes})))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": 41}, "different shapes"),
        ({"rows": 10**15}, "different shapes"),
        ({"rows": 0}, "is damaged"),
        ({"chunk_rows": 0}, "is damaged"),
        ({"columns": -1}, "is damaged"),
        ({"dtype": "object"}, "is damaged"),
        ({"chunks": ()}, "does not fit the shape"),
        ({"files": {"../../secret": (1, "00")}}, "names files outside the store"),
        ({"files": {"/secret": (1, "00")}}, "names files outside the store"),
    ],
)
def test_a_manifest_that_lies_is_refused(data, changes, said):
    rewritten(data, **changes)
    with pytest.raises(StorageError, match=said):
        open_dataset(data.path)


def test_huge_metadata_are_not_read(data, monkeypatch):
    monkeypatch.setattr("ibpdist.storage.zarr_groups.METADATA_LIMIT", 10)
    with pytest.raises(StorageError, match=r"zarr\.json is larger than"):
        open_dataset(data.path)
    monkeypatch.undo()
    monkeypatch.setattr("ibpdist.data.manifest.LIMIT_BYTES", 10)
    with pytest.raises(StorageError, match=r"manifest\.json is larger than"):
        open_dataset(data.path)


def test_a_newer_schema_is_refused_by_name(data):
    text = (data.path / NAME).read_text().split("\n")[1]
    body = json.loads(text) | {"schema": "ibpdist.dataset/9"}
    from hashlib import sha256

    text = json.dumps(body)
    (data.path / NAME).write_text(f"{sha256(text.encode()).hexdigest()}\n{text}\n")
    with pytest.raises(StorageError, match=r"has schema 'ibpdist\.dataset/9', this version reads"):
        open_dataset(data.path)
