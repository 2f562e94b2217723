"""Text tables: every accepted form gives the same numbers, and the fast way gives those of the slow one."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ibpdist.base.errors import InputError
from ibpdist.data.sources import cells
from ibpdist.data.sources.csv import CsvTable
from tests.support.matrices import matrix, write_csv


def table(tmp_path, text, name="a.csv", **options):
    (tmp_path / name).write_bytes(text.encode())
    return CsvTable(tmp_path / name, **options)


def read(made, rows=100):
    return np.concatenate([block.x for block in made.blocks(rows)])


FORMS = {
    "plain": "1,2.5\n-3,4e2\n",
    "no last line end": "1,2.5\n-3,4e2",
    "CRLF": "1,2.5\r\n-3,4e2\r\n",
    "CR": "1,2.5\r-3,4e2\r",
    "byte order mark": "\ufeff1,2.5\n-3,4e2\n",
    "header": "a,b\n1,2.5\n-3,4e2\n",
    "quoted": '"1","2.5"\n"-3","4e2"\n',
    "quoted header": '"a","b, c"\n1,2.5\n-3,4e2\n',
    "spaces": " 1 , 2.5\n-3 ,  4e2 \n",
    "signs and points": "+1.,2.50\n-3,400.\n",
    "exponents": "1E0,.25e+1\n-3e-0,4E2\n",
    "blank lines at the end": "1,2.5\n-3,4e2\n\n \n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_numbers(tmp_path, form):
    assert read(table(tmp_path, FORMS[form])).tolist() == [[1, 2.5], [-3, 400]]


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "na", " ", '""', '"NA"', " NA "])
def test_missing_cells(tmp_path, word):
    x = read(table(tmp_path, f"1,{word},3\n{word},5,6\n7,8,{word}\n"))
    np.testing.assert_array_equal(x, [[1, np.nan, 3], [np.nan, 5, 6], [7, 8, np.nan]])


def test_rows_may_be_missing_whole(tmp_path):
    x = read(table(tmp_path, ",,\n1,2,3\nNA,NA,NA\n"))
    np.testing.assert_array_equal(x, [[np.nan] * 3, [1, 2, 3], [np.nan] * 3])


def test_a_single_column_may_have_empty_cells(tmp_path):
    np.testing.assert_array_equal(read(table(tmp_path, "1\n\n3\n")), [[1], [np.nan], [3]])


@settings(max_examples=200)
@given(st.lists(st.floats(allow_infinity=False, allow_nan=True), min_size=1, max_size=6))
@example([5e-324, 1.7976931348623157e308, -0.0])
@example([0.1, 2**53 - 1, 1e22, 1e23])
def test_numbers_are_read_to_the_last_bit(numbers):
    line = ",".join("NA" if math.isnan(v) else repr(v) for v in numbers)
    one_by_one = [cells.parse(cell, ",") for cell in line.split(",")]
    assert [problem for _, problem in one_by_one] == [""] * len(numbers)
    exact = np.array([value for value, _ in one_by_one])
    np.testing.assert_array_equal(exact, numbers)
    fast = cells.numbers([line, line], ",", None)
    if fast is not None:
        assert fast.tobytes() == np.array([exact, exact]).tobytes()
    assert fast is not None or any(abs(v) >= cells.EXACT for v in numbers)


@settings(max_examples=300)
@given(st.text("0123456789.,eE+-naNAif_x \"'", max_size=6))
def test_the_fast_way_accepts_nothing_that_the_exact_one_refuses(text):
    if '"' in text or text.isspace() or not text or "," in text:
        return
    fast = cells.numbers([text], ",", None)
    value, problem = cells.parse(text, ",")
    if fast is not None:
        assert problem == ""
        np.testing.assert_array_equal(fast, [[value]])


def test_blocks_are_bounded_and_in_order(tmp_path):
    x = matrix(1000, 3, missing=5)
    blocks = list(CsvTable(write_csv(tmp_path / "a.csv", x)).blocks(64))
    assert max(len(block.x) for block in blocks) == 64
    np.testing.assert_array_equal(np.concatenate([block.x for block in blocks]), x)


def test_a_table_can_be_read_twice(tmp_path):
    made = table(tmp_path, "1,2\n3,4\n")
    assert read(made).tolist() == read(made).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("a,b\n1,2\n", ["a", "b"], None),
        ("1,2\n3,4\n", None, None),
        (",a,b\nr,1,2\ns,3,4\n", ["a", "b"], ["r", "s"]),
        (",a\n0,1\n1,3\n", ["a"], ["0", "1"]),  # as pandas writes an index
        ("id,a\nr,1\ns,3\n", ["a"], ["r", "s"]),
        ("r,1\ns,3\n", None, ["r", "s"]),
        ("year,a\n2001,1\n2002,3\n", ["year", "a"], None),
        ('"","a b"\n"r, 1",1\n"s ""2""",3\n', ["a b"], ["r, 1", 's "2"']),
        ("a,NA\n1,2\n", ["a", "NA"], None),
    ],
)
def test_header_and_labels_are_found(tmp_path, text, columns, rows):
    made = table(tmp_path, text)
    found = made.column_coords().get("column")
    assert (None if found is None else found.tolist()) == columns
    labelled = [label for block in made.blocks(1) for label in block.row_coords.get("row", [])]
    assert (labelled or None) == rows


