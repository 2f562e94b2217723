"""Predictors and rows whose held-out score can be enumerated, drawn from a seed, and annealed scores of them.

Features overlap, some are nearly collinear, some are rare; the noise is between .05 and 1; a third of the
cases shows few columns, so that the visible cells say little about z; a third has rows that are noisier
than the predictor expects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ibpdist.catalog import systems
from ibpdist.predict.exact import exact
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.predict import Matrix, Predictor, Vector
from ibpdist.predict.sampled import Sampled, Sampling, together
from ibpdist.predict.sequential import Law

Mask = NDArray[np.bool_]
MOST = {"unit": 14, "normal": 11}
"""Most features of a case: normal weights need a factorisation for each pattern."""


@dataclass(frozen=True)
class Case:
    """What is scored, and the rows (row, column) with their visible and hidden cells."""

    name: str
    of: Predictor
    x: Matrix
    visible: Mask
    hidden: Mask


@dataclass(frozen=True)
class Outcome:
    """An annealed score beside the enumerated one, by row, and the error of the sum of the rows."""

    case: str
    estimate: str
    found: Sampled
    exact: Vector
    error: float

    @property
    def off(self) -> float:
        """How far the sum is from the exact sum, in errors."""
        return float((self.found.score - self.exact).sum()) / self.error


def case(seed: int) -> Case:
    """The case of a seed; odd seeds have normal weights."""
    rng = np.random.default_rng([77, seed])
    weights = ("unit", "normal")[seed % 2]
    features, columns = int(rng.integers(8, MOST[weights] + 1)), int(rng.integers(16, 61))
    noise = float(np.exp(rng.uniform(np.log(0.05), 0.0)))
    of = _predictor(rng, weights, features, columns, noise)
    rows = int(rng.integers(30, 121))
    few, rough = rng.random() < 1 / 3, rng.random() < 1 / 3
    x = _rows(rng, of, rows, 1.6 if rough else 1.0)
    visible = rng.random((rows if weights == "unit" and rng.random() < 0.3 else 1, columns)) < (
        0.15 if few else 0.5
    )
    visible = np.broadcast_to(visible, x.shape).copy()
    kind = f"{' few' * few}{' rough' * rough}"
    name = f"{seed} {weights} K={features} D={columns} noise={noise:.2f} rows={rows}{kind}"
    return Case(name, of, x, visible, ~visible)


def annealed(made: Case, plan: Sampling) -> tuple[Sampled, Sampled]:
    """Scores from chains: with the mean of the dictionary and with its variance."""
    return kind_of(made.of).estimate(made.of, made.x, made.visible, made.hidden, plan, 0)


def outcomes(made: Case, found: tuple[Sampled, Sampled]) -> Iterator[Outcome]:
    """Scores from chains beside enumeration."""
    for name, one, of in zip(("plug_in", "variance"), found, _laws(made.of), strict=True):
        truth = exact(of, made.x, made.visible, made.hidden)
        yield Outcome(made.name, name, one, truth, together([one]))


def _laws(of: Predictor) -> tuple[Predictor, Predictor]:
    """What the two scores are of; with normal weights the law has one noise for all z (sequential.py)."""
    plug = of.plug_in()
    if not of.weights.has_weights:
        return plug, of
    return plug, replace(plug, noise=Law.of(of).psi)


def _predictor(
    rng: np.random.Generator, weights: str, features: int, columns: int, noise: float
) -> Predictor:
    chance = np.clip(rng.beta(0.8, 1.6, features), 0.02, 0.95)
    return Predictor(
        mean=_dictionary(rng, features, columns),
        basis=np.sqrt(noise / rng.uniform(10, 100))
        * rng.normal(size=(1, features, features))
        / features**0.5,
        spectrum=np.zeros((1, features)),
        noise=noise * rng.uniform(0.7, 1.4, columns),
        group=np.zeros(columns, dtype=np.intp),
        log_odds=np.asarray(logit(chance)),
        active=np.ones(features, dtype=bool),
        weights=systems.weights_of(weights),
    )


def _dictionary(rng: np.random.Generator, features: int, columns: int) -> Matrix:
    """(feature, column) overlapping features; up to a third are a sum or nearly a copy of others."""
    made = rng.normal(size=(features, columns)) * (rng.random((features, columns)) < rng.uniform(0.3, 1.0))
    made *= rng.uniform(0.5, 1.5, (features, 1))
    for k in range(int(rng.integers(0, features // 3 + 1))):
        one, other = rng.choice(np.arange(features // 3, features), 2, replace=False)
        whole = made[one] + made[other] if rng.random() < 0.5 else made[one]
        made[k] = whole + rng.uniform(0.05, 0.3) * rng.normal(size=columns)
    return made


def _rows(rng: np.random.Generator, of: Predictor, rows: int, rough: float) -> Matrix:
    z = rng.random((rows, of.features)) < expit(of.log_odds)
    y = z * (rng.normal(size=z.shape) if of.weights.has_weights else 1.0)
    made: Matrix = y @ of.mean + rough * np.sqrt(of.noise) * rng.normal(size=(rows, len(of.noise)))
    return made
