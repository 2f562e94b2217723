"""Does one default fit predict columns of new rows as well as factor analysis of the best rank?

    python -m tests.benchmarks.factors [digits expression genotypes] [--file MNIST.npz --columns 400]
        [--splits 3] [--features 80] [--rows 200] [--pictures DIR]

A line for each set and split, in nats per hidden cell, higher is better; even columns of new rows
are visible, odd ones hidden (tests/support/real_matrices.py).

    fa         scikit-learn's FactorAnalysis of the rank that is best on these very rows, an oracle; of
               ranks up to the number of features that the fit is given
    fa any     of larger ranks too
    fa mixed   the same with rows of uneven noise (predict/rownoise.py), its rank chosen again
    sparse     fa-vi-infinite as it comes, no rank given; wins when it is not below `fa`
    dense      fa-vi-dense
    unit       lg-vi-infinite with a noise for each column, rows of uneven noise as well
    chosen     what `ibpdist.choose` takes, from a tenth of the training rows

With --pictures, sets whose rows are square pictures are fitted once with all of their columns, and
the factors are drawn in DIR (tests/support/factor_pictures.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

import ibpdist as ibp
from tests.support.factor_pictures import draw, side
from tests.support.plain_factors import rivals
from tests.support.real_matrices import SIMULATED, Matrix, Split, split, stored

SPARSE, DENSE, UNIT = "fa-vi-infinite", "fa-vi-dense", "lg-vi-infinite"
SETTINGS = {SPARSE: {}, DENSE: {}, UNIT: {"noise": "column"}}


def score(of: Split, system: str, features: int) -> tuple[float, int, float]:
    """Nats per hidden cell, active features, processor seconds of the fit."""
    begun = time.process_time()
    result = ibp.fit(of.train, system=system, K=features, serial=True, **SETTINGS[system])
    seconds = time.process_time() - begun
    found = ibp.evaluate(result, of.test, uneven=True)
    return float(found.score.sel(estimate="variance")), int(result["params"]["active"].sum()), seconds


def line(name: str, number: int, of: Split, features: int, systems: list[str]) -> str:
    """All methods on one split."""
    found = list(rivals(of))
    fair = max((one for one in found if one.rank <= features), key=lambda one: one.plain)
    plain, mixed = max(found, key=lambda one: one.plain), max(found, key=lambda one: one.mixed)
    told = [f"{name} {number} {of.train.shape}", f"fa {fair.plain:.4f} (rank {fair.rank})"]
    told.append(f"fa any {plain.plain:.4f} (rank {plain.rank})")
    told.append(f"fa mixed {mixed.mixed:.4f} (rank {mixed.rank})")
    for system in systems:
        value, active, seconds = score(of, system, features)
        told.append(f"{system} {value:.4f} ({active} active, {seconds:.0f} s)")
        if system == SPARSE:
            told.append("WINS" if value >= fair.plain else "LOSES")
    choice = ibp.choose(of.train, K=features, serial=True)
    told.append(f"chosen {choice.system}")
    return "  ".join(told)


def lines(sets: dict[str, tuple[Matrix, int | None]], options: argparse.Namespace) -> Iterator[str]:
    for name, (x, columns) in sets.items():
        for number in range(options.splits):
            made = split(x, number, columns)
            made = replace(made, test=made.test[: options.rows])
            yield line(name, number, made, options.features, options.systems)


def pictures(sets: dict[str, tuple[Matrix, int | None]], folder: Path, features: int) -> Iterator[Path]:
    """A picture of the factors of one fit to each set of pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (x, _) in sets.items():
        length, stem = side(x), Path(name).stem
        if length is not None:
            made = split(x, 0)
            result = ibp.fit(made.train, system=SPARSE, K=features, serial=True)
            yield draw(folder / f"{stem}.png", stem, result, made, length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SIMULATED))
    parser.add_argument("--file", help="a matrix in .npy or .npz (under X), rows by columns")
    parser.add_argument("--columns", type=int, help="so many random columns of the file")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--features", type=int, default=80)
    parser.add_argument("--rows", type=int, default=200, help="at most so many new rows")
    parser.add_argument("--systems", nargs="*", default=list(SETTINGS))
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw the factors of pictures there")
    options = parser.parse_args()
    sets: dict[str, tuple[Matrix, int | None]] = {name: (SIMULATED[name](), None) for name in options.sets}
    if options.file:
        sets = {options.file: (stored(options.file), options.columns)}
    drawn = pictures(sets, options.pictures, options.features) if options.pictures else ()
    for said in chain(drawn, lines(sets, options)):
        print(said, flush=True)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
