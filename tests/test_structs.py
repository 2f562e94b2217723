"""Frozen records: shapes, reduction, taking apart and putting together."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.structs import Array, combine, dims, dims_of, is_struct, pack, parts, replace, struct, unpack


@struct
class Inner:
    total: Array = dims("column")


@struct
class Record:
    yx: Array = dims("feature column")
    gram: Array = dims("feature feature_")
    least: Array = dims("feature", reduce="min")
    born: Array = dims("newborn column", reduce="concat", along="newborn")
    ids: Array = dims("feature", reduce="same")
    inner: Inner
    rows: Array = dims()


def made(seed, born=1, features=2, columns=3):
    rng = np.random.default_rng(seed)
    return Record(
        yx=rng.integers(-9, 9, (features, columns)),
        gram=rng.integers(-9, 9, (features, features)),
        least=rng.integers(-9, 9, features),
        born=rng.integers(-9, 9, (born, columns)),
        ids=np.arange(features),
        inner=Inner(rng.integers(-9, 9, columns)),
        rows=np.asarray(seed),
    )


def same(a, b):
    """Every array equal in value, shape and dtype."""
    (outline, one), (other, two) = pack(a), pack(b)
    assert outline == other
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
        assert one[name].dtype == two[name].dtype


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(1).rows = 3


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"yx has shape \(2,\), expected dims \('feature', 'column'\)"):
        replace(made(1), yx=np.zeros(2))
    with pytest.raises(ValueError, match=r"least: feature is 3, but 2 in yx"):
        replace(made(1), least=np.zeros(3))


def test_an_axis_over_the_same_dim_has_its_size():
    with pytest.raises(ValueError, match="gram: feature_ is 4, but 2 in yx"):
        replace(made(1), gram=np.zeros((2, 4)))


def test_plain_values_become_arrays():
    assert isinstance(Inner([1, 2]).total, np.ndarray)
    assert replace(made(1), rows=3.5).rows.shape == ()


def test_dims_of():
    assert dims_of(made(1)) == {
        "yx": ("feature", "column"),
        "gram": ("feature", "feature_"),
        "least": ("feature",),
        "born": ("newborn", "column"),
        "ids": ("feature",),
        "rows": (),
    }


def test_is_struct():
    assert is_struct(made(1))
    assert not is_struct(np.zeros(2))
    assert not is_struct({"yx": 1})


def test_combine_reduces_each_field_its_way():
    a, b = made(1, born=2), made(2, born=3)
    both = combine(a, b)
    np.testing.assert_array_equal(both.yx, a.yx + b.yx)
    np.testing.assert_array_equal(both.gram, a.gram + b.gram)
    np.testing.assert_array_equal(both.least, np.minimum(a.least, b.least))
    np.testing.assert_array_equal(both.born, np.concatenate([a.born, b.born]))
    np.testing.assert_array_equal(both.ids, a.ids)
    np.testing.assert_array_equal(both.inner.total, a.inner.total + b.inner.total)
    assert both.rows == 3


def test_combine_keeps_its_arguments():
    a, b = made(1), made(2)
    before = pack(a)[1]["yx"].copy()
    combine(a, b)
    np.testing.assert_array_equal(a.yx, before)


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_combine_is_associative(seeds):
    a, b, c = (made(seed) for seed in seeds)
    same(combine(combine(a, b), c), combine(a, combine(b, c)))


def test_concat_knows_its_axis():
    @struct
    class Wide:
        z: Array = dims("feature row", reduce="concat")

    both = combine(Wide(np.zeros((2, 3))), Wide(np.ones((2, 1))))
    assert both.z.tolist() == [[0, 0, 0, 1]] * 2


def test_pack_and_unpack():
    record = made(3)
    outline, arrays = pack(record)
    assert outline == json.loads(json.dumps(outline))
    assert set(arrays) == {"yx", "gram", "least", "born", "ids", "rows", "inner.total"}
    same(unpack(outline, arrays), record)


def test_replace_makes_another_record():
    a = made(1)
    b = replace(a, rows=np.asarray(9))
    assert (int(a.rows), int(b.rows)) == (1, 9)
    assert b.yx is a.yx


def test_a_name_stands_for_one_record_only():
    """Stored records name their kind, so a second kind of that name would be read as the first."""
    other = type("Inner", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match="there is a record Inner in"):
        struct(other)


@struct
class Several:
    each: tuple = parts()
    ends: tuple = parts("join")
    rows: Array = dims()


def several(seed):
    return Several((made(seed), Inner([seed, 1])), (Inner([seed]),), rows=np.asarray(seed))


def test_parts_are_reduced_one_by_one_or_joined():
    both = combine(several(1), several(2))
    same(both.each[0], combine(made(1), made(2)))
    assert both.each[1].total.tolist() == [3, 2]
    assert [one.total.tolist() for one in both.ends] == [[1], [2]]
    assert both.rows == 3


def test_parts_must_be_as_many_to_be_reduced():
    with pytest.raises(ValueError, match="zip"):
        combine(several(1), replace(several(2), each=(made(2),)))


def test_parts_are_packed():
    outline, arrays = pack(several(4))
    found = unpack(json.loads(json.dumps(outline)), arrays)
    same(found, several(4))
    assert len(found.each) == 2
    same(unpack(*pack(replace(several(4), each=()))), replace(several(4), each=()))


def test_sums_of_parts_can_be_made_in_place():
    a, b = several(1), several(2)
    expected = combine(several(1), several(2))
    same(combine(a, b, reuse=True), expected)
