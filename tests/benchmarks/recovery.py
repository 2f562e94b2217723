"""Does one default fit find what is there, and how many there are?

    python -m tests.benchmarks.recovery SEED [--problems near] [--methods default random fa ica]
    python -m tests.benchmarks.recovery SEED --only 17 --methods truth default
    python -m tests.benchmarks.recovery SEED --data FOLDER [--seeds 20]

Problems are drawn from SEED (tests/support/planted.py). Every one is also fitted from its planted
z (the reference, tests/support/truth_start.py) and from a plain random start (the unit of time,
with the same truncation). A line for each problem and method as it is done; none is dropped.

    found      active features, of those planted
    matched    planted features with an error below 0.3 standard deviations, after the best
               assignment: in this fit and the reference / in the reference (in this fit)
    gap        (reference - objective) / |reference|, and in nats a cell
    time       wall seconds and processor seconds, and both in plain random-start fits

`default` is what `ibpdist.fit` does, `random` a plain coordinate ascent from a random start, `moved` a
random start with moves, `truth` the reference. `fa` and `ica` are scikit-learn's FactorAnalysis with
varimax and FastICA, with the planted number of components, whose sign and length are free.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tests.support import benchmark_sets
from tests.support.planted import COUNTS, SETS, draw, problem
from tests.support.recovered import METHODS, Options, Study, warm
from tests.support.recovery_rows import Row, summary


def rows_of(options: Options, number: int) -> list[Row]:
    """All methods on one problem; a method that fails is a row with its error."""
    made = problem(options.problems, options.seed, number)
    study = Study(draw(made), made, options)
    return [study.row(number, method) for method in options.methods]


def studied(options: Options, numbers: list[int], jobs: int) -> Iterator[list[Row]]:
    """The rows of each problem as it is done."""
    work = partial(rows_of, options)
    if jobs == 1:
        warm(options)
        yield from map(work, numbers)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, warm, (options,)) as pool:
        yield from pool.imap_unordered(work, numbers, chunksize=1)


def settings(given: list[str]) -> dict[str, Any]:
    """`name=value` as settings of the system; numbers as numbers."""
    made: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            made[name] = float(value)
        except ValueError:
            made[name] = value
    return made


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int, help="decides all problems")
    parser.add_argument("--problems", choices=SETS, default="grid")
    parser.add_argument("--near", dest="problems", action="store_const", const="near", default="grid")
    parser.add_argument("--count", type=int, help="the first so many; all of the set unless given")
    parser.add_argument("--only", type=int, nargs="*", help="these problems by number")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=["default"])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="CSV with all of the numbers")
    parser.add_argument("--system", default="lg-vi-infinite")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of all fits")
    parser.add_argument("--data", type=Path, help="folder of dv500, big20k and gg6x6: fit these instead")
    parser.add_argument(
        "--sets", nargs="*", choices=list(benchmark_sets.TRUNCATIONS), help="only these of them"
    )
    parser.add_argument("--seeds", type=int, default=20, help="fits of each of them, from SEED on")
    return parser.parse_args(arguments)


def recover(given: argparse.Namespace, out: TextIO | None) -> None:
    options = Options(
        given.problems, given.seed, tuple(given.methods), given.system, tuple(settings(given.set).items())
    )
    count = given.count or COUNTS.get(given.problems, 20)
    numbers = given.only or list(range(count))
    writer = csv.DictWriter(out, [f.name for f in fields(Row)]) if out else None
    if writer:
        writer.writeheader()
    rows: list[Row] = []
    for made in studied(options, numbers, given.jobs):
        for row in made:
            print(row, flush=True)
            if writer and out:
                writer.writerow(asdict(row))
                out.flush()
        rows += made
    for method in options.methods:
        print(summary(method, [row for row in rows if row.method == method]))


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    if given.data:
        for line in benchmark_sets.compared(given.data, given.sets, given.seed, given.seeds, given.system):
            print(line, flush=True)
        return 0
    if given.out is None:
        recover(given, None)
        return 0
    with given.out.open("w", newline="") as out:
        recover(given, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
