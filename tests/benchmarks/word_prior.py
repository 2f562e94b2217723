"""Perplexity against the prior of the words of features (Paisley, Carin and Blei 2011, figure 3).

    python -m tests.benchmarks.word_prior [--data FOLDER] [--values .02 .05 .1] [-K 60] [--systems ...]

The paper's beta is the shape of the gamma prior of an entry of a feature: `word_shape` of the systems with
hard assignment and of nmf-vi, and `eta` of the systems by collapsed means, where the entries of a feature add
to one. Data, halves of new documents and columns are those of tests.benchmarks.perplexity; the split is the
first one. There is a line for each system and value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from ibpdist.catalog.systems import SYSTEMS, System
from tests.benchmarks import perplexity

PRIORS = {"eta", "word_shape"}
"""Settings of the prior of words."""
HEADER = ("system", "beta", *perplexity.HEADER[1:])


def prior_of_words(system: System) -> str | None:
    """The setting of a system that is the paper's beta, if it has one."""
    names = PRIORS & {field.name for field in fields(system.observation_type)}  # type: ignore[arg-type]
    return names.pop() if names else None


def swept() -> list[str]:
    """Systems of counts with a prior of words that is given and not drawn."""
    return [name for name, row in SYSTEMS.items() if row.counts and not row.sampler and prior_of_words(row)]


def lines(options: argparse.Namespace) -> Iterator[list[str]]:
    """Cells of the table, as they come."""
    problems = [perplexity.problem(perplexity.corpus(options.data), 0, size=options.train)]
    for system in options.systems:
        setting = prior_of_words(SYSTEMS[system])
        for value in options.values:
            method = partial(perplexity.ours, system, {setting: value})
            name, *cells = perplexity.line(system, method, problems, options.features, options.restarts)
            yield [name, f"{value:g}", *cells]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the corpus")
    parser.add_argument("--train", type=int, help="training documents")
    parser.add_argument("--values", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    parser.add_argument("-K", "--features", type=int, default=60)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--systems", nargs="+", choices=swept(), default=swept(), metavar="NAME")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    perplexity.print_lines(HEADER, lines(parse(arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
