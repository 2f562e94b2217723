"""The three benchmark sets: fits with many seeds against the one started at the truth, on new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import ibpdist
from tests.support.recovered import Found, fitted
from tests.support.truth_start import truth_started

TRUNCATIONS = {"gg6x6": 8, "dv500": 30, "big20k": 24}
SHORT = 0.002
"""Nats per hidden cell that a fit may be below the reference."""


@dataclass(frozen=True)
class Set:
    """Rows to fit with their planted z, new rows, planted dictionary."""

    name: str
    x: NDArray[Any]
    new: NDArray[Any]
    z: NDArray[np.bool_]
    dictionary: NDArray[Any]


@dataclass(frozen=True)
class Scored:
    """A fit and its held-out scores, features as certain and with their variance."""

    found: Found
    plug_in: float
    variance: float


def read(folder: Path, name: str) -> Set:
    held = np.load(folder / f"syn_{name}.npz")
    z, features = held["Z_train"], len(held["A"])
    if z.dtype == np.uint8:
        z = np.unpackbits(z, axis=1)[:, :features]
    return Set(name, held["X_train"], held["X_test"], z.astype(bool), held["A"])


def compared(folder: Path, names: Sequence[str] | None, first: int, seeds: int, system: str) -> Iterator[str]:
    """A line for each fit, and one for each set."""
    for name in names or TRUNCATIONS:
        held = read(folder, name)
        ibpdist.fit(held.x[:64], system=system, K=2, steps=2, serial=True)  # compiles
        reference = scored(held, lambda: truth_started(held.x, held.z, system))  # noqa: B023
        yield _line(held, "truth", reference, reference)
        made = []
        for seed in range(first, first + seeds):
            size = {"system": system, "K": TRUNCATIONS[name], "seed": seed}
            made.append(scored(held, lambda: ibpdist.fit(held.x, serial=True, **size)))  # noqa: B023
            yield _line(held, f"seed {seed}", made[-1], reference)
        yield verdict(held, made, reference)


def scored(held: Set, make: Any) -> Scored:
    """A fit, scored on the new rows: even columns visible, the scorer and its draws always the same."""
    kept: list[xr.DataTree] = []

    def keep() -> xr.DataTree:
        kept.append(make())
        return kept[-1]

    found = fitted(keep)
    score = ibpdist.evaluate(kept[-1], held.new, serial=True)["score"]
    plug_in, variance = (float(score.sel(estimate=word)) for word in ("plug_in", "variance"))
    return Scored(found, plug_in, variance)


def verdict(held: Set, made: list[Scored], reference: Scored) -> str:
    planted = len(held.dictionary)
    level = sum(one.variance >= reference.variance - SHORT for one in made)
    certain = sum(one.plug_in >= reference.plug_in - SHORT for one in made)
    right = sum(len(one.found.features) == planted for one in made)
    every = sum(
        one.variance >= reference.variance - SHORT and len(one.found.features) == planted for one in made
    )
    return (
        f"{held.name}: of {len(made)} seeds {level} score at most {SHORT} below the truth start "
        f"({certain} with features as certain), {right} have {planted} active features, {every} both"
    )


def _line(held: Set, which: str, one: Scored, reference: Scored) -> str:
    found, matched = one.found, int(one.found.matched(held.dictionary).sum())
    gap = (reference.found.objective - found.objective) / abs(reference.found.objective)
    scores = f"score {one.variance:.4f} ({one.variance - reference.variance:+.4f})"
    certain = f"as certain {one.plug_in:.4f} ({one.plug_in - reference.plug_in:+.4f})"
    counts = f"active {len(found.features):>2}, matched {matched} of {len(held.dictionary)}"
    level = f"objective {found.objective:.1f}, gap {gap:.2e}"
    took = f"{found.seconds:.2f} s, {found.steps} steps {found.stop}"
    return f"{held.name:>6} {which:>8}: {scores}, {certain}, {counts}, {level}, {took}"
