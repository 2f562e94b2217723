"""A campaign of restarts x truncation levels over data that are decoded in every pass.

    python -m tests.benchmarks.campaign STORE [--rows 100000] [--columns 512] [--restarts 8] [--steps 50]
        [-K 10 20 30 40 50] [--sample 5]

Makes STORE when it is not there and sweeps it on two workers from random starts, without moves, exactly
so many passes each, with a cache of one block. Compares the time with [decoding once a pass and group +
the bare products of all fits], on two processes in the same run, and counts how often a chunk was
decoded. `--sample` fits are made alone as well, and their bits compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from pathlib import Path

import ibpdist as ibp
from ibpdist.campaigns.campaign import Campaign
from ibpdist.data.store import open_dataset
from ibpdist.engine.work import Workbench
from ibpdist.evaluate.synthetic import synthesise
from ibpdist.runs import group
from ibpdist.storage import events
from tests.benchmarks.scale import WORKERS, products, reading, slowest

COUNTS = "IBPDIST_BENCHMARK_COUNTS"
SAME = ("params", "rows", "trace", "diagnosis", "state")


class Counting:
    """A source that notes every chunk it reads as one byte of a file."""

    def __init__(self, source, file: str) -> None:
        self._source, self._file = source, file

    def __getattr__(self, name: str):
        return getattr(self._source, name)

    def read(self, index: int):
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, b".")
        os.close(handle)
        return self._source.read(index)


def open_bench(run: str, cache: int, spill: str) -> Workbench:
    """The workbench of a group, with its reading counted."""
    bench = group.open_bench(run, cache, spill)
    bench._data.source = Counting(bench._data.source, os.environ[COUNTS])
    return bench


def floor(store: Path, levels: list[int], restarts: int) -> tuple[float, float]:
    """Seconds of decoding all data, and of the products of all fits in one pass, on two processes."""
    chunks = open_dataset(store).chunks
    half = chunks // 2

    def jobs(features: int):
        return [(str(store), a, b, features) for a, b in ((0, half), (half, chunks))]

    bare = sum(restarts * slowest(products, jobs(features)) for features in levels)
    return slowest(reading, jobs(levels[0])), bare


def swept(store: Path, run: Path, options: argparse.Namespace) -> tuple[Campaign, float]:
    """The campaign, and the seconds it took from the first look at the data to the last result."""
    shutil.rmtree(run, ignore_errors=True)
    data = open_dataset(store)
    start, stop = data.bounds(0)
    block = (stop - start) * data.columns * data.dtype.itemsize
    grid = {
        "data": str(store),
        "system": options.system,
        "truncation": options.K,
        "restarts": options.restarts,
        "steps": options.steps,
        "rtol": 0.0,
        "start": "random",
        "set": {"moves": False},
    }
    began: list[float] = []
    campaign = ibp.sweep(
        grid, run, workers=WORKERS, cache=block, memory=options.memory,
        progress=lambda now: began.append(time.perf_counter()),
    )  # fmt: skip
    return campaign, time.perf_counter() - began[1]


def passes(run: Path) -> list[float]:
    """Seconds of the passes of all groups."""
    logs = [events.read(folder / "events.jsonl") for folder in (run / "groups").iterdir()]
    return [event["seconds"] for log in logs for event in log if event["event"] == "step"]


def compare(campaign: Campaign, sample: int, folder: Path) -> None:
    """Make some fits alone; their bits are those they have in the campaign."""
    fits = campaign.manifest.fits
    for fit in fits[:: max(1, len(fits) // sample)][:sample]:
        shutil.rmtree(folder, ignore_errors=True)
        spec = fit.spec
        alone = ibp.fit(
            spec.data, run=folder, system=spec.system, K=spec.truncation, seed=spec.seed, steps=spec.steps,
            rtol=spec.rtol, workers=WORKERS, **spec.set,
        )  # fmt: skip
        ours = campaign.open(fit)
        for name in SAME:
            assert alone[name].to_dataset().compute().identical(ours[name].to_dataset().compute()), name
        print(f"same bits alone: {dict(fit.labels)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--restarts", type=int, default=8)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--system", default="lg-vi-infinite")
    parser.add_argument("--memory", type=int, default=2_000_000_000)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("-K", type=int, nargs="+", default=[10, 20, 30, 40, 50])
    options = parser.parse_args()
    if not options.store.exists():
        shape = {"rows": options.rows, "columns": options.columns, "features": 24, "noise": 0.25}
        synthesise("linear-gaussian", options.store, **shape, seed=1)
    run, data = options.store.with_suffix(".campaign"), open_dataset(options.store)
    counts = options.store.with_suffix(".counts")
    counts.unlink(missing_ok=True)
    os.environ[COUNTS], group.OPEN = str(counts), "tests.benchmarks.campaign:open_bench"
    before = floor(options.store, options.K, options.restarts)
    campaign, took = swept(options.store, run, options)
    after = floor(options.store, options.K, options.restarts)
    decoding, bare = (min(a, b) for a, b in zip(before, after, strict=True))
    made, groups = passes(run), len(list((run / "groups").iterdir()))
    whole = groups * options.steps * decoding + options.steps * bare
    print(f"{len(campaign.manifest.fits)} fits in {groups} groups, {data.chunks} chunks")
    print(f"decoding {decoding:.2f} s, products of all fits {bare:.2f} s a pass, on {WORKERS} processes")
    print(f"a chunk was decoded {counts.stat().st_size / data.chunks / len(made):.3f} times a pass and group")
    print(f"a pass of a group took {statistics.median(made):.2f} s, {groups} groups side by side")
    print(f"all took {took:.1f} s, {took / whole:.2f} of decoding + products")
    if options.sample:
        compare(campaign, options.sample, options.store.with_suffix(".alone"))


if __name__ == "__main__":
    main()
