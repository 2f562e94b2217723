"""Time of an anchored sweep (both phases) over the time of a variational pass, interleaved in one run.

    python -m tests.benchmarks.anchored [--shape 200000x128x50 ...] [--weights unit|normal]

Both work on the same float32 data in chunks of 16 MB with one thread; times are CPU seconds of it,
because machines are shared. The sampler starts at the planted features with the planted rows, so it
keeps about as many features as the fit has. A pass is everything a step does.

    python -m tests.benchmarks.anchored --from-nothing 20000x64x12

runs a chain from no feature and one from the truth instead: features, and the peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import combine, replace
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.engine.tree import TreeSum
from ibpdist.inference.gibbs.anchored import Anchored
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.benchmarks.passes import chunks

WEIGHTS = {"unit": (Unit(), "lg-vi-infinite"), "normal": (Normal(), "fa-vi-infinite")}
WARM, TIMED, GOAL = 3, 9, 4.0


def planted(rows: int, columns: int, features: int, weights: str, noise: float = 0.5) -> tuple[Any, ...]:
    """x (row, column), z and w (feature, row), the dictionary (feature, column)."""
    rng = np.random.default_rng(0)
    z = (rng.random((features, rows)) < 0.3).astype(np.float32)
    w = rng.standard_normal(z.shape, np.float32) if weights == "normal" else np.ones_like(z)
    a = rng.standard_normal((features, columns), np.float32)
    x = (z * w).T @ a + noise * rng.standard_normal((rows, columns), np.float32)
    return x, z, w, a


class Loop:
    """An algorithm over chunks, step by step."""

    def __init__(self, algorithm: Any, parts: list[Chunk], seed: int = 0) -> None:
        self.algorithm, self.parts, self.draws, self.step = algorithm, parts, Draws(seed), 0
        survey = algorithm.summarise(parts[0])
        for part in parts[1:]:
            survey = combine(survey, algorithm.summarise(part))
        self.params = algorithm.init(survey, self.draws)
        self.states = [algorithm.start(part, self.params, self.draws) for part in parts]

    def know(self, z: np.ndarray, w: np.ndarray, a: np.ndarray) -> None:
        """Begin at these features instead."""
        now = self.params.now
        seen = replace(now.observation, mean=a.astype(np.float64))
        rows = [slice(part.start, part.start + part.rows) for part in self.parts]
        self.params = self.algorithm.initial(replace(now, observation=seen))
        keeps = self.algorithm.model.weights.has_weights
        self.states = [
            RowState(
                now.ids, np.ascontiguousarray(z[:, r]), np.ascontiguousarray((w if keeps else w[:0])[:, r])
            )
            for r in rows
        ]

    def advance(self) -> dict[str, float]:
        self.step += 1
        total, draws = TreeSum[Any](), self.draws.at(self.step)
        for i, part in enumerate(self.parts):
            self.states[i], sums = self.algorithm.local(part, self.states[i], self.params, draws)
            total.add(sums)
        self.params, info = self.algorithm.update(self.params, total.value(), draws)
        trace = info.trace()
        return dict(trace)

    def timed(self, steps: int) -> float:
        began = time.thread_time()
        for _ in range(steps):
            self.advance()
        return time.thread_time() - began


def sampler(weights: str, features: int) -> Anchored:
    return Anchored(Model(Buffet(), WEIGHTS[weights][0], Gaussian(), DRAW), features)


def measure(shape: str, weights: str) -> None:
    rows, columns, features = map(int, shape.split("x"))
    x, z, w, a = planted(rows, columns, features, weights)
    settings = {"start": "random", "moves": False, "noise": "one", "scale": "one"}
    fit = Loop(build(WEIGHTS[weights][1], features, settings=settings), chunks(x))
    chain = Loop(sampler(weights, features), chunks(x))
    chain.know(z, w, a)
    chain.advance()
    fit.timed(WARM)
    chain.timed(2 * WARM)
    pairs = [(fit.timed(1), chain.timed(1), chain.timed(1)) for _ in range(TIMED)]
    if chain.step % 2 == 0:
        raise AssertionError("a sweep is a step of births and one of flips")
    one, first, second = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    found = f"sweep {first:.1f} + {second:.1f} ms, pass {one:.1f} ms, ratio {(first + second) / one:.2f}"
    print(f"{weights} {shape}: {found} (goal {GOAL}); {len(chain.params.now.ids)} features")


def from_nothing(shape: str, weights: str, sweeps: int) -> None:
    rows, columns, features = map(int, shape.split("x"))
    x, z, w, a = planted(rows, columns, features, weights, noise=1.5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    truth, nothing = Loop(sampler(weights, features), chunks(x)), Loop(sampler(weights, 0), chunks(x))
    truth.know(z, w, a)
    for at in range(1, sweeps + 1):
        ends = [[loop.advance() for _ in range(2)][1] for loop in (truth, nothing)]
        if at % max(sweeps // 20, 1) == 0:
            shown = [f"K {t['active']:.0f} objective {t['objective']:.1f}" for t in ends]
            print(f"{weights} {shape} sweep {at}: from the truth {shown[0]}, from nothing {shown[1]}")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {grown / 1024:.0f} MB, {before / 1024:.0f} MB with the data alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", nargs="*", default=["200000x128x50"])
    parser.add_argument("--weights", choices=list(WEIGHTS), default="unit")
    parser.add_argument("--from-nothing", metavar="SHAPE")
    parser.add_argument("--sweeps", type=int, default=400)
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.from_nothing:
            from_nothing(options.from_nothing, options.weights, options.sweeps)
            return
        for shape in options.shape:
            measure(shape, options.weights)


if __name__ == "__main__":
    main()
