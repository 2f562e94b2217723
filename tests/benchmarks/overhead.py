"""What distribution costs: a pass on one Dask worker minus the same pass in this process.

    python tests/benchmarks/overhead.py [--chunks 16 64 256] [--steps 12]

Compared with the median time of submitting and gathering 16 tasks that do nothing on such a
cluster. Times are wall seconds of whole steps, medians over the steps after the first three.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from ibpdist.engine.cluster import local
from ibpdist.evaluate.synthetic import synthesise
from ibpdist.runs.fit import fit
from ibpdist.storage.events import read

ROWS, COLUMNS, FEATURES, WARM = 1024, 64, 8, 3


def nothing(number: int) -> int:
    return number


def empty_tasks(rounds: int = 60) -> float:
    """Median seconds to submit and gather 16 tasks that do nothing, on one worker."""
    with local(1) as cluster:
        took = []
        for turn in range(rounds):
            began = time.perf_counter()
            cluster.client.gather([cluster.client.submit(nothing, 100 * turn + i) for i in range(16)])
            took.append(time.perf_counter() - began)
    return statistics.median(took[10:])


def seconds(store: Path, run: Path, steps: int, **place: object) -> float:
    """Median seconds of a step."""
    fit(store, run=run, system="lg-vi-finite", K=FEATURES, seed=1, steps=steps, rtol=0.0, **place)
    took = [event["seconds"] for event in read(run / "events.jsonl") if event["event"] == "step"]
    return statistics.median(took[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="*", default=[16, 64, 256])
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()
    floor = empty_tasks()
    print(f"16 empty tasks: {floor * 1e3:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        for chunks in options.chunks:
            store = Path(folder) / f"{chunks}.zarr"
            shape = {"rows": chunks * ROWS, "columns": COLUMNS, "features": FEATURES, "noise": 0.25}
            synthesise("linear-gaussian", store, **shape, seed=0, chunk_rows=ROWS)
            serial = seconds(store, Path(folder) / f"serial-{chunks}", options.steps, serial=True)
            dask = seconds(store, Path(folder) / f"dask-{chunks}", options.steps, workers=1)
            extra = dask - serial
            print(
                f"{chunks} chunks: serial {serial * 1e3:.1f} ms, one worker {dask * 1e3:.1f} ms, "
                f"extra {extra * 1e3:.1f} ms, {extra / floor:.2f} of 16 empty tasks (goal 1)"
            )


if __name__ == "__main__":
    main()
