"""Newton: finds optima, respects walls, never goes down, looks no oftener than it must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from ibpdist.model.priors._climb import climb


@dataclass(frozen=True)
class Plain:
    """A point of a function in Euclidean coordinates; the upper triangle of `bend` is rubbish."""

    at: np.ndarray
    value: float
    slope: np.ndarray
    minus_curvature: np.ndarray

    def bend(self, damping: float) -> np.ndarray:
        size = len(self.at)
        return np.tril(self.minus_curvature + damping * np.eye(size)) + np.triu(np.full((size, size), 7.0), 1)

    def moved(self, step: np.ndarray) -> np.ndarray:
        return self.at + step


@dataclass(frozen=True)
class Wall:
    value: float = -np.inf


class Counted:
    """A function that remembers the values it was asked for."""

    def __init__(self, look: Callable[[np.ndarray], Plain | Wall]) -> None:
        self.look, self.values = look, []

    def __call__(self, at: np.ndarray) -> Plain | Wall:
        found = self.look(at)
        self.values.append(found.value)
        return found


def valley(x: np.ndarray) -> Plain:
    return Plain(x, -rosen(x), -rosen_der(x), rosen_hess(x))


def test_quadratic_takes_one_step() -> None:
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    curvature = turned @ np.diag(np.geomspace(1e-6, 1e6, 30)) @ turned.T
    top = rng.normal(size=30)

    def look(x: np.ndarray) -> Plain:
        gap = x - top
        return Plain(x, -0.5 * float(gap @ curvature @ gap), -curvature @ gap, curvature)

    counted = Counted(look)
    found = climb(counted, look(np.zeros(30)), 1e-12)
    assert len(counted.values) <= 2
    assert found.value > -1e-10


def test_valley() -> None:
    found = climb(valley, valley(np.array([-1.2, 1.0])), 1e-18)
    assert found.at == pytest.approx(np.ones(2), abs=1e-8)


def test_starts_where_the_curvature_is_upward() -> None:
    """cos has its top at 0; from 2 on a plain Newton step leads to the bottom."""

    def look(x: np.ndarray) -> Plain:
        return Plain(x, float(np.sum(np.cos(x))), -np.sin(x), np.diag(np.cos(x)))

    assert climb(look, look(np.array([2.0, -2.5, 0.3])), 1e-14).value == pytest.approx(3.0)


def test_turns_back_from_a_wall() -> None:
    """Minus infinity is a wall: 3 log x + log(1 - x), a full step leads outside."""
    counted: Counted

    def look(x: np.ndarray) -> Plain | Wall:
        if np.any(x <= 0) or np.any(x >= 1):
            return Wall()
        value = float(np.sum(3 * np.log(x) + np.log1p(-x)))
        return Plain(x, value, 3 / x - 1 / (1 - x), np.diag(3 / x**2 + 1 / (1 - x) ** 2))

    counted = Counted(look)
    start = look(np.array([0.9999, 0.01, 0.3]))
    assert isinstance(start, Plain)
    assert climb(counted, start, 1e-18).at == pytest.approx(np.full(3, 0.75), abs=1e-8)
    walls = Counted(lambda x: Wall())
    assert climb(walls, start, 1e-18) is start
    assert len(walls.values) < 40


def test_stops_where_the_promise_is_below_the_tolerance() -> None:
    def look(x: np.ndarray) -> Plain:
        return Plain(x, -0.5 * float(x @ x), -x, np.eye(2))

    start, counted = look(np.array([1e-3, 0.0])), Counted(look)
    assert climb(counted, start, 1e-6) is start
    assert counted.values == []


def test_stops_in_the_rounding_of_the_value() -> None:
    """A gain of 1e-4 nats of 1e10 shows in no comparison and is not chased."""

    def look(x: np.ndarray) -> Plain:
        return Plain(x, 1e10 - 0.5 * float(x @ x), -x, np.eye(2))

    start, counted = look(np.array([0.01, 0.0])), Counted(look)
    assert climb(counted, start, 1e-6) is start
    assert counted.values == []


def test_result_is_never_below_the_start() -> None:
    """Also when slope and curvature are wrong."""
    rng = np.random.default_rng(1)

    def look(x: np.ndarray) -> Plain:
        bend = rng.normal(size=(5, 5))
        return Plain(x, -float(np.sum(np.abs(x))), rng.normal(size=5), bend @ bend.T)

    for _ in range(20):
        start = look(rng.normal(size=5))
        assert climb(look, start, 1e-12).value >= start.value
