"""How well do factors by mean field predict the other half of new documents?

    python -m tests.benchmarks.factorised [--data FOLDER] [--sizes 20 60] [--restarts 3] [--words .5]

Splits, halves and columns are those of tests.benchmarks.perplexity. NAME-hard are fits with z of 0 or 1 under
that prior, "nmf-vi" is the same with every feature in every row, and "nmf" has the point estimates of Lee and
Seung, with .1 token more for every word of a feature; --words is b.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ibpdist.base.threads import one_thread
from ibpdist.model.observations.factorised_counts import FactorisedCounts
from ibpdist.model.priors import BetaBernoulli, StickBreaking
from ibpdist.model.priors.beta_process import BetaProcess
from tests.benchmarks.perplexity import (
    FLOOR,
    HEADER,
    Counts,
    Matrix,
    Predictor,
    Problem,
    corpus,
    half,
    line,
    problem,
)
from tests.support.factorised_fit import Fit
from tests.support.fit_variants import table

FLIP_STEPS, EVERY_STEPS, FOLDS = 60, 150, 50
"""Steps of factors with features on or off, with every feature in every row, and of new rows."""


def begin_words(x: Counts, features: int, seed: int) -> Matrix:
    """(column, feature) half of the tokens of random documents: a fifth of all is used, or one for each
    feature, none twice before all have been used."""
    rng = np.random.default_rng(seed)
    each = max(1, len(x) // (5 * features))
    rounds = range(-(-features * each // len(x)))
    rows = np.concatenate([rng.permutation(len(x)) for _ in rounds])[: features * each]
    halves = np.array([half(x[row], rng) for row in rows], dtype=float)
    return np.asarray(halves.reshape(features, each, -1).sum(axis=1).T)


def factors(made: Fit, of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    """Factors by mean field, or point estimates with a floor."""
    steps = EVERY_STEPS if made.prior.dense else FLIP_STEPS
    state = made.run(of.train, begin_words(of.train, features, seed), steps)
    rows = made.new_rows(of.seen, state, FOLDS)
    law = made.counts.law(state.params, rows, FLOOR if made.counts.point else 0.0)
    return law, float(state.sums.on.sum()) / len(of.train), float((state.sums.on > 0.5).sum())


def methods(words: float) -> dict[str, Predictor]:
    """By name."""
    counts, point = FactorisedCounts(word_shape=words), FactorisedCounts(point=True)
    hard = {"finite": BetaBernoulli(), "sticks": StickBreaking(), "beta-process": BetaProcess()}
    fits = {f"{name}-hard": Fit(prior, counts) for name, prior in hard.items()}
    fits |= {"nmf-vi": Fit(counts=counts), "nmf": Fit(counts=point)}
    return {name: partial(factors, made) for name, made in fits.items()}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of reuters395_lda.npz")
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 60], help="numbers of features")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--methods", nargs="*", help="all that there are by default")
    parser.add_argument("--words", type=float, default=0.5, help="b")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options, rows = parse(arguments), []
    x = corpus(options.data)
    problems = [problem(x, split) for split in range(3)]
    with one_thread():
        for name, method in methods(options.words).items():
            for features in options.sizes if name in (options.methods or methods(options.words)) else []:
                rows.append(line(name, method, problems, features, options.restarts))
                print("  ".join(rows[-1]), flush=True)
    print(table(HEADER, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
