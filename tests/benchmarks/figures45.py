"""The report's comparison (figures 4 and 5): held-out score against time, for every method.

    python -m tests.benchmarks.figures45 OUT.png [--figure 4] [--seconds 60] [--restarts 2] [--methods ...]

Z and A come from the truncated stick-breaking prior, x = Z A + noise; a third of the columns is hidden in
the second half of the rows. Figure 4 has N = 500, K = 20, figure 5 has N = 100, K = 25, both D = 500. Methods
learn noise, scale and mass, but for the particle filter, which is told them. All begin at random.

Score: log of the mean over draws of p(hidden cells of a row | draw), by row, over the number of hidden cells.
For samplers draws are the later half of the sweeps so far; for variational fits 100 draws of z from
q, with the variance of the dictionary. Time is processor time of the steps alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW, MEAN
from ibpdist.data._base import Chunk
from ibpdist.evaluate.synthetic import draw, plant, recipe
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.in_turn.collapsed import Collapsed
from ibpdist.inference.in_turn.in_turn import InTurn, RowKernel
from ibpdist.inference.in_turn.particle import Particles
from ibpdist.inference.in_turn.sequential import Chain, Sequential
from ibpdist.inference.in_turn.uncollapsed import Uncollapsed
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.unit import Unit

SHAPES = {"4": (500, 500, 20), "5": (100, 500, 25)}
NOISE, MASS, LOOKS, SAMPLES = 0.5, 4.0, 24, 100
Looked = np.ndarray | Callable[[], np.ndarray]
Steps = Iterator[tuple[float, Looked]]
"""Seconds of a step, and (draw, row) log p of the hidden cells of rows with any; what makes it where that
takes longer than the step and counts for the last step alone."""


@dataclass(frozen=True)
class Split:
    """Rows with hidden cells zero and marked, and all of x; `features` of the truth."""

    chunk: Chunk
    x: np.ndarray
    features: int

    @property
    def rows(self) -> np.ndarray:
        return np.flatnonzero(~self.chunk.observed.all(axis=1))

    @property
    def hidden(self) -> np.ndarray:
        """The hidden columns, the same in every such row."""
        return np.flatnonzero(~self.chunk.observed[self.rows[0]])

    def density(self, fit: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """(row) log p of the hidden cells; fit, variance (row, hidden)."""
        left = self.x[np.ix_(self.rows, self.hidden)] - fit
        return -0.5 * (np.log(2 * np.pi * variance) + left**2 / variance).sum(axis=1)


def split(rows: int, columns: int, features: int, seed: int) -> Split:
    made = recipe("linear-gaussian", rows, columns, features, mass=MASS, noise=NOISE, seed=seed)
    x = draw(made, plant(made), 0, rows).x.astype(np.float64)
    observed = np.ones(x.shape, bool)
    hidden = np.random.default_rng([seed, 1]).choice(columns, columns // 3, replace=False)
    observed[rows // 2 :, hidden] = False
    return Split(Chunk(0, 0, np.where(observed, x, 0.0), observed), x, features)


def chains(make: Callable[[Split], Sequential]) -> Callable[[Split, int], Steps]:
    """Sweeps of a sampler of rows in turn."""

    def steps(of: Split, seed: int) -> Steps:
        sampler, chunk = make(of), of.chunk
        chain = sampler.start(chunk, sampler.model.observation.summarise(chunk), Draws(seed))
        step = 0
        while True:
            step, began = step + 1, time.process_time()
            chain, _ = sampler.sweep(chunk, chain, Draws(seed, step))
            yield time.process_time() - began, of_chain(of, chain)[None]

    return steps


def of_chain(of: Split, chain: Chain) -> np.ndarray:
    seen = chain.params.observation
    fit = chain.state.z[:, of.rows].T @ seen.mean[:, of.hidden]
    return of.density(fit, seen.noise[of.hidden])


def ascent(prior: object) -> Callable[[Split, int], Steps]:
    """Steps of a variational fit."""

    def steps(of: Split, seed: int) -> Steps:
        fit, draws, rng = Coordinate(Model(prior, Unit(), Gaussian(), MEAN), of.features), Draws(seed), None
        params = fit.init(fit.summarise(of.chunk), draws)
        state, step = fit.start(of.chunk, params, draws), 0
        while True:
            step, began = step + 1, time.process_time()
            state, sums = fit.local(of.chunk, state, params, draws.at(step))
            params, _ = fit.update(params, sums, draws.at(step))
            took, rng = time.process_time() - began, np.random.default_rng([seed, step])
            found, rows = fit.describe(params), fit.describe_rows(state, params)
            yield took, partial(of_fit, of, found, rows["z"][1], rng)

    return steps


def of_fit(of: Split, found: dict, chance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(draw, row) for draws of z from q."""
    mean, spread = (found[name][1][:, of.hidden] for name in ("mean", "mean_sd"))
    chance = chance[:, of.rows].T
    each = []
    for _ in range(SAMPLES):
        z = (rng.random(chance.shape) < chance).astype(float)
        each.append(of.density(z @ mean, float(found["noise"][1]) + z @ spread**2))
    return np.array(each)


