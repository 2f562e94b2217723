"""The mass: its prior, its starting value, draws."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from ibpdist.base.errors import UsageError
from ibpdist.model.priors import StickBreaking, _mass


def test_density_of_log_mass() -> None:
    whole = quad(lambda t: math.exp(_mass.log_prior(math.exp(t))), -40, 8, limit=200)[0]
    assert whole == pytest.approx(1.0, rel=1e-8)
    mean = quad(lambda t: math.exp(t + _mass.log_prior(math.exp(t))), -40, 8, limit=200)[0]
    assert mean == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize(("features", "rows"), [(1, 1), (40, 4_000_000), (7, 0)])
def test_start_makes_about_all_features_appear(features: int, rows: int) -> None:
    harmonic = sum(1 / j for j in range(1, min(rows, 10**5) + 1)) if rows else 1.0
    harmonic += math.log(rows / 10**5) if rows > 10**5 else 0.0
    assert _mass.start("learn", features, rows) == pytest.approx(features / harmonic, rel=1e-5)
    assert _mass.start(3, features, rows) == 3.0


def test_draws() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([_mass.sample("learn", rng) for _ in range(20_000)])
    assert abs(drawn.mean() - 1) < 4 / math.sqrt(20_000)
    assert _mass.sample(2.5, rng) == 2.5


@pytest.mark.parametrize("mass", [0, -2, math.nan, math.inf, False, "big", [1.0]])
def test_refused(mass: object) -> None:
    with pytest.raises(UsageError, match=r'^mass is .*; expected a positive number or "learn"$'):
        StickBreaking(mass)
