"""Fit and resume: from data and options to a result."""

from __future__ import annotations

import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ibpdist.base.errors import InputError, OutputInUse, StorageError, UsageError
from ibpdist.base.progress import after, before
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.centring import done_to
from ibpdist.data.entries import look_like_counts
from ibpdist.data.ingest_counts import store_counts
from ibpdist.data.output_path import refuse_place
from ibpdist.data.sparse_array import SparseArray
from ibpdist.data.urls import refuse_urls
from ibpdist.data.writer import create
from ibpdist.engine import provenance
from ibpdist.engine._base import Engine
from ibpdist.engine.place import Place
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Params
from ibpdist.predict import units
from ibpdist.runs import combine, result, side_by_side, start_from
from ibpdist.runs import restarts as starts
from ibpdist.runs.bench import bench_of
from ibpdist.runs.directory import RunDirectory, identity, is_run
from ibpdist.runs.job import Job, SamplerJob, check, job_begun, job_of, opened
from ibpdist.runs.loop import Progress, drive, in_memory
from ibpdist.runs.nested import nested_fits
from ibpdist.runs.planning import planned
from ibpdist.runs.sample import sample
from ibpdist.runs.stability import refuse_small

if TYPE_CHECKING:
    import xarray as xr

    from ibpdist.engine.cluster import Cluster

log = logging.getLogger("ibpdist")
OPEN = "ibpdist.runs.bench:open_bench"
SPECIFIED = (
    "steps", "rtol", "inner", "restarts", "holdout", "checkpoint", "chains", "burn", "thin",
    "stability", "subsample",
)  # fmt: skip
"""Options that a spec has a default for."""
Data = Any
"""An array, DataFrame, DataArray, source, or the path of a store."""


