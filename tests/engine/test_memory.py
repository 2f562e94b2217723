"""Memory is planned before it is used: cache first, then row state to files, then a refusal that helps."""

import re

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.engine import memory
from ibpdist.engine.memory import available, plan
from tests.support.sizes import Sizes

MB = 1 << 20


BIG = Sizes(4_000_000, 256, 16_384)


def test_plenty():
    made = plan(BIG, 40, 2, 64 << 30)
    assert made.chunks == 3 * 16 * MB
    assert made.state == 4_000_000 * 40 * 4 // 2
    assert not made.spill
    assert made.cache == 4_000_000 * 256 * 4 // 2, "all of the data of a process, no more"


def test_short_of_memory_the_cache_goes_first():
    made = plan(BIG, 40, 2, 1200 * MB)
    assert not made.spill
    assert made.cache < 200 * MB
    used = made.base + made.chunks + made.sums + made.state + made.cache
    assert used <= 0.6 * made.limit


def test_shorter_still_row_state_goes_to_files():
    made = plan(BIG, 40, 2, 1000 * MB)
    assert made.spill
    assert made.base + made.chunks + made.sums + made.cache <= 0.6 * made.limit


def test_too_short_names_the_chunk_that_fits():
    with pytest.raises(
        UsageError, match=r"needs 305 MB but may use 60% of 450 MB; .* at most ([\d,]+) rows"
    ) as caught:
        plan(BIG, 40, 2, 450 * MB)
    rows = int(re.search(r"at most ([\d,]+) rows", str(caught.value))[1].replace(",", ""))
    smaller = Sizes(BIG.rows, BIG.columns, rows)
    assert plan(smaller, 40, 2, 450 * MB).spill
    with pytest.raises(UsageError):
        plan(Sizes(BIG.rows, BIG.columns, rows + 100), 40, 2, 450 * MB)


def test_no_chunk_fits():
    with pytest.raises(UsageError, match="use fewer processes or fewer features"):
        plan(BIG, 40, 2, 300 * MB)


def test_a_task_has_no_more_chunks_than_there_is_room_for_sums():
    """Sums of many columns and features are as large as chunks."""
    wide = Sizes(4096, 50_000, 64)
    made = plan(wide, 100, 2, 4_000_000_000, cache=0)
    assert made.result == 8 * 100 * 50_100
    assert made.width == memory.WIDEST
    assert made.sums == (11 + memory.HELD) * made.result
    short = plan(wide, 100, 2, 1_000_000_000, cache=0)
    assert short.width == 4
    assert short.sums == (3 + memory.HELD) * short.result
    assert plan(wide, 30, 2, 1_000_000_000, cache=0).width == memory.WIDEST


def test_a_cache_that_was_asked_for_is_a_limit():
    assert plan(BIG, 40, 2, 64 << 30, cache=0).cache == 0
    assert plan(BIG, 40, 2, 64 << 30, cache=5 * MB).cache == 5 * MB
    assert plan(BIG, 40, 2, 1200 * MB, cache=1 << 40).cache < 200 * MB


def test_batches_hold_state_for_each_fit():
    assert plan(BIG, 40, 2, 64 << 30, fits=3).state == 3 * plan(BIG, 40, 2, 64 << 30).state


def test_row_state_counts_all_that_a_row_keeps():
    made = plan(BIG, 40, 2, 64 << 30, entries=4)
    assert made.state == 4 * plan(BIG, 40, 2, 64 << 30).state
    assert made.cache == plan(BIG, 40, 2, 64 << 30).cache, "there is room for both"


def test_row_state_has_the_precision_of_the_data():
    double = Sizes(BIG.rows, BIG.columns, BIG.height, np.float64)
    assert plan(double, 40, 2, 64 << 30).state == 2 * plan(BIG, 40, 2, 64 << 30).state


def test_a_second_row_state_goes_to_files_where_one_would_fit():
    one, two = (plan(BIG, 40, 2, 1200 * MB, cache=0, entries=entries) for entries in (1, 2))
    assert (one.spill, two.spill) == (False, True)
    assert "row state 610.4 MB in files" in str(two)
    used = two.base + two.chunks + two.sums + two.cache
    assert used <= 0.6 * two.limit, "what is refused is refused before row state is looked at"


def test_rows_that_a_start_holds_go_before_the_cache():
    few, many = plan(BIG, 40, 2, 1200 * MB), plan(BIG, 40, 2, 1200 * MB, held=50_000)
    assert (few.start, many.start) == (0, 50_000 * 256 * 5)
    assert "start 61 MB" in str(many)
    assert few.cache - many.cache == many.start
    assert plan(BIG, 40, 2, 64 << 30, held=9_000_000).start == 4_000_000 * 256 * 5, "there are no more rows"
    assert plan(BIG, 40, 2, 64 << 30, fits=3, held=1000).start == 3 * 1000 * 256 * 5


def test_in_words():
    said = str(plan(BIG, 40, 2, 1000 * MB))
    assert "row state 305.2 MB in files" in said
    assert "chunks 48 MB" in said


def test_available_is_shared_and_bounded_by_the_container(tmp_path, monkeypatch):
    whole = available(1)
    assert available(4) == whole // 4
    limit = tmp_path / "memory.max"
    limit.write_text("1073741824\n")
    monkeypatch.setattr(memory, "CGROUP", limit)
    assert available(2) == 512 * MB
    limit.write_text("max\n")
    assert available(1) > 512 * MB
