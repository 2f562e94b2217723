"""Many documents on two workers of 1 GB: ingest, memory, and seconds of a step.

    python -m tests.benchmarks.token_scale FOLDER [--rows 1000000] [--columns 50000] [--entries 100] [-K 100]

Writes FOLDER/docword.txt when it is not there: documents with about so many different words, whose
frequencies fall as Zipf's law says. Ingests it, and a tenth of it, and tells for each the seconds, those of
reading the numbers of the file alone, and the peak memory. Then fits 20 steps and tells the median of the
steps from the third on, the memory that was planned for a worker, and the peak of each process.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibpdist.data.count_sources.text import TextFile
from tests.benchmarks.scale import LIMIT, fitted, tell_memory
from tests.support.fit_variants import table

Whole = NDArray[np.int64]
BLOCK, TOPICS = 10_000, 50
INGEST = """
import pathlib, re, sys, time
import ibpdist
begun = time.perf_counter()
ibpdist.ingest(*sys.argv[1:])
took = time.perf_counter() - begun
status = pathlib.Path("/proc/self/status").read_text()
print(f"{took:.2f}", int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) >> 10)
"""


def documents(rows: int, columns: int, entries: int) -> Iterator[tuple[Whole, Whole, Whole]]:
    """Row, column and count of the entries of a block of rows; half of the words are of a topic."""
    rng = np.random.default_rng(0)
    law = np.cumsum(1.0 / np.arange(1, columns + 1) ** 1.05)
    orders = np.stack([rng.permutation(columns) for _ in range(TOPICS)])
    for first in range(0, rows, BLOCK):
        shape = (min(BLOCK, rows - first), int(1.75 * entries))
        word = np.searchsorted(law, law[-1] * rng.random(shape)).clip(0, columns - 1)
        topic = rng.integers(0, TOPICS, shape[0])[:, None]
        word = np.where(rng.random(shape) < 0.5, orders[topic, word], word)
        keys, counts = np.unique(np.arange(shape[0])[:, None] * columns + word, return_counts=True)
        yield first + keys // columns, keys % columns, counts


@njit
def written(table: Whole, text: NDArray[np.uint8]) -> int:
    """The lines of a table (line, number) into `text`, and how many bytes they take."""
    size = 0
    for line in range(len(table)):
        for place in range(table.shape[1]):
            value, last = table[line, place], size + 1
            while 10 ** (last - size) <= value:
                last += 1
            for at in range(last - 1, size - 1, -1):
                text[at] = 48 + value % 10
                value //= 10
            text[last] = 10 if place == table.shape[1] - 1 else 32
            size = last + 1
    return size


def write_docword(path: Path, rows: int, columns: int, entries: int) -> None:
    """The head has room for the number of entries, which is known at the end."""
    total = 0
    with path.open("wb") as file:
        file.write(f"{rows}\n{columns}\n{0:012d}\n".encode())
        for row, column, count in documents(rows, columns, entries):
            numbers = np.column_stack([row + 1, column + 1, count])
            text = np.empty(30 * len(numbers), np.uint8)
            file.write(text[: written(numbers, text)].tobytes())
            total += len(numbers)
        file.seek(0)
        file.write(f"{rows}\n{columns}\n{total:012d}\n".encode())


def reading(path: Path) -> float:
    """Seconds to read the numbers of a file alone."""
    next(TextFile(path).numbers(skip=3))
    begun = time.perf_counter()
    for _ in TextFile(path).numbers(skip=3):
        pass
    return time.perf_counter() - begun


def ingested(path: Path, store: Path) -> list[str]:
    """A line of the table: entries, seconds, seconds of reading alone, and peak memory of its process."""
    shutil.rmtree(store, ignore_errors=True)
    said = subprocess.run([sys.executable, "-c", INGEST, path, store], check=True, stdout=subprocess.PIPE)
    seconds, peak = said.stdout.decode().split()
    alone, entries = reading(path), int(TextFile(path).first(3)[2])
    return [f"{entries:,}", seconds, f"{alone:.2f}", f"{float(seconds) / alone:.2f}", peak]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--entries", type=int, default=100, help="different words of a document, about")
    parser.add_argument("-K", type=int, default=100)
    parser.add_argument("--system", default="counts-finite")
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    whole, tenth, store = folder / "docword.txt", folder / "tenth.txt", folder / "docword.zarr"
    if not whole.exists():
        write_docword(whole, options.rows, options.columns, options.entries)
        write_docword(tenth, options.rows // 10, options.columns, options.entries)
    lines = [ingested(tenth, folder / "tenth.zarr"), ingested(whole, store)]
    print(table(("entries", "ingest, s", "reading, s", "ratio", "peak, MB"), lines), flush=True)
    given = ["--system", options.system, "--memory", str(LIMIT)]
    took, planned, highest = fitted(store, folder / "run", options.K, options.steps, given)
    print(f"{options.system}, K = {options.K}: a step {took:.2f} s")
    tell_memory(planned, highest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
