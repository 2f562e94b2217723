"""Time of a collapsed sweep over that of its bare arithmetic, interleaved in one run, one thread, float64.

    python -m tests.benchmarks.sequential [--rows 500 --columns 500 --features 20]

The bare arithmetic is compiled and does, for every row, one product of a (feature, column) table with the
row, two rank-one updates of such a table and two of a (feature, feature) table: what a row must cost
that leaves and comes back. Two regimes are timed: at the truth, where few entries change, and with so
much noise that most rows do. The sweep alone, and with what follows it (globals and log joint). The
report's algorithm (numpy, everything anew for every flip) is timed on a few rows. Times are seconds of
the one thread that works, because machines are shared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from scipy.special import logit
from threadpoolctl import threadpool_limits

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.global_draws import blank_params as blank
from ibpdist.inference.gibbs.global_draws import draw_globals
from ibpdist.inference.in_turn.collapsed import Collapsed, CollapsedTable
from ibpdist.inference.in_turn.in_turn import InTurn, in_turn
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.kernels.buffet import Law
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.unit import Unit
from tests.support.rows_reference import collapsed_sweep

GOAL, ROUNDS, FEW = 4.0, 9, 3


@njit(nogil=True, error_model="numpy")
def arithmetic(x, wide, square, one, two, out):
    """The bare arithmetic of a sweep."""
    for n in range(x.shape[0]):
        row = x[n]
        out[:] = np.dot(wide, row)
        for step in (one, two):
            for k in range(wide.shape[0]):
                own, share = wide[k], step[k]
                for d in range(row.size):
                    own[np.uint64(d)] += share * row[np.uint64(d)]
        for step in (one, two):
            for k in range(square.shape[0]):
                own, share = square[k], step[k]
                for j in range(step.size):
                    own[np.uint64(j)] += share * step[np.uint64(j)]


@dataclass(frozen=True)
class Problem:
    """Rows, who has what in truth, and the law of a sweep."""

    x: np.ndarray
    z: np.ndarray
    law: Law

    def table(self) -> CollapsedTable:
        return CollapsedTable(self.x, self.z, np.arange(len(self.z)), self.law, 1000)


def problem(rows: int, columns: int, features: int, noise: float) -> Problem:
    rng = np.random.default_rng(0)
    z = (rng.random((features, rows)) < 0.3).astype(np.float64)
    x = z.T @ rng.standard_normal((features, columns)) + np.sqrt(noise) * rng.standard_normal((rows, columns))
    return Problem(x, z, Law(noise, 1.0, 0.0, 2.0 / rows, float(rows)))


def sampler(law: Law) -> InTurn:
    return InTurn(Model(Buffet(2.0), Unit(), Gaussian(law.noise, law.scale), DRAW), Collapsed())


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def swept(of: Problem, step: int) -> CollapsedTable:
    table = of.table()
    in_turn(table, Chunk(0, 0, of.x), Draws(0, step))
    return table


def whole(of: Problem) -> Callable[[int], object]:
    """A sweep with globals and log joint, from the truth."""
    alg, chunk = sampler(of.law), Chunk(0, 0, of.x)
    seen = alg.model.observation.init(
        alg.model.observation.summarise(chunk), len(of.z), np.random.default_rng(0)
    )
    params = blank(alg.model.prior.init(len(of.z), len(of.x)), seen)
    chain, _ = draw_globals(alg.model, chunk, params, of.z, np.arange(len(of.z)), Draws(0))
    return lambda step: alg.sweep(chunk, Chain(chain.params, chain.state), Draws(0, step))


def bare(of: Problem) -> Callable[[], object]:
    features, columns = len(of.z), of.x.shape[1]
    wide, square, none = np.zeros((features, columns)), np.zeros((features, features)), np.zeros(features)
    return lambda: arithmetic(of.x, wide, square, none, none.copy(), np.zeros(features))


def measure(name: str, of: Problem) -> float:
    """Prints a line; the ratio of the sweep alone."""
    floor, every = bare(of), whole(of)
    floor(), swept(of, 0), every(1)
    times = [
        (seconds(floor), seconds(partial(swept, of, step)), seconds(partial(every, step)))
        for step in range(1, ROUNDS + 1)
    ]
    base, alone, all_of_it = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    table = swept(of, 1)
    changed = (of.z != table.z[:, : len(of.z)].T).any(axis=0).mean()
    print(
        f"{name}: bare {base:.2f} ms, sweep {alone:.2f} ms, ratio {alone / base:.2f} (goal {GOAL}); with "
        f"globals {all_of_it:.2f} ms, ratio {all_of_it / base:.2f}; {changed:.0%} of the rows changed, K = "
        f"{table.features}",
        flush=True,
    )
    return alone


def transcription(of: Problem, sweep: float) -> None:
    """Prints how much faster a sweep is than the report's algorithm, timed on the first rows."""
    rng = np.random.default_rng(1)
    logits, births = logit(rng.random((len(of.x), 80))), rng.random(len(of.x))
    took = seconds(lambda: collapsed_sweep(of.x, of.z.T, of.law, logits, births, FEW)) / FEW
    ratio = took * len(of.x) * 1e3 / sweep
    print(f"numpy as in the report: {took:.2f} s a row; the sweep is {ratio:.0f} times faster", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, size in (("rows", 500), ("columns", 500), ("features", 20)):
        parser.add_argument(f"--{name}", type=int, default=size)
    options = parser.parse_args()
    with threadpool_limits(1):
        shape = (options.rows, options.columns, options.features)
        at_truth = problem(*shape, 1.0)
        sweep = measure("few entries change", at_truth)
        measure("most rows change", problem(*shape, 1500.0))
        transcription(at_truth, sweep)


if __name__ == "__main__":
    main()
