"""What evaluation and transformation take: a run by path, or its result as a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ibpdist import catalog
from ibpdist.data._base import Source
from ibpdist.errors import InputError, UsageError
from ibpdist.evaluate.predict import Predictor, predictor

if TYPE_CHECKING:
    from ibpdist.spec import FitSpec

Run = str | Path | xr.DataTree
"""A run directory, its result.zarr, or a result in memory."""


def result_of(run: Run) -> xr.DataTree:
    """The result of a finished run."""
    from ibpdist.runs.result import open_result

    return run if isinstance(run, xr.DataTree) else open_result(run)


def spec_of(result: xr.DataTree) -> FitSpec:
    """The spec that a result says it comes from."""
    from ibpdist.spec import FitSpec

    return FitSpec.parse(str(result.attrs["spec"]))


def predictor_of(result: xr.DataTree) -> Predictor:
    """The predictor of a fitted Gaussian model."""
    system = catalog.find(str(result.attrs["system"]))
    if system.observation != "gaussian":
        raise UsageError(f"{system.name}: rows of {system.observation} observations cannot be scored yet")
    params = result["params"].to_dataset()
    named = {str(name): np.asarray(held.values) for name, held in params.variables.items()}
    return predictor(named, system.weights)


def source_of(data: object, columns: int) -> Source:
    """Whatever holds rows with the columns of the fit."""
    from ibpdist.data.arrays import as_source

    source = as_source(data)
    if source.columns != columns:
        raise InputError(
            f"the data have {source.columns} columns, the fit has {columns}: give rows with the same columns",
            kind="shape",
        )
    return source
