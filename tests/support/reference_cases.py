"""Random problems and random q for the tests of and against the reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from tests.support.reference_model import Floats, State
from tests.support.reference_updates import fill

KINDS = list(product(("finite", "sticks"), ("unit", "normal"), ("complete", "masked", "latent")))
"""prior x weights x how missing cells are treated."""


def random_state(
    seed: int,
    rows: int = 4,
    features: int = 3,
    columns: int = 3,
    prior: str = "finite",
    weights: str = "unit",
    missing: str = "complete",
    structured: bool = True,
) -> State:
    """A problem and a q with nothing special about either; missing cells hold nan in x."""
    rng = np.random.default_rng(seed)
    shape = (rows, features)
    mask = np.ones((rows, columns), dtype=bool)
    if missing != "complete":
        mask = rng.random((rows, columns)) < 0.7
        mask[0, 0], mask[-1, -1] = True, False
    x = np.where(mask, rng.normal(size=(rows, columns)) * 1.5, np.nan)
    unit = weights == "unit"
    state = State(
        x=x,
        mask=mask,
        nu=rng.uniform(0.05, 0.95, shape),
        m=np.ones(shape) if unit else rng.normal(size=shape),
        s2=np.zeros(shape) if unit else rng.uniform(0.2, 1.5, shape),
        phi=rng.normal(size=(features, columns)),
        sigma=random_covariances(rng, columns, features, structured),
        tau=np.column_stack([rng.uniform(0.8, 5, features), rng.uniform(0.8, 5, features)]),
        psi=rng.uniform(0.3, 1.5, columns),
        s=rng.uniform(0.5, 2, features),
        mass=float(rng.uniform(0.5, 3)),
        prior=prior,
        weights=weights,
        tail=prior == "sticks",
        terms=20,
    )
    return with_latent_cells(state, rng) if missing == "latent" else state


def random_covariances(rng: np.random.Generator, columns: int, features: int, structured: bool) -> Floats:
    """(D, K, K) positive definite, or diagonal."""
    root = rng.normal(size=(columns, features, features)) * 0.4
    full = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(features)
    return full if structured else full * np.eye(features)


def with_latent_cells(state: State, rng: np.random.Generator) -> State:
    """Missing cells get factors that are not at their optimum."""
    filled = fill(state)
    assert filled.fill_mean is not None
    assert filled.fill_var is not None
    shift = rng.normal(size=state.x.shape) * 0.3
    return replace(
        filled,
        fill_mean=np.where(state.mask, 0.0, filled.fill_mean + shift),
        fill_var=filled.fill_var * rng.uniform(0.6, 1.4, state.x.shape),
    )
