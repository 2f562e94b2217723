"""Problems with planted weighted features, each a function of (kind, seed, number).

signed, positive            weights normal or gamma; with +3 every cell is larger by three
newcomer ...                600 x 60, five features, gamma weights, the rarest in one row of twenty
nuisance                    five sparse features, three factors that all rows have, rows of uneven noise
gamma, lognormal, bimodal   positive +3 with weights of this law; FastICA that is told their number finds all
                            features of `gamma`, and four in five of the others
correlated                  positive +3, features that occur together
rare                        positive +3, prevalences down to one row of a hundred
large                       positive +3, up to 200,000 rows of 64 columns

Entries of features are standard normal. Positive weights have mean one, or nearly.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Matrix = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Matrix]

ROWS, COLUMNS, FEATURES = (300, 2000), (40, 200), (3, 10)
NOISES, PREVALENCES = (0.3, 1.0), (0.05, 0.6)
OFFSET, RARE, EQUICORRELATION = 3.0, (0.01, 0.2), 0.5
NEWCOMER = (0.50, 0.36, 0.26, 0.15, 0.05)
LARGE = (5000, 10_000, 20_000, 50_000, 100_000, 200_000)


def _bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Matrix:
    """Half of the weights about .5, half about 2."""
    centre = np.where(rng.random(shape) < 0.5, 0.5, 2.0)
    made: Matrix = np.abs(centre * (1 + 0.2 * rng.standard_normal(shape)))
    return made


ACTIVITIES: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "gamma": lambda rng, shape: rng.gamma(2.0, 0.5, shape),
    "lognormal": lambda rng, shape: rng.lognormal(-0.125, 0.5, shape),
    "bimodal": _bimodal,
}


@dataclass(frozen=True)
class FactorProblem:
    """What is planted, and the number of features given to a fit.

    `noise` is a standard deviation. `together` correlates the normal variables whose lower tails are the
    rows of the features. `dense` factors are normal in every row. With `uneven`, the noise of a row is
    divided by the root of a gamma variable of mean one and shape two. `missing` is a share of the cells.
    """

    rows: int
    columns: int
    prevalence: tuple[float, ...]
    noise: float
    truncation: int
    seed: tuple[int, ...]
    activity: str = "normal"
    offset: float = 0.0
    together: float = 0.0
    dense: int = 0
    uneven: bool = False
    missing: float = 0.0

    @property
    def features(self) -> int:
        return len(self.prevalence)


@dataclass(frozen=True)
class PlantedFactors:
    """`x` (row, column) with NaN in missing cells, `z` (row, feature), `dictionary` (feature, column), and
    `dense` (factor, column)."""

    x: Matrix
    z: NDArray[np.bool_]
    dictionary: Matrix
    dense: Matrix

    @property
    def prevalence(self) -> Matrix:
        """(feature,) share of the rows that have each."""
        made: Matrix = self.z.mean(axis=0)
        return made


def problem(kind: str, seed: int, number: int) -> FactorProblem:
    """Problem `number` of a kind."""
    return KINDS[kind]((seed, zlib.crc32(kind.encode()), number), number)


def draw(of: FactorProblem) -> PlantedFactors:
    """Draw the data of a problem; the same problem gives the same bits."""
    rng = np.random.default_rng(of.seed)
    dictionary = rng.standard_normal((of.features, of.columns))
    z = _members(of, rng)
    weights = ACTIVITIES[of.activity](rng, z.shape)
    dense = rng.standard_normal((of.dense, of.columns))
    scores = rng.standard_normal((of.rows, of.dense))
    noise = of.noise * rng.standard_normal((of.rows, of.columns))
    if of.uneven:
        noise /= np.sqrt(rng.gamma(2.0, 0.5, (of.rows, 1)))
    x = of.offset + (z * weights) @ dictionary + scores @ dense + noise
    if of.missing:
        x[rng.random(x.shape) < of.missing] = np.nan
    return PlantedFactors(x, z, dictionary, dense)


def _members(of: FactorProblem, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(row, feature) which rows have which feature."""
    own = rng.standard_normal((of.rows, of.features))
    common = rng.standard_normal((of.rows, 1))
    mixed = np.sqrt(of.together) * common + np.sqrt(1 - of.together) * own
    found: NDArray[np.bool_] = mixed < norm.ppf(of.prevalence)
    return found


