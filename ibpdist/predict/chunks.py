"""One function over all chunks of a source, in threads, results in order and few at a time.

The arithmetic is compiled or BLAS and holds no interpreter lock, so threads are enough.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.progress import Count
from ibpdist.base.threads import one_thread
from ibpdist.data._base import Chunk, Source

MOST_ROWS, NUMBERS = 512, 1 << 19
"""Rows of a chunk that are treated at once, and numbers in them."""

T = TypeVar("T")


class Shares:
    """Rows that are done, of all chunks together, from the share of each; told by many threads."""

    def __init__(self, source: Source, progress: Count | None) -> None:
        self._source, self._progress = source, progress
        self._shares, self._done = [0.0] * source.chunks, 0.0
        self._lock = threading.Lock()

    def tell(self, index: int, share: float) -> None:
        if self._progress is None:
            return
        first, last = self._source.bounds(index)
        with self._lock:
            self._done += (share - self._shares[index]) * (last - first)
            self._shares[index] = share
            self._progress(int(round(self._done, 3)), self._source.rows)


def blocks(
    chunk: Chunk, tick: Callable[[float], None]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.bool_]]]:
    """Rows of a chunk, few at a time: their places, their values (row, column), and which are observed;
    `tick` is called with the share of the rows that is done."""
    step = int(np.clip(NUMBERS // chunk.x.shape[1], 1, MOST_ROWS))
    for at in range(0, chunk.rows, step):
        part = slice(at, min(at + step, chunk.rows))
        x = chunk.x[part].astype(float)
        yield part, x, np.ones(x.shape, bool) if chunk.observed is None else chunk.observed[part]
        tick(part.stop / chunk.rows)


def over_chunks(work: Callable[[int], T], chunks: int, threads: int) -> Generator[T, None, None]:
    """`work(index)` for every chunk in order; at most one more result than threads is held."""
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for index in range(chunks):
                waiting.append(pool.submit(work, index))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
