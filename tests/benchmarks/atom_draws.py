"""How fast draws of the beta process forget where they were, and how long an update takes.

    python -m tests.benchmarks.atom_draws [--updates 1500] [--cases NAME ...]

Counts of several kinds, priors of rounds and beginnings: milliseconds of an update; means of the last two
thirds of the updates, and autocorrelation times in updates, of the logarithm of the concentration, of the
number of rounds in use, and of the sum of the prevalences. Without `tries` that number changes only as
atoms leave the last one or enter another.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ibpdist.base.rules import Rule
from ibpdist.model.priors import _atom_draws
from ibpdist.model.priors._base import PriorSums, Vector
from ibpdist.model.priors.beta_process import BetaProcess
from tests.support.fit_variants import table

FIRST = (2, 12)
"""Rounds in use where chains begin."""


def cases() -> dict[str, tuple[Vector, int]]:
    """Counts of atoms, and rows."""
    rng = np.random.default_rng(0)
    common = np.floor(5000 * rng.random(200) ** 4)
    common[150:] = 0
    return {
        "12 of 300": (np.array([200, 120, 90, 60, 30, 10, 3, 1, 0, 0, 0, 0.0]), 300),
        "30 of 1000": (np.floor(1000 * rng.random(30) ** 3), 1000),
        "20 of 100, 5000": (np.append(np.floor(5000 * rng.beta(2, 3, 20)), np.zeros(80)), 5000),
        "100 rare of 300": (np.floor(300 * rng.beta(1, 40, 100)), 300),
        "200 of 5000": (common, 5000),
    }


def memory(x: Vector) -> float:
    """The autocorrelation time, summed up to six times itself."""
    x = x - x.mean()
    if not x.std() > 1e-12:
        return math.nan
    power = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    lags = np.fft.irfft(power)[: len(x)]
    total = 1.0
    for lag in range(1, len(x)):
        total += 2 * lags[lag] / lags[0]
        if lag > 6 * total:
            break
    return total


def begun(prior: BetaProcess, on: Vector, rows: int, last: int) -> Any:
    """A draw whose atoms are of the first `last` rounds."""
    rng, share = np.random.default_rng(last), (on + 0.5) / (rows + 1)
    at = prior._draws.begun(np.arange(len(on)), share, 1.0, 1.0, rng)
    rounds = rng.integers(1, last + 1, len(on))
    log_on = np.log(share) / rounds
    stick = np.stack([log_on, np.log(-np.expm1(log_on))], axis=1)
    return prior._draws._state(at.atom, rounds, -log_on * (rounds - 1), stick, 1.0, 1.0)


def chain(prior: BetaProcess, at: Any, on: Vector, rows: int, updates: int) -> Iterator[Any]:
    rng, sums = np.random.default_rng(1), PriorSums(on=on, rows=np.asarray(float(rows)))
    for _ in range(updates):
        at = prior.update(at, sums, Rule.DRAW, rng)
        yield at


def line(name: str, law: str, last: int, tries: int, updates: int) -> list[str]:
    on, rows = cases()[name]
    prior = BetaProcess(round_prior=law)  # type: ignore[arg-type]
    _atom_draws.TRIES = tries
    at, begin = begun(prior, on, rows, last), time.perf_counter()
    found = [
        (math.log(one.concentration), one.rounds.max(), one.prevalence.sum())
        for one in chain(prior, at, on, rows, updates)
    ]
    each = (time.perf_counter() - begin) / updates
    held = np.array(found)[updates // 3 :]
    means, times = held.mean(axis=0), [memory(column) for column in held.T]
    words = [name, law, str(last), str(tries), f"{1e3 * each:.1f}"]
    return words + [f"{mean:.2f}" for mean in means] + [f"{one:.1f}" for one in times]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--cases", nargs="*", default=list(cases()))
    options = parser.parse_args(arguments)
    kept = _atom_draws.TRIES
    kinds = [("exchangeable", kept), ("exchangeable", 0), ("paper-exact", kept)]
    lines = [
        line(name, law, last, tries, options.updates)
        for name in options.cases
        for last in FIRST
        for law, tries in kinds
    ]
    _atom_draws.TRIES = kept
    heads = (
        "counts",
        "rounds",
        "begins",
        "tries",
        "ms",
        "log c",
        "last",
        "sum pi",
        "log c",
        "last",
        "sum pi",
    )
    print(table(heads, lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
