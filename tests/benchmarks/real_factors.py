"""Does one default fit predict columns of new rows of real sets as well as its rivals?

    python -m tests.benchmarks.real_factors [--data FOLDER] [--sets khan digits ...] [--splits 3]
    python -m tests.benchmarks.real_factors --sets breast --set --set intercept=true

A line for each set, split and method as it is done, and a table of the means over the splits. Columns are
standardised on the training rows; 20 % of the rows are new; their even columns are visible, odd ones hidden.

    nats       log density of a hidden cell, as the method has it
    mixed      the same with rows of uneven noise (predict/rownoise.py)
    RMSE       of what is expected of hidden cells; of a fit their posterior mean as `transform` has it
    mode       mean over the columns of the share of the most frequent value; where it is above one half a
               density says little, and errors count

    FA             scikit-learn's FactorAnalysis; each number at the rank that is best on these very rows
    Ledoit-Wolf    a shrunken covariance
    NMF            errors at the best rank, values above the least of their column
    MOFA           mofapy2, where it is installed; each number at the rank that is best on these very rows
    column mean    independent normal columns

A fit is scored by `ibpdist.evaluate` as it comes, which takes rows to have uneven noise where there are
weights: its nats stand under `mixed`. A set of a file needs its folder (tests/support/real_sets.py).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import ibpdist as ibp
from ibpdist.base.threads import one_thread
from tests.support.fit_variants import Variant, add_variants, predicted, table, variants_of
from tests.support.gaussian_rivals import Marks, error, even, rivals
from tests.support.real_matrices import Matrix, Split, split
from tests.support.real_sets import FILES, MADE, load, names, share_at_mode

HEADER = ("set", "method", "nats", "mixed", "RMSE", "active", "seconds", "mode")


@dataclass(frozen=True)
class Outcome:
    """A method on a split; `active` features of a fit, otherwise nothing."""

    name: str
    number: int
    shape: tuple[int, ...]
    mode: float
    method: str
    marks: Marks
    active: float = np.nan
    seconds: float = np.nan

    def __str__(self) -> str:
        found = "" if np.isnan(self.active) else f", {self.active:.0f} active"
        numbers = {"nats": self.marks.nats, "mixed": self.marks.mixed, "RMSE": self.marks.rmse}
        scores = " ".join(f"{name} {value:.4f}" for name, value in numbers.items() if np.isfinite(value))
        return f"{self.name} {self.number} {self.shape}: {self.method}: {scores}{found}, {self.seconds:.1f} s"


def fitted(variant: Variant, of: Split, features: int) -> tuple[Marks, int]:
    """A fit: its score and errors on new rows, and its active features."""
    result = variant.fit(of.train, features)
    scored = ibp.evaluate(result, of.test, serial=True)
    shown = np.where(even(of.test), of.test, np.nan)
    expected = predicted(result, shown)
    nats = float(scored.score.sel(estimate="variance"))
    marks = Marks(mixed=nats, rmse=error(expected[:, ~even(of.test)], of.test))
    return marks, int(result["params"]["active"].sum())


def outcomes(
    name: str, x: Matrix, options: argparse.Namespace, variants: Sequence[Variant]
) -> Iterator[Outcome]:
    """Every method on every split of a set."""
    for number in range(options.splits):
        made = split(x, number, options.columns)
        of = replace(made, test=made.test[: options.rows])
        place = (name, number, of.train.shape, share_at_mode(of.train))
        begun = time.perf_counter()
        for method, marks in rivals(of):
            yield Outcome(*place, method, marks, seconds=time.perf_counter() - begun)
            begun = time.perf_counter()
        for variant in variants:
            begun = time.perf_counter()
            marks, active = fitted(variant, of, options.features)
            yield Outcome(*place, str(variant), marks, active, time.perf_counter() - begun)


def summary(rows: Sequence[Outcome]) -> str:
    """A line for each set and method: means over the splits."""
    groups = dict.fromkeys((row.name, row.method) for row in rows)
    return table(HEADER, [_line([row for row in rows if (row.name, row.method) == key]) for key in groups])


def _line(rows: Sequence[Outcome]) -> list[str]:
    numbers = [
        [row.marks.nats, row.marks.mixed, row.marks.rmse, row.active, row.seconds, row.mode] for row in rows
    ]
    formats = (".4f", ".4f", ".4f", ".1f", ".1f", ".2f")
    means = zip(np.mean(numbers, axis=0), formats, strict=True)
    told = [format(mean, form) if np.isfinite(mean) else "-" for mean, form in means]
    return [rows[0].name, rows[0].method, *told]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the files")
    parser.add_argument("--sets", nargs="*", choices=[*FILES, *MADE], help="all that there are by default")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--columns", type=int, default=400, help="at most so many random columns")
    parser.add_argument("--features", type=int, default=80, help="K of the fits")
    parser.add_argument("--most", type=int, default=1500, help="at most so many rows of a set")
    parser.add_argument("--rows", type=int, default=200, help="at most so many new rows")
    add_variants(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows = []
    with one_thread():
        for name in options.sets or names(options.data):
            x = load(name, options.data, options.most)
            for made in outcomes(name, x, options, variants_of(options)):
                print(made, flush=True)
                rows.append(made)
    print(summary(rows))
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