def gibbs(prior: object, turn: RowKernel) -> Callable[[Split], Sequential]:
    return lambda of: InTurn(Model(prior, Unit(), Gaussian(), DRAW), turn, of.features)


def particles(count: int) -> Callable[[Split], Sequential]:
    model = Model(Buffet(MASS), Unit(), Gaussian(noise=NOISE, scale=1.0), DRAW)
    return lambda of: Particles(model, count)


METHODS: dict[str, Callable[[Split, int], Steps]] = {
    "variational finite": ascent(BetaBernoulli()),
    "variational infinite": ascent(StickBreaking()),
    "collapsed finite": chains(gibbs(BetaBernoulli(), Collapsed())),
    "collapsed infinite": chains(gibbs(Buffet(), Collapsed())),
    "uncollapsed finite": chains(gibbs(BetaBernoulli(), Uncollapsed())),
    "uncollapsed infinite": chains(gibbs(Buffet(), Uncollapsed())),
    "particles 10": chains(particles(10)),
    "particles 50": chains(particles(50)),
}


def curve(of: Split, steps: Steps, limit: float) -> list[tuple[float, float]]:
    """(seconds, score) at LOOKS times, evenly spread on a log scale, until the time is up."""
    looks = iter(limit * np.geomspace(1e-2, 1, LOOKS))
    kept: list[Looked] = []
    spent, found, due = 0.0, [], next(looks)
    for took, looked in steps:
        spent += took
        if callable(looked):
            kept.clear()
        kept.append(looked)
        if spent >= due:
            found.append((spent, score(of, kept)))
            due = next((look for look in looks if look > spent), np.inf)
        if spent >= limit:
            break
    return found


def score(of: Split, kept: list[Looked]) -> float:
    """Of the later half of what was kept; of a variational fit, of its last step."""
    part = np.concatenate([one() if callable(one) else one for one in kept[len(kept) // 2 :]])
    rows = logsumexp(part, axis=0) - np.log(len(part))
    return float(rows.sum() / (len(of.rows) * len(of.hidden)))


def at_truth(of: Split) -> float:
    """Log density of the noise: what nobody beats for long."""
    return float(-0.5 * (np.log(2 * np.pi * NOISE) + 1))


def plot(path: Path, title: str, curves: dict[str, list[list[tuple[float, float]]]], best: float) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5.5))
    for number, (name, runs) in enumerate(curves.items()):
        for run in runs:
            axes.plot(*zip(*run, strict=True), color=f"C{number}", marker=".", alpha=0.8, label=name)
    axes.axhline(best, color="grey", linestyle=":", label="entropy of the noise")
    axes.set(xscale="log", xlabel="processor seconds", ylabel="log score of a hidden cell", title=title)
    axes.set_ylim(bottom=best - 2.0)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), fontsize=8)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--figure", choices=SHAPES, default="4")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    of, curves = split(*SHAPES[options.figure], seed=0), {}
    with threadpool_limits(1):
        for name in options.methods:
            next(METHODS[name](split(20, 30, 3, seed=0), 0))  # compiles
            curves[name] = [
                curve(of, METHODS[name](of, seed), options.seconds) for seed in range(options.restarts)
            ]
            ends = ", ".join(f"{run[-1][1]:.4f} after {run[-1][0]:.0f} s" for run in curves[name])
            print(f"figure {options.figure}, {name}: {ends}", flush=True)
    rows, columns, features = SHAPES[options.figure]
    plot(options.out, f"N = {rows}, D = {columns}, K = {features}", curves, at_truth(of))


if __name__ == "__main__":
    main()
