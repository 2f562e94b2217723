"""Parameters of another result to begin a fit with, and which systems can begin so.

A fit needs the same model: prior, weights, observation. A sampler of all rows at once takes the features of
any fit of the same weights and observation, since it needs no prior but its own. A sampler that takes the
rows in turn has no features but those of its rows, and takes no start.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import xarray as xr

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import replace
from ibpdist.catalog import systems
from ibpdist.catalog.systems import SYSTEMS, System
from ibpdist.data.urls import refuse_urls
from ibpdist.inference.ascent.params import AnyModelParams
from ibpdist.model.priors._base import Number, PriorSums
from ibpdist.predict import units
from ibpdist.runs import layout, result
from ibpdist.runs.job import Job, features_for

OPTION = "--from (in Python: start)"


def started(start: str | Path | xr.DataTree, job: Job) -> tuple[Job, AnyModelParams]:
    """A job that starts from a result, its data centred as those of the result if they are centred, and the
    parameters to start from; UsageError when it cannot start from them."""
    given = "the result" if isinstance(start, xr.DataTree) else str(start)
    refuse_urls(start)
    found = result.open_result(start) if isinstance(start, str | Path) else start
    params = _parameters(found, given, job)
    return dataclasses.replace(job, source=units.centred_alike(found, job.source)), params


def _parameters(found: xr.DataTree, given: str, job: Job) -> AnyModelParams:
    theirs, ours = systems.find(found.attrs["system"]), systems.find(job.spec.system)
    _refuse_model(theirs, ours, given)
    columns = int(found.attrs["columns"])
    if columns != job.source.columns:
        raise UsageError(
            f"{given}: has {columns} columns, the data have {job.source.columns}: start from a fit of data "
            "with the same columns"
        )
    params, level = layout.state_of(found), int(found.attrs["truncation"])
    most = features_for(job.spec, job.source)
    _refuse_size(ours, given, (len(params.ids), level), most)
    own = ours.prior == theirs.prior and level == most
    finite = ours.sampler and ours.prior_type.number is Number.GIVEN
    return _with_prior(params, job, most) if finite and not own else params


def can_begin(ours: System, theirs: System) -> bool:
    """Whether a system can start from the features of another."""
    same = (ours.weights, ours.observation) == (theirs.weights, theirs.observation)
    return same and not ours.in_turn and (_takes_any_prior(ours) or ours.prior == theirs.prior)


def _takes_any_prior(ours: System) -> bool:
    return ours.sampler and not ours.in_turn


def _refuse_model(theirs: System, ours: System, given: str) -> None:
    if can_begin(ours, theirs):
        return
    able = ", ".join(one.name for one in SYSTEMS.values() if can_begin(one, theirs))
    if ours.in_turn:
        why = f"{ours.name} takes rows in turn and cannot start from a fit: leave out {OPTION}, or use {able}"
    elif (ours.weights, ours.observation) != (theirs.weights, theirs.observation):
        why = f"the features of {theirs.name} {_kind(theirs)}, those of {ours.name} {_kind(ours)}: use {able}"
    else:
        why = f"{ours.name} and {theirs.name} have other priors, and a fit needs its own: use {able}"
    raise UsageError(f"{given}: {why}")


def _kind(system: System) -> str:
    return "are in every row" if system.observation_type.dense else system.weights_type.rows_have


def _refuse_size(ours: System, given: str, sizes: tuple[int, int], most: int) -> None:
    """Refuse more features than K, and another K than that of the finite prior of a fit."""
    features, level = sizes
    if ours.prior_type.uses_truncation and not ours.sampler and level != most:
        raise UsageError(
            f"{given}: was fitted with K = {level}, K is {most}, and the prior of {ours.name} counts on it: "
            f"give K = {level}"
        )
    if features > most and ours.prior_type.number is not Number.UNLIMITED:
        raise UsageError(
            f"{given}: has {features} features and K is {most}: give K of at least {features}, or leave out "
            f"{OPTION}"
        )


def _with_prior(params: AnyModelParams, job: Job, most: int) -> AnyModelParams:
    """The same features under the prior of a finite sampler, given how many rows have each; a sampler
    without a limit makes its own."""
    prior = job.algorithm.members[0].algorithm.row_inference().model.prior
    blank = prior.resized(prior.init(most, int(params.rows)), len(params.ids))
    sums = PriorSums(on=params.on, rows=params.rows)
    return replace(params, prior=prior.update(blank, sums, Rule.MEAN, np.random.default_rng(0)))
