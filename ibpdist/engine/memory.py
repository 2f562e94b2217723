"""Memory of a process before it is used: what is needed, what is left for a cache, or a refusal."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ibpdist.base.errors import UsageError
from ibpdist.base.words import size
from ibpdist.data._base import Source
from ibpdist.data.dense_rows import by_entries
from ibpdist.data.sizes import chunk_bytes, data_bytes

BASE = 256 << 20
CHUNKS = 3
HELD = 3
"""Times that a process holds parameters, and sums that are on their way, beside those of a task."""
PARTIAL = 0.15
"""Share of the limit for the sums of a task."""
WIDEST = 1024
"""The most chunks of a task."""
USABLE = 0.6
"""Share of the limit that is planned with; Dask pauses a worker at 0.8 and ends it at 0.95."""
CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Plan:
    """Bytes of one process; `cache` is what may be used for data, `spill` puts row state in files."""

    limit: int
    base: int
    chunks: int
    sums: int
    start: int
    state: int
    cache: int
    spill: bool
    width: int = WIDEST
    """The most chunks of a task."""
    result: int = 0
    """Bytes of the sums that a task gives."""

    def __str__(self) -> str:
        parts = {
            "base": self.base,
            "chunks": self.chunks,
            "sums": self.sums,
            "start": self.start,
            "cache": self.cache,
        }
        words = [f"{name} {size(number)}" for name, number in parts.items() if number >= 2**20]
        where = "in files" if self.spill else "in memory"
        return f"memory of a process: {', '.join(words)}, row state {self.state / 2**20:,.1f} MB {where}"


def plan(
    source: Source,
    features: int,
    processes: int,
    limit: int,
    cache: int | None = None,
    fits: int = 1,
    entries: int = 1,
    held: int = 0,
) -> Plan:
    """What each of `processes` needs for `features` features, within `limit` bytes each.

    A row keeps `entries` numbers for each feature of each of `fits` fits (see `catalog.entries`), whose
    starts hold `held` rows each (`catalog.rows_held`): with what is observed of them, and twice while those
    of the chunks are joined.
    When short, the data cache goes first, then row state to files; what still does not fit is
    refused with the chunk size that does.
    """
    itemsize = source.dtype.itemsize
    row = source.columns * itemsize
    chunks = CHUNKS * chunk_bytes(source)
    result = 8 * features * (features + source.columns) * fits
    width = widest(result, limit)
    sums = (width.bit_length() + HELD) * result
    start = 2 * min(held, source.rows) * source.columns * (itemsize + 1) * fits // processes
    state = source.rows * features * itemsize * entries * fits // processes
    room = int(USABLE * limit) - BASE - chunks - sums - start
    if room < 0:
        _refuse(limit, BASE + chunks + sums + start, 0 if by_entries(source) else row, room + chunks)
    spill = state > room
    left = room if spill else room - state
    share = -(-data_bytes(source) // processes)
    wanted = share if cache is None else cache
    return Plan(limit, BASE, chunks, sums, start, state, max(0, min(left, wanted)), spill, width, result)


def widest(result: int, limit: int) -> int:
    """The most chunks of a task, a power of 2. While it adds them up it holds as many sums as the number of
    chunks has binary digits, which may take a small part of the memory."""
    held = int(PARTIAL * limit) // max(1, result)
    return min(WIDEST, 1 << max(0, min(held, WIDEST) - 1))


def available(processes: int) -> int:
    """Bytes for each of `processes` processes of this machine or container."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        whole = min(whole, int(CGROUP.read_text()))
    return whole // processes


def _refuse(limit: int, need: int, row: int, room: int) -> None:
    """`row` are the bytes of a row, 0 where chunks do not have rows of one size."""
    rows = room // (CHUNKS * row) if row else 0
    way = (
        f"make the dataset again with chunks of at most {rows:,} rows"
        if rows > 0
        else "use fewer processes or fewer features"
    )
    raise UsageError(f"a process needs {size(need)} but may use {USABLE:.0%} of {size(limit)}; {way}")
