"""Subsamples of the rows: complementary pairs, whatever the chunks."""

import numpy as np
import pytest

from ibpdist.data.arrays import ArrayData
from ibpdist.data.subsample import Subsample


def source(rows=500, chunk=64):
    x = np.random.default_rng(0).normal(size=(rows, 3))
    return ArrayData(x, chunk)


def numbers(part):
    """Numbers in the whole of all rows of a subsample."""
    return np.concatenate([part.origin(index) for index in range(part.chunks)])


def values(part):
    return np.concatenate([part.read(index).x for index in range(part.chunks)])


def test_halves_come_in_pairs_without_a_common_row():
    whole = source()
    one, other, third = (numbers(Subsample(3, member).of(whole)) for member in range(3))
    assert sorted([*one, *other]) == list(range(500))
    assert 200 < len(one) < 300
    assert 0.3 < np.isin(third, one).mean() < 0.7


@pytest.mark.parametrize("chunk", [1, 7, 500])
def test_chunks_change_nothing(chunk):
    part, wanted = Subsample(5, 1).of(source(chunk=chunk)), Subsample(5, 1).of(source())
    np.testing.assert_array_equal(numbers(part), numbers(wanted))
    np.testing.assert_array_equal(values(part), values(wanted))


def test_later_rows_change_nothing_for_earlier_ones():
    few, many = numbers(Subsample(5, 2).of(source(300))), numbers(Subsample(5, 2).of(source(500)))
    np.testing.assert_array_equal(few, many[many < 300])


def test_other_shares_are_drawn_by_member():
    whole = source(4000, 512)
    parts = [set(numbers(Subsample(0, member, 0.9).of(whole))) for member in range(3)]
    assert all(3500 < len(part) < 3700 for part in parts)
    left = [set(range(4000)) - part for part in parts]
    assert all(len(a & b) < 100 for a, b in [(left[0], left[1]), (left[1], left[2])])


def test_rows_keep_their_values_and_are_counted():
    whole, member = source(), Subsample(1, 0)
    part = member.of(whole)
    everything = np.concatenate([whole.read(index).x for index in range(whole.chunks)])
    np.testing.assert_array_equal(values(part), everything[numbers(part)])
    assert member.rows(whole) == part.rows == len(numbers(part))


def test_members_seeds_and_shares_have_other_fingerprints():
    whole = source()
    parts = [Subsample(1, 0), Subsample(1, 1), Subsample(2, 0), Subsample(1, 0, 0.9)]
    assert len({part.of(whole).fingerprint for part in parts}) == 4