def _grid(key: tuple[int, ...], number: int, **changes: Any) -> FactorProblem:
    rng = np.random.default_rng((*key, 1))
    features = int(rng.integers(FEATURES[0], FEATURES[1] + 1))
    made = FactorProblem(
        rows=round(np.exp(rng.uniform(*np.log(ROWS)))),
        columns=int(rng.integers(COLUMNS[0], COLUMNS[1] + 1)),
        prevalence=tuple(rng.uniform(*PREVALENCES, features).tolist()),
        noise=float(rng.uniform(*NOISES)),
        truncation=2 * features + 4,
        seed=(*key, 2),
    )
    return replace(made, **changes)


def _positive(key: tuple[int, ...], number: int, **changes: Any) -> FactorProblem:
    """Gamma weights of shape two, with which FastICA finds the features."""
    return _grid(key, number, **{"activity": "gamma", **changes})


def _ordinary(key: tuple[int, ...], number: int, **changes: Any) -> FactorProblem:
    """Positive +3, but for some changes."""
    return _positive(key, number, **{"offset": OFFSET, **changes})


def _rare(key: tuple[int, ...], number: int) -> FactorProblem:
    made = _ordinary(key, number, rows=3000)
    shares = np.exp(np.random.default_rng((*key, 3)).uniform(*np.log(RARE), made.features))
    return replace(made, prevalence=(RARE[0], *shares.tolist()[1:]))


def _large(key: tuple[int, ...], number: int) -> FactorProblem:
    return _ordinary(key, number, rows=LARGE[number % len(LARGE)], columns=64)


def _newcomer(activity: str, offset: float) -> Callable[[tuple[int, ...], int], FactorProblem]:
    def made(key: tuple[int, ...], number: int) -> FactorProblem:
        return FactorProblem(600, 60, NEWCOMER, 0.5, 14, (*key, 2), activity, offset)

    return made


def _nuisance(key: tuple[int, ...], number: int) -> FactorProblem:
    shares = np.random.default_rng((*key, 1)).uniform(*PREVALENCES, 5)
    return FactorProblem(1000, 100, tuple(shares.tolist()), 0.5, 16, (*key, 2), dense=3, uneven=True)


def _varied(
    made: Callable[..., FactorProblem], **changes: Any
) -> Callable[[tuple[int, ...], int], FactorProblem]:
    return lambda key, number: made(key, number, **changes)


KINDS: dict[str, Callable[[tuple[int, ...], int], FactorProblem]] = {
    "signed": _grid,
    "signed+3": _varied(_grid, offset=OFFSET),
    "positive": _positive,
    "positive+3": _ordinary,
    "newcomer-positive+3": _newcomer("gamma", OFFSET),
    "newcomer-positive": _newcomer("gamma", 0.0),
    "newcomer-signed+3": _newcomer("normal", OFFSET),
    "nuisance": _nuisance,
    "correlated": _varied(_ordinary, together=EQUICORRELATION),
    "gamma": _ordinary,
    "lognormal": _varied(_ordinary, activity="lognormal"),
    "bimodal": _varied(_ordinary, activity="bimodal"),
    "rare": _rare,
    "large": _large,
}
GRID = ("signed", "signed+3", "positive", "positive+3")
GROUPS = {"grid": GRID, "newcomer": tuple(kind for kind in KINDS if kind.startswith("newcomer"))}
"""Names that stand for several kinds."""
COUNT = 6
"""Problems of a kind."""
