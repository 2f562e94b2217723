"""A fit of data that do not fit into the memory of its workers.

    python tests/benchmarks/scale.py STORE [--rows 4000000] [--columns 256] [-K 40] [--cache 0]

Makes STORE when it is not there, fits 10 steps (from a random start, without moves: plain passes) on
two workers of 1 GB each, and compares a pass with reading the store through Zarr alone plus the
bare products, on two processes in the same run. Prints the peak memory of each worker process and
what its memory was planned to be. Each SIZE of `--cache` (bytes a worker may keep of the data) is a
fit of its own; its workers get 1 GB and what the cache needs, since half of the data do not fit into
less: 1024000000 is half of the 4 GB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ibpdist.data.store import open_dataset
from ibpdist.engine.memory import USABLE
from ibpdist.evaluate.synthetic import synthesise
from ibpdist.storage.events import read

WORKERS, STEPS, TILE = 2, 10, 1024
LIMIT = 1_000_000_000
Job = tuple[str, int, int, int]


def reading(job: Job) -> float:
    """Seconds to read the chunks first .. last through Zarr alone."""
    import zarr

    store, first, last, _ = job
    x, data = zarr.open_array(f"{store}/x", mode="r"), open_dataset(store)
    began = time.perf_counter()
    for index in range(first, last):
        start, stop = data.bounds(index)
        x[start:stop]
    return time.perf_counter() - began


def products(job: Job) -> float:
    """Seconds of X A', Z' X and Z' Z in tiles for the chunks first .. last, data in memory."""
    store, first, last, features = job
    data = open_dataset(store)
    x = data.read(first).x
    a, z = np.ones((features, x.shape[1]), x.dtype), np.ones((len(x), features), x.dtype)
    began = time.perf_counter()
    with threadpool_limits(1):
        for _ in range(first, last):
            for at in range(0, len(x), TILE):
                tile, on = x[at : at + TILE], z[at : at + TILE]
                tile @ a.T
                on.T @ tile
                on.T @ on
    return time.perf_counter() - began


def slowest(work: object, jobs: list[Job]) -> float:
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        return min(max(pool.map(work, jobs, chunksize=1)) for _ in range(3))


def peaks(pid: int) -> dict[int, int]:
    """Peak resident bytes of the worker processes below a process."""
    found = {}
    for task in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            command = (task / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if b"spawn_main" in command and descends(int(task.name), pid):
            found[int(task.name)] = int(status.get("VmHWM", "0 kB").split()[0]) << 10
    return found


def descends(task: int, ancestor: int) -> bool:
    while task > 1:
        if task == ancestor:
            return True
        try:
            task = int(Path(f"/proc/{task}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def fitted(
    store: Path, run: Path, features: int, steps: int, options: list[str]
) -> tuple[float, str, dict[int, int]]:
    """Median seconds of passes from the third on, the plan of memory, and its peak in the processes below the
    fit."""
    shutil.rmtree(run, ignore_errors=True)
    size = ["-K", str(features), "--steps", str(steps), "--seed", "7", "-q"]
    code = "import sys; from ibpdist.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "fit", str(store), str(run)]
    highest: dict[int, int] = {}
    with subprocess.Popen([*command, *size, *options, "--workers", str(WORKERS)]) as fit:
        while fit.poll() is None:
            highest.update(peaks(fit.pid))
            time.sleep(0.2)
    events = list(read(run / "events.jsonl"))
    took = [event["seconds"] for event in events if event["event"] == "step"]
    planned = next(event["plan"] for event in events if event["event"] == "memory")
    if fit.returncode not in (0, 7) or len(took) != steps:
        raise SystemExit(f"the fit ended with code {fit.returncode} after {len(took)} steps")
    return statistics.median(took[2:]), planned, highest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("-K", type=int, default=40)
    parser.add_argument("--cache", nargs="*", type=int, default=[0])
    options = parser.parse_args()
    if not options.store.exists():
        shape = {"rows": options.rows, "columns": options.columns, "features": 24, "noise": 0.25}
        synthesise("linear-gaussian", options.store, **shape, seed=1)
    data = open_dataset(options.store)
    half = data.chunks // 2
    jobs = [(str(options.store), a, b, options.K) for a, b in ((0, half), (half, data.chunks))]
    read_only, bare = slowest(reading, jobs), slowest(products, jobs)
    print(f"reading {read_only:.2f} s, products {bare:.2f} s, on {WORKERS} processes")
    plain = ["--system", "lg-vi-infinite", "--start", "random", "--set", "moves=false"]
    for cache in options.cache:
        given = [*plain, "--memory", str(LIMIT + int(cache / USABLE)), "--cache", str(cache)]
        took, planned, highest = fitted(
            options.store, options.store.with_suffix(".run"), options.K, STEPS, given
        )
        print(f"cache {cache}: a pass {took:.2f} s, {took / (read_only + bare):.2f} of reading + products")
        tell_memory(planned, highest)


def tell_memory(planned: str, highest: dict[int, int]) -> None:
    print(f"  {planned}")
    for pid, peak in sorted(highest.items()):
        print(f"  process {pid}: peak {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
