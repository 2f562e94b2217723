"""Does one default fit find the rare features of buffet data?

    python -m tests.benchmarks.births [--first 0] [--seeds 10] [--out ROWS.csv]

Data of seed s are drawn from an Indian buffet process of mass 3: 6,000 rows, 64 columns, features standard
normal, noise of standard deviation 1. Of some 28 features about 23 have five or more users. A line a seed:

    planted    features with five or more users
    matched    those that the fit matches: a fitted feature of their own whose column of z has a correlation
               of at least 0.8 with the planted one
    truth      those that a fit begun at the planted z matches (tests/support/truth_start.py)
    active     features that the fit has, those of the truth start
    gap        (truth start - fit) of the objective, in nats

Features with few users are not told by their dictionary rows: the posterior mean of m users is off by
1 / sqrt(m) feature standard deviations, so `ibpdist.recovery` (0.3) cannot match fewer than about twelve.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import ibpdist
from ibpdist.base.threads import one_thread
from tests.support.planted import Planted
from tests.support.truth_start import truth_started

ROWS, COLUMNS, MASS, NOISE = 6000, 64, 3.0, 1.0
TRUNCATION = 60
USERS = 5
"""Fewest users of a feature that counts."""
ALIKE = 0.8
"""Least correlation of a fitted with a planted column of z."""


@dataclass(frozen=True)
class Recovered:
    """What a fit recovers of the data of a seed; `missed` are the numbers of users."""

    seed: int
    planted: int
    matched: int
    truth: int
    active: int
    active_truth: int
    gap: float
    steps: int
    seconds: float
    missed: str

    def __str__(self) -> str:
        return (
            f"seed {self.seed:3d}  planted {self.planted:2d}  matched {self.matched:2d}  "
            f"truth {self.truth:2d}  "
            f"active {self.active:2d} ({self.active_truth:2d})  gap {self.gap:8.1f}  "
            f"{self.steps:4d} steps {self.seconds:5.1f} s  missed users: {self.missed or 'none'}"
        )


def buffet(seed: int, rows: int = ROWS, columns: int = COLUMNS, mass: float = MASS) -> Planted:
    """Row n takes each feature of m earlier rows with probability m / n, and Poisson(mass / n) new ones."""
    rng = np.random.default_rng((seed, 0xB0FFE7))
    most = 20 + int(4 * mass * np.log(rows + 1))
    z, known = np.zeros((rows, most), np.bool_), 0
    for at in range(rows):
        z[at, :known] = rng.random(known) < z[:at, :known].sum(axis=0) / (at + 1)
        new = int(rng.poisson(mass / (at + 1)))
        z[at, known : known + new] = True
        known += new
    z = z[:, :known]
    dictionary = rng.standard_normal((known, columns))
    x = z @ dictionary + NOISE * rng.standard_normal((rows, columns))
    return Planted(x, z, dictionary)


def matched(fit: xr.DataTree, planted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(planted) whether a feature of the fit has this column of z (row, feature)."""
    z = fit["rows"].to_dataset()["z"].transpose("row", "feature").values[:, fit["params"]["active"].values]
    both = np.corrcoef(planted, z, rowvar=False)[: planted.shape[1], planted.shape[1] :]
    alike = np.nan_to_num(both)
    flags = np.zeros(planted.shape[1], np.bool_)
    ours, theirs = linear_sum_assignment(-np.where(alike >= ALIKE, alike, 0.0))
    flags[ours] = alike[ours, theirs] >= ALIKE
    return flags


def recovered(seed: int) -> Recovered:
    """The default fit of the data of a seed beside the truth start."""
    made = buffet(seed)
    users = made.z.sum(axis=0)
    wanted = users >= USERS
    truth = truth_started(made.x, made.z)
    began = time.process_time()
    fit = ibpdist.fit(made.x, system="lg-vi-infinite", K=TRUNCATION, seed=seed, serial=True)
    seconds = time.process_time() - began
    found = matched(fit, made.z)
    return Recovered(
        seed=seed,
        planted=int(wanted.sum()),
        matched=int(found[wanted].sum()),
        truth=int(matched(truth, made.z)[wanted].sum()),
        active=int(fit["params"]["active"].sum()),
        active_truth=int(truth["params"]["active"].sum()),
        gap=float(truth.attrs["objective"] - fit.attrs["objective"]),
        steps=int(fit.attrs["steps"]),
        seconds=seconds,
        missed=" ".join(str(n) for n in sorted(users[wanted & ~found])),
    )


def summary(rows: list[Recovered]) -> str:
    """Counts over all seeds."""
    planted, found, truth = (
        sum(getattr(row, name) for row in rows) for name in ("planted", "matched", "truth")
    )
    least = min(row.matched / row.planted for row in rows)
    return (
        f"{len(rows)} seeds: matched {found} of {planted} features with {USERS} or more users "
        f"({100 * found / planted:.1f} %, worst seed {100 * least:.0f} %), truth start {truth}"
    )


def lines(seeds: range) -> Iterator[Recovered]:
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        yield from map(recovered, seeds)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--out", type=Path, help="CSV with all of the numbers")
    given = parser.parse_args(arguments)
    rows: list[Recovered] = []
    for row in lines(range(given.first, given.first + given.seeds)):
        print(row, flush=True)
        rows.append(row)
    print(summary(rows))
    if given.out:
        with given.out.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(asdict(rows[0])))
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
