"""A draw of one number by a slice of its density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def slice_draw(
    density: Callable[[float], float], at: float, low: float, high: float, rng: np.random.Generator
) -> float:
    """A number between `low` and `high` by a slice of its log density through the present value `at`, which
    is drawn from the whole range and narrowed until it is hit (Neal 2003)."""
    level = density(at) - rng.exponential()
    while (tried := rng.uniform(low, high)) != at and density(tried) < level:
        low, high = (tried, high) if tried < at else (low, tried)
    return tried
