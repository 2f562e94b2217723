"""The buffet and the beta process on a genotype panel, from one start (Paisley, Carin and Blei 2011, 5.2).

    python -m tests.benchmarks.genotype_panel [SEED ...] [--people 1056 --loci 377 -K 60] [--set NAME=VALUE]
    python -m tests.benchmarks.genotype_panel 0 1 2 --start best

A panel of people from seven regions of several populations each is simulated: allele frequencies drift from
an ancestor to regions and from regions to populations (Balding and Nichols 1995), genotypes are 0, 1 or 2.
Columns are standardised. Every system is fitted from the same start, the principal axes unless --start names
another one. A line for each system and seed:

    ones       sum of the probabilities that people have features
    features   active features
    noise      mean variance of the noise
    within     features that two people of one region share, in the mean of the regions
    between    features that people of two regions share, in the mean of the pairs of regions
    mass, concentration   as the fit says (expected atoms of a round, for the beta process)
    objective  comparable between starts of one system and seed
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import ibpdist as ibp
from ibpdist.catalog.spec import scalar

SYSTEMS = ("fa-vi-infinite", "fa-vi-beta-process")
REGIONS, POPULATIONS = 7, 6
"""Regions, and populations of each."""
FAR, NEAR = 0.08, 0.02
"""Drift from the ancestor to a region, and from a region to a population, as Fst."""
HEADER = (
    "seed",
    "system",
    "ones",
    "features",
    "noise",
    "within",
    "between",
    "mass",
    "concentration",
    "objective",
)


@dataclass(frozen=True)
class Panel:
    """Standardised genotypes x (person, locus), and the region of each person."""

    x: NDArray[np.float64]
    region: NDArray[np.int64]


def panel(people: int, loci: int, seed: int) -> Panel:
    """Loci at which all people are alike are drawn again."""
    rng = np.random.default_rng(seed)
    population = np.sort(rng.integers(0, REGIONS * POPULATIONS, people))
    found = np.empty((people, 0))
    while found.shape[1] < loci:
        ancestor = rng.uniform(0.05, 0.95, loci)
        of_region = drifted(np.tile(ancestor, (REGIONS, 1)), FAR, rng)
        of_population = drifted(np.repeat(of_region, POPULATIONS, axis=0), NEAR, rng)
        made = rng.binomial(2, of_population[population]).astype(np.float64)
        found = np.concatenate([found, made[:, made.std(axis=0) > 0]], axis=1)
    x = found[:, :loci]
    return Panel((x - x.mean(axis=0)) / x.std(axis=0), population // POPULATIONS)


def drifted(frequency: NDArray[np.float64], fst: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Frequencies of populations that left those with `frequency`."""
    size = (1 - fst) / fst
    inside = np.clip(frequency, 1e-3, 1 - 1e-3)
    return rng.beta(size * inside, size * (1 - inside))


def lines(seeds: Sequence[int], options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Cells of the table, as they come."""
    settings = dict(part.split("=", 1) for part in options.set)
    for seed in seeds:
        data = panel(options.people, options.loci, seed)
        for system in options.systems:
            own = {name: scalar(value) for name, value in settings.items()}
            given = {"K": options.features, "seed": seed, "start": options.start, "steps": options.steps}
            result = ibp.fit(data.x, system=system, **given, **own)
            yield (str(seed), system, *told(result, data.region))


def told(result: object, region: NDArray[np.int64]) -> Iterator[str]:
    """The numbers of a line."""
    params = result["params"].to_dataset()  # type: ignore[index]
    shared = ibp.shared_features(result, region)["shared"].values  # type: ignore[arg-type]
    apart = ~np.eye(len(shared), dtype=bool)
    yield f"{float((params['prevalence'] * len(region)).sum()):.1f}"
    yield str(int(params["active"].sum()))
    yield f"{float(params['noise'].mean()):.4f}"
    yield f"{np.diagonal(shared).mean():.3f}"
    yield f"{shared[apart].mean():.3f}"
    yield f"{float(params['mass']):.2f}"
    yield f"{float(params['concentration']):.3f}" if "concentration" in params else "-"
    yield f"{result.attrs['objective']:.1f}"  # type: ignore[attr-defined]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--people", type=int, default=1056)
    parser.add_argument("--loci", type=int, default=377)
    parser.add_argument("-K", "--features", type=int, default=60)
    parser.add_argument("--start", default="principal")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    print("  ".join(HEADER), flush=True)
    for cells in lines(options.seeds, options):
        print("  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
