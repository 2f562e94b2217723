"""Owners are a hint: stable, contiguous, never a worker that is not there."""

import pytest

from ibpdist.engine.owners import Owners, refit, width_for


def shares(owners, chunks, alive):
    return [owners.of(chunk, alive) for chunk in range(chunks)]


def test_contiguous_and_even():
    owners = Owners(10)
    owners.refresh(["a", "b"])
    assert shares(owners, 10, ["a", "b"]) == ["a"] * 5 + ["b"] * 5


def test_the_last_shares_have_one_more():
    """The last chunk may have few rows."""
    owners = Owners(13)
    owners.refresh(["a", "b"])
    assert shares(owners, 13, ["a", "b"]) == ["a"] * 6 + ["b"] * 7


def test_a_newcomer_takes_the_share_of_the_dead():
    owners = Owners(12)
    owners.refresh(["a", "b", "c"])
    before = shares(owners, 12, ["a", "b", "c"])
    owners.refresh(["a", "c", "d"])
    after = shares(owners, 12, ["a", "c", "d"])
    assert after == [{"b": "d"}.get(one, one) for one in before]


def test_while_nobody_replaces_the_dead_the_others_share_its_chunks():
    owners = Owners(12)
    owners.refresh(["a", "b", "c"])
    owners.refresh(["a", "c"])
    found = shares(owners, 12, ["a", "c"])
    assert set(found) == {"a", "c"}
    assert found[:4] == ["a"] * 4
    assert found[8:] == ["c"] * 4
    assert set(found[4:8]) == {"a", "c"}


def test_more_workers_than_before_share_anew():
    owners = Owners(12)
    owners.refresh(["a"])
    owners.refresh(["a", "b"])
    assert shares(owners, 12, ["a", "b"]) == ["a"] * 6 + ["b"] * 6


def test_more_workers_than_chunks():
    owners = Owners(2)
    owners.refresh(list("abcd"))
    assert len(set(shares(owners, 2, list("abcd")))) == 2


@pytest.mark.parametrize("workers", range(1, 9))
@pytest.mark.parametrize("chunks", [1, 2, 5, 13, 64, 245])
def test_borders_are_where_the_owner_changes(chunks, workers):
    alive = [str(number) for number in range(workers)]
    owners = Owners(chunks)
    owners.refresh(alive)
    owner = shares(owners, chunks, alive)
    changes = [chunk for chunk in range(1, chunks) if owner[chunk] != owner[chunk - 1]]
    assert [border for border in sorted(set(owners.borders())) if border > 0] == changes


def test_nobody_owns_nothing():
    owners = Owners(3)
    assert owners.of(0, []) is None
    owners.refresh(["a"])
    assert owners.of(0, []) is None


@pytest.mark.parametrize(
    ("chunks", "workers", "width"),
    [(64, 2, 8), (63, 2, 8), (57, 2, 8), (56, 2, 4), (7, 2, 1), (1, 8, 1), (256, 1, 64)],
)
def test_width_leaves_four_groups_a_worker(chunks, workers, width):
    assert width_for(chunks, workers) == width
    assert width == 1 or -(-chunks // width) >= 4 * workers


def test_width_grows_while_tasks_are_short_and_all_have_work():
    assert refit(4, 64, 2, 0.01) == 8
    assert refit(32, 64, 2, 0.01) == 32, "two workers need two groups"
    assert refit(4, 64, 2, 0.5) == 4
    assert refit(4, 64, 2, 3.0) == 2
    assert refit(1, 64, 2, 30.0) == 1
