"""Simulation-based calibration of samplers of the infinite model.

    python -m tests.benchmarks.calibration [collapsed uncollapsed anchored] [--replications 500]

Everything is drawn from the prior, data given it, and a chain that knows the data alone, begun elsewhere,
is run until it has forgotten where. The rank of what was drawn first among the kept draws of the chain
is then uniform (Talts et al. 2018), ties broken at random: ranks of K, sum z, noise, mass and log
joint are compared with that by chi-squared.

The priors are such that chains forget within the sweeps between kept draws, or ranks would pile up at
both ends: with the package's mass prior (mean 10) K of these rows has an autocorrelation time of 80 to 100
sweeps. Here the mass has mean 1 and noise is mostly larger than the features: 10 to 40 sweeps.

A sampler is a transition (tests/support/joint_infinite.py); more of them are one line in SAMPLERS.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import chisquare
from threadpoolctl import threadpool_limits

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import ModelParams
from ibpdist.inference.in_turn.collapsed import Collapsed
from ibpdist.inference.in_turn.in_turn import InTurn
from ibpdist.inference.in_turn.uncollapsed import Uncollapsed
from ibpdist.model.observations import noise_and_scale
from ibpdist.model.observations._base import RowState
from ibpdist.model.priors import _mass
from tests.support import joint_infinite
from tests.support.anchored_cases import anchored
from tests.support.anchored_cases import transition as both_phases
from tests.support.geweke import Draw
from tests.support.joint_infinite import Infinite, Transition
from tests.support.turns import transition

JOINT, RATE = Infinite(rows=8, columns=2, floor=4.0), 1.0
SAMPLERS: dict[str, Callable[[Infinite], Transition]] = {
    "collapsed": lambda joint: transition(joint, Collapsed()),
    "uncollapsed": lambda joint: transition(joint, Uncollapsed()),
    "anchored": lambda joint: both_phases(anchored(joint), [joint.rows]),
}
RANKED = ("K", "sum z", "log noise", "log mass", "log joint")
KEPT, LEAST = 19, 0.001
"""Kept draws of a chain, so 20 ranks; a p-value below the second is a failure."""


def begun(joint: Infinite, chunk: Chunk, draws: Draws) -> tuple[ModelParams, RowState]:
    """A chain of a few features that coins give to rows; what priors rest on is as in the joint law."""
    sampler = InTurn(joint.model(), Collapsed(), 3)
    survey = sampler.model.observation.summarise(chunk)
    chain = sampler.start(chunk, survey, draws)
    spread = np.full(joint.columns, joint.unit)
    observed = replace(chain.params.observation, unit=np.asarray(joint.unit), spread=spread)
    return replace(chain.params, observation=observed), chain.state


def chain(
    joint: Infinite, step: Transition, x: np.ndarray, draws: Draws, burn: int, thin: int
) -> Iterator[dict[str, float]]:
    """Statistics of the kept draws."""
    chunk = joint.chunk(x)
    params, state = begun(joint, chunk, draws)
    for sweep in range(1, burn + KEPT * thin + 1):
        params, state = step(chunk, params, state, draws.at(sweep))
        if sweep > burn and (sweep - burn) % thin == 0:
            yield joint.statistics(Draw(params, state, x))


def rank(true: float, kept: np.ndarray, rng: np.random.Generator) -> int:
    """Kept draws below the true one, and some of those equal to it."""
    return int((kept < true).sum() + rng.integers((kept == true).sum() + 1))


def ranks(
    joint: Infinite, step: Transition, replications: int, burn: int, thin: int, seed: int = 0
) -> np.ndarray:
    """(replication, statistic) ranks."""
    found = []
    for number in range(replications):
        rng = np.random.default_rng([seed, number])
        true = joint.draw(rng)
        kept = list(chain(joint, step, true.x, Draws(seed, 0, number), burn, thin))
        first = joint.statistics(true)
        found.append([rank(first[name], np.array([k[name] for k in kept]), rng) for name in RANKED])
    return np.array(found)


def p_values(found: np.ndarray) -> dict[str, float]:
    """Of the chi-squared test that ranks are uniform, by statistic."""
    counts = [np.bincount(column, minlength=KEPT + 1) for column in found.T]
    return {name: float(chisquare(count).pvalue) for name, count in zip(RANKED, counts, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samplers", nargs="*", default=["collapsed"], help=", ".join(SAMPLERS))
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--burn", type=int, default=300)
    parser.add_argument("--thin", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    noise_and_scale.FLOOR = noise_and_scale.WEAK = JOINT.floor
    _mass.RATE = joint_infinite.RATE = RATE
    for name in options.samplers:
        began = time.process_time()
        with threadpool_limits(1):
            found = ranks(
                JOINT, SAMPLERS[name](JOINT), options.replications, options.burn, options.thin, options.seed
            )
        took = time.process_time() - began
        for statistic, p in p_values(found).items():
            said = "FAILS" if p < LEAST else "passes"
            mean = found[:, RANKED.index(statistic)].mean()
            print(f"{name} {statistic}: p = {p:.3f}, mean rank {mean:.2f} of {KEPT / 2}, {said}", flush=True)
        print(f"{name}: {options.replications} replications in {took:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
