"""One function over all chunks of a source, in threads, results in order and few at a time.

The arithmetic is compiled or BLAS and holds no interpreter lock, so threads are enough.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ibpdist.base.progress import Count
from ibpdist.base.threads import one_thread
from ibpdist.data._base import Source

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
