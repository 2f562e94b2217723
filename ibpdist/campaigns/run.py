"""Sweeps: from a grid to the results of all of its fits, a few groups of them at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibpdist.base.errors import BUG, ClusterLost, IbpError, InputError, StorageError, UsageError
from ibpdist.base.progress import Count, Sweep
from ibpdist.base.words import command
from ibpdist.campaigns import divided
from ibpdist.campaigns import group as groups
from ibpdist.campaigns import summary as table
from ibpdist.campaigns.directory import (
    GRID,
    CampaignDirectory,
    Fit,
    Manifest,
    failure,
    fit_folder,
    is_campaign,
    is_finished,
    sealed_grid,
)
from ibpdist.campaigns.groups import by_holdout, parallel_groups, resources_per_group, spread
from ibpdist.campaigns.progress import CampaignProgress
from ibpdist.campaigns.spec import CampaignSpec
from ibpdist.campaigns.timing import Timing
from ibpdist.data._base import Source
from ibpdist.data.output_path import refuse_place
from ibpdist.data.urls import refuse_urls
from ibpdist.engine import provenance
from ibpdist.engine.place import Place
from ibpdist.runs import scores
from ibpdist.runs.directory import RunDirectory, is_run
from ibpdist.runs.fit import advance
from ibpdist.runs.group import close, engine_of, group_of
from ibpdist.runs.job import as_begun, job_on, opened, seen_by_fits
from ibpdist.runs.planning import grouped, is_sampler, planned_for, together
from ibpdist.runs.stability import refuse_small
from ibpdist.storage import records

if TYPE_CHECKING:
    from ibpdist.campaigns.campaign import Campaign
    from ibpdist.engine.cluster import Cluster

Given = str | Path | CampaignSpec | Mapping[str, Any]
"""A YAML file, or its keys and values."""


def sweep(
    campaign: Given,
    run: str | Path,
    *,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
    progress: Sweep | None = None,
) -> Campaign:
    """Make all fits of a grid that are not in RUN yet; the campaign, as `open_campaign` gives it.

    campaign: a YAML file, or a mapping with its keys: data, system, truncation, restarts, seed, steps,
    rtol, inner, holdout, start, set; single values or lists. For samplers also chains, burn, thin; for other
    systems stability, the number of subsamples of the rows that each fit is made of as well, and subsample.
    run: the directory of the campaign. An interrupted campaign is continued; with more values than before
    only the new fits are computed; failed fits are repeated.
    workers, serial, scheduler, memory, cache: as for `fit`. Where it runs does not change any bits.
    progress: is called with a `CampaignStatus` after each step.
    """
    from ibpdist.campaigns.campaign import read_campaign

    asked = Place(workers, serial, scheduler, memory, cache)
    path = Path(run)
    spec = spec_of(campaign, path)
    refuse_place(path, spec.data)
    source = opened(spec.data, spec.system[0])
    if source.rows == 0:
        raise InputError("has no rows", file=spec.data)
    place = asked.for_data(source, kept=True)
    if not is_campaign(path):
        place.refuse_silent()
    directory = CampaignDirectory(path)
    try:
        CampaignRunner(directory, directory.begin(spec, source.fingerprint), source, place, progress).run()
    except KeyboardInterrupt:
        directory.events.add("interrupted")
        raise
    finally:
        directory.close()
    return read_campaign(path)


def spec_of(campaign: Given, run: Path | None = None) -> CampaignSpec:
    """The grid, its data by absolute path; in a file the path is relative to the file. The file in RUN itself
    stands for the grid that is sealed there."""
    refuse_urls(campaign, run)
    if run is not None and is_campaign(run) and _is_file(campaign, run / GRID):
        return sealed_grid(run)
    if isinstance(campaign, CampaignSpec):
        spec, base = campaign, Path()
    elif isinstance(campaign, Mapping):
        spec, base = CampaignSpec.make(**campaign), Path()
    else:
        spec, base = CampaignSpec.read(campaign), Path(campaign).parent
    refuse_urls(spec.data)
    return spec.model_copy(update={"data": str((base / spec.data).absolute())})


def _is_file(campaign: Given, file: Path) -> bool:
    return isinstance(campaign, str | Path) and Path(campaign).resolve() == file.resolve()


@dataclass
class CampaignRunner:
    """One call of `sweep`: its inputs, and the fits that it is to make."""

    directory: CampaignDirectory
    manifest: Manifest
    source: Source
    place: Place
    progress: Sweep | None
    share: Place = field(init=False)
    """The share of the place that each of the groups has which advance side by side."""
    status: CampaignProgress = field(init=False)
    wanted: set[str] = field(default_factory=set)
    """Ids of the fits and parts of fits to make."""
    divided: list[Fit] = field(default_factory=list)
    """Fits to complete when their parts are there."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    views: dict[float | str, Source] = field(default_factory=dict)
    """The data as fits of all rows see them, by hold-out."""

    def __post_init__(self) -> None:
        path = self.directory.path
        parts = [part for fit in self.manifest.fits for part in fit.parts]
        self.status = CampaignProgress(path, parts, self.progress, self._trial, self.place.distributed)

    def run(self) -> None:
        fits = self.manifest.fits
        for fit in fits:
            self.directory.forget_failure(fit)
        new = [fit for fit in fits if not self._is_made(fit) and self._can_begin(fit)]
        self.divided = [fit for fit in new if fit.parts != [fit]]
        path = self.directory.path
        wanted = [part for fit in new for part in fit.parts if not is_finished(path, part.id)]
        self.wanted = {fit.id for fit in wanted}
        self._complete()
        self.status.rest()
        if wanted:
            with self.place.cluster(self.status.wait) as cluster:
                size = cluster.size if cluster else None
                count = parallel_groups(wanted, self.source, size or 0)
                self.share = resources_per_group(self.place, count, size)
                self._advance_all(self._groups(wanted, size, count), cluster, count)
        self._score_all()
        table.write(self.directory.path, self.manifest)

    def _trial(self, fit: Fit, active: int) -> float:
        """Seconds of the score of a fit with this number of active features, by a trial on some rows."""
        return self.timing.score(fit.spec, active)

    @cached_property
    def timing(self) -> Timing:
        return Timing(self.source, self.place.processes)

    def seen(self, fit: Fit) -> Source:
        """The data as fits of all rows with the hold-out of this one see them."""
        recipe = fit.spec.holdout
        if recipe not in self.views:
            self.views[recipe] = seen_by_fits(self.source, fit.spec)
        return self.views[recipe]

    def _is_made(self, fit: Fit) -> bool:
        """Whether its result is there; when the log does not record its end, the fit has failed."""
        folder = fit_folder(self.directory.path, fit.id)
        if not is_finished(self.directory.path, fit.id):
            return False
        try:
            table.ended(folder)
        except StorageError as error:
            self._fail(fit, error)
        return True

    def _can_begin(self, fit: Fit) -> bool:
        """Whether its system takes its settings and the data; otherwise only this fit has failed. The run of
        one that has parts is made."""
        try:
            job = job_on(fit.spec, self.seen(fit))
            refuse_small(job)
            if fit.parts != [fit]:
                divided.begin(self.directory, fit, job)
        except Exception as error:  # noqa: BLE001  (a fit fails alone)
            self._fail(fit, error)
            return False
        return True

    def _groups(self, wanted: Sequence[Fit], size: int | None, count: int) -> list[list[Fit]]:
        """Groups that are under way, then as few as fit into memory, but enough to be side by side."""
        known = groups.under_way(self.directory.path, wanted)
        taken = {fit.id for group in known for fit in group}
        rest = [fit for fit in wanted if fit.id not in taken]
        new = [
            group
            for held_out in by_holdout(rest).values()
            for alike in together(held_out, self.seen(held_out[0]))
            for group in grouped(alike, self.source, self.share, size)
        ]
        return [*known, *spread(new, count - len(known))]

    def _advance_all(self, waiting: Sequence[Sequence[Fit]], cluster: Cluster | None, count: int) -> None:
        """Advance `count` groups at a time. Each has a thread, which mostly waits for the cluster; an error
        of one ends all."""
        if cluster is None or count == 1:
            for fits in waiting:
                self._advance(fits, cluster)
            return
        with ThreadPoolExecutor(count) as pool:
            futures = [pool.submit(self._advance, fits, cluster) for fits in waiting]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                cluster.halt.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _advance(self, fits: Sequence[Fit], cluster: Cluster | None) -> None:
        """Take a group to its results; when all of it fails, its fits are continued in two halves."""
        step = self._alone if is_sampler(fits[0]) else self._together
        broken = step(fits, cluster)
        if broken is None:
            with self.lock:
                self._complete()
                table.write(self.directory.path, self.manifest)
        elif len(fits) == 1:
            self._fail(fits[0], broken)
            self.status.rest(fits)
        else:
            self.directory.events.add("broken", fits=[fit.id for fit in fits], reason=str(broken))
            path = self.directory.path
            left = [fit for fit in fits if fit.id in self.wanted and not is_finished(path, fit.id)]
            half = len(left) // 2
            self.status.rest(fits)
            for part in filter(None, (left[:half], left[half:])):
                self._advance(part, cluster)

    def _together(self, fits: Sequence[Fit], cluster: Cluster | None) -> Exception | None:
        """Step a group to its end; the error if it failed for a reason of its own."""
        self.status.rest(fits)
        seen, specs = self.seen(fits[0]), [fit.spec for fit in fits]
        try:
            source = group_of(specs, seen).source
            memory = planned_for(fits, source, self.share, cluster.size if cluster else None)
        except UsageError as error:
            return error
        with _resumable(self.directory.path), groups.opened(self.directory.path, fits, source) as run:
            group = group_of(specs, as_begun(seen, run.identity))
            run.events.add("memory", plan=str(memory))
            with engine_of(run, cluster, memory, source.chunks) as engine:
                try:
                    groups.finish(self.directory, run, fits, group, engine, partial(self.status.step, fits))
                except (ClusterLost, StorageError):
                    raise
                except Exception as error:  # noqa: BLE001  (the fits of other groups continue)
                    close(run, broken=str(error))
                    return error
        self.status.rest(fits)
        return None

    def _alone(self, fits: Sequence[Fit], cluster: Cluster | None) -> Exception | None:
        """Take a sampler to its end in the run of its fit; the error if it failed for a reason of its own."""
        self.status.rest(fits)
        (fit,) = fits
        source = self.seen(fit)
        with _resumable(self.directory.path), _run_of(self.directory.path, fit, source) as run:
            job = job_on(fit.spec, as_begun(source, run.identity))
            try:
                advance(run, job, self.share, cluster, progress=partial(self.status.step, fits))
            except (ClusterLost, StorageError):
                raise
            except Exception as error:  # noqa: BLE001  (the other fits continue)
                return error
            seconds = table.ended(run.path)["seconds"]
        self.status.rest(fits)
        self.directory.events.add("fit", fit=fit.id, steps=fit.spec.steps, seconds=seconds)
        return None

    def _complete(self) -> None:
        """Complete the fits whose parts are all there; one for which that is not possible has failed."""
        ready = [fit for fit in self.divided if divided.can_complete(self.directory, fit)]
        self.divided = [fit for fit in self.divided if fit not in ready]
        for fit in ready:
            try:
                divided.complete(self.directory, fit, job_on(fit.spec, self.seen(fit)))
            except Exception as error:  # noqa: BLE001  (a fit fails alone)
                self._fail(fit, error)

    def _fail(self, fit: Fit, error: Exception, what: str = "") -> None:
        known = isinstance(error, IbpError)
        reason = str(error) if known else f"{type(error).__name__}: {error}; this is a bug"
        self.directory.fail(fit, what + reason, error.code if isinstance(error, IbpError) else BUG)

    def _score_all(self) -> None:
        """Make the missing held-out scores of finished fits."""
        wanted = [fit for fit in self.manifest.fits if self._lacks_score(fit)]
        for number, fit in enumerate(wanted, 1):
            self.status.scoring(number, len(wanted))
            self._score(fit, partial(self._scored, number, len(wanted)))
        if wanted:
            self.status.rest()

    def _scored(self, number: int, of: int, rows: int, whole: int | None) -> None:
        self.status.scoring(number, of, rows / (whole or 1))

    def _lacks_score(self, fit: Fit) -> bool:
        path = self.directory.path
        if not fit.spec.holdout or not is_finished(path, fit.id) or failure(path, fit.id):
            return False
        try:
            return scores.own(scores.read(fit_folder(path, fit.id)), fit.spec.data) is None
        except StorageError:
            return True

    def _score(self, fit: Fit, progress: Count) -> None:
        """Score a finished fit; when it cannot be scored, or the score cannot be kept, the fit has failed."""
        from ibpdist.evaluate.heldout import evaluate

        folder = fit_folder(self.directory.path, fit.id)
        try:
            with scores.required(), records.storage_errors(folder):
                scores.mend(folder)
                evaluate(folder, workers=self.place.workers, progress=progress)
        except Exception as error:  # noqa: BLE001  (a fit fails alone)
            self._fail(fit, error, "has no held-out score: ")
        else:
            self.directory.events.add("scored", fit=fit.id)


@contextmanager
def _resumable(campaign: Path) -> Iterator[None]:
    """End the campaign when the cluster is lost, with the command that continues the whole campaign."""
    try:
        yield
    except ClusterLost as lost:
        cause = str(lost).partition("; nothing that was saved is lost")[0].partition("; continue with")[0]
        way = command("sweep", campaign / GRID, campaign)
        raise ClusterLost(f"{cause}; no fit that was finished is lost, continue with: {way}") from lost


@contextmanager
def _run_of(campaign: Path, fit: Fit, source: Source) -> Iterator[RunDirectory]:
    """The run of a fit that advances alone, new or under way."""
    folder = fit_folder(campaign, fit.id)
    if is_run(folder):
        run = RunDirectory.open(folder)
    else:
        facts = provenance.facts(source)
        run = RunDirectory.create(folder, fit.spec.dump(), lambda: facts, overwrite=True)
    try:
        yield run
    finally:
        run.close()
