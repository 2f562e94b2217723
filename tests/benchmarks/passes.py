"""Time of a pass over the time of the bare products, interleaved in one run, one thread, float32.

    python tests/benchmarks/passes.py [--system lg-vi-finite] [--shape 20000x1000x20 ...] [--missing 0.1 ...]

A pass is everything a step does: local step with one inner sweep, entropies, statistics,
global step and objective. Passes 2 to 8 from a random start are timed, those that raise the
objective count, and compile time is apart. The bare products are X A', Z' X and Z' Z. Times are CPU
seconds of the one thread that works, because machines are shared.

With `--missing` passes over complete data and over the same data with that share of the cells missing, in no
pattern, take turns, and the ratio is that of the two. With `--against` passes with those settings and with
the defaults take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.catalog.spec import scalar
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.engine.tree import TreeSum

SHAPES = ("20000x1000x20", "20000x1000x100", "200000x128x50", "4000x10000x50")
LIMITS = {"20000x1000x20": 1.2, "20000x1000x100": 1.35, "200000x128x50": 2.0, "4000x10000x50": 1.2}
PASSES, CHUNK_BYTES = 8, 16 << 20
COLD = 12
"""Passes of a weighted fit from a random start after which its variances are no longer raised."""


def data(rows: int, columns: int, features: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    z = rng.random((rows, features)) < 0.3
    x = z.astype(np.float32) @ rng.standard_normal((features, columns), dtype=np.float32)
    return x + 0.5 * rng.standard_normal((rows, columns), dtype=np.float32)


def chunks(x: np.ndarray, missing: float = 0.0) -> list[Chunk]:
    """Chunks of 16 MB; of incomplete ones this share of the cells is missing."""
    step = max(1, CHUNK_BYTES // x[0].nbytes)
    parts = [Chunk(i, at, x[at : at + step]) for i, at in enumerate(range(0, len(x), step))]
    if not missing:
        return parts
    rng = np.random.default_rng(2)
    seen = [rng.random(part.x.shape) >= missing for part in parts]
    return [Chunk(p.index, p.start, np.where(o, p.x, 0), o) for p, o in zip(parts, seen, strict=True)]


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def passes(
    system: str, parts: list[Chunk], features: int, count: int = PASSES, **more: Any
) -> Iterator[tuple[float, float]]:
    """(seconds, objective) of each pass."""
    settings = {"start": "random", "moves": False, **more}
    algorithm, draws = build(system, features, settings=settings), Draws(0)
    survey = algorithm.summarise(parts[0])
    for part in parts[1:]:
        survey = combine(survey, algorithm.summarise(part))
    params = algorithm.init(survey, draws)
    states = [algorithm.start(part, params, draws) for part in parts]
    for step in range(1, count + 1):
        began, total = time.thread_time(), TreeSum[Any]()
        for i, part in enumerate(parts):
            states[i], sums = algorithm.local(part, states[i], params, draws.at(step))
            total.add(sums, own=True)
        params, info = algorithm.update(params, total.value(), draws.at(step))
        trace = info.trace()
        yield time.thread_time() - began, trace["objective"]


def measure(system: str, shape: str) -> None:
    rows, columns, features = map(int, shape.split("x"))
    x = data(rows, columns, features)
    a = np.ones((features, columns), np.float32)
    z = np.random.default_rng(1).random((rows, features), dtype=np.float32)
    timed, bare, before = [], [], -np.inf
    list(passes(system, chunks(x[:512]), features))
    for number, (took, objective) in enumerate(passes(system, chunks(x), features), start=1):
        products = [seconds(partial(np.matmul, *pair)) for pair in ((x, a.T), (z.T, x), (z.T, z))]
        if number > 1 and objective > before:
            timed.append(took)
            bare.append(sum(products))
        before = objective
    ratio = statistics.median(timed) / statistics.median(bare)
    taken, floor = statistics.median(timed) * 1e3, statistics.median(bare) * 1e3
    goal = f" (goal {LIMITS[shape]})" if shape in LIMITS else ""
    found = f"pass {taken:.1f} ms, products {floor:.1f} ms, ratio {ratio:.2f}{goal}"
    print(f"{system} {shape}: {found}, {len(timed)} passes")


def against_complete(system: str, shape: str, missing: float) -> None:
    """Passes with missing cells over passes without."""
    rows, columns, features = map(int, shape.split("x"))
    x = data(rows, columns, features)
    for part in (chunks(x[:512]), chunks(x[:512], missing)):
        list(passes(system, part, features))
    both = zip(passes(system, chunks(x), features), passes(system, chunks(x, missing), features), strict=True)
    whole, gaps = zip(*[(one, other) for (one, _), (other, _) in list(both)[1:]], strict=True)
    taken, floor = statistics.median(gaps) * 1e3, statistics.median(whole) * 1e3
    ratio = statistics.median(gap / one for one, gap in zip(whole, gaps, strict=True))
    found = f"pass {taken:.1f} ms, complete {floor:.1f} ms, ratio {ratio:.2f}"
    print(f"{system} {shape} {missing:.0%} missing: {found}, {len(gaps)} passes")


def against_settings(system: str, shape: str, settings: dict[str, object]) -> None:
    """Passes with the defaults over passes with these settings, when variances are no longer raised."""
    rows, columns, features = map(int, shape.split("x"))
    x = data(rows, columns, features)
    for more in ({}, settings):
        list(passes(system, chunks(x[:512]), features, **more))
    runs = (passes(system, chunks(x), features, COLD + PASSES, **more) for more in ({}, settings))
    both = [(one, other) for (one, _), (other, _) in zip(*runs, strict=True)][COLD:]
    ratio = statistics.median(one / other for one, other in both)
    taken, floor = (statistics.median(times) * 1e3 for times in zip(*both, strict=True))
    found = f"pass {taken:.1f} ms, with {settings} {floor:.1f} ms, ratio {ratio:.2f}"
    print(f"{system} {shape}: {found}, {len(both)} passes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="lg-vi-finite")
    parser.add_argument("--shape", nargs="*", default=SHAPES)
    parser.add_argument("--missing", nargs="*", type=float, default=())
    parser.add_argument("--against", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args()
    against = {name: scalar(value) for name, value in (one.split("=") for one in options.against or ())}
    with threadpool_limits(1):
        for shape in options.shape:
            for missing in options.missing:
                against_complete(options.system, shape, missing)
            if against:
                against_settings(options.system, shape, against)
            elif not options.missing:
                measure(options.system, shape)


if __name__ == "__main__":
    main()
