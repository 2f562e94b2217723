"""Do chains of the infinite samplers come to the shapes that are there, wherever they begin?

    python -m tests.benchmarks.shapes [--data syn_gg6x6.npz] [--seeds 5] [--systems ...]

100 images of 6 x 6 with four shapes and as many new ones, of the file or made with a seed. Chains
begin with one feature, with ten at random, and where a variational fit ends. A line for each chain:

    K 4 or 5     share of the kept draws with four or five features (goal .75)
    four shared  share with four features that more than two rows have (goal .9)
    score        of the odd pixels of new images given the even ones, less that of a long chain that
                 begins at the truth, in nats a pixel (goal: not below -0.002)

The later half of the steps is kept. A step of `lg-gibbs-infinite` is half a sweep.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import ibpdist as ibp
from tests.support.truth_chain import truth_chain

STEPS = {"lg-collapsed-infinite": 4000, "lg-uncollapsed-infinite": 8000, "lg-gibbs-infinite": 16000}
BEGINS: tuple[tuple[int, str], ...] = ((1, "random"), (10, "random"), (8, "fit"))
KEPT, OFTEN, SHARED, SHORT = 500, 0.75, 0.9, 0.002


@dataclass(frozen=True)
class Images:
    """Images to fit, their planted z (row, feature), and new ones."""

    x: NDArray[np.float64]
    z: NDArray[np.bool_]
    new: NDArray[np.float64]


def images(path: Path | None, seed: int = 0) -> Images:
    if path is not None:
        held = np.load(path)
        return Images(
            held["X_train"].astype(float), held["Z_train"].astype(bool), held["X_test"].astype(float)
        )
    made = ibp.synthetic("images", rows=200, noise=0.25, seed=seed)
    x = made.x.values.astype(float)
    return Images(x[:100], made.z.values[:100].astype(bool), x[100:])


@dataclass(frozen=True)
class Found:
    """Shares of the draws, and the held-out score."""

    often: float
    shared: float
    score: float

    def __str__(self) -> str:
        return f"K 4 or 5 {self.often:.3f}, four shared {self.shared:.3f}, score {self.score:.4f}"

    @classmethod
    def of(cls, result: xr.DataTree, new: NDArray[np.float64]) -> Found:
        number = result["posterior"]["features"].values
        rows = np.nan_to_num(result["draws"]["prevalence"].values) * result["rows"].sizes["row"]
        score = ibp.evaluate(result, new, serial=True)["score"].sel(estimate="variance")
        often = np.isin(number, (4, 5)).mean()
        return cls(float(often), float(((rows > 2.5).sum(axis=-1) == 4).mean()), float(score))


def chain(of: Images, system: str, steps: int, **begin: Any) -> Found:
    thin = max(1, steps // 2 // KEPT)
    return Found.of(ibp.fit(of.x, system=system, steps=steps, thin=thin, serial=True, **begin), of.new)


def lines(of: Images, systems: list[str], seeds: int, scale: float) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        long = truth_chain(of.x, of.z, Path(folder), steps=int(10_000 * scale), thin=10)
        truth = Found.of(long, of.new)
    yield f"from the truth: {truth}"
    for system in systems:
        for features, start in BEGINS:
            for seed in range(seeds):
                found = chain(of, system, int(STEPS[system] * scale), K=features, start=start, seed=seed)
                apart = found.score - truth.score
                good = found.often >= OFTEN and found.shared >= SHARED and apart >= -SHORT
                said = f"{system} from {features} {start}, seed {seed}: {found} ({apart:+.4f})"
                yield said if good else f"{said}  SHORT"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="syn_gg6x6.npz")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--systems", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of steps")
    options = parser.parse_args()
    for said in lines(images(options.data), options.systems, options.seeds, options.scale):
        print(said, flush=True)


if __name__ == "__main__":
    main()
