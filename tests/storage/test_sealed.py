"""Small files that know whether they are as they were written."""

import pytest

from ibpdist.base.errors import StorageError
from ibpdist.storage import sealed


@pytest.mark.parametrize("body", [{}, [1, 2.5, "x"], {"b": 1, "a": {"deep": None}}, "text", 0.1 + 0.2])
def test_round_trip(tmp_path, body):
    sealed.write(tmp_path / "a.json", body)
    assert sealed.read(tmp_path / "a.json") == body
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.json"
    sealed.write(path, {"step": 10, "files": {"rows": "ab", "level": 2.5e-07, "none": None}})
    raw = path.read_bytes()
    for at in range(len(raw)):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[at] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(StorageError, match=r"a\.json: damaged"):
                sealed.read(path)


@pytest.mark.parametrize("text", ["[]", "1", "{}", '{"sha256": 1}', '"sha256"', "{"])
def test_other_json(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(StorageError, match="damaged"):
        sealed.read(tmp_path / "a.json")


def test_every_truncation_is_found(tmp_path):
    path = tmp_path / "a.json"
    sealed.write(path, {"step": 10})
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(StorageError, match="damaged"):
            sealed.read(path)


def test_missing(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        sealed.read(tmp_path / "none.json")
