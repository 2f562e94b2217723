"""L-BFGS: finds optima, respects walls, never goes down."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from ibpdist.priors._climb import climb


def test_quadratic_of_any_curvature() -> None:
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    curvature = turned @ np.diag(np.geomspace(1e-3, 10, 30)) @ turned.T
    top = rng.normal(size=30)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        gap = x - top
        return -0.5 * float(gap @ curvature @ gap), -curvature @ gap

    assert climb(objective, np.zeros(30), 1e-20, steps=1000) == pytest.approx(top, abs=1e-6)


def test_valley() -> None:
    found = climb(lambda x: (-rosen(x), -rosen_der(x)), np.array([-1.2, 1.0, -0.5, 0.8]), 1e-18)
    assert found == pytest.approx(np.ones(4), abs=1e-6)


def test_turns_back_from_a_wall() -> None:
    """Minus infinity is a wall: log x + log(1 - x), steps of length one lead outside."""

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        if np.any(x <= 0) or np.any(x >= 1):
            return -np.inf, np.zeros_like(x)
        return float(np.sum(np.log(x) + np.log1p(-x))), 1 / x - 1 / (1 - x)

    found = climb(objective, np.array([0.01, 0.9, 0.3]), 1e-18)
    assert found == pytest.approx(np.full(3, 0.5), abs=1e-6)


def test_stops_where_the_promise_is_below_the_tolerance() -> None:
    calls = []

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(x)
        return -0.5 * float(x @ x), -x

    start = np.array([1e-3, 0.0])
    assert np.array_equal(climb(objective, start, 1e-6), start)
    assert len(calls) == 1


def test_result_is_never_below_the_start() -> None:
    """Also when the slope is wrong, as rounding makes it at the end of a climb."""
    rng = np.random.default_rng(1)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(np.sum(np.abs(x))), rng.normal(size=len(x))

    for _ in range(20):
        start = rng.normal(size=5)
        assert objective(climb(objective, start, 1e-12))[0] >= objective(start)[0]
