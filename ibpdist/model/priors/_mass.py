"""The mass (expected features per row): its weak prior and what both priors do with it.

A learned mass has the prior Gamma(shape 1, rate 1). Its point estimate is the mode of the
density of log mass, which is never at zero, not even when no feature is on.

The data add H_n = 1 + 1/2 + ... + 1/n to the rate, 5.2 for 100 rows: there a rate of 0.1 would leave a sixth
more features that one row alone has.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.special import digamma

from ibpdist.base.errors import UsageError

Mass = float | Literal["learn"]

RATE = 1.0


def check(mass: Mass, name: str = "mass") -> None:
    """Refuse what is neither a positive number nor "learn"."""
    if mass == "learn":
        return
    given: object = mass
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise UsageError(f'{name} is {mass!r}; expected a positive number or "learn"')


def start(mass: Mass, features: int, rows: int) -> float:
    """The mass itself, or one under which about `features` are on somewhere in `rows`."""
    if mass == "learn":
        return features / float(digamma(max(rows, 1) + 1) - digamma(1))
    return float(mass)


def log_prior(mass: float) -> float:
    """Log density of log mass: log mass - mass."""
    return math.log(RATE * mass) - RATE * mass


def sample(mass: Mass, rng: np.random.Generator) -> float:
    """The mass itself, or a draw from its prior."""
    return float(rng.exponential(1 / RATE)) if mass == "learn" else float(mass)
