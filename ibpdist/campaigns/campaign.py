"""A campaign to read: its summary, its best fit, any fit, and how stable its features are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import StorageError, UsageError
from ibpdist.campaigns import summary as table
from ibpdist.campaigns.directory import Fit, Manifest, failure, fit_folder, is_campaign, is_finished
from ibpdist.campaigns.spec import CampaignSpec, Labels, in_words
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data.urls import refuse_urls
from ibpdist.evaluate import consensus
from ibpdist.runs.result import open_result

By = Literal["heldout", "objective"]


@dataclass(frozen=True)
class Campaign:
    """The campaign in `path`; results of fits are read when they are used."""

    path: Path
    manifest: Manifest
    summary: xr.Dataset

    @property
    def spec(self) -> CampaignSpec:
        return self.manifest.spec

    def fit(self, **labels: Any) -> xr.DataTree:
        """The result of one fit, by as many labels as it takes: `fit(truncation=20, restart=3)`."""
        return self.open(self.one(**labels))

    def one(self, **labels: Any) -> Fit:
        """The fit with these labels."""
        fits = list(self.with_labels(**labels))
        if len(fits) != 1:
            open_dims = [
                name for name, values in self.spec.dims().items() if len(values) > 1 and name not in labels
            ]
            more = f"; give also {', '.join(open_dims)}" if fits and open_dims else ""
            raise UsageError(f"{len(fits)} fits have the labels {in_words(labels) or 'none'}{more}")
        return fits[0]

    def with_labels(self, **labels: Any) -> Iterator[Fit]:
        """Fits with these labels, in the order of the grid."""
        dims = self.spec.dims()
        for name in labels:
            if name not in dims:
                raise UsageError(f"{name} is not a dim of this campaign; expected one of {', '.join(dims)}")
        for fit in self.manifest.fits:
            if all(_same(fit.labels[name], value) for name, value in labels.items()):
                yield fit

    def open(self, fit: Fit) -> xr.DataTree:
        """The result of a fit, rows read when they are used."""
        if not is_finished(self.path, fit.id):
            failed = failure(self.path, fit.id)
            what = (
                "is not finished; run the campaign again" if failed is None else f"failed: {failed['reason']}"
            )
            raise StorageError(f"{in_words(fit.labels)}: {what}")
        return open_result(fit_folder(self.path, fit.id))

    def damaged(self) -> Iterator[str]:
        """A sentence for each fit that had ended and is damaged."""
        for fit in self.manifest.fits:
            ended = is_finished(self.path, fit.id) and failure(self.path, fit.id) is None
            if ended and self.number(fit, "status") == "failed":
                yield str(self.number(fit, "stop"))

    def best(self, by: By | None = None, **labels: Any) -> xr.DataTree:
        """The result of the best fit, by held-out score where there is one, else by objective."""
        return self.open(self.best_fit(by, **labels))

    def best_fit(self, by: By | None = None, **labels: Any) -> Fit:
        """The finished fit with the highest held-out score or objective, of those with these labels.

        By objective a sampler is the best only among samplers: a log joint density is not a bound. Fits with
        different hold-outs saw different cells and are scored on different ones, so where `holdout` is
        swept it is one of the labels.
        """
        if by not in (None, "heldout", "objective"):
            raise UsageError(f"by is {by!r}: expected heldout or objective")
        fits = list(self.with_labels(**labels))
        if "holdout" not in labels and self.holdouts:
            some = ", ".join(map(str, self.holdouts))
            raise UsageError(
                f"{self.path}: fits with different hold-outs cannot be compared: give holdout, one of {some}"
            )
        scored = any(np.isfinite(self.number(fit, "heldout")) for fit in fits)
        by = by or ("heldout" if scored else "objective")
        level = np.array([self.number(fit, by) for fit in fits])
        if by == "objective":
            level = comparable(level, np.array([fit.labels["system"] for fit in fits]))
        if np.isnan(level).all():
            raise StorageError(
                f"{self.path}: no fit has {'a held-out score' if by == 'heldout' else 'ended'}"
            )
        return fits[int(np.nanargmax(level))]

    def restarts_of(self, fit: Fit) -> list[Fit]:
        """The fits that differ from one by their restart alone, and have ended."""
        same = {name: value for name, value in fit.labels.items() if name != "restart"}
        fits = self.with_labels(**same)
        return [one for one in fits if np.isfinite(self.number(one, "objective"))]

    def bests(self) -> list[Fit]:
        """The best fit of each hold-out that has one, in the order of the grid; the first is what stands
        for the campaign."""
        each: list[Labels] = [{"holdout": one} for one in self.holdouts] or [{}]
        return [self.best_fit(**labels) for labels in each if self._any_ended(**labels)]

    def shown(self) -> Fit:
        """The fit that stands for the campaign: its best, of several hold-outs that of the first."""
        fits = self.bests()
        if not fits:
            raise StorageError(f"{self.path}: no fit has ended")
        return fits[0]

    def _any_ended(self, **labels: Any) -> bool:
        return any(np.isfinite(self.number(fit, "objective")) for fit in self.with_labels(**labels))

    @property
    def holdouts(self) -> list[float | str]:
        """Hold-outs when several are swept."""
        return list(self.spec.dims().get("holdout", []))

    @property
    def is_scored(self) -> bool:
        """Whether fits have held-out scores."""
        return bool(self.summary["heldout"].notnull().any())

    @property
    def failed(self) -> list[tuple[Fit, str, int]]:
        """Fits that failed, with the reason and the exit code of each."""
        some = [fit for fit in self.manifest.fits if self.number(fit, "status") == "failed"]
        damaged = {"code": StorageError.code}  # not recorded yet
        codes = [(failure(self.path, fit.id) or damaged)["code"] for fit in some]
        return [(fit, self.number(fit, "stop"), code) for fit, code in zip(some, codes, strict=True)]

    @property
    def cut_short(self) -> bool:
        """Whether a fit stopped at the default limit of steps."""
        default = FitSpec.model_fields["steps"].default
        return any(
            fit.spec.steps == default == self.number(fit, "steps")
            and str(self.number(fit, "stop")).startswith("stopped at the limit")
            for fit in self.manifest.fits
        )

    def number(self, fit: Fit, name: str) -> Any:
        """A value of the summary."""
        dims = self.spec.dims()
        at = {dim: dims[dim].index(fit.labels[dim]) for dim in dims}
        return self.summary[name].isel(at).item()

    def restarts(self, **labels: Any) -> list[Fit]:
        """Finished restarts of one kind of fit: that with these labels, else that of the best fit."""
        kind = kind_of(self.best_fit(**labels))
        return [fit for fit in self.with_labels(**kind) if np.isfinite(self.number(fit, "objective"))]

    def aligned(self, **labels: Any) -> xr.Dataset:
        """Features of the restarts of one kind of fit beside those of the best one (consensus.py)."""
        top = self.best_fit(**labels)
        if systems.find(top.spec.system).sampler:
            raise UsageError(
                f"{top.spec.system}: one draw of a sampler is not an answer, so restarts are not compared; "
                "ibp.posterior.features says of each how sure its features are"
            )
        results = {fit.labels["restart"]: self.open(fit) for fit in self.restarts(**labels)}
        matched = consensus.aligned(results, top.labels["restart"])
        same = {name: str(value) for name, value in kind_of(top).items()}
        return matched.assign_attrs(same)

    def stability(self, **labels: Any) -> xr.Dataset:
        """Which features of the best fit with these labels come back.

        Where it was made with subsamples, the group `stability` of its result, `returns` among its variables.
        Otherwise `stability` (feature), the share of the other restarts that have a feature of the best one,
        with `stable`, `present` and `similarity` beside it (consensus.py).
        """
        best = self.best_fit(**labels)
        if best.spec.stability is not None:
            return self.open(best)["stability"].to_dataset().load()
        return consensus.stability(self.aligned(**labels))


def comparable(objective: NDArray[Any], names: NDArray[Any]) -> NDArray[Any]:
    """Objectives of fits that can be compared: NaN for those of samplers, if there are others."""
    kinds = np.array([one in systems.SYSTEMS and systems.find(one).sampler for one in names.ravel().tolist()])
    fits: NDArray[Any] = np.where(kinds.reshape(names.shape), np.nan, objective)
    return objective if np.isnan(fits).all() else fits


def kind_of(fit: Fit) -> dict[str, Any]:
    """The labels that a fit shares with its restarts."""
    return {name: value for name, value in fit.labels.items() if name != "restart"}


def open_campaign(run: str | Path) -> Campaign:
    """A campaign that `sweep` made, finished or not; damaged fits are left out with a warning."""
    refuse_urls(run)
    campaign = read_campaign(Path(run))
    for why in campaign.damaged():
        warnings.warn(f"leaving out a damaged fit: {why}", stacklevel=2)
    return campaign


def read_campaign(path: Path) -> Campaign:
    manifest = Manifest.read(path)
    return Campaign(path, manifest, table.summary(path, manifest))


def _same(label: Any, value: Any) -> bool:
    return bool(label == value or str(label) == str(value))


def run_of(path: Path) -> Path:
    """The run to read: of a campaign that of its best fit."""
    if not is_campaign(path):
        return path
    campaign = open_campaign(path)
    if campaign.holdouts:
        some = ", ".join(str(fit_folder(path, fit.id)) for fit in campaign.bests())
        raise UsageError(
            f"{path}: fits with different hold-outs cannot be compared; name the best of one: {some or path}"
        )
    return fit_folder(path, campaign.best_fit().id)


def runs_to_score(path: Path) -> list[Path]:
    """The runs whose predictions are averaged: of a campaign of counts the restarts of its best fit."""
    best = run_of(path)
    if best == path:
        return [path]
    campaign = open_campaign(path)
    fit = campaign.best_fit()
    if not systems.find(str(fit.labels["system"])).counts:
        return [best]
    return [fit_folder(path, one.id) for one in campaign.restarts_of(fit)]
