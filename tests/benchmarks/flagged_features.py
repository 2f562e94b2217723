"""Do features that are said to come back do so in halves of the rows that were not asked?

    python -m tests.benchmarks.flagged_features [SEED ...] [--data FOLDER] [--sets cells]
    python -m tests.benchmarks.flagged_features --sets breast --set --set intercept=true

A fit with `stability` flags the features that come back in its half-samples. Then half-samples of another
seed are fitted. A line for each set, seed and number of features as it is done, and a table:

    active     features of the fit of all rows
    flagged    those that it says come back
    again      share of the fresh half-samples that have a flagged feature, in the mean of these features
    least      the same of the flagged feature that comes back least
    others     the same of the features that are not flagged, in the mean

A half-sample has a feature when one of its own has a |cosine| above .9 with it, assigned one to one. Columns
are standardised on all rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.threads import one_thread
from ibpdist.data.arrays import as_source
from ibpdist.data.subsample import Subsample
from tests.benchmarks.subsample_stability import standardised
from tests.support.factor_match import FoundFactors, assigned
from tests.support.fit_variants import Variant, add_variants, table, variants_of
from tests.support.real_matrices import Matrix
from tests.support.real_sets import FILES, MADE, load, names

HEADER = ("set", "K", "seed", "method", "active", "flagged", "again", "least", "others")
LARGEST = 0.3
"""Share of the rows above which so many features are not asked for: a half-sample may have fewer rows."""
FRESH = 1000
"""Difference of the seeds of the halves that flag and of those that check."""


@dataclass(frozen=True)
class Checked:
    """(feature) which features are flagged, and the share of the fresh half-samples that have each."""

    flagged: NDArray[np.bool_]
    again: NDArray[np.float64]

    def cells(self) -> list[str]:
        """The numbers of a line; - where there is no feature."""
        flagged, others = self.again[self.flagged], self.again[~self.flagged]
        shown = [np.mean(flagged), np.min(flagged)] if flagged.size else [np.nan, np.nan]
        shown.append(np.mean(others) if others.size else np.nan)
        numbers = [str(self.flagged.size), str(flagged.size)]
        return numbers + ["-" if np.isnan(one) else f"{one:.2f}" for one in shown]


def halves(x: Matrix, seed: int, count: int) -> list[Matrix]:
    """Half-samples of the rows in complementary pairs."""
    source = as_source(x)
    return [x[~Subsample(seed, member).hidden(0, source.rows)] for member in range(count)]


def checked(variant: Variant, x: Matrix, features: int, seed: int, subsamples: int) -> Checked:
    """A fit that flags, and what fresh half-samples say of it."""
    result = variant.fit(x, features, seed, stability=subsamples)
    flagged = result["stability"]["stable"].values
    whole = FoundFactors.of_result(result).features
    parts = [variant.fit(half, features, seed) for half in halves(x, seed + FRESH, subsamples)]
    present = [assigned(FoundFactors.of_result(part).features, whole) >= 0 for part in parts]
    return Checked(flagged, np.mean(present, axis=0, dtype=float))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", nargs="*", type=int, default=[0], help="each decides the half-samples")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the files")
    parser.add_argument("--sets", nargs="*", choices=[*FILES, *MADE], help="all that there are by default")
    parser.add_argument("--features", type=int, nargs="*", default=[10, 40])
    parser.add_argument("--subsamples", type=int, default=8, help="half-samples that flag, and that check")
    parser.add_argument("--columns", type=int, default=400, help="at most so many random columns")
    parser.add_argument("--most", type=int, default=1500, help="at most so many rows of a set")
    add_variants(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options, rows = parse(arguments), []
    each = list(product(options.features, options.seeds or [0], variants_of(options)))
    with one_thread():
        for name in options.sets or names(options.data):
            x = standardised(load(name, options.data, options.most), options.columns)
            for features, seed, variant in each:
                if features > LARGEST * len(x):
                    continue
                made = checked(variant, x, features, seed, options.subsamples)
                rows.append([name, str(features), str(seed), str(variant), *made.cells()])
                print("  ".join(rows[-1]), flush=True)
    print(table(HEADER, rows))
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
