"""What is accepted as numbers, what is refused, and where it is said to be."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.check import LIMITS, checked, refuse_shape, result_dtype

F32, F64 = np.dtype("float32"), np.dtype("float64")


@pytest.mark.parametrize(
    ("kinds", "made"),
    [
        ("bool int8 uint8 int16 uint16 float16 float32 >f4 >i2", F32),
        ("int32 uint32 int64 uint64 float64 longdouble >f8", F64),
    ],
)
def test_the_type_follows_from_the_source(kinds, made):
    for kind in kinds.split():
        assert result_dtype(np.dtype(kind)) == made
        assert result_dtype(np.dtype(kind), "float64") == F64
    with pytest.raises(UsageError, match="dtype is 'int8': expected auto, float32 or float64"):
        result_dtype(F64, "int8")


@pytest.mark.parametrize(
    "kind", ["bool", "int8", "uint8", "int16", "uint16", "float16", "float32", ">f4", ">i2"]
)
def test_small_types_lose_nothing(kind):
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        x = np.linspace(-3, 3, 12).astype(dtype).reshape(4, 3)
    elif dtype.kind == "b":
        x = np.arange(12).reshape(4, 3) % 2 == 0
    else:
        x = np.linspace(np.iinfo(dtype).min, np.iinfo(dtype).max, 12).astype(dtype).reshape(4, 3)
    made = checked(x, F32)
    assert made.dtype == F32
    assert made.dtype.isnative
    assert made.tolist() == x.tolist()


def test_nothing_is_copied_that_is_right_already():
    x = np.ones((4, 3))
    assert np.shares_memory(checked(x, F64), x)
    assert not np.shares_memory(checked(x, F32), x)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(4, 3)),
        np.arange(24.0).reshape(4, 6)[:, ::2],
        np.arange(12.0).reshape(4, 3).astype(">f8"),
        np.arange(12.0)[::-1].reshape(4, 3),
    ],
)
def test_layout_in_memory_does_not_matter(array):
    made = checked(array, F64)
    assert made.flags.c_contiguous
    assert made.tobytes() == np.array(array.tolist()).tobytes()


def test_every_nan_becomes_the_same_nan():
    odd = np.array([[0x7FF8000000000001, 0xFFF8000000000000]], dtype=np.uint64).view(np.float64)
    assert checked(odd, F64).tobytes() == np.full((1, 2), np.nan).tobytes()
    assert np.isnan(odd).all()
    assert odd.tobytes() != np.full((1, 2), np.nan).tobytes()  # the input is left as it was


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.ones((2, 2), complex), "complex numbers"),
        (np.array([["a", "b"]]), "text"),
        (np.array([[b"a", b"b"]]), "bytes"),
        (np.array([[1, None]], dtype=object), "Python objects"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "dates"),
        (np.array([[1]], dtype="timedelta64[s]"), "time differences"),
        (np.zeros((1, 1), dtype=[("a", "f8")]), "records"),
    ],
)
def test_other_kinds_are_refused_by_name(values, words):
    with pytest.raises(InputError, match=rf"a\.npy: holds {words} \(dtype ") as caught:
        checked(values, F64, file="a.npy")
    assert caught.value.code == 3
    assert caught.value.kind == "dtype"


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((), "0 dimensions"),
        ((3,), "1 dim"),
        ((2, 2, 2), "3 dim"),
        ((0, 3), "no rows"),
        ((3, 0), "no columns"),
    ],
)
def test_shapes_that_are_no_matrix(shape, said):
    with pytest.raises(InputError, match=said):
        refuse_shape(shape, file="a.npy")


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_infinite_cells_are_named_and_counted(value, dtype):
    x = np.zeros((5, 3))
    x[2, 1] = x[3, 0] = x[4, 2] = value
    x[0, 0] = np.nan
    with pytest.raises(InputError, match=r"is infinite.*\(and 2 more in this block of rows\)") as caught:
        checked(x, dtype, start=100, file="a.npy", columns=["u", "v", "w"])
    error = caught.value
    assert (error.file, error.row, error.column, error.value) == ("a.npy", 102, "v", str(value))
    assert str(error).startswith(f"a.npy: row 102, column v: '{value}': ")


@pytest.mark.parametrize(("dtype", "value"), [(F32, 1e18), (F32, -1e30), (F64, 1e60), (F64, -1e300)])
def test_squares_that_overflow_are_refused(dtype, value):
    x = np.array([[1.0, np.nan], [2.0, value]])
    with pytest.raises(InputError, match=r"row 1, column 1: .*overflow.*rescale") as caught:
        checked(x, dtype)
    assert caught.value.kind == "overflow"
    assert ("float64" in str(caught.value)) == (dtype == F32) or dtype == F64


def test_values_beyond_the_type_are_refused_not_made_infinite():
    with pytest.raises(InputError, match="store them as float64"):
        checked(np.array([[1e39]]), F32)
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        with pytest.raises(InputError, match="overflow in float64"):
            checked(np.array([[np.longdouble("1e400")]]), F64)


def test_large_but_usable_values_are_accepted():
    for dtype, value in ((F32, 9e17), (F64, 9e59), (F64, 1e30)):
        assert checked(np.array([[value, 1e-300, 0]]), dtype)[0, 0] == dtype.type(value)


@pytest.mark.parametrize("value", [2**53 + 1, 2**60, 2**63 - 1, -(2**53) - 1, -(2**63)])
def test_integers_that_no_float_holds(value):
    x = np.array([[1, 2], [3, value]], dtype=np.int64)
    with pytest.raises(InputError, match=rf"row 1, column 1: '{value}': is an integer beyond 2\^53"):
        checked(x, F64)
    assert checked(np.array([[2**53, -(2**53)]]), F64).tolist() == [[2.0**53, -(2.0**53)]]


def test_unsigned_integers_that_no_float_holds():
    with pytest.raises(InputError, match="is an integer beyond"):
        checked(np.array([[2**64 - 1]], dtype=np.uint64), F64)


@given(
    arrays.arrays(
        st.sampled_from(["f2", "f4", "f8", ">f8", "i1", "u2", "i8", "u8", "?"]),
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=5),
    ),
    st.sampled_from([F32, F64]),
)
def test_anything_gives_finite_values_or_an_input_error(x, dtype):
    made = None
    with contextlib.suppress(InputError):
        made = checked(x, dtype)
    if made is None:
        with np.errstate(invalid="ignore"):
            assert (np.abs(x.astype(float)) > min(LIMITS[dtype.name], 2**53) * (1 - 1e-9)).any()
        return
    assert made.dtype == dtype
    seen = ~np.isnan(made)
    assert (np.abs(made[seen]) < LIMITS[dtype.name]).all()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(seen, ~np.isnan(x.astype(float)))
