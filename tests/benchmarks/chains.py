"""Several chains against one: side by side on two workers, data decoded once a step.

    python -m tests.benchmarks.chains [--rows 100000] [--columns 128] [--steps 12]

Sampler of all rows at once: four chains over one, both on two workers (goal 3.5). Sampler of rows in
turn: four chains on two workers over one chain on one (goal 2.2). Seconds are those of the steps
alone, two at a time since a sweep of all rows at once takes two; of these the fastest half counts. The
two kinds of run take turns.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import ibpdist as ibp
from ibpdist.storage import events

GOALS = {"lg-gibbs-infinite": 3.5, "lg-collapsed-infinite": 2.2}


def seconds(run: Path) -> float:
    """Two typical steps: the median of the faster half of the pairs, without the first of a chain."""
    read = events.read(run / "events.jsonl")
    spent = [event["seconds"] for event in read if event["event"] == "step"][2:]
    pairs = sorted(a + b for a, b in zip(spent[::2], spent[1::2], strict=False))
    return float(np.median(pairs[: max(1, len(pairs) // 2)]))


def measure(system: str, store: Path, folder: Path, runs: list[tuple[int, int]], **options: object) -> None:
    """Ratio of the second kind of run (chains, workers) to the first, in turns."""
    found: list[list[float]] = [[], []]
    for turn in range(3):
        for at, (chains, workers) in enumerate(runs):
            run = folder / f"{system}-{turn}-{at}"
            ibp.fit(store, system=system, run=run, chains=chains, workers=workers, **options)
            found[at].append(seconds(run))
    one, four = (min(times) for times in found)
    ratio = four / one
    print(
        f"{system}: {runs[0][0]} chain on {runs[0][1]} workers {one:.3f} s a pair of steps, "
        f"{runs[1][0]} chains on "
        f"{runs[1][1]} {four:.3f} s: ratio {ratio:.2f} (goal {GOALS[system]})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--steps", type=int, default=12)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = {"K": 20, "seed": 1, "start": "random", "thin": asked.steps // 2, "checkpoint": 1000}
        size = {"columns": asked.columns, "features": 16, "noise": 0.3, "seed": 1}
        ibp.synthesise("linear-gaussian", folder / "many.zarr", rows=asked.rows, **size)
        steps = {"steps": asked.steps, "inner": 1}
        measure("lg-gibbs-infinite", folder / "many.zarr", folder, [(1, 2), (4, 2)], **steps, **options)
        few = {"columns": 500, "features": 16, "noise": 0.3, "seed": 1}
        ibp.synthesise("linear-gaussian", folder / "few.zarr", rows=500, **few)
        steps = {"steps": asked.steps, "inner": 20}
        measure("lg-collapsed-infinite", folder / "few.zarr", folder, [(1, 1), (4, 2)], **steps, **options)


if __name__ == "__main__":
    main()
