"""Do two errors of an annealed held-out score cover the score that enumeration gives?

    python -m tests.benchmarks.scores FIRST [--count 100] [--chains 8]

Cases are drawn from the seeds FIRST, FIRST + 1, ... (tests/support/score_cases.py); every other has normal
weights. A line for each case and estimate:

    exact      nats per hidden cell by enumeration
    annealed   the same from chains, with its error
    off        annealed - exact, in errors
    disagree   rows whose chains disagree, of all rows
    ms         milliseconds a row of the one thread that works, both estimates together

Then, for each estimate, in how many cases two and three errors cover the exact score, and the root mean
square of `off`, which is 1 for an error of the right size.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ibpdist.predict.sampled import Sampling
from tests.support.score_cases import Outcome, annealed, case, outcomes


def line(made: Outcome, cells: int, milliseconds: float) -> str:
    """An outcome in words."""
    exact, found = made.exact.sum() / cells, made.found.score.sum() / cells
    apart = f"{int(made.found.disagree.sum())} of {len(made.exact)}"
    return (
        f"{made.case:52s} {made.estimate:9s} exact {exact:9.4f} annealed {found:9.4f} "
        f"+- {made.error / cells:.4f} off {made.off:6.2f} disagree {apart:10s} ms {milliseconds:5.2f}"
    )


def coverage(name: str, off: list[float]) -> str:
    """In how many cases errors cover the exact score."""
    size = np.abs(off)
    two, three = int((size < 2).sum()), int((size < 3).sum())
    rms = np.sqrt(np.mean(np.square(off)))
    return f"{name}: 2 errors cover {two} of {len(off)}, 3 errors {three}; rms of off {rms:.2f}"


def main() -> None:
    """Score cases and print what the errors cover."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--chains", type=int, default=8)
    given = parser.parse_args()
    plan, off = Sampling(chains=given.chains), dict[str, list[float]]()
    for seed in range(given.first, given.first + given.count):
        made = case(seed)
        began = time.process_time()
        found = annealed(made, plan)
        milliseconds = 1e3 * (time.process_time() - began) / len(made.x)
        for one in outcomes(made, found):
            off.setdefault(one.estimate, []).append(one.off)
            print(line(one, int(made.hidden.sum()), milliseconds), flush=True)
    for name, values in off.items():
        print(coverage(name, values))


if __name__ == "__main__":
    main()