def test_what_was_assumed_is_told(tmp_path):
    assert any("using the first column as row labels" in note for note in table(tmp_path, "r,1\ns,3\n").notes)
    assert any("first line is taken as data" in note for note in table(tmp_path, "r,1\ns,3\n").notes)
    assert table(tmp_path, "a,b\n1,2\n").notes == []


def test_header_and_labels_can_be_given(tmp_path):
    numbered = table(tmp_path, "2001,2002\n1,2\n", header=True)
    assert numbered.column_coords()["column"].tolist() == ["2001", "2002"]
    assert read(numbered).tolist() == [[1, 2]]
    labelled = table(tmp_path, "a,k,b\n1,7,2\n3,8,4\n", label_column="k")
    assert read(labelled).tolist() == [[1, 2], [3, 4]]
    assert [b.row_coords["row"].tolist() for b in labelled.blocks(10)] == [["7", "8"]]
    for first in (0, "0"):
        assert read(table(tmp_path, "a,k,b\n1,7,2\n", label_column=first)).tolist() == [[7, 2]]
        assert read(table(tmp_path, "1,7,2\n", label_column=first)).tolist() == [[7, 2]]


def test_one_word_in_the_first_column_is_a_bad_cell_not_a_label(tmp_path):
    with pytest.raises(InputError, match="row 0, column 0: 'oops'"):
        read(table(tmp_path, "oops,2\n3,4\n"))


@pytest.mark.parametrize("delimiter", [";", "|", "\t", " "])
def test_other_delimiters_on_request(tmp_path, delimiter):
    x = matrix(5, missing=2)
    write_csv(tmp_path / "a.csv", x, delimiter=delimiter, header=list("abcdefg"))
    np.testing.assert_array_equal(read(CsvTable(tmp_path / "a.csv", delimiter=delimiter)), x)


def test_a_tab_may_be_written_as_messages_show_it(tmp_path):
    assert read(table(tmp_path, "a\tb\n1\t2\n", delimiter=r"\t")).tolist() == [[1, 2]]
    with pytest.raises(InputError, match=r"pass --delimiter '\\t'"):
        table(tmp_path, "a\tb\n1\t2\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('1,2\n"3,4\n', r"row 1: .*\(line 2; rows are counted from 0\)$"),
        ('a,b\n1,2\n"3,4\n', r"row 1: .*\(line 3; rows are counted from 0\)$"),
        ('a,b\n"x\ny",2\n', r"row 0: .*take line breaks out of cells.*\(line 2; rows are counted from 0\)$"),
        ('a,b\n1,2\n3,4\n5,6\n7,"8\n', r"row 3: .*\(line 5; rows are counted from 0\)$"),
        ('"a,b\n1,2\n', r"^a\.csv: '\"a,b': has quotes that do not match.*\(line 1\)$"),
        ('1,2\n"3"x,4\n', r"row 1: .*write a quote inside a cell twice"),
    ],
)
def test_bad_quotes_are_found_in_their_row_with_a_way_out(tmp_path, text, place):
    with pytest.raises(InputError, match=place):
        read(table(tmp_path, text))


def test_a_file_cut_short_names_the_last_line_that_was_read(tmp_path):
    write_csv(tmp_path / "x.csv.gz", matrix(9000, 3), header=list("abc"))
    whole = (tmp_path / "x.csv.gz").read_bytes()
    (tmp_path / "x.csv.gz").write_bytes(whole[: len(whole) // 2])
    left = zlib.decompressobj(31).decompress(whole[: len(whole) // 2]).count(b"\n")
    assert left > 1000
    with pytest.raises(InputError, match=f"cut short after line {left}:"):
        read(CsvTable(tmp_path / "x.csv.gz"))


def test_covariates_keep_their_first_type(tmp_path):
    made = table(tmp_path, "a,n,t\n1,2,x\n2,NA,3\n3,4,\n", covariates=["n", "t"])
    (block,) = made.blocks(10)
    np.testing.assert_array_equal(block.row_coords["n"], [2, np.nan, 4])
    assert block.row_coords["t"].tolist() == ["x", "3", ""]
    changing = table(tmp_path, "a,n\n1,2\n2,x\n", covariates=["n"])
    with pytest.raises(InputError, match="row 1, column n: 'x': is not a number"):
        list(changing.blocks(1))


def test_labels_have_a_bounded_length(tmp_path):
    made = table(tmp_path, "a,b\n" + "x" * 1000 + ",1\n" + "y" * 1001 + ",2\n")
    with pytest.raises(InputError, match=r"row 1: 'yyyy.*more than 1000 characters"):
        list(made.blocks(10))


def test_a_blank_line_between_blocks_is_found(tmp_path):
    with pytest.raises(InputError, match="is an empty line"):
        list(table(tmp_path, "1,2\n\n3,4\n").blocks(2))


@pytest.mark.parametrize(
    ("cell", "value"), [("1", 1), (" -2.5e3 ", -2500), ("", None), ("NA", None), ("nAn", None), ("+.5", 0.5)]
)
def test_cells(cell, value):
    parsed, problem = cells.parse(cell, ",")
    assert problem == ""
    assert math.isnan(parsed) if value is None else parsed == value


@pytest.mark.parametrize(
    "cell", ["-", ".", "e5", "1e", "1 2", "--1", "1.2.3", "nanx", "N/A", "null", "0b1", "½"]
)
def test_what_is_no_number_is_no_missing_cell_either(cell):
    _, problem = cells.parse(cell, ",")
    assert problem.startswith("is not a number")
