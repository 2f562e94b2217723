"""How well does one default fit recover on/off sources, and how many does it say there are?

    python -m tests.benchmarks.sources [SEED ...] [--noise .1 .3 .6] [--rows 245] [--amplitudes laplace]
    python -m tests.benchmarks.sources 0 1 2 --rows 20000 --amplitudes student

Five sources that a row has with probability .4, kept from the row before with probability .9, are mixed into
ten columns by a matrix with standard normal entries, and noise is added (tests/support/planted_sources.py).
Fits have K = 10 and the number is unknown. A line for each problem as it is done, and a table by noise.

    fit        mean |correlation| of E y with the planted z w, assigned one to one
    truth      the same of the fit that begins at the planted sources
    FastICA    the same of the best contrast of scikit-learn's FastICA, which is told that there are five
    exact      problems in which exactly five features are active
    ahead      mean objective of the fit less that of the fit from the truth
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibpdist.base.threads import one_thread
from tests.support.fit_variants import Variant, add_variants, table, variants_of
from tests.support.planted_sources import (
    AMPLITUDES,
    SourceProblem,
    correlation,
    fast_ica,
    recovered,
    truth_started,
)

FEATURES = 10
HEADER = ("method", "noise", "fit", "worst", "truth", "FastICA", "exact", "ahead", "seconds")


@dataclass(frozen=True)
class Outcome:
    """A fit of a problem beside those that are told more."""

    method: str
    of: SourceProblem
    fit: float
    truth: float
    fast: float
    active: int
    ahead: float
    seconds: float

    def __str__(self) -> str:
        found = f"fit {self.fit:.4f} truth {self.truth:.4f} FastICA {self.fast:.4f} active {self.active}"
        ending = f"ahead {self.ahead:.1f}, {self.seconds:.1f} s"
        return f"{self.method} noise {self.of.noise} seed {self.of.seed}: {found} {ending}"


def outcome(variant: Variant, of: SourceProblem) -> Outcome:
    planted = of.planted
    begun = time.perf_counter()
    found = variant.fit(planted.x, FEATURES)
    took = time.perf_counter() - begun
    best = truth_started(planted, variant.system, dict(variant.settings))
    return Outcome(
        method=str(variant),
        of=of,
        fit=correlation(recovered(found), planted.y),
        truth=correlation(recovered(best), planted.y),
        fast=fast_ica(planted.x, planted.y),
        active=int(found["params"]["active"].sum()),
        ahead=found.attrs["objective"] - best.attrs["objective"],
        seconds=took,
    )


def summary(rows: Sequence[Outcome]) -> str:
    """A line for each method and noise."""
    groups = dict.fromkeys((row.method, row.of.noise) for row in rows)
    lines = [_line([row for row in rows if (row.method, row.of.noise) == key]) for key in groups]
    return table(HEADER, lines)


def _line(rows: Sequence[Outcome]) -> list[str]:
    def mean(name: str, digits: int = 4) -> str:
        return f"{np.mean([getattr(row, name) for row in rows]):.{digits}f}"

    exact = sum(row.active == row.of.sources for row in rows)
    worst = min(row.fit for row in rows)
    return [
        rows[0].method,
        f"{rows[0].of.noise:g}",
        mean("fit"),
        f"{worst:.4f}",
        mean("truth"),
        mean("fast"),
        f"{exact}/{len(rows)}",
        mean("ahead", 1),
        mean("seconds", 1),
    ]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=[0], help="one problem for each")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.3, 0.6], help="standard deviations")
    parser.add_argument("--rows", type=int, default=245)
    parser.add_argument("--amplitudes", choices=AMPLITUDES, default="laplace")
    add_variants(parser)
    parser.set_defaults(system=["ica-vi-infinite"])
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows = []
    with one_thread():
        for noise in options.noise:
            for seed in options.seeds:
                of = SourceProblem(seed, noise, options.rows, amplitudes=options.amplitudes)
                for variant in variants_of(options):
                    rows.append(outcome(variant, of))
                    print(rows[-1], flush=True)
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
