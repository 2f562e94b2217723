"""Frozen records: shapes, reduction, taking apart and putting together."""

import dataclasses
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibpdist
from ibpdist.base.stored_kinds import HOMES, TAG_OF_CLASS
from ibpdist.base.structs import (
    Array,
    UnreadableRecord,
    arrays_of,
    combine,
    dims,
    pack,
    parts,
    replace,
    struct,
    top,
    unpack,
)
from tests.support.compare import assert_same_record

PACKAGE = Path(ibpdist.__file__).parent


@struct("test-inner", since=1)
class Inner:
    total: Array = dims("column")


@struct("test-record", since=2)
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
    assert_same_record(combine(combine(a, b), c), combine(a, combine(b, c)))


@struct
class Kept:
    value: Array = dims("kept", reduce="top", along="kept", by="value")
    cells: Array = dims("column kept", reduce="top", along="kept", by="value")


def kept(values, first=0, most=3):
    """The largest of these values with their numbers, filled up."""
    found = top(np.array(values, float), most)
    short = most - len(found)
    value = np.pad(np.array(values, float)[found], (0, short), constant_values=-np.inf)
    return Kept(value, np.pad(first + found, (0, short), constant_values=-1)[None, :])


def test_top_keeps_the_largest_and_of_equal_ones_the_earlier():
    both = combine(kept([1, 5, 2]), kept([5, 2, 0, 9], first=3))
    assert both.value.tolist() == [9, 5, 5]
    assert both.cells.tolist() == [[6, 1, 3]]
    few = combine(kept([4]), kept([4], first=1))
    assert few.value.tolist() == [4, 4, -np.inf]
    assert few.cells.tolist() == [[0, 1, -1]]
    assert combine(kept([1, 2], most=0), kept([3], most=0)).cells.shape == (1, 0)


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=3, max_size=3))
def test_top_is_associative(values):
    starts = np.cumsum([0, *map(len, values)])
    a, b, c = (kept(v, int(first)) for v, first in zip(values, starts, strict=False))
    whole = kept([v for each in values for v in each])
    for found in (combine(combine(a, b), c), combine(a, combine(b, c))):
        assert arrays_equal(found, whole)


def arrays_equal(one, two):
    other = arrays_of(two)
    return all(np.array_equal(a, other[name]) for name, a in arrays_of(one).items())


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
    assert_same_record(unpack(outline, arrays), record)


def test_replace_makes_another_record():
    a = made(1)
    b = replace(a, rows=np.asarray(9))
    assert (int(a.rows), int(b.rows)) == (1, 9)
    assert b.yx is a.yx


def test_a_tag_stands_for_one_record_only():
    """Otherwise a second record with that tag would be read as the first."""
    other = type("Other", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match="the tag test-inner belongs to Inner in"):
        struct("test-inner", since=1)(other)


def test_a_record_without_a_tag_is_not_stored():
    @struct
    class Untagged:
        total: Array = dims("column")

    with pytest.raises(TypeError, match="Untagged cannot be stored: it has no tag"):
        pack(Untagged([1.0]))
    assert arrays_of(Untagged([1.0]))["total"].tolist() == [1.0]


def test_the_outline_names_no_class_and_no_module():
    outline, _ = pack(made(1))
    inner = {"tag": "test-inner", "since": 1, "records": {}}
    assert outline == {"tag": "test-record", "since": 2, "records": {"inner": inner}}


@struct("test-younger", since=1)
class Younger:
    yx: Array = dims("feature column")
    weight: Array = dims("feature", default=1.0)
    rows: Array = dims()


def test_a_field_that_is_missing_takes_its_default():
    outline, arrays = pack(Younger(np.zeros((2, 3)), np.zeros(2), 5))
    del arrays["weight"]
    assert unpack(outline, arrays).weight.tolist() == [1.0, 1.0]


def test_a_field_that_is_missing_without_a_default_is_named():
    outline, arrays = pack(Younger(np.zeros((2, 3)), np.zeros(2), 5))
    del arrays["rows"]
    with pytest.raises(UnreadableRecord, match="'test-younger' without 'rows', which this version needs"):
        unpack(outline, arrays)


