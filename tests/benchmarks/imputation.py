"""How well does one default fit predict cells that are hidden at random?

    python -m tests.benchmarks.imputation [--data FOLDER] [--sets breast digits] [--shares 0.1 0.5]
    python -m tests.benchmarks.imputation --sets breast --set --set intercept=true --set missing=latent

A line for each set, share and method as it is done, and a table. In every row a fresh share of the columns is
hidden; columns are standardised on the visible cells.

    nats    log density of a hidden cell given the visible ones of its row
    RMSE    of what is expected of hidden cells; of a fit their posterior mean

FA and PPCA by EM, and MOFA where mofapy2 is installed, have the rank that is best on these very cells, for
each number by itself. softImpute chooses its threshold by cells hidden inside. Other methods are
scikit-learn's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import ibpdist as ibp
from ibpdist.base.threads import one_thread
from ibpdist.data.splits import HeldCells, describe
from tests.support import mofa
from tests.support.fit_variants import Variant, add_variants, predicted, table, variants_of
from tests.support.gaussian_rivals import Marks
from tests.support.missing_rivals import COMPLETED, EM, RANKS, FactorLaw, Mask, Matrix, factor_em
from tests.support.real_sets import FILES, MADE, load, names

HEADER = ("set", "share", "method", "nats", "RMSE", "active", "seconds")
CLIP = 6.0


@dataclass(frozen=True)
class Holes:
    """All cells (row, column), which of them are hidden, and the recipe that hides them."""

    x: Matrix
    hidden: Mask
    recipe: str

    @property
    def shown(self) -> Matrix:
        """The visible cells; NaN is hidden."""
        return np.where(self.hidden, np.nan, self.x)

    def error(self, expected: Matrix) -> float:
        """Root mean square of the errors of the hidden cells."""
        return float(np.sqrt(np.mean((expected - self.x)[self.hidden] ** 2)))


@dataclass(frozen=True)
class Outcome:
    """A method on a set; `active` features of a fit, otherwise nothing."""

    name: str
    share: float
    method: str
    marks: Marks
    seconds: float
    active: float = np.nan

    def cells(self) -> list[str]:
        """The line of the table."""
        numbers = ((self.marks.nats, ".4f"), (self.marks.rmse, ".4f"), (self.active, ".0f"))
        told = [format(value, form) if np.isfinite(value) else "-" for value, form in numbers]
        return [self.name, f"{self.share:g}", self.method, *told, f"{self.seconds:.1f}"]


def holes(x: Matrix, share: float, columns: int, seed: int) -> Holes:
    """Some columns of a set with cells to hide."""
    rng = np.random.default_rng([seed, 99])
    x = x[:, np.sort(rng.permutation(x.shape[1])[:columns])]
    x = x[:, x.std(axis=0) > 1e-6]
    split = HeldCells(share, rows=1.0, seed=seed, fresh=True)
    hidden = split.hidden(0, len(x), *x.shape)
    shown = np.where(hidden, np.nan, x)
    sd = np.nanstd(shown, axis=0)
    keep = sd > 1e-6
    if not keep.all():
        return holes(x[:, keep], share, columns, seed)
    return Holes(np.clip((x - np.nanmean(shown, axis=0)) / sd, -CLIP, CLIP), hidden, describe(split))


def by_em(x: Matrix, shared: bool) -> list[FactorLaw]:
    """Factor analysis, or probabilistic PCA, of each rank."""
    return [factor_em(x, rank, shared) for rank in RANKS if rank < min(x.shape)]


LAWS: dict[str, Callable[[Matrix], list[FactorLaw]]] = {
    **{name: partial(by_em, shared=shared) for name, shared in EM.items()},
    **({"MOFA": mofa.laws} if mofa.installed() else {}),
}
"""Methods with a density, at several ranks."""


def best_law(of: Holes, laws: Iterable[FactorLaw]) -> Marks:
    """Each number at the rank that is best for it."""
    found = Marks()
    for law in laws:
        nats = law.score(of.x, ~of.hidden, of.hidden)
        found = found.best(Marks(nats, rmse=of.error(law.expected(of.shown))))
    return found


def fitted(variant: Variant, of: Holes, features: int) -> tuple[Marks, int]:
    """A fit: its score and errors on the hidden cells, and its active features."""
    result = variant.fit(of.x, features, holdout=of.recipe)
    scored = ibp.evaluate(result, of.x, visible="fitted", serial=True)
    nats = float(scored.score.sel(estimate="variance"))
    expected = predicted(result, of.shown)
    return Marks(nats, rmse=of.error(expected)), int(result["params"]["active"].sum())


def outcomes(
    name: str, of: Holes, share: float, variants: Sequence[Variant], features: int
) -> Iterator[Outcome]:
    """Every method on the same hidden cells."""
    for method, complete in COMPLETED.items():
        begun = time.perf_counter()
        marks = Marks(rmse=of.error(complete(of.shown)))
        yield Outcome(name, share, method, marks, time.perf_counter() - begun)
    for method, laws in LAWS.items():
        begun = time.perf_counter()
        marks = best_law(of, laws(of.shown))
        yield Outcome(name, share, method, marks, time.perf_counter() - begun)
    for variant in variants:
        begun = time.perf_counter()
        marks, active = fitted(variant, of, features)
        yield Outcome(name, share, str(variant), marks, time.perf_counter() - begun, active)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=[0], help="each decides which cells are hidden")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the files")
    parser.add_argument("--sets", nargs="*", choices=[*FILES, *MADE], help="all that there are by default")
    parser.add_argument("--shares", type=float, nargs="*", default=[0.1, 0.5])
    parser.add_argument("--columns", type=int, default=100, help="at most so many random columns")
    parser.add_argument("--features", type=int, default=40, help="K of the fits")
    parser.add_argument("--most", type=int, default=600, help="at most so many rows of a set")
    add_variants(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options, rows = parse(arguments), []
    with one_thread():
        for name in options.sets or names(options.data):
            x = load(name, options.data, options.most)
            for seed in options.seeds:
                for share in options.shares:
                    of = holes(x, share, options.columns, seed)
                    for made in outcomes(name, of, share, variants_of(options), options.features):
                        print("  ".join(made.cells()), flush=True)
                        rows.append(made.cells())
    print(table(HEADER, rows))
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
