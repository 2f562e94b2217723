"""Groups written straight to files are what xarray and Zarr would have written."""

import json

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from ibpdist.storage import raw_zarr
from ibpdist.storage.codec import zarr_codecs

VALUES = {
    "table": (("feature", "column"), np.arange(12.0).reshape(3, 4)),
    "single": (("feature",), np.array([1.5, np.nan, -np.inf], np.float32)),
    "number": ((), np.float64(2.5)),
    "whole": (("feature",), np.arange(3) - 1),
    "narrow": (("column",), np.arange(4, dtype=np.uint8)),
    "yes": (("feature",), np.array([True, False, True])),
    "none": (("nothing", "column"), np.zeros((0, 4))),
}
ATTRS = {"outline": "text", "steps": 3, "moves": ["a", "b"], "spec": {"K": 4, "set": None, "rtol": 1e-6}}


def group(**more):
    return xr.Dataset({**VALUES, **more}, {"feature": [4, 7, 9]}, ATTRS)


def listing(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_a_group_is_read_as_what_it_was(tmp_path):
    made = group()
    raw_zarr.write(tmp_path / "g", made)
    found = xr.open_zarr(tmp_path / "g", consolidated=False).load()
    xr.testing.assert_identical(found, made)
    assert {name: values.dtype for name, values in found.variables.items()} == {
        name: values.dtype for name, values in made.variables.items()
    }


def test_files_hold_what_zarr_writes(tmp_path):
    """Byte for byte but for the fill values that xarray notes as attributes."""
    made = group()
    raw_zarr.write(tmp_path / "ours", made)
    flat = {"chunk_key_encoding": {"name": "default", "separator": "."}}
    encoding = {
        name: {"compressors": zarr_codecs(v.dtype.itemsize), **flat} for name, v in made.variables.items()
    }
    made.to_zarr(tmp_path / "theirs", consolidated=False, encoding=encoding)
    names = listing(tmp_path / "ours")
    assert names == listing(tmp_path / "theirs")
    for name in names:
        ours, theirs = tmp_path / "ours" / name, tmp_path / "theirs" / name
        if ours.name == "zarr.json":
            one, two = (json.loads(path.read_text()) for path in (ours, theirs))
            two["attributes"].pop("_FillValue", None)
            assert one == two, name
        elif ours.is_file():
            assert ours.read_bytes() == theirs.read_bytes(), name


def test_a_flipped_bit_is_found(tmp_path):
    raw_zarr.write(tmp_path / "g", group())
    chunk = tmp_path / "g" / "table" / "c.0.0"
    held = bytearray(chunk.read_bytes())
    held[5] ^= 1
    chunk.write_bytes(held)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_array(tmp_path / "g" / "table", mode="r")[:]


def test_an_array_is_cut_into_chunks_of_a_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_zarr, "LARGEST", 80)
    table = np.arange(63.0).reshape(21, 3)
    raw_zarr.write(tmp_path / "g", xr.Dataset({"table": (("row", "column"), table)}))
    assert zarr.open_array(tmp_path / "g" / "table", mode="r").chunks == (3, 3)
    np.testing.assert_array_equal(xr.open_zarr(tmp_path / "g", consolidated=False).table, table)


LABELS = {
    "text": np.array(["a", "bäc", "", "a long one, of 40 characters and more than that"]),
    "objects": np.array(["a", "b", "c", "d"], object),
    "days": np.array(["2001-01-01", "NaT", "1815-12-10", "2026-11-19"], "datetime64[s]"),
    "spans": np.array([1, -2, 3, 40], "timedelta64[s]"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read_as_what_they_were(tmp_path, name):
    made = xr.Dataset({"x": ("row", np.arange(4.0))}, {"row": LABELS[name], "again": ("row", LABELS[name])})
    raw_zarr.write(tmp_path / "g", made)
    found = xr.open_zarr(tmp_path / "g", consolidated=False).load()
    assert set(found.coords) == {"row", "again"}
    np.testing.assert_array_equal(found.row.values.astype(made.row.dtype), made.row.values)


def test_text_is_what_zarr_writes(tmp_path):
    raw_zarr.write(tmp_path / "ours", xr.Dataset({"word": ("row", LABELS["text"])}))
    group = zarr.open_group(tmp_path / "theirs", mode="w", zarr_format=3)
    array = group.create_array(
        "word",
        shape=(4,),
        chunks=(4,),
        dtype="string",
        compressors=[ZstdCodec(level=3), Crc32cCodec()],
        chunk_key_encoding={"name": "default", "separator": "."},
    )
    array[...] = LABELS["text"]
    assert (tmp_path / "ours/word/c.0").read_bytes() == (tmp_path / "theirs/word/c.0").read_bytes()


def test_attributes_may_be_numbers_of_numpy(tmp_path):
    given = {"kept": np.arange(2), "gain": np.float64(1.5), "none": None}
    raw_zarr.write(tmp_path / "g", xr.Dataset(attrs=given))
    found = xr.open_zarr(tmp_path / "g", consolidated=False).attrs
    assert found == {"kept": [0, 1], "gain": 1.5, "none": None}
    with pytest.raises(TypeError, match="an attribute is of the type set"):
        raw_zarr.write(tmp_path / "h", xr.Dataset(attrs={"kept": {1, 2}}))
