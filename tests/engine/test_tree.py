"""The order of a reduction is fixed: not by who did which part of it."""

import numpy as np
import pytest

from ibpdist.base.structs import Array, dims, struct
from ibpdist.engine._base import groups
from ibpdist.engine.tree import TreeSum


@struct("test-leaf", since=1)
class Leaf:
    total: Array = dims("column")
    low: Array = dims("column", reduce="min")
    rows: Array = dims("row", reduce="concat")


def leaves(count):
    """Values of very different sizes, so that every other order of adding has other bits."""
    rng = np.random.default_rng(count)
    values = rng.normal(size=(count, 40)) * 10.0 ** rng.integers(-12, 12, size=(count, 40))
    return [Leaf(value, value.copy(), np.array([i])) for i, value in enumerate(values)]


def reduced(values):
    total = TreeSum()
    for value in values:
        total.add(value)
    return total.value()


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("total", "low", "rows"))


@pytest.mark.parametrize("j", range(5))
def test_width_of_groups_does_not_change_the_bits(j):
    for count in range(1, 80):
        values = leaves(count)
        parts = [reduced(values[first:last]) for first, last in groups(count, 2**j)]
        assert same(reduced(parts), reduced(values)), (count, j)


@pytest.mark.parametrize("borders", [(), (5,), (22,), (1, 2, 3), (7, 19, 40), (16,), (0, 90), (11, 11)])
def test_borders_between_groups_do_not_change_the_bits(borders):
    for count in range(1, 80):
        values = leaves(count)
        for j in range(5):
            parts, total = groups(count, 2**j, borders), TreeSum()
            for first, last in parts:
                total.add(reduced(values[first:last]), last - first)
            assert same(total.value(), reduced(values)), (count, j, parts)


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 12, 37, 64, 79])
def test_blocks_come_in_any_order(count):
    rng, values = np.random.default_rng(count), leaves(count)
    for j in range(5):
        parts, total = groups(count, 2**j, (count // 3,)), TreeSum()
        for place in rng.permutation(len(parts)):
            first, last = parts[place]
            total.add(reduced(values[first:last]), last - first, at=first)
        assert same(total.value(), reduced(values)), (count, j)


@pytest.mark.parametrize("blocks", [[(0, 2), (4, 2)], [(2, 2)], [(0, 4), (2, 2)], [(4, 3), (0, 4), (0, 1)]])
def test_blocks_that_are_missing_or_twice_there_are_refused(blocks):
    total, values = TreeSum(), leaves(8)
    for first, size in blocks:
        total.add(values[first], size, at=first)
    with pytest.raises(ValueError, match="are missing, or were added twice"):
        total.value()


@pytest.mark.parametrize("sizes", [(1, 2), (2, 4), (4, 1, 2), (3, 1), (3, 4), (1, 3)])
def test_blocks_that_are_not_aligned_are_refused(sizes):
    total, values = TreeSum(), leaves(8)
    for size in sizes[:-1]:
        total.add(values[0], size)
    with pytest.raises(
        ValueError, match=f"{sizes[-1]} values from {sum(sizes[:-1])} on are not an aligned block"
    ):
        total.add(values[1], sizes[-1])


def test_order_of_adding_would_matter():
    differ = 0
    for count in range(3, 40):
        values = leaves(count)
        plain = values[0].total
        for value in values[1:]:
            plain = plain + value.total
        differ += not np.array_equal(plain, reduced(values).total)
    assert differ > 30


def test_groups_that_are_not_aligned_change_the_bits():
    differ = 0
    for count in range(7, 40):
        values = leaves(count)
        parts = [reduced(values[first : first + 3]) for first in range(0, count, 3)]
        differ += not np.array_equal(reduced(parts).total, reduced(values).total)
    assert differ > 25


def test_rows_keep_their_order():
    assert reduced(leaves(37)).rows.tolist() == list(range(37))


def test_minimum_is_reduced_too():
    values = leaves(11)
    assert np.array_equal(reduced(values).low, np.min([v.low for v in values], axis=0))


def test_one_value_is_itself():
    (value,) = leaves(1)
    assert reduced([value]) is value


def test_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing"):
        TreeSum().value()


def test_value_can_be_asked_for_twice_and_in_between():
    total, values = TreeSum(), leaves(6)
    for at, value in enumerate(values):
        total.add(value)
        assert same(total.value(), reduced(values[: at + 1]))
        assert same(total.value(), total.value())


def test_groups_cover_all_chunks_once():
    for count in range(1, 40):
        for j in range(4):
            parts = groups(count, 2**j)
            assert [c for first, last in parts for c in range(first, last)] == list(range(count))
            assert all(first % 2**j == 0 for first, _ in parts)


@pytest.mark.parametrize("borders", [(5,), (22, 30), (1, 2, 3), (7, 19, 40)])
def test_no_group_has_a_border_inside(borders):
    for count in range(1, 60):
        for j in range(6):
            parts = groups(count, 2**j, borders)
            assert [c for first, last in parts for c in range(first, last)] == list(range(count))
            assert not any(first < border < last for first, last in parts for border in borders)
            for first, last in parts[:-1]:
                size = last - first
                assert size & (size - 1) == 0
                assert first % size == 0
                assert size <= 2**j
            fewest = -(-count // 2**j)
            assert len(parts) <= fewest + 2 * j * len(borders)


def test_values_that_are_given_away_give_the_same_bits():
    values, others = leaves(37), leaves(37)
    total = TreeSum()
    for at, value in enumerate(values):
        total.add(value, own=at % 3 > 0)
    assert same(total.value(), reduced(others))
    kept = zip(values[::3], others[::3], strict=True)
    assert all(np.array_equal(value.total, other.total) for value, other in kept), "only those are used"
    assert not np.array_equal(values[2].total, others[2].total), "the sum of two was made in the left one"


def test_values_that_are_added_are_left_alone():
    values = leaves(37)
    before = [value.total.copy() for value in values]
    total, given = TreeSum(), []
    for value in values:
        total.add(value)
        given.append((total.value(), total.value().total.copy()))
    assert all(np.array_equal(value.total, then) for value, then in zip(values, before, strict=True))
    assert all(np.array_equal(value.total, then) for value, then in given), "what was given away stays"
    assert same(total.value(), reduced(values))
