"""Groups written straight to files are what xarray and Zarr would have written."""

import json

import numpy as np
import pytest
import xarray as xr
import zarr

from ibpdist.data import small
from ibpdist.data.codec import zarr_codecs

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
    small.write(tmp_path / "g", made)
    found = xr.open_zarr(tmp_path / "g", consolidated=False).load()
    xr.testing.assert_identical(found, made)
    assert {name: values.dtype for name, values in found.variables.items()} == {
        name: values.dtype for name, values in made.variables.items()
    }


def test_files_hold_what_zarr_writes(tmp_path):
    """Byte for byte but for the fill values that xarray notes as attributes."""
    made = group()
    small.write(tmp_path / "ours", made)
    encoding = {name: {"compressors": zarr_codecs(v.dtype.itemsize)} for name, v in made.variables.items()}
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
    small.write(tmp_path / "g", group())
    chunk = tmp_path / "g" / "table" / "c" / "0" / "0"
    held = bytearray(chunk.read_bytes())
    held[5] ^= 1
    chunk.write_bytes(held)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_array(tmp_path / "g" / "table", mode="r")[:]


ADDED = {
    "text": {"word": ("feature", ["a", "b", "c"])},
    "large": {"long": ("row", np.zeros(small.MOST // 8 + 1))},
    "dates": {"when": ("feature", np.array(["2001-01-01"] * 3, "datetime64[ns]"))},
}


@pytest.mark.parametrize("name", ADDED)
def test_the_rest_is_left_to_xarray(name):
    assert small.is_small(group())
    assert not small.is_small(group(**ADDED[name]))


def test_coordinates_and_attributes_that_need_words_are_left_to_xarray():
    assert not small.is_small(group().assign_coords(batch=("feature", [1, 2, 3])))
    assert not small.is_small(group().assign_attrs(kept=np.zeros(2)))
    assert not small.is_small(group().assign_attrs(kept=float("nan")))
