"""Does one default fit find planted weighted features, and who has them?

    python -m tests.benchmarks.planted_factors [SEED ...] [--kinds grid newcomer nuisance ...] [--peers]
    python -m tests.benchmarks.planted_factors 1 --set --set intercept=true

A line for each problem and method as it is done, and a table by kind. Problems are drawn from the seeds
(tests/support/factor_problems.py); `grid`, the default, is signed and positive weights with and without
an offset, six problems of each for a seed. Each --set is a variant, and an empty one has default settings.

    recovery   share of the planted features with a |cosine| above .9, assigned one to one
    error      mean |error| of their prevalences; the prevalence itself where a feature is not matched
    exact      problems with the right number of features; features of more than .95 of the rows are
               `always on` and not counted
    right      all features matched, error at most .02, exact; of `nuisance` all matched, exact, and
               the dense factors always on

Fits are given 2 K + 4 features. With --peers other methods are given K itself, where they are installed, and
the mean of the column in cells that are missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ibpdist.base.threads import one_thread
from tests.support.factor_match import FactorScore, FoundFactors, judged
from tests.support.factor_peers import PEERS, Peer, peers
from tests.support.factor_problems import COUNT, GROUPS, KINDS, FactorProblem, Matrix, draw, problem
from tests.support.fit_variants import Variant, add_variants, table, variants_of

Method = Callable[[Matrix, FactorProblem], FoundFactors]
HEADER = ("kind", "method", "recovery", "error", "exact", "right", "sparse", "always on", "seconds")


@dataclass(frozen=True)
class Outcome:
    """A method on a problem."""

    kind: str
    seed: int
    number: int
    method: str
    of: FactorProblem
    score: FactorScore
    seconds: float

    def __str__(self) -> str:
        of, score = self.of, self.score
        size = f"{of.rows:>6}x{of.columns:<3} K {of.features:>2}+{of.dense}"
        where = f"{self.kind} {self.seed}/{self.number} {size} noise {of.noise:.2f} {of.activity}"
        found = f"recovery {score.recovery:.2f} error {score.error:.3f} sparse {score.sparse}"
        right = "  RIGHT" if score.right(of) else ""
        return f"{where}: {self.method}: {found} always on {score.always}, {self.seconds:.1f} s{right}"


def fitted(variant: Variant) -> Method:
    """A fit as a method."""
    return lambda x, of: FoundFactors.of_result(variant.fit(x, of.truncation))


def _informed(peer: Peer) -> Method:
    """A peer, given the number of features."""
    return lambda x, of: peer(x, of.features)


def methods(variants: Sequence[Variant], with_peers: bool) -> dict[str, Method]:
    """Methods by name; a peer that is not installed is told of and left out."""
    made: dict[str, Method] = {str(variant): fitted(variant) for variant in variants}
    for name, peer in peers() if with_peers else ():
        if peer is None:
            print(f"{name}: not installed, skipped", flush=True)
        else:
            made[name] = _informed(peer)
    return made


def outcomes(
    kinds: Sequence[str], seeds: Sequence[int], count: int, each: dict[str, Method], missing: float = 0.0
) -> Iterator[Outcome]:
    """Every method on every problem, problem after problem."""
    for kind, seed, number in product(kinds, seeds, range(count)):
        of = replace(problem(kind, seed, number), missing=missing)
        planted = draw(of)
        for name, method in each.items():
            begun = time.perf_counter()
            found = method(planted.x, of)
            took = time.perf_counter() - begun
            yield Outcome(kind, seed, number, name, of, judged(found, planted), took)


def summary(rows: Sequence[Outcome]) -> str:
    """A line for each kind and method."""
    groups = dict.fromkeys((row.kind, row.method) for row in rows)
    return table(HEADER, [_line([row for row in rows if (row.kind, row.method) == key]) for key in groups])


def _line(rows: Sequence[Outcome]) -> list[str]:
    scores = [row.score for row in rows]
    exact = f"{sum(row.score.exact(row.of) for row in rows)}/{len(rows)}"
    right = sum(row.score.right(row.of) for row in rows)
    return [
        rows[0].kind,
        rows[0].method,
        f"{np.mean([score.recovery for score in scores]):.3f}",
        f"{np.mean([score.error for score in scores]):.3f}",
        "given" if rows[0].method in PEERS else exact,
        f"{right}/{len(rows)}",
        f"{np.mean([score.sparse for score in scores]):.1f}",
        f"{np.mean([score.always for score in scores]):.1f}",
        f"{np.mean([row.seconds for row in rows]):.1f}",
    ]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=[0], help="each decides all problems of a kind")
    parser.add_argument("--kinds", nargs="+", default=["grid"], choices=[*GROUPS, *KINDS])
    parser.add_argument("--count", type=int, default=COUNT, help="problems of each kind and seed")
    parser.add_argument("--peers", action="store_true", help="other methods as well, with the true K")
    parser.add_argument("--missing", type=float, default=0.0, help="share of the cells that are missing")
    add_variants(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    kinds = [kind for name in options.kinds for kind in GROUPS.get(name, (name,))]
    each = methods(variants_of(options), options.peers)
    rows = []
    with one_thread():
        for made in outcomes(kinds, options.seeds, options.count, each, options.missing):
            print(made, flush=True)
            rows.append(made)
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
