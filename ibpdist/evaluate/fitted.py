"""What evaluation and transformation take: a run by path, or its result as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ibpdist.base.errors import InputError, UsageError
from ibpdist.catalog import systems
from ibpdist.data._base import Labels, Source
from ibpdist.data.labels import as_labels
from ibpdist.data.store import Dataset
from ibpdist.data.urls import refuse_urls
from ibpdist.predict.averaged import predictors
from ibpdist.predict.predict import Predictor, predictor
from ibpdist.predict.units import in_units_of

if TYPE_CHECKING:
    from ibpdist.catalog.spec import FitSpec

Run = str | Path | xr.DataTree
"""A run directory, its result.zarr, or a result in memory."""


def result_of(run: Run) -> xr.DataTree:
    """The result of a finished run."""
    from ibpdist.runs.result import open_result

    refuse_urls(run)
    return run if isinstance(run, xr.DataTree) else open_result(run)


def spec_of(result: xr.DataTree) -> FitSpec:
    """The spec that a result says it comes from."""
    from ibpdist.catalog.spec import FitSpec

    return FitSpec.parse(str(result.attrs["spec"]))


def predictor_of(result: xr.DataTree) -> Predictor:
    """The predictor of a fitted Gaussian model."""
    system = systems.of_result(result.attrs)
    if not system.observation_type.has_row_density:
        raise UsageError(f"{system.name}: cells of {system.observation} observations cannot be predicted")
    groups = (result[name] for name in ("params", "internals") if name in result.children)
    named = {str(name): held for group in groups for name, held in group.variables.items()}
    return predictor({name: np.asarray(held.values) for name, held in named.items()}, system.weights)


def predictors_of(result: xr.DataTree) -> list[Predictor]:
    """The predictor of a fit, or those of the draws of a sampler."""
    if "draws" not in result.children:
        return [predictor_of(result)]
    return predictors(result, systems.find(str(result.attrs["system"])).weights)


def rows_for(result: xr.DataTree, data: object) -> Source:
    """Whatever holds rows with the columns of a fit, in the units of the fit."""
    source = source_of(data, int(result["params"].sizes["column"]), labels_of(result), of_counts(result))
    return in_units_of(result, source, name_of(data))


def of_counts(result: xr.DataTree) -> bool:
    """Whether a result is of counts."""
    return systems.of_result(result.attrs).counts


def source_of(data: object, columns: int, labels: Labels | None = None, counts: bool = False) -> Source:
    """Whatever holds rows with the columns of the fit; labels, where both have some, must be the same."""
    from ibpdist.data.arrays import as_source

    source, file = as_source(data, judged=False, counts=counts), name_of(data)
    if source.columns != columns:
        raise InputError(
            f"the data have {source.columns} columns, the fit has {columns}: give rows with the same columns",
            file=file,
            kind="shape",
        )
    given = source.column_coords().get("column")
    if labels is not None and given is not None:
        unlike = np.flatnonzero(np.asarray(given).astype(str) != np.asarray(labels).astype(str))
        if unlike.size:
            at = int(unlike[0])
            reason = (
                f"is {given[at]!s} where the fit has {labels[at]!s}: give the columns in the order of the fit"
            )
            raise InputError(reason, file=file, column=at, kind="columns")
    return source


def name_of(data: object) -> str | None:
    """The path of data on disk; None for those in memory."""
    path = data.path if isinstance(data, Dataset) else data
    return str(path) if isinstance(path, str | Path) else None


def labels_of(result: xr.DataTree) -> Labels | None:
    """Labels of the columns of a fit, if it has any."""
    coords = result["params"].coords
    return as_labels(coords["column"].values) if "column" in coords else None


def column_labels(result: xr.DataTree, source: Source) -> Mapping[str, Labels]:
    """Labels of the columns: those of the rows, or of the fit where these have none."""
    labels, known = source.column_coords(), labels_of(result)
    return labels if "column" in labels or known is None else {"column": known, **labels}