def test_a_field_of_another_version_is_left_out_with_a_note():
    outline, arrays = pack(made(3))
    with pytest.warns(UserWarning, match="ignoring later of test-record"):
        assert_same_record(unpack(outline, {**arrays, "later": np.ones(2)}), made(3))


def test_a_field_of_another_version_that_says_nothing_needs_no_note():
    outline, arrays = pack(made(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_record(unpack(outline, {**arrays, "latent": np.zeros(())}), made(3))


def test_an_unknown_tag_and_a_newer_layout_are_refused():
    outline, arrays = pack(made(3))
    with pytest.raises(UnreadableRecord, match="kind 'never-made', which this version does not know"):
        unpack({**outline, "tag": "never-made"}, arrays)
    with pytest.raises(UnreadableRecord, match="'test-record' of a newer version: update ibpdist"):
        unpack({**outline, "since": 3}, arrays)


def test_the_first_format_named_the_class():
    arrays = {"on": np.ones(2), "rows": np.asarray(4.0)}
    with pytest.raises(UnreadableRecord, match="kind 'Elsewhere'"):
        unpack({"kind": "Elsewhere", "module": "ibpdist.nowhere", "records": {}}, arrays)
    found = unpack({"kind": "Nothing", "module": "ibpdist.gone", "records": {}}, {})
    assert type(found).__name__ == "Nothing"


FIND = """
import os, sys
import numba, scipy.special  # what takes long to import and is not ours
from ibpdist.base.structs import _kind
ours = [name for name in sys.modules if name.startswith("ibpdist.")]
assert all(name.startswith("ibpdist.base") for name in ours), ours
for tag in sys.argv[1:]:
    child = os.fork()
    if not child:
        print(tag, _kind({"tag": tag})[0].__module__, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def found_at():
    """Where each tag is found by a process of its own that has imported no module with records."""
    told = subprocess.run(
        [sys.executable, "-c", FIND, *HOMES], capture_output=True, text=True, check=True, timeout=120
    )
    return dict(line.split() for line in told.stdout.splitlines())


@pytest.mark.parametrize("tag", HOMES)
def test_every_tag_is_at_home(tag, found_at):
    """A record is found by its tag without its module having been imported before."""
    assert found_at.get(tag) == HOMES[tag]


def test_every_stored_record_has_a_home():
    """Tags and homes are the same set, and no tag of the first format was lost."""
    text = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    tags = set(re.findall(r'^@struct\("([a-z-]+)", since=\d+\)', text, re.MULTILINE))
    assert tags == set(HOMES)
    assert set(TAG_OF_CLASS.values()) <= tags


@struct("test-several", since=1)
class Several:
    each: tuple = parts()
    ends: tuple = parts("join")
    rows: Array = dims()


def several(seed):
    return Several((made(seed), Inner([seed, 1])), (Inner([seed]),), rows=np.asarray(seed))


def test_parts_are_reduced_one_by_one_or_joined():
    both = combine(several(1), several(2))
    assert_same_record(both.each[0], combine(made(1), made(2)))
    assert both.each[1].total.tolist() == [3, 2]
    assert [one.total.tolist() for one in both.ends] == [[1], [2]]
    assert both.rows == 3


def test_parts_must_be_as_many_to_be_reduced():
    with pytest.raises(ValueError, match="zip"):
        combine(several(1), replace(several(2), each=(made(2),)))


def test_parts_are_packed():
    outline, arrays = pack(several(4))
    found = unpack(json.loads(json.dumps(outline)), arrays)
    assert_same_record(found, several(4))
    assert len(found.each) == 2
    assert_same_record(unpack(*pack(replace(several(4), each=()))), replace(several(4), each=()))


def test_sums_of_parts_can_be_made_in_place():
    a, b = several(1), several(2)
    expected = combine(several(1), several(2))
    assert_same_record(combine(a, b, reuse=True), expected)