def fit(
    data: Data,
    *,
    system: str,
    K: int | Literal["auto"],
    run: str | Path | None = None,
    seed: int = 0,
    steps: int | None = None,
    rtol: float | None = None,
    inner: int | None = None,
    restarts: int | None = None,
    chains: int | None = None,
    burn: int | None = None,
    thin: int | None = None,
    holdout: float | str | None = None,
    checkpoint: int | None = None,
    stability: int | None = None,
    subsample: float | None = None,
    start: str | Path | xr.DataTree | None = None,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> xr.DataTree:
    """Fit a system of the catalog with K features to data; the result is an xarray tree.

    data: an array, DataFrame, DataArray, or the path of a dataset; NaN cells are missing.
    system: a name of `ibp.SYSTEMS`.
    K: maximum number of features, or "auto".
    run: a directory that keeps the fit and from which it can be resumed; else nothing stays on disk.
    seed: seed of all random numbers.
    steps: maximum number of steps.
    rtol: the relative gain of the objective below which a fit has converged.
    inner: sweeps over the features in each step.
    restarts: number of starts; the result is the one with the best objective.
    chains: number of chains of a sampler, run side by side.
    burn: first steps of each chain, not kept; half of the steps by default.
    thin: after burn-in, keep every Nth step.
    holdout: share of the columns to hide in half of the rows, or a recipe such as rows:share=0.1.
    checkpoint: steps from one checkpoint of a run to the next.
    stability: number of subsamples of the rows to fit as well; /stability says how often each feature comes
        back in them.
    subsample: share of the rows in each subsample; half of them by default, in complementary pairs.
    start: a run or result whose features to begin with: of the same model, or for a sampler of all rows
        at once of the same weights and observation. Subsamples do not begin with them.
    workers: local processes. Where a fit runs does not change its bits.
    serial: True to stay in this process.
    scheduler: the address of a Dask cluster to use.
    memory: the limit of a process in bytes.
    cache: bytes of data that a process may keep in memory.
    overwrite: True to replace what is at `run`.
    progress: is called with each step.
    **settings: those of the system, such as noise="column" or mass=5.
    """
    given = {"steps": steps, "rtol": rtol, "inner": inner, "restarts": restarts, "holdout": holdout}
    given |= {"checkpoint": checkpoint, "chains": chains, "burn": burn, "thin": thin}
    given |= {"stability": stability, "subsample": subsample}
    asked = Place(workers, serial, scheduler, memory, cache)
    if isinstance(start, str) and start in systems.STARTS:
        settings, start = settings | {"start": start}, None
    spec = _spec(data, given, system=system, truncation=K, seed=seed, set=settings)
    if run is not None:
        refuse_place(run, data, start)
    source = opened(data, spec.system)
    job = _checked(job_of(spec, source))
    job, first = (job, None) if start is None else start_from.started(start, job)
    place = asked.for_data(job.source, kept=run is not None)
    place.refuse_silent()
    if run is None and not place.distributed and not isinstance(job, SamplerJob):
        return _without_run(job, place, first, progress)
    raw = None if _is_path(data) else source
    if run is not None:
        return _with_run(job, raw, Path(run), place, first, progress, overwrite)
    with tempfile.TemporaryDirectory(prefix="ibpdist-") as folder:
        return result.load(_with_run(job, raw, Path(folder) / "run", place, first, progress, False))


def _spec(data: Data, given: Mapping[str, Any], **options: Any) -> FitSpec:
    """The spec of a fit; wrong options are refused before any data are read."""
    known = {name: value for name, value in given.items() if value is not None}
    try:
        spec = FitSpec.make(
            data=str(Path(data).absolute()) if _is_path(data) else "memory", **options, **known
        )
    except UsageError as error:  # a spec has another word for K
        raise UsageError(str(error).replace("truncation: ", "K: ", 1)) from None
    features = 1 if spec.truncation == "auto" else spec.truncation
    systems.build(spec.system, features, inner=spec.inner, settings=spec.set)
    check(spec)
    return spec


def resume(
    run: str | Path,
    *,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
    progress: Progress | None = None,
) -> xr.DataTree:
    """Continue an interrupted fit to the bits it would have had; a finished one is only opened."""
    refuse_urls(run)
    asked = Place(workers, serial, scheduler, memory, cache)
    path = Path(run)
    identity(path)
    if result.is_complete(path):
        with suppress(OutputInUse, StorageError):  # only to tidy up; the run may be on a read-only disk
            RunDirectory.open(path).close()
        return result.open_result(path)
    with _releasing(RunDirectory.open(path), new=False) as directory:
        job = _reopen(directory)
        _finish(directory, job, asked.for_data(job.source, kept=True), None, progress)
    return result.open_result(path)


def estimate(
    data: Data,
    *,
    system: str,
    K: int | Literal["auto"],
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
    **options: Any,
) -> str:
    """Where a fit with a run directory would run and the memory of a process, in words.

    `options` are those of `fit`, settings of the system among them. Nothing is computed or written. What
    `fit` would refuse is refused.
    """
    asked = Place(workers, serial, scheduler, memory, cache)
    given = {name: options.pop(name, None) for name in SPECIFIED}
    spec = _spec(data, given, system=system, truncation=K, seed=options.pop("seed", 0), set=options)
    job = _checked(job_of(spec, opened(data, spec.system)))
    place = asked.for_data(job.source, kept=True)
    largest = max([planned(job, place), *side_by_side.planned(job, place)], key=lambda plan: plan.state)
    return f"runs in {place.words}; {largest}"


def _without_run(job: Job, place: Place, first: Params | None, progress: Progress | None) -> xr.DataTree:
    """All starts and subsamples in this process and in memory; the best start, with tables of the others."""
    cache = planned(job, place).cache

    def made(one: Job) -> xr.DataTree:
        bench = Workbench(one.algorithm, one.source, MemoryHistory(), one.spec.seed, cache=cache)
        return in_memory(one, Serial(bench), provenance.facts(one.source), progress, first)

    fits = nested_fits(job.spec)
    found = [made(fit.job(job)) for fit in fits if fit.of_all_rows] or [made(job)]
    # The features of another fit come back where they are put in: no subsample begins with them.
    results = side_by_side.in_memory(job, place, progress)
    return starts.chosen(found, combine.compared(job, found, results, after(progress)))


def _with_run(
    job: Job,
    raw: Source | None,
    run: Path,
    place: Place,
    first: Params | None,
    progress: Progress | None,
    overwrite: bool,
) -> xr.DataTree:
    """A new run; data that are in memory are stored in it, so that it can be resumed."""
    store = run.absolute() / "data.zarr"
    spec = job.spec if raw is None else job.spec.model_copy(update={"data": str(store)})

    def prepare() -> dict[str, Any]:
        nonlocal job
        if raw is not None:
            _store(raw, store)
            job = job_begun(spec, provenance.center(job.source))
        return provenance.facts(job.source)

    created = RunDirectory.create(run, spec.dump(), prepare, overwrite=overwrite)
    with _releasing(created, new=True) as directory:
        _finish(directory, job, place, first, progress)
    return result.open_result(run)


def _finish(
    directory: RunDirectory, job: Job, place: Place, first: Params | None, progress: Progress | None
) -> None:
    """Take a run to its result: start by start, then all subsamples side by side."""
    run, fits = directory.path, nested_fits(job.spec)
    tell = log.warning if progress is None else before(progress)
    if place.distributed:
        before(progress)(f"connecting to {place.words}" if place.scheduler else f"starting {place.words}")
    with place.cluster(tell) as cluster:
        if not fits:
            advance(directory, job, place, cluster, first, progress)
            return
        combine.begin(directory, job)
        for fit in (one for one in fits if one.of_all_rows):
            one = fit.job(job)
            with _child(fit.folder(run), one) as child:
                if not result.is_complete(child.path):
                    advance(child, one, place, cluster, first, progress)
            directory.events.add(fit.kind, **fit.facts)
        # The features of another fit come back where they are put in: no subsample begins with them.
        side_by_side.advance(directory, job, place, cluster, progress)
    combine.complete(directory, job, after(progress))


def advance(
    directory: RunDirectory,
    job: Job,
    place: Place,
    cluster: Cluster | None,
    first: Params | None = None,
    progress: Progress | None = None,
) -> None:
    """Take one run, new or interrupted, to its result."""
    run = directory.path.absolute()
    memory = planned(job, place, cluster.size if cluster else None)
    directory.events.add("memory", plan=str(memory))
    if cluster is None:
        spill = str(run / "state") if memory.spill else ""
        engine: Engine = Serial(bench_of(job, str(run), memory.cache, spill))
    else:
        engine = cluster.engine(run, directory.nonce, OPEN, job.seen.chunks, memory, directory.tell)
    try:
        if isinstance(job, SamplerJob):
            sample(directory, job, engine, progress, first)
        else:
            drive(directory, job, engine, progress, first)
    finally:
        engine.close()
        shutil.rmtree(run / "state", ignore_errors=True)


@contextmanager
def _releasing(directory: RunDirectory, new: bool) -> Iterator[RunDirectory]:
    """Release the lock of a run at the end; a new run whose input is refused before any step is removed."""
    try:
        yield directory
    except (InputError, UsageError, StorageError):
        if new and not directory.has_steps():
            directory.remove()
        raise
    except KeyboardInterrupt:
        directory.events.add("interrupted")
        raise
    finally:
        directory.close()


@contextmanager
def _child(path: Path, job: Job) -> Iterator[RunDirectory]:
    new = not is_run(path)
    if not new:
        directory = RunDirectory.open(path)
    else:
        directory = RunDirectory.create(path, job.spec.dump(), lambda: provenance.facts(job.source))
    with _releasing(directory, new=new):
        yield directory


def _reopen(directory: RunDirectory) -> Job:
    """The job of an interrupted run; refuses other data, warns of other versions."""
    job = job_begun(FitSpec.read(directory.path / "spec.yaml"), directory.identity)
    facts = provenance.facts(job.source)
    if facts["fingerprint"] != directory.identity["fingerprint"]:
        raise StorageError(f"{job.spec.data}: has changed since the run began; fit again")
    other = [name for name in ("versions", "machine", "blas") if facts[name] != directory.identity[name]]
    if other:
        directory.events.add("moved", now={name: facts[name] for name in other})
        warnings.warn(
            f"{directory.path}: continues with other {' and '.join(other)} than it began with; "
            "the last bits of the result may differ",
            stacklevel=3,
        )
    return job


def _checked(job: Job) -> Job:
    """The job, refused where it has too few rows; warns where counts are taken for real numbers."""
    refuse_small(job)
    name = job.spec.system
    if not systems.find(name).counts and _of_counts(job.source):
        what = (
            f"cells look like counts, and {name} takes them for real numbers: counts-infinite is for counts"
        )
        warnings.warn(what, stacklevel=4)
    return job


def _of_counts(source: Source) -> bool:
    """Whether the rows of the first chunk look like counts."""
    return look_like_counts(source.read(0))


def _is_path(data: Data) -> bool:
    return isinstance(data, str | Path)


def _store(source: Source, path: Path) -> None:
    """Write a source in memory to a store with the same chunks, labels, units and image size."""
    if isinstance(source, SparseArray):
        store_counts(source, path)
        return
    start, stop = source.bounds(0)
    done = done_to(source)
    attributes = provenance.image(source) | ({} if done.is_identity else {"transform": done.attributes()})
    options: dict[str, Any] = {"dtype": source.dtype, "chunk_rows": stop - start, "attributes": attributes}
    with create(path, columns=source.columns, column_coords=source.column_coords(), **options) as writer:
        for name, values in units.numbers(done).items():
            writer.put(f"transform_{name}", ["column"], values)
        for index in range(source.chunks):
            chunk = source.read(index)
            writer.append(chunk.x, chunk.observed, source.row_coords(index))
