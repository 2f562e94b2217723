"""Do features of real sets come back when a tenth of the rows is left out?

    python -m tests.benchmarks.subsample_stability [--data FOLDER] [--sets khan cells] [--features 5 10 20 40]
    python -m tests.benchmarks.subsample_stability --sets breast --set --set intercept=true

A line for each set, number of features and method as it is done, and a table. `again` is the share of the
features of all rows that have a |cosine| above .9 with a feature of a subsample, assigned one to one: the
mean of the subsamples, and the least. `found` are the active features of a fit of all rows that is given K,
`kept` those of fits of subsamples. FactorAnalysis with varimax always has K. Columns are standardised on
all rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.threads import one_thread
from tests.support.factor_match import FoundFactors, assigned
from tests.support.fit_variants import Variant, add_variants, table, variants_of
from tests.support.real_matrices import CLIP, Matrix
from tests.support.real_sets import FILES, MADE, load, names

HEADER = ("set", "K", "method", "again", "least", "found", "kept")
LEFT_OUT = 0.1
Method = Callable[[Matrix, int], Matrix]


@dataclass(frozen=True)
class Outcome:
    """Features of all rows, of each subsample, and the shares that came back."""

    name: str
    features: int
    method: str
    again: tuple[float, ...]
    found: int
    kept: float

    def cells(self) -> list[str]:
        """The line of the table."""
        mean, least = (f"{of(self.again):.2f}" for of in (np.mean, np.min))
        return [self.name, str(self.features), self.method, mean, least, str(self.found), f"{self.kept:.1f}"]


def standardised(x: Matrix, columns: int) -> Matrix:
    """Some columns that vary, with mean zero and variance one."""
    x = x[:, np.sort(np.random.default_rng(99).permutation(x.shape[1])[:columns])]
    x = x[:, x.std(axis=0) > 1e-6]
    made: Matrix = np.clip((x - x.mean(0)) / x.std(0), -CLIP, CLIP)
    return made


def subsample(rows: int, seed: int) -> NDArray[np.intp]:
    """(row,) nine tenths of the rows."""
    order = np.random.default_rng([seed, 17]).permutation(rows)
    return np.sort(order[round(LEFT_OUT * rows) :])


def varimax(x: Matrix, features: int) -> Matrix:
    """Features of FactorAnalysis with varimax."""
    from sklearn.decomposition import FactorAnalysis

    method = "lapack" if min(x.shape) <= 200 else "randomized"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FactorAnalysis(features, rotation="varimax", svd_method=method, random_state=0).fit(x)
    return np.asarray(made.components_)


def fitted(variant: Variant) -> Method:
    """Active features of a fit."""
    return lambda x, features: FoundFactors.of_result(variant.fit(x, features)).features


def share_again(whole: Matrix, part: Matrix) -> float:
    """Share of the features of all rows that are among those of some rows; zero where there are none."""
    return float((assigned(part, whole) >= 0).mean()) if len(whole) else 0.0


def outcomes(
    name: str, x: Matrix, each: dict[str, Method], numbers: Sequence[int], drops: int
) -> Iterator[Outcome]:
    """Every method at every number of features that the rows and columns allow."""
    for features in numbers:
        if features >= min(x.shape):
            continue
        for label, method in each.items():
            whole = method(x, features)
            parts = [method(x[subsample(len(x), seed)], features) for seed in range(drops)]
            again = tuple(share_again(whole, part) for part in parts)
            kept = float(np.mean([len(part) for part in parts]))
            yield Outcome(name, features, label, again, len(whole), kept)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the files")
    parser.add_argument("--sets", nargs="*", choices=[*FILES, *MADE], help="all that there are by default")
    parser.add_argument("--features", type=int, nargs="*", default=[5, 10, 20, 40])
    parser.add_argument("--drops", type=int, default=4, help="subsamples")
    parser.add_argument("--columns", type=int, default=400, help="at most so many random columns")
    parser.add_argument("--most", type=int, default=1500, help="at most so many rows of a set")
    add_variants(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options, rows = parse(arguments), []
    each: dict[str, Method] = {"FA+varimax": varimax}
    each |= {str(variant): fitted(variant) for variant in variants_of(options)}
    with one_thread():
        for name in options.sets or names(options.data):
            x = standardised(load(name, options.data, options.most), options.columns)
            for made in outcomes(name, x, each, options.features, options.drops):
                print("  ".join(made.cells()), flush=True)
                rows.append(made.cells())
    print(table(HEADER, rows))
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
