"""Bad input: one sentence with file, row, column and value; the right code; nothing left behind."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from ibpdist.base.errors import IbpError, InputError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.store import open_dataset
from tests.support.matrices import listing, matrix, stored, values, write_csv

TEXT = {
    # name: (file name, content, code, pattern of the sentence)
    "text cell": (
        "a.csv",
        "a,b\n1,2\n3,abc\n",
        3,
        r"a\.csv: row 1, column b: 'abc': is not a number.*line 3",
    ),
    "counts others": ("a.csv", "1,2\n3,x\ny,4\nz,5\n", 3, r"row 1, column 1: 'x': .*\(and 2 more"),
    "inf": ("a.csv", "1,2\n3,inf\n", 3, r"row 1, column 1: 'inf': is infinite"),
    "-Infinity": ("a.csv", "1,2\n-Infinity,4\n", 3, r"row 1, column 0: '-Infinity': is infinite"),
    "too large": ("a.csv", "1,2\n3,1e999\n", 3, r"row 1, column 1: '1e999': is too large"),
    "square overflows": ("a.csv", "1,2\n3,1e200\n", 3, r"row 1, column 1: .*products of it overflow"),
    "2^53 + 1": (
        "a.csv",
        "1,9007199254740993\n",
        3,
        r"column 1: '9007199254740993': is an integer beyond 2\^53",
    ),
    "20 digits": ("a.csv", "1,-12345678901234567890\n", 3, r"is an integer beyond 2\^53"),
    "long row": ("a.csv", "1,2\n3,4,5\n", 3, r"row 1: has 3 cells, expected 2 \(line 2"),
    "short row": ("a.csv", "a,b\n1,2\n3\n", 3, r"row 1: has 1 cells, expected 2 \(line 3"),
    "cut last line": ("a.csv", "1,2,3\n4,5,6\n7,8", 3, r"row 2: has 2 cells, expected 3 \(line 3"),
    "trailing comma": ("a.csv", "1,2,\n3,4,\n", 3, r"column 2: every line ends with a delimiter"),
    "trailing comma, header": ("a.csv", "a,b,\n1,2,\n", 3, r"column 2: has no name in the header"),
    "empty line": ("a.csv", "1,2\n\n3,4\n", 3, r"row 1: has 1 cells, expected 2"),
    "empty": ("a.csv", "", 3, r"a\.csv: is empty"),
    "only blank lines": ("a.csv", "\n\n\n", 3, r"a\.csv: is empty"),
    "header only": ("a.csv", "a,b,c\n", 3, r"a\.csv: has no rows"),
    "semicolons": ("a.csv", "1;2\n3;4\n", 3, r"one column that holds semicolons.*--delimiter ';'"),
    "tabs": ("a.csv", "a\tb\n3\t4\n", 3, r"one column that holds tabs.*name the file \.tsv"),
    "commas in a tsv": ("a.tsv", "a,b\n3,4\n", 3, r"one column that holds commas"),
    "decimal comma": ("a.tsv", "1,5\t2\n3\t4\n", 3, r"row 0, column 0: '1,5': has a decimal comma"),
    "quoted decimal comma": ("a.csv", 'a,b\n"1,5","2"\n', 3, r"column a: '1,5': has a decimal comma"),
    "semicolons and decimal commas": ("a.csv", "1,5;2,5\n3,5;4,5\n", 3, r"'5;2': .*holds a semicolon"),
    "same name twice": ("a.csv", "a,b,a\n1,2,3\n", 3, r"column a: occurs twice in the header"),
    "NUL": ("a.csv", "1,2\n3,\0\n", 3, r"line 2 holds a NUL byte"),
    "Latin-1": ("a.csv", b"name,b\nn,\xe9\n", 3, r"line 2 is not UTF-8"),
    "UTF-16": ("a.csv", "a,b\n1,2\n".encode("utf-16"), 3, r"not UTF-8"),
    "open quote": ("a.csv", '1,2\n"3,4\n', 3, r"row 1: .*quotes that do not match"),
    "underscores": ("a.csv", "1_000,2\n3,4\n", 3, r"row 0, column 0: '1_000': is not a number"),
    "hexadecimal": ("a.csv", "0x10,2\n3,4\n", 3, r"'0x10': is not a number"),
    "other digits": ("a.csv", "١,2\n3,4\n", 3, r"is not a number"),
    "complex": ("a.csv", "1+2j,2\n3,4\n", 3, r"'1\+2j': is not a number"),
    "date": ("a.csv", "1,2020-01-01\n3,4\n", 3, r"'2020-01-01': is not a number"),
    "text after the first block": (
        "a.csv",
        "1\n" * 20000 + "x\n",
        3,
        r"row 20000, column 0: 'x'.*line 20001",
    ),
    "unknown format": ("a.xlsx", "PK", 2, r"a\.xlsx: unknown file format"),
    "not gzip": ("a.csv.gz", "1,2\n", 3, r"a\.csv\.gz: is damaged or cut short"),
    "not npy": ("a.npy", "1,2\n", 3, r"a\.npy: is not a readable \.npy file"),
    "empty npy": ("a.npy", "", 3, r"a\.npy: is empty"),
    "not npz": ("a.npz", "1,2\n", 3, r"a\.npz: is not a readable \.npz file"),
}


@pytest.mark.parametrize("case", TEXT)
def test_a_bad_file_is_one_sentence_and_leaves_nothing(tmp_path, case):
    name, content, code, said = TEXT[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(IbpError, match=said) as caught:
        ingest(tmp_path / name, tmp_path / "out.zarr")
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert listing(tmp_path) == {name}


ARRAYS = {
    "complex": (np.ones((2, 2), complex), "holds complex numbers"),
    "dates": (np.zeros((2, 2), "M8[D]"), "holds dates"),
    "text": (np.array([["1", "2"]]), "holds text"),
    "bytes": (np.array([[b"1"]]), "holds bytes"),
    "records": (np.zeros((2, 2), [("a", "f4")]), "holds records"),
    "one dimension": (np.zeros(3), "has 1 dimensions"),
    "three dimensions": (np.zeros((2, 2, 2)), "has 3 dimensions"),
    "no rows": (np.zeros((0, 3)), "has no rows"),
    "no columns": (np.zeros((3, 0)), "has no columns"),
    "infinite": (np.array([[1, 2], [3, -np.inf]]), "row 1, column 1: '-inf': is infinite"),
    "overflow": (np.array([[1, 1e200]]), r"row 0, column 1: '1e\+200': .*products of it overflow"),
    "float32 overflow": (np.array([[1, 1e30]], "f4"), "products of it overflow in float32.*float64"),
    "2^53 + 1": (np.array([[1, 2**53 + 1]]), r"'9007199254740993': is an integer beyond 2\^53"),
    "float16 infinite": (np.array([[1, np.inf]], "f2"), "is infinite"),
}


NOT_IN_ZARR = {"records", "bytes", "no rows", "no columns"}
FORMS = [(case, form) for case in ARRAYS for form in ("npy", "npz", "array")]
FORMS += [(case, "zarr") for case in ARRAYS if case not in NOT_IN_ZARR]


@pytest.mark.parametrize(("case", "form"), FORMS)
def test_a_bad_array_is_the_same_sentence_in_any_format(tmp_path, case, form):
    array, said = ARRAYS[case]
    source, name = tmp_path / f"a.{form}", f"a.{form}"
    if form == "npy":
        np.save(source, array)
    elif form == "npz":
        np.savez(source, array)
    elif form == "zarr":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.save_array(source, array)
    else:
        source, name = array, "array"
    before = listing(tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        ingest(source, tmp_path / "out.zarr")
    assert caught.value.file == name
    assert listing(tmp_path) == before


def test_objects_are_never_unpickled(tmp_path):
    hooked = []

    class Payload:
        def __reduce__(self):
            return (hooked.append, ("ran",))

    np.save(tmp_path / "a.npy", np.array([[Payload()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", np.array([[Payload()]], dtype=object), allow_pickle=True)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="holds Python objects"):
            ingest(tmp_path / name, tmp_path / "out.zarr")
    assert hooked == []


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.999])
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv.gz"])
def test_files_cut_short(tmp_path, name, keep):
    x = matrix(200)
    {"x.npy": np.save, "x.npz": np.savez_compressed, "x.csv.gz": write_csv}[name](tmp_path / name, x)
    raw = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        ingest(tmp_path / name, tmp_path / "out.zarr")
    assert listing(tmp_path) == {name}


def test_an_npy_header_that_promises_too_much(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
        )
        file.write(b"\0" * 80)
    with pytest.raises(InputError, match="holds 80 bytes of values, its header promises"):
        ingest(tmp_path / "a.npy", tmp_path / "out.zarr")


def test_an_archive_that_unpacks_to_much_more_is_not_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", np.zeros((2000, 1000)))
    assert (tmp_path / "a.npz").stat().st_size < 1 << 16
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        ingest(tmp_path / "a.npz", tmp_path / "out.zarr")


def test_choosing_an_array(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.ones((2, 2)), two=np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"holds 2 arrays \(one, two\): choose one with --key"):
        ingest(tmp_path / "a.npz", tmp_path / "out.zarr")
    with pytest.raises(InputError, match="has no array 'three', only one, two"):
        ingest(tmp_path / "a.npz", tmp_path / "out.zarr", key="three")
    assert ingest(tmp_path / "a.npz", tmp_path / "out.zarr", key="two").rows == 3
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("one", data=np.ones((2, 2)))
    assert ingest(tmp_path / "g.zarr", tmp_path / "b.zarr").rows == 2
    group.create_array("two", data=np.ones((3, 2)))
    with pytest.raises(InputError, match=r"not exactly one of two dimensions \(one, two\): choose one"):
        ingest(tmp_path / "g.zarr", tmp_path / "c.zarr")
    with pytest.raises(InputError, match="has no array 'x', only one, two"):
        ingest(tmp_path / "g.zarr", tmp_path / "c.zarr", key="x")
    assert ingest(tmp_path / "g.zarr", tmp_path / "c.zarr", key="two").rows == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows_in": "lines"}, "rows_in is 'lines': expected rows or columns"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"chunk_rows": 0}, "chunk_rows is 0"),
        ({"covariates": ["z"]}, r"x\.csv: has no column 'z', the file has a, b"),
        ({"label_column": "z"}, "has no column 'z'"),
        ({"delimiter": "::"}, "delimiter is '::': expected one character"),
        ({"delimiter": ""}, "delimiter is ''"),
        ({"label_column": 5}, "has no column 5"),
    ],
)
def test_bad_options_are_usage_errors(tmp_path, options, said):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match=said) as caught:
        ingest(tmp_path / "x.csv", tmp_path / "out.zarr", **options)
    assert caught.value.code == 2
    assert listing(tmp_path) == {"x.csv"}


def sources(folder):
    """One of each format, by name, with the options that it uses."""
    x, text = matrix(10), {"delimiter", "header", "label_column", "covariates"}
    np.save(folder / "a.npy", x)
    np.savez(folder / "a.npz", x)
    zarr.save_array(folder / "array.zarr", x)
    zarr.save_group(folder / "group.zarr", x=x)
    write_csv(folder / "a.csv", x)
    stored(folder / "own.zarr", x)
    frame = pd.DataFrame(x)
    return {
        "a.npy": (folder / "a.npy", set()),
        "a.npz": (folder / "a.npz", {"key"}),
        "array.zarr": (folder / "array.zarr", set()),
        "group.zarr": (folder / "group.zarr", {"key"}),
        "own.zarr": (folder / "own.zarr", set()),
        "a.csv": (folder / "a.csv", text),
        "array": (x, set()),
        "list": (x.tolist(), set()),
        "DataFrame": (frame, {"label_column", "covariates"}),
        "DataArray": (xr.DataArray(x), set()),
        "Dataset": (xr.DataArray(x).to_dataset(name="x"), {"key"}),
        "source": (ArrayData(x), set()),
    }


OPTIONS = {"key": "y", "delimiter": ";", "header": False, "label_column": 0, "covariates": ["age"]}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_a_format_does_not_use_is_refused(tmp_path, option):
    (tmp_path / "in").mkdir()
    for name, (source, used) in sources(tmp_path / "in").items():
        if option not in used:
            with pytest.raises(UsageError) as caught:
                ingest(source, tmp_path / "out.zarr", **{option: OPTIONS[option]})
            assert f"{option}=" in str(caught.value), name
            assert str(caught.value).endswith((": leave it out", " out")), name
            assert "\n" not in str(caught.value)
    assert listing(tmp_path) == {"in"}


def test_the_variable_of_a_dataset_is_chosen_by_key(tmp_path):
    held = xr.Dataset({"x": (("row", "column"), matrix(10)), "y": (("row", "column"), matrix(10, seed=1))})
    ingest(held, tmp_path / "a.zarr", key="y")
    np.testing.assert_array_equal(values(open_dataset(tmp_path / "a.zarr")), held["y"].values)
    with pytest.raises(InputError, match=r"without a variable z \(it has x, y\): choose one with key"):
        ingest(held, tmp_path / "b.zarr", key="z")
    ingest(stored(tmp_path / "own.zarr", matrix()).path, tmp_path / "c.zarr", key="x")


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        ingest(tmp_path / "absent.csv", tmp_path / "out.zarr")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder: is a directory but not Zarr"):
        ingest(tmp_path / "folder", tmp_path / "out.zarr")
    assert listing(tmp_path) == {"folder"}


def test_reading_that_fails_in_the_middle(tmp_path, monkeypatch):
    write_csv(tmp_path / "x.csv", matrix(50))

    def failing(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("ibpdist.data.sources.csv.CsvTable._block", failing)
    with pytest.raises(InputError, match=r"x\.csv: cannot be read: Input/output error"):
        ingest(tmp_path / "x.csv", tmp_path / "out.zarr")
    assert listing(tmp_path) == {"x.csv"}


def test_a_line_without_end_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ibpdist.data.sources.lines.LINE_LIMIT", 1000)
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        file.write(b"1" * 100_000)
    with pytest.raises(InputError, match="line 1 is longer than"):
        ingest(tmp_path / "x.csv.gz", tmp_path / "out.zarr")


def test_damage_of_a_foreign_zarr_is_a_storage_error(tmp_path):
    from ibpdist.base.errors import StorageError

    zarr.create_array(tmp_path / "z.zarr", data=matrix(40), chunks=(10, 7))
    chunk = tmp_path / "z.zarr/c/2/0"
    chunk.write_bytes(chunk.read_bytes()[:20])
    with pytest.raises(StorageError, match=r"z\.zarr: rows 20 to 29 .*damaged or unreadable"):
        ingest(tmp_path / "z.zarr", tmp_path / "out.zarr", chunk_rows=10)
    (tmp_path / "z.zarr/zarr.json").write_text("{")
    with pytest.raises(StorageError, match=r"z\.zarr: is not readable as Zarr"):
        ingest(tmp_path / "z.zarr", tmp_path / "out.zarr")
    assert listing(tmp_path) == {"z.zarr"}


def test_absent_chunks_of_a_foreign_zarr_are_told(tmp_path):
    array = zarr.create_array(tmp_path / "z.zarr", shape=(40, 7), chunks=(10, 7), dtype="f8", fill_value=3)
    array[:10] = 1
    report = ingest(tmp_path / "z.zarr", tmp_path / "out.zarr")
    assert any("3 of 4 chunks are not on disk and are read as 3" in word for word in report.warnings)


def test_chunks_that_do_not_fit_memory_are_refused_before_reading(tmp_path):
    from ibpdist.base.errors import StorageError

    zarr.create_array(tmp_path / "z.zarr", shape=(10**12, 10**3), chunks=(10**7, 10**3), dtype="f8")
    with pytest.raises(StorageError, match=r"has chunks of 76293 MB, at most 1024 MB"):
        ingest(tmp_path / "z.zarr", tmp_path / "out.zarr")
