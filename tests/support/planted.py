"""Problems with planted features, each a function of (set, seed, number), for the recovery benchmark.

grid        sizes, prevalences and noise of the goals; every second problem has round sizes, so
            that the corners of the grid are visited
near        few rows for many features, five problems of each kind
missing     grid with 10 % of the cells missing at random
columns     grid with noise that differs by a factor of 10 (standard deviations) between columns
exclusive   grid in which a row has features of one half only, either half
hard        500 rows, 50 columns, 40 features, noise as large as the features
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

PREVALENCES = ("0.05", "0.2", "0.21", "0.3", "0.5", "0.79", "0.95", "sticks", "sticks", "mixed")
"""Of every ten problems: one prevalence for all features, stick-breaking, or uniform on (.05, .95)."""

ROWS, COLUMNS, FEATURES = (500, 20_000), (50, 1000), (5, 40)
ROUND_ROWS, ROUND_COLUMNS = (500, 1000, 2000, 5000, 10_000, 20_000), (50, 100, 200, 500, 1000)
ROUND_FEATURES = (5, 10, 20, 30, 40)
NOISES, MARGINS = (0.25, 0.5, 1.0), (1.5, 2.0)
CELLS, COLUMNS_A_FEATURE = 1_100_000, 1.25

NEAR = tuple(
    (*shape, prevalence, noise)
    for shape, kinds in (
        ((100, 500, 25), (("0.3", 0.5), ("0.5", 0.5), ("0.8", 0.5), ("0.1", 0.5))),
        ((100, 500, 25), (("0.3", 1.0), ("sticks", 0.5), ("sticks", 1.0))),
        ((200, 500, 40), (("0.3", 0.5), ("sticks", 0.5))),
        ((100, 100, 20), (("0.3", 0.5),)),
        ((200, 100, 30), (("mixed", 0.5),)),
        ((100, 50, 10), (("0.3", 1.0),)),
        ((50, 500, 10), (("0.3", 0.5),)),
        ((50, 500, 15), (("0.3", 0.5),)),
    )
    for prevalence, noise in kinds
)
"""Rows, columns, features, prevalence and noise of problems with N close to K."""


@dataclass(frozen=True)
class Problem:
    """What is planted, and the truncation given to a fit.

    Features are standard normal, `noise` is a standard deviation. `missing` is a share of the
    cells; `spread` is the largest over the smallest noise of a column; `exclusive` features come
    in two halves of which a row has one.
    """

    rows: int
    columns: int
    features: int
    prevalence: str
    noise: float
    truncation: int
    seed: tuple[int, ...]
    missing: float = 0.0
    spread: float = 1.0
    exclusive: bool = False


@dataclass(frozen=True)
class Planted:
    """`x` (row, column) with NaN in missing cells, `z` (row, feature), `dictionary` (feature, column)."""

    x: Matrix
    z: NDArray[np.bool_]
    dictionary: Matrix

    @property
    def cells(self) -> int:
        """Observed cells."""
        return int(np.isfinite(self.x).sum())


def problem(kind: str, seed: int, number: int) -> Problem:
    """Problem `number` of a set."""
    return SETS[kind](kind, seed, number)


def draw(problem: Problem) -> Planted:
    """Draw the data of a problem; the same problem gives the same bits."""
    rng = np.random.default_rng(problem.seed)
    rows, columns, features = problem.rows, problem.columns, problem.features
    dictionary = rng.standard_normal((features, columns))
    z = rng.random((rows, features)) < prevalences(problem.prevalence, features, rng)
    if problem.exclusive:
        first = rng.random(rows) < 0.5
        z &= np.where(np.arange(features) < features // 2, first[:, None], ~first[:, None])
    deviations = problem.noise * problem.spread ** rng.uniform(-0.5, 0.5, columns)
    x = z @ dictionary + deviations * rng.standard_normal((rows, columns))
    if problem.missing:
        x[rng.random((rows, columns)) < problem.missing] = np.nan
    return Planted(x, z, dictionary)


def prevalences(word: str, features: int, rng: np.random.Generator) -> Matrix:
    """(feature,) stick-breaking has v ~ Beta(K/2, 1)."""
    if word == "sticks":
        return np.cumprod(rng.beta(features / 2, 1.0, features)).astype(np.float64)
    if word == "mixed":
        return rng.uniform(0.05, 0.95, features)
    return np.full(features, float(word))


def _grid(kind: str, seed: int, number: int) -> Problem:
    key = (seed, zlib.crc32(kind.encode()), number)
    deck = np.random.default_rng((*key[:2], number // len(PREVALENCES), 1)).permutation(PREVALENCES)
    rng = np.random.default_rng(key)
    rows, columns, features = _sizes(rng, rounded=number % 2 == 0)
    return Problem(
        rows=rows,
        columns=columns,
        features=features,
        prevalence=str(deck[number % len(PREVALENCES)]),
        noise=float(rng.choice(NOISES)),
        truncation=int(np.ceil(features * rng.choice(MARGINS))),
        seed=(*key, 2),
    )


def _sizes(rng: np.random.Generator, rounded: bool) -> tuple[int, int, int]:
    """Rows and columns uniform in their logarithm, features uniform; what is too large is drawn again."""
    while True:
        if rounded:
            choices: tuple[tuple[int, ...], ...] = (ROUND_ROWS, ROUND_COLUMNS, ROUND_FEATURES)
            rows, columns, features = (int(rng.choice(values)) for values in choices)
        else:
            rows, columns = (round(np.exp(rng.uniform(*np.log(ends)))) for ends in (ROWS, COLUMNS))
            features = int(rng.integers(FEATURES[0], FEATURES[1] + 1))
        if rows * columns <= CELLS and features * COLUMNS_A_FEATURE <= columns:
            return rows, columns, features


def _near(kind: str, seed: int, number: int) -> Problem:
    rows, columns, features, prevalence, noise = NEAR[number % len(NEAR)]
    key = (seed, zlib.crc32(kind.encode()), number, 2)
    return Problem(rows, columns, features, prevalence, noise, 2 * features, key)


def _hard(kind: str, seed: int, number: int) -> Problem:
    like = _grid(kind, seed, number)
    margin = MARGINS[number % 2]
    return replace(like, rows=500, columns=50, features=40, noise=1.0, truncation=int(40 * margin))


def _varied(**changes: Any) -> Callable[[str, int, int], Problem]:
    def made(kind: str, seed: int, number: int) -> Problem:
        return replace(_grid(kind, seed, number), **changes)

    return made


SETS: dict[str, Callable[[str, int, int], Problem]] = {
    "grid": _grid,
    "near": _near,
    "missing": _varied(missing=0.1),
    "columns": _varied(spread=10.0),
    "exclusive": _varied(exclusive=True),
    "hard": _hard,
}
COUNTS = {"grid": 200, "near": 5 * len(NEAR)}
"""Problems of a set; 20 of the others."""
